//! The table of who may use whom, held against what cargo resolves.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Each crate with the crates of its row in `docs/architecture.md`; it may use those and everything that they may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("nodewise", &["planner", "store"]),
    ("store", &["model", "market"]),
    ("planner", &["perf", "market"]),
    ("perf", &["model", "hardware"]),
    ("market", &["hardware"]),
    ("hardware", &["units"]),
    ("model", &["units"]),
    ("units", &[]),
];

fn closure(name: &str) -> BTreeSet<&'static str> {
    let mut all = BTreeSet::new();
    let direct = MAY_USE.iter().find(|(n, _)| *n == name).map_or(&[][..], |(_, d)| d);
    for d in direct {
        all.insert(*d);
        all.extend(closure(d));
    }
    all
}

fn short(package: &str) -> &str {
    package.strip_prefix("nodewise-").unwrap_or(package)
}

#[test]
fn crates_use_only_what_their_row_allows() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let mut seen = BTreeMap::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = short(package["name"].as_str().expect("name")).to_owned();
        let uses: BTreeSet<String> = package["dependencies"]
            .as_array()
            .expect("dependencies")
            .iter()
            // normal and build dependencies; tests may use what they like
            .filter(|d| d["kind"] != "dev" && d["path"].is_string())
            .map(|d| short(d["name"].as_str().expect("name")).to_owned())
            .collect();
        seen.insert(name, uses);
    }
    let known: BTreeSet<&str> = MAY_USE.iter().map(|(n, _)| *n).collect();
    let found: BTreeSet<&str> = seen.keys().map(String::as_str).collect();
    assert_eq!(found, known, "every crate has a row, and every row a crate");
    for (name, uses) in &seen {
        let allowed = closure(name);
        for used in uses {
            assert!(allowed.contains(used.as_str()), "`{name}` must not use `{used}`: see docs/architecture.md");
        }
    }
}

/// Names that the core must not know: they belong to the rim.
#[test]
fn the_core_knows_no_rim_libraries() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("crates");
    for core in ["units", "hardware", "model", "market", "perf", "planner"] {
        let manifest = std::fs::read_to_string(root.join(core).join("Cargo.toml")).expect("manifest");
        let normal = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        for rim in ["clap", "tokio", "hyper", "axum", "maud", "ureq", "reqwest", "directories"] {
            assert!(!normal.lines().any(|l| l.starts_with(rim)), "`{core}` must not depend on `{rim}`");
        }
        // the bans on files, clock and environment live in the crate's own lint settings
        let lints = std::fs::read_to_string(root.join(core).join("clippy.toml")).expect("clippy.toml");
        assert!(lints.contains("std::time::SystemTime::now") && lints.contains("std::fs::read"), "{core}");
    }
}
