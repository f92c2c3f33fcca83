//! Files as users have them: catalogs over the embedded one, model folders, and files that must be refused.

// what sets a test up may fail loudly too
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::{Path, PathBuf};

use store::{Catalog, MAX_MODEL_CONFIG, StoreError, check_embedded, check_files, load_catalog, read_model_path};

/// A folder of this test's own, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nodewise-store-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const GPUS: &str = "id,vendor,name,memory_nominal_gb,memory_bandwidth_gb_per_s,link_gb_per_s_per_direction\n\
                    nvidia-x1,nvidia,X1,128,6000,900\n";
const NODES: &str = "id,provider,name,gpu,gpu_count,topology\nmine-x1,mine,x1.big,nvidia-x1,8,nvswitch\n";
const PROVIDERS: &str = "id,name,kind\nmine,My racks,own\n";
const OFFERS: &str = "provider,instance,gpu,gpu_count,region,on_demand_usd_per_hour,date\n\
                      mine,x1.big,nvidia-x1,8,home,24,2026-11-20\n\
                      aws,p5.48xlarge,nvidia-h100-sxm,8,us-east-1,40,2026-11-20\n";

#[test]
fn without_files_there_is_the_embedded_catalog() {
    let catalog = load_catalog(None).unwrap();
    assert_eq!((catalog.hardware.gpus().len(), catalog.market.offers().len()), (127, 1835));
    assert!(catalog.findings.is_empty() && catalog.files.is_empty());
}

#[test]
fn own_files_add_and_override() {
    let dir = Folder::new("catalog");
    for (name, text) in [("gpus.csv", GPUS), ("nodes.csv", NODES), ("providers.csv", PROVIDERS), ("offers.csv", OFFERS)]
    {
        dir.file(name, text);
    }
    let catalog = load_catalog(Some(&dir.0)).unwrap();
    assert_eq!(catalog.findings, []);
    assert_eq!(catalog.files.len(), 4);
    assert_eq!((catalog.hardware.gpus().len(), catalog.hardware.nodes().len()), (128, 269));
    assert_eq!((catalog.market.providers().len(), catalog.market.offers().len()), (46, 1836));
    let aws = catalog.market.find_offers("aws/p5.48xlarge");
    let here = aws.iter().map(|&at| &catalog.market.offers()[at]).find(|o| &*o.region == "us-east-1").unwrap();
    assert_eq!(here.on_demand.unwrap().0, 40.0);
    let node = catalog.hardware.find_node("mine/x1.big").unwrap();
    assert_eq!(catalog.market.offers_for(node).len(), 1);

    // the configuration folder comes first and may be missing; a named folder must exist
    let config = Folder::new("config");
    config.file("providers.csv", "id,name\nmine,Old name\n");
    let both = Catalog::load(Some(&config.0), Some(&dir.0)).unwrap();
    assert_eq!(both.market.provider("mine").unwrap().name, "My racks");
    assert!(Catalog::load(Some(Path::new("/nonexistent-folder")), None).is_ok());
    assert!(matches!(load_catalog(Some(Path::new("/nonexistent-folder"))), Err(StoreError::NotAFolder { .. })));
}

#[test]
fn errors_in_own_files_are_findings_with_path_and_line() {
    let dir = Folder::new("findings");
    let path = dir.file("gpus.csv", "id,vendor,name,memory_nominal_gb\nnvidia-y,nvidia,Y,lots\n");
    let catalog = load_catalog(Some(&dir.0)).unwrap();
    let found: Vec<String> = catalog.findings.iter().map(ToString::to_string).collect();
    assert_eq!(found, [format!("{}:2: error: `memory_nominal_gb`: `lots` is not a number", path.display())]);
    // a folder where a file is wanted, and bytes that are no text
    fs::create_dir(dir.0.join("offers.csv")).unwrap();
    let e = load_catalog(Some(&dir.0)).unwrap_err();
    assert_eq!(e.to_string(), format!("`{}` is not a regular file", dir.0.join("offers.csv").display()));
    fs::remove_dir(dir.0.join("offers.csv")).unwrap();
    fs::write(dir.0.join("offers.csv"), [0xff, 0xfe, 0x00]).unwrap();
    assert!(matches!(load_catalog(Some(&dir.0)), Err(StoreError::NotText { .. })));
}

#[test]
fn files_are_checked_whatever_they_are_called() {
    assert!(check_embedded().iter().all(|f| f.severity == hardware::Severity::Warning));
    let dir = Folder::new("check");
    let base = load_catalog(None).unwrap();
    // nodes before the GPUs that they name, as a shell may list them
    let files =
        [dir.file("a.csv", NODES), dir.file("b.csv", GPUS), dir.file("c.csv", OFFERS), dir.file("d.csv", PROVIDERS)];
    assert_eq!(check_files(&files, &base).unwrap(), []);
    let found = check_files(&files[..1], &base).unwrap();
    let here = files[0].display();
    assert_eq!(
        found.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [format!(
            "{here}:2: error: node `mine-x1`: no catalog GPU is called `nvidia-x1`; list them with `nodewise gpus` and `nodewise nodes`"
        )]
    );
    let odd = [dir.file("odd.csv", "a,b\n1,2\n")];
    assert_eq!(check_files(&odd, &base).unwrap().len(), 1);
    let e = check_files(&[dir.0.join("none.csv")], &base).unwrap_err();
    assert!(matches!(e, StoreError::Io { .. }) && e.to_string().contains("none.csv"));
}

#[test]
fn models_from_a_file_or_a_folder() {
    let dir = Folder::new("models");
    let file = dir.file("Some-Model-7B/config.json", "{}");
    for path in [file.clone(), dir.0.join("Some-Model-7B")] {
        let model = read_model_path(&path).unwrap();
        assert_eq!((model.name.as_str(), model.bytes.as_slice(), &model.path), ("Some-Model-7B", &b"{}"[..], &file));
    }
    assert_eq!(read_model_path(&dir.file("other.json", "{}")).unwrap().name, "other");
    assert!(matches!(read_model_path(&dir.0), Err(StoreError::NoConfig { .. })));
    let e = read_model_path(&dir.0.join("missing.json")).unwrap_err();
    assert!(matches!(e, StoreError::Io { .. }) && e.hint().is_some());
}

#[test]
fn a_file_of_a_gigabyte_is_refused_before_it_is_read() {
    let dir = Folder::new("huge");
    let path = dir.0.join("config.json");
    // a sparse file: it has the size, not the blocks
    fs::File::create(&path).unwrap().set_len(1 << 30).unwrap();
    let e = read_model_path(&dir.0).unwrap_err();
    assert_eq!(e.to_string(), format!("`{}` has 1073741824 bytes; the limit is {MAX_MODEL_CONFIG}", path.display()));
}

#[cfg(unix)]
#[test]
fn devices_and_pipes_are_refused() {
    assert!(matches!(read_model_path(Path::new("/dev/zero")), Err(StoreError::NotAFile { .. })));
    let dir = Folder::new("pipe");
    let pipe = dir.0.join("config.json");
    if std::process::Command::new("mkfifo").arg(&pipe).status().is_ok_and(|s| s.success()) {
        assert!(matches!(read_model_path(&pipe), Err(StoreError::NotAFile { .. })));
    }
}
