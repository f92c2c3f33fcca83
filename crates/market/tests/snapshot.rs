//! The committed catalog is what the importer makes of the research snapshot, byte for byte.

#![allow(clippy::disallowed_methods, reason = "tests read the measurements that they are judged by")]

#[allow(dead_code)]
#[path = "../examples/import_snapshot/main.rs"]
mod import_snapshot;

use std::fs;
use std::path::Path;

#[test]
fn the_importer_reproduces_the_committed_files() {
    let home = Path::new(env!("CARGO_MANIFEST_DIR"));
    let snapshot = home.join("../../../shared/data");
    if !snapshot.is_dir() {
        println!("skipped: {} is not here", snapshot.display());
        return;
    }
    let out = std::env::temp_dir().join(format!("nodewise-import-{}", std::process::id()));
    for folder in ["hardware/data", "market/data"] {
        fs::create_dir_all(out.join(folder)).unwrap();
    }
    import_snapshot::import(&snapshot, &out).unwrap();
    for file in ["hardware/data/gpus", "hardware/data/nodes", "hardware/data/sources"].into_iter().chain([
        "market/data/providers",
        "market/data/offers",
        "market/data/sources",
    ]) {
        let file = format!("{file}.csv");
        let (new, committed) = (fs::read(out.join(&file)).unwrap(), fs::read(home.join("..").join(&file)).unwrap());
        assert!(new == committed, "{file} differs; run the `import_snapshot` example");
    }
    let _ = fs::remove_dir_all(&out);
}
