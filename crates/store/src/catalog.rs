//! The embedded catalog, with the user's own rows over it.

use std::path::{Path, PathBuf};

use hardware::{Finding, Hardware, Sources};
use market::Market;

use crate::error::StoreError;
use crate::model_files::read_text;

/// Bytes of one catalog file that are read.
pub const MAX_CATALOG_FILE: u64 = 64 << 20;

/// Everything that can be bought and what it is, after the user's files.
#[derive(Clone, Debug)]
pub struct Catalog {
    /// GPUs and node types.
    pub hardware: Hardware,
    /// Providers and offers.
    pub market: Market,
    /// What is wrong with the user's files; rows with errors are not used.
    pub findings: Vec<Finding>,
    /// The user's files that were read, in order.
    pub files: Vec<PathBuf>,
}

/// The embedded catalog plus `gpus.csv`, `nodes.csv`, `providers.csv` and `offers.csv` of each folder, in this order, as
/// far as they exist. A row whose id (for offers: provider, instance, GPU and region) exists replaces the older one; a
/// column that is missing is unknown. A `sources.csv` beside them is used for their source cells.
///
/// `dir` is a folder that the user named (`--catalog`): it must exist. [`load_catalog`] reads nothing else; to include
/// the configuration folder too, call it through [`Catalog::load`].
pub fn load_catalog(dir: Option<&Path>) -> Result<Catalog, StoreError> {
    Catalog::load(None, dir)
}

impl Catalog {
    /// [`load_catalog`] over the configuration folder, which need not exist, and then a named folder, which must.
    pub fn load(config: Option<&Path>, named: Option<&Path>) -> Result<Self, StoreError> {
        let hardware = Hardware::embedded();
        let market = Market::embedded(&hardware);
        let mut catalog = Self { hardware, market, findings: Vec::new(), files: Vec::new() };
        if let Some(folder) = config.filter(|f| f.is_dir()) {
            catalog.add_folder(folder)?;
        }
        if let Some(folder) = named {
            if !folder.is_dir() {
                return Err(StoreError::NotAFolder { path: folder.to_owned() });
            }
            catalog.add_folder(folder)?;
        }
        Ok(catalog)
    }

    fn add_folder(&mut self, folder: &Path) -> Result<(), StoreError> {
        let mut sources = Sources::default();
        if let Some((name, text)) = self.read(folder, "sources.csv")? {
            sources = Sources::parse(&name, &text, &mut self.findings);
        }
        if let Some((name, text)) = self.read(folder, "gpus.csv")? {
            self.findings.extend(self.hardware.add_gpus(&name, &text, &sources));
        }
        if let Some((name, text)) = self.read(folder, "nodes.csv")? {
            self.findings.extend(self.hardware.add_nodes(&name, &text, &sources));
        }
        if let Some((name, text)) = self.read(folder, "providers.csv")? {
            self.findings.extend(self.market.add_providers(&name, &text, &sources));
        }
        match self.read(folder, "offers.csv")? {
            Some((name, text)) => {
                self.findings.extend(self.market.add_offers(&name, &text, &sources, &self.hardware));
            }
            // the user's node types may say that a provider sells a count
            None => self.market.reindex(&self.hardware),
        }
        Ok(())
    }

    fn read(&mut self, folder: &Path, name: &str) -> Result<Option<(String, String)>, StoreError> {
        let path = folder.join(name);
        // a broken link or a folder of that name is an error, an absent file is not
        if std::fs::symlink_metadata(&path).is_err() {
            return Ok(None);
        }
        let text = read_text(&path, MAX_CATALOG_FILE)?;
        let shown = path.display().to_string();
        self.files.push(path);
        Ok(Some((shown, text)))
    }
}
