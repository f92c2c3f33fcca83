//! Every catalog model against known answers: parameter totals that equal the model instantiated by the reference
//! implementation, published element counts of checkpoints, and cache bytes per token.

#![allow(clippy::disallowed_methods, reason = "tests read the measurements that they are judged by")]

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
        let name = cells.next().expect("a row begins with a name");
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

/// Rows of the catalog that no reader understands yet; they must be refused, not guessed.
const NOT_READ: &[&str] = &[
    "MiniMaxAI/MiniMax-M3",
    "Zyphra/ZAYA1-base",
    "Zyphra/Zamba-7B-v1",
    "deepseek-ai/DeepSeek-V4-Flash",
    "deepseek-ai/DeepSeek-V4-Pro",
    "inclusionAI/Ling-3.0-flash",
    "moonshotai/Kimi-K3",
    "nvidia/DeepSeek-V4-Flash-NVFP4",
    "nvidia/DeepSeek-V4-Pro-NVFP4",
    "nvidia/MiniMax-M3-NVFP4",
    "sgl-project/DeepSeek-V4-Flash-FP8",
    "sgl-project/DeepSeek-V4-Pro-FP8",
    "stepfun-ai/Step-3.7-Flash",
    "zai-org/GLM-5.3-Flash",
];

/// Exact answers per column of those that `truth.csv` has: total, active, mtp, stored, kv.
const EXACT: [(usize, usize); 5] = [(268, 278), (227, 227), (227, 227), (204, 206), (227, 227)];

#[test]
fn catalog_models_are_exact() {
    let catalog = Catalog::embedded();
    let (counts, read, wrong) =
        check(TRUTH, |name| catalog.entries().iter().find(|e| e.name == name).map(|e| e.spec()));
    println!("{read} of {} configs read", catalog.entries().len());
    for (column, (exact, of)) in COLUMNS.iter().zip(counts) {
        println!("{}: {exact} of {of} exact", column.name);
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(counts, EXACT);
    assert_eq!(read, 284 - NOT_READ.len());
    let refused: Vec<_> = catalog.entries().iter().filter(|e| e.spec().is_err()).map(|e| e.name).collect();
    assert_eq!(refused, NOT_READ);
    for entry in catalog.entries() {
        match entry.spec() {
            Ok(_) => {}
            Err(e) => assert!(matches!(e, ModelError::UnknownArchitecture { .. }), "{}: {e}", entry.name),
        }
    }
}

/// The compacted catalog says the same as the full configs.
#[test]
fn full_configs_say_the_same() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/models");
    if !std::path::Path::new(folder).is_dir() {
        println!("skipped: {folder} is missing");
        return;
    }
    for entry in Catalog::embedded().entries() {
        let file = format!("{folder}/{}.json", entry.name.replace('/', "__"));
        let full = model::read_config(entry.name, &std::fs::read(&file).unwrap());
        let strip = |spec: ModelSpec| ModelSpec { problems: Vec::new(), ..spec };
        assert_eq!(full.map(strip), entry.spec().map(strip), "{}", entry.name);
    }
}

/// A file's name finds the same checkpoint facts as the repository's.
#[test]
fn files_named_after_repositories_are_that_checkpoint() {
    let entry = Catalog::embedded().find("deepseek-ai/DeepSeek-V3").unwrap();
    for name in ["deepseek-ai__DeepSeek-V3", "models/deepseek-ai__DeepSeek-V3.json", "deepseek-ai/DeepSeek-V3"] {
        let spec = model::read_config(name, entry.config().as_bytes()).unwrap();
        assert_eq!(spec.params_stored().0, 684_531_386_000, "{name}");
    }
    let other = model::read_config("my-model", entry.config().as_bytes()).unwrap();
    assert_eq!(other.params_stored().0, 684_489_845_504);
}

/// What `checkpoints.csv` says of a checkpoint follows from its anatomy by the reason given, so the rows only decide
/// which checkpoints hold such elements, not how many.
#[test]
fn checkpoint_rows_follow_from_the_anatomy() {
    let mut checked = 0;
    for row in include_str!("../data/checkpoints.csv").lines().skip(1) {
        let cells: Vec<_> = row.splitn(4, ',').collect();
        let [name, reason, elements, _] = cells[..] else { panic!("{row}") };
        let spec = Catalog::embedded().find(name).unwrap().spec().unwrap();
        let layers = spec.layer_count() as i64;
        let table = (spec.vocab * spec.hidden) as i64;
        let expect = match reason {
            "fp8 block scales" => {
                let scales = |run: &model::LayerRun| {
                    let bytes = |m: &model::Matrix| spec.weights.matrix_bytes(m, &spec.unquantised, 2).0;
                    let quantised = run.matrices.iter().filter(|m| spec.weights.quantises(m.role, &spec.unquantised));
                    quantised.map(|m| bytes(m) - m.elements() - 2 * m.bias_elements()).sum::<u64>() / 4
                };
                let mtp = spec.mtp.as_ref().and_then(|m| m.layer.as_ref());
                spec.layers.iter().chain(mtp).map(|run| scales(run) * u64::from(run.count)).sum::<u64>() as i64
            }
            "stored copy of the tied head" => table,
            "rotary inv_freq buffers" => layers * (spec.hidden / u64::from(spec.heads()) / 2) as i64,
            "MTP block without its own embedding and head" => -2 * table,
            "causal mask buffers" if spec.name.contains("gpt2") => {
                layers * (spec.max_context * spec.max_context) as i64
            }
            _ => continue,
        };
        assert_eq!(elements.parse::<i64>().unwrap(), expect, "{row}");
        checked += 1;
    }
    println!("{checked} rows checked");
    assert!(checked >= 20);
}
