//! Every catalog model against known answers: parameter totals that equal the model instantiated by the reference
//! implementation, published element counts of checkpoints, and cache bytes per token.

use model::{Catalog, KvFormat, ModelError, ModelSpec};

const TRUTH: &str = include_str!("truth.csv");

struct Column {
    name: &'static str,
    get: fn(&ModelSpec) -> u64,
}

const COLUMNS: [Column; 5] = [
    Column { name: "total", get: |s| s.params_total().0 },
    Column { name: "active", get: |s| s.params_active().0 },
    Column { name: "mtp", get: |s| s.params_mtp().0 },
    Column { name: "stored", get: |s| s.params_stored().0 },
    Column { name: "kv", get: |s| s.kv_bytes_per_token(KvFormat::Bf16).0 },
];

fn check(
    truth: &str,
    spec_of: impl Fn(&str) -> Option<Result<ModelSpec, ModelError>>,
) -> ([(usize, usize); 5], usize, Vec<String>) {
    let mut counts = [(0, 0); 5];
    let mut read = 0;
    let mut wrong = Vec::new();
    for row in truth.lines().skip(1) {
        let mut cells = row.split(',');
        let name = cells.next().unwrap();
        let answers: Vec<Option<u64>> = cells.map(|c| c.parse().ok()).collect();
        let spec = spec_of(name).unwrap_or_else(|| panic!("{name} is missing"));
        match &spec {
            Ok(_) => read += 1,
            Err(ModelError::UnknownArchitecture { .. }) => {}
            Err(e) => wrong.push(format!("{name}: {e}")),
        }
        for ((column, answer), (exact, of)) in COLUMNS.iter().zip(answers).zip(&mut counts) {
            let Some(answer) = answer else { continue };
            *of += 1;
            let Ok(spec) = &spec else { continue };
            let got = (column.get)(spec);
            if got == answer {
                *exact += 1;
            } else {
                wrong.push(format!(
                    "{name}: {} {got} instead of {answer} ({:+})",
                    column.name,
                    i128::from(got) - i128::from(answer)
                ));
            }
        }
    }
    (counts, read, wrong)
}

#[test]
fn catalog_models_are_exact() {
    let catalog = Catalog::embedded();
    let (counts, read, wrong) =
        check(TRUTH, |name| catalog.entries().iter().find(|e| e.name == name).map(|e| e.spec()));
    println!("{read} of {} configs read", catalog.entries().len());
    for (column, (exact, of)) in COLUMNS.iter().zip(counts) {
        println!("{}: {exact} of {of} exact", column.name);
    }
    for entry in catalog.entries() {
        if let Err(e) = entry.spec() {
            println!("not read: {e}");
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
