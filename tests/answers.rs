//! The JSON that other programs rely on, and figures that people know.

use std::process::Command;

use serde_json::Value;

/// Runs the binary; returns its exit code and stdout as JSON.
fn run(args: &[&str]) -> (i32, Value) {
    let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
        .args(args)
        .args(["--format", "json", "--today", "2026-11-30"])
        .env("NODEWISE_CONFIG_DIR", "no-such-folder")
        .output()
        .expect("the binary runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let value = serde_json::from_str(&text)
        .unwrap_or_else(|e| panic!("{args:?}: {e}: {text} {}", String::from_utf8_lossy(&output.stderr)));
    (output.status.code().expect("an exit code"), value)
}

fn gb(value: &Value) -> f64 {
    value.as_f64().expect("a number of bytes") / 1e9
}

/// The well-known table of a 744B-parameter model: weights only, decimal GB of the label.
#[test]
fn the_744b_table() {
    let cases = [
        ("fp8", "8xh100-sxm", false, 2, None),
        ("fp8", "8xh200-sxm", true, 1, Some(384.0)),
        ("fp8", "8xb200-sxm", true, 1, Some(696.0)),
        ("bf16", "8xh100-sxm", false, 3, None),
        ("bf16", "8xh200-sxm", false, 2, None),
        ("bf16", "8xb200-sxm", false, 2, None),
    ];
    for (format, on, fits, needed, left) in cases {
        let (code, fit) =
            run(&["fit", "--params", "744B", "--weights", format, "--weights-only", "--memory", "nominal", "--on", on]);
        assert_eq!(fit["fits"], fits, "{format} {on}");
        assert_eq!(code, i32::from(!fits));
        assert_eq!(fit["nodes_needed"], needed, "{format} {on}");
        assert_eq!(fit["gpus"], 8);
        if let Some(left) = left {
            assert!((gb(&fit["per_gpu"]["free_bytes"]) * 8.0 - left).abs() < 0.01, "{format} {on} {fit}");
        }
    }
}

/// A bare size serves as well as it can: weights count, widths and cache are unknown and said so.
#[test]
fn a_bare_size_can_be_fitted_and_planned() {
    for (size, active, on) in
        [("744B", Some("40B"), "8xb200-sxm"), ("70B", None, "4xh100-sxm"), ("7B", None, "rtx-4090")]
    {
        let mut args = vec!["--params", size, "--weights", "fp8"];
        args.extend(active.iter().flat_map(|a| ["--active", a]));
        let (code, fit) = run(&[&["fit"], &args[..], &["--on", on]].concat());
        assert_eq!((code, fit["fits"].as_bool()), (0, Some(true)), "{size} {fit}");
        assert!(fit["kv_tokens_max"].is_null());
        let (code, answer) = run(&[&["plan"], &args[..]].concat());
        assert_eq!(code, 0);
        assert!(answer["plans"].as_array().is_some_and(|p| p.len() > 5), "{size}");
        assert!(answer["assumptions"].to_string().contains("KV cache of a bare size is unknown"));
    }
}

/// The terms of a GPU's memory add up to what an engine sees, whether it fits or not.
#[test]
fn the_terms_of_a_fit_add_up() {
    for on in ["8xh100-sxm", "2x8xh100-sxm", "8xh200-sxm", "8xb200-sxm", "8xmi325x"] {
        for more in [&["--dp", "8", "--ep", "8", "--tp", "1"][..], &[][..]] {
            let mut args = vec!["fit", "glm-5.3-fp8", "--on", on];
            args.extend(more);
            let (_, fit) = run(&args);
            let per = &fit["per_gpu"];
            let sum: f64 = ["weights", "kv", "activations", "runtime", "reserve", "free"]
                .iter()
                .map(|k| per[format!("{k}_bytes")].as_f64().expect("a number"))
                .sum();
            assert_eq!(sum, per["usable_bytes"].as_f64().expect("a number"), "{on} {per}");
        }
    }
}

/// The latent of MLA is replicated under tensor parallelism: attention data parallelism holds more sessions.
#[test]
fn latent_attention_holds_more_under_data_parallelism() {
    let sessions = |more: &[&str]| {
        let mut args = vec!["fit", "glm-5.3-fp8", "--on", "8xh200-sxm", "--context", "32Ki", "--concurrency", "1"];
        args.extend(more);
        let (_, fit) = run(&args);
        fit["sequences_max"].as_u64().expect("a count")
    };
    let tp = sessions(&["--tp", "8"]);
    let dp = sessions(&["--tp", "1", "--dp", "8", "--ep", "8"]);
    assert!(dp >= 3 * tp && tp > 0, "TP8 {tp}, DP8 {dp}");
}

#[test]
fn sizes_that_people_know() {
    let weights = |model: &str| gb(&run(&["model", model]).1["weights_bytes"]);
    assert!((13.0..14.5).contains(&weights("llama-2-7b")), "7B at 16 bit is about 14 GB");
    assert!((137.0..142.0).contains(&weights("llama-3.1-70b")), "70B at 16 bit is about 140 GB");
    let fits = |args: &[&str]| run(args).1["fits"].as_bool().expect("an answer");
    assert!(!fits(&["fit", "llama-3.1-70b", "--on", "1xh100-sxm"]));
    assert!(fits(&["fit", "llama-3.1-70b", "--on", "2xh100-sxm", "--weights-only"]));
    assert!(fits(&["fit", "llama-3.1-70b", "--on", "4xh100-sxm"]));
    assert!(fits(&["fit", "llama-3.1-70b", "--on", "a100-sxm-80gb", "--weights", "awq"]));
    let (code, refused) = run(&["fit", "llama-3.1-405b", "--on", "8xh100-sxm"]);
    assert_eq!((code, refused["fits"].as_bool()), (1, Some(false)));
    assert_eq!(refused["nodes_needed"], 2);
}

#[test]
fn model_keys() {
    let (_, v3) = run(&["model", "deepseek-v3"]);
    let p = &v3["parameters"];
    assert_eq!(p["total"], 671_026_404_352u64);
    assert_eq!(p["mtp"], 11_610_068_224u64);
    assert_eq!(p["stored"], 684_531_386_000u64);
    assert_eq!(p["active"], 37_552_282_624u64);
    assert_eq!(v3["kv"]["bytes_per_token"], 70_272);
    assert_eq!(v3["kv"]["state_bytes_per_sequence"], 0);
    assert!(v3["problems"].is_array());
    let (_, two) = run(&["model", "llama-3.1-8b", "Mixtral-8x7B-v0.1"]);
    assert_eq!(two[0]["parameters"]["total"], 8_030_261_248u64);
    assert_eq!(two[1]["parameters"]["total"], 46_702_792_704u64);
}

#[test]
fn plan_keys() {
    let (code, answer) = run(&["plan", "llama-3.1-70b", "--weights", "fp8"]);
    assert_eq!(code, 0);
    let plan = &answer["plans"][0];
    for key in [
        "nodes",
        "gpus",
        "replicas",
        "ttft_ms",
        "tpot_ms",
        "output_tokens_per_s",
        "output_tokens_per_s_per_gpu",
        "usd_per_hour",
        "usd_per_month",
        "usd_per_million_output_tokens",
        "usd_per_million_total_tokens",
        "usd_per_1000_requests",
    ] {
        assert!(plan[key].as_f64().is_some_and(|v| v > 0.0), "{key}: {plan}");
    }
    for key in ["tp", "pp", "dp", "ep"] {
        assert!(plan["layout"][key].as_u64().is_some_and(|v| v > 0), "{key}");
    }
    for key in ["provider", "instance", "region", "kind", "usd_per_hour", "date", "source"] {
        assert!(plan["offer"].get(key).is_some(), "{key}: {}", plan["offer"]);
    }
    assert!(plan["node"].is_string() && plan["engine"] == "vllm" && plan["formats"]["kv"] == "bf16");
    assert!(
        (plan["usd_per_month"].as_f64().unwrap_or(0.0) / plan["usd_per_hour"].as_f64().unwrap_or(1.0) - 730.0).abs()
            < 1e-6
    );
    for key in ["picks", "pareto", "rejections", "assumptions"] {
        assert!(answer[key].as_array().is_some_and(|a| !a.is_empty()), "{key}");
    }
    for rejection in answer["rejections"].as_array().expect("a list") {
        assert!(
            rejection["reason"].is_string()
                && rejection["count"].as_u64() > Some(0)
                && rejection["nearest"].is_object()
        );
    }
}

/// The same request by flags, by query string and by JSON gives the same answer.
#[test]
fn three_doors_one_answer() {
    let (_, flags) =
        run(&["plan", "llama-3.1-8b", "--concurrency", "16", "--input", "1000", "--output", "200", "--gpu", "l40s"]);
    let query = flags["query"].as_str().expect("a query").to_owned();
    let (_, by_query) = run(&["plan", "--request", &format!("?{query}")]);
    assert_eq!(flags, by_query);
    let file = std::env::temp_dir().join(format!("nodewise-request-{}.json", std::process::id()));
    std::fs::write(&file, flags["request"].to_string()).expect("a temporary file");
    let (_, by_json) = run(&["plan", "--request", &file.to_string_lossy()]);
    let _ = std::fs::remove_file(&file);
    assert_eq!(flags, by_json);
}

/// A user's own rows add to the catalog or replace rows of the same id.
#[test]
fn a_catalog_of_your_own() {
    let folder = std::env::temp_dir().join(format!("nodewise-catalog-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a temporary folder");
    std::fs::write(
        folder.join("offers.csv"),
        "provider,instance,gpu,gpu_count,region,on_demand_usd_per_hour,kind,date\nlambda,our-deal,h100-sxm,8,here,8,node,2026-11-01\n",
    )
    .expect("a file");
    let dir = folder.to_string_lossy().into_owned();
    let (code, answer) = run(&["plan", "llama-3.1-70b", "--catalog", &dir, "--gpu", "h100-sxm"]);
    let _ = std::fs::remove_dir_all(&folder);
    assert_eq!(code, 0, "{answer}");
    let ours = answer["plans"].as_array().expect("plans").iter().find(|p| p["offer"]["instance"] == "our-deal");
    assert_eq!(ours.expect("our own offer wins a plan")["offer"]["usd_per_hour"], 8.0);
}

#[test]
fn nvlink_is_seven_times_pcie() {
    let (_, gpus) = run(&["gpus", "compare", "h100-sxm", "h100-pcie"]);
    let link = gpus[0]["link_per_direction_gb_per_s"].as_f64().expect("NVLink 4");
    let pcie = gpus[0]["pcie_per_direction_gb_per_s"].as_f64().expect("PCIe 5");
    assert_eq!(link, 450.0);
    assert!((link / pcie - 7.1).abs() < 0.1, "{link} / {pcie}");
    assert_eq!(gpus[0]["fp8_dense_tflops"], 1978.9);
}

#[test]
fn medians_that_people_know() {
    let (_, stats) = run(&["prices", "--stats"]);
    let median = |gpu: &str| {
        let row = stats.as_array().expect("rows").iter().find(|r| r["gpu"] == gpu).expect(gpu);
        assert!(row["providers"].as_u64() >= Some(5) && row["oldest_date"].is_string());
        row["median_usd_per_gpu_hour"].as_f64().expect("a price")
    };
    for (gpu, want) in
        [("nvidia-h100-sxm", 3.4), ("nvidia-a100-sxm-80gb", 1.8), ("nvidia-l40s", 1.0), ("nvidia-rtx-4090", 0.35)]
    {
        assert!((median(gpu) / want - 1.0).abs() < 0.05, "{gpu} {}", median(gpu));
    }
}

#[test]
fn formats_other_than_json() {
    let text = |format: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_nodewise"))
            .args(["gpus", "h200", "--format", format])
            .env("NODEWISE_CONFIG_DIR", "no-such-folder")
            .output()
            .expect("the binary runs");
        String::from_utf8(output.stdout).expect("text")
    };
    let csv = text("csv");
    assert!(csv.starts_with("gpu,architecture,") && csv.contains("\nnvidia-h200-sxm,Hopper,SXM5,141.0,"), "{csv}");
    let md = text("md");
    assert!(md.lines().nth(1).is_some_and(|l| l.starts_with("| --- |")), "{md}");
    let table = text("table");
    assert!(table.lines().all(|l| l.chars().count() <= 80), "{table}");
}
