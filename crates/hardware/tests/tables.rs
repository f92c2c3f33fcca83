//! Catalog files: every problem with its line, unknown stays unknown, rubbish never panics.

use hardware::{Hardware, Severity, Sources, check_gpus, check_nodes};
use proptest::prelude::*;
use units::Basis;

const HEAD: &str = "id,vendor,name,memory_nominal_gb,memory_usable_gib,memory_bandwidth_gb_per_s,bf16_dense_tflops,\
bf16_sparse_tflops,link_gb_per_s_per_direction\n";

fn lines(found: &[hardware::Finding]) -> Vec<String> {
    found.iter().map(ToString::to_string).collect()
}

#[test]
fn every_problem_is_reported_with_its_line() {
    let csv = format!(
        "{HEAD}nvidia-a,nvidia,A,80,,2000,300,600,450\n\
         nvidia-b,nvidia,B,eighty,,2000,300,600,\n\
         nvidia-c,nvidia,C,80,90,2000,600,300,\n\
         amd-d,nvidia,D,80,,2000,,,\n\
         nvidia-a,nvidia,A,80,,2000,,,\n\
         nvidia-e,nvidia,E,80,,800,,,900\n\
         nvidia-f,matrox,F,80,,,,,\n\
         nvidia-g,nvidia,G,80,,,,,\n"
    );
    assert_eq!(
        lines(&check_gpus("my.csv", &csv)),
        [
            "my.csv:3: error: `memory_nominal_gb`: `eighty` is not a number",
            "my.csv:4: error: usable memory 90 GiB is more than the label's 80 GB",
            "my.csv:4: error: the sparse bf16 figure 300 TFLOPS is not above the dense one 600",
            "my.csv:5: error: gpu id `amd-d` does not start with its vendor `nvidia-`",
            "my.csv:6: error: gpu `nvidia-a` stands twice in this file",
            "my.csv:7: error: a link of 900 GB/s per direction is faster than the memory's 800 GB/s; is it a sum of both directions?",
            "my.csv:8: error: vendor `matrox` is none of nvidia, amd, intel, apple",
            "my.csv:9: error: gpu `nvidia-g` has no `memory_bandwidth_gb_per_s`",
        ]
    );
    let nodes = "id,provider,name,gpu,gpu_count,topology\n\
                 n1,me,one,nvidia-h100-sxm,8,nvswitch\n\
                 n2,me,two,nvidia-h1000,8,nvswitch\n\
                 n3,me,three,nvidia-h100-sxm,-8,nvswitch\n\
                 n4,me,four,nvidia-rtx-4090,2,bridges\n\
                 n1,me,one,nvidia-h100-sxm,8,ring\n";
    assert_eq!(
        lines(&check_nodes("n.csv", nodes, &Hardware::embedded())),
        [
            "n.csv:3: error: node `n2`: no catalog GPU is called `nvidia-h1000`; did you mean `h100-sxm`, `h100-pcie` or `h100-nvl`?",
            "n.csv:4: error: `gpu_count` is -8, outside 0.01 to 576",
            "n.csv:5: warning: node `n4`: rtx-4090 takes no bridge",
            "n.csv:6: error: topology `ring` is none of single, nvswitch, mesh, bridges, pcie",
        ]
    );
}

#[test]
fn a_missing_column_is_unknown() {
    let mut h = Hardware::embedded();
    let row = "id,vendor,name,memory_nominal_gb,memory_bandwidth_gb_per_s\nnvidia-new,nvidia,New,100,5000\n";
    assert_eq!(h.add_gpus("g.csv", row, &Sources::default()), []);
    let new = h.find_gpu("new").unwrap();
    assert_eq!((new.tdp, new.peaks.matrix16(), new.link.as_ref(), new.pcie), (None, None, None, None));
    assert_eq!(new.memory.usable.basis, Basis::Assumed);
    let found = check_gpus("g.csv", "id,name\nnvidia-x,X\n");
    assert_eq!(lines(&found), ["g.csv:1: error: no column `vendor`, `memory_nominal_gb`"]);
    let found = check_gpus("g.csv", "id,vendor,name,memory_nominal_gb,memory_bandwidth_gb_per_s,memory_gb\n");
    assert_eq!(lines(&found), ["g.csv:1: warning: column `memory_gb` is unknown and ignored"]);
}

#[test]
fn users_rows_replace_by_id() {
    let mut h = Hardware::embedded();
    let gpus = h.gpus().len();
    let row = "id,vendor,name,memory_nominal_gb,memory_bandwidth_gb_per_s\nnvidia-h100-sxm,nvidia,Mine,81,3000\n";
    assert_eq!(h.add_gpus("g.csv", row, &Sources::default()), []);
    assert_eq!((h.gpus().len(), h.find_gpu("h100-sxm").unwrap().name.as_str()), (gpus, "Mine"));
}

#[test]
fn floods_are_cut() {
    let mut csv = String::from(HEAD);
    for _ in 0..5000 {
        csv.push_str("bad,bad,bad,bad\n");
    }
    let found = check_gpus("g.csv", &csv);
    assert!(found.len() <= 1001 && found.iter().all(|f| f.severity == Severity::Error), "{}", found.len());
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,300}") {
        let _ = check_gpus("g", &text);
        let _ = check_nodes("n", &text, &Hardware::default());
        let _ = Hardware::parse(&text, &text, &text);
    }

    #[test]
    fn arbitrary_cells_never_panic(cells in proptest::collection::vec("[-0-9.eEnaif,\"\n x]{0,12}", 9)) {
        let csv = format!("{HEAD}nvidia-x,nvidia,{}\n", cells.join(","));
        let _ = check_gpus("g", &csv);
        let nodes = format!("id,provider,name,gpu,gpu_count,topology,topology_gpus,nic_count,nic_gbit_per_s\n{}\n", cells.join(","));
        let _ = check_nodes("n", &nodes, &Hardware::embedded());
    }

    #[test]
    fn numbers_out_of_range_are_refused(value in proptest::num::f64::ANY) {
        let csv = format!("{HEAD}nvidia-x,nvidia,X,{value},,2000,,,\n");
        let mut h = Hardware::default();
        let found = h.add_gpus("g", &csv, &Sources::default());
        prop_assert_eq!(found.is_empty(), (0.5..=4096.0).contains(&value));
        prop_assert_eq!(h.gpus().len(), usize::from(found.is_empty()));
    }
}
