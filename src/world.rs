//! What a command works on: the catalogs with the user's own files on top, the day, and models by name or path.

use std::path::{Path, PathBuf};

use clap::ArgMatches;
use hardware::{Finding, Gpu, Hardware, NodeShape, OnSpec};
use jiff::civil::Date;
use market::Market;
use model::{Catalog, CatalogEntry, ModelSpec};
use perf::Curves;
use planner::PlanRequest;
use units::UsdPerHour;

use crate::error::CliError;
use crate::out::counted;

/// The catalogs and the day.
pub struct World {
    /// GPUs and node types.
    pub hardware: Hardware,
    /// Providers and offers.
    pub market: Market,
    /// The day that ages are counted to.
    pub today: Date,
}

/// The outcome of `catalog check`.
pub struct CheckReport {
    /// Every problem found.
    pub findings: Vec<Finding>,
    /// What was checked, in a line.
    pub checked: String,
}

fn store_error(e: store::StoreError) -> CliError {
    let hint = e.hint();
    let mut message = e.to_string();
    let mut cause = std::error::Error::source(&e);
    while let Some(c) = cause {
        message.push_str(&format!(": {c}"));
        cause = c.source();
    }
    let error = CliError::new(message);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

fn catalog_folders(matches: &ArgMatches) -> (Option<PathBuf>, Option<PathBuf>) {
    let named = matches.get_one::<String>("catalog").map(PathBuf::from);
    let given = std::env::var_os("NODEWISE_CONFIG_DIR").filter(|v| !v.is_empty()).map(PathBuf::from);
    (store::config_dir(given.as_deref()), named)
}

/// A model that was found: its anatomy, or why there is none, and the sums of its files.
pub struct Found {
    /// Its name.
    pub name: String,
    /// Its anatomy.
    pub spec: Result<ModelSpec, CliError>,
    /// The sums of its tensors.
    pub checkpoint: Option<model::files::Checkpoint>,
    /// The metadata of its GGUF.
    pub gguf: Option<model::files::Gguf>,
}

impl Found {
    /// Its anatomy, which planning needs.
    pub fn into_spec(self) -> Result<ModelSpec, CliError> {
        self.spec
    }

    fn read(path: &Path) -> Result<Self, CliError> {
        let read = store::read_model(path).map_err(store_error)?;
        let spec = match read.spec {
            Some(Ok(spec)) => Ok(spec),
            Some(Err(e)) => Err(CliError::new(&e).within(read.path.display()).hint(e.hint())),
            None => Err(CliError::new(format!("`{}` has weights but no config", read.path.display()))
                .hint("put its `config.json` beside it and name the folder")),
        };
        if read.checkpoint.is_none()
            && let Err(e) = spec
        {
            return Err(e);
        }
        Ok(Self { name: read.name, spec, checkpoint: read.checkpoint, gguf: read.gguf })
    }
}

impl World {
    /// The embedded catalogs with the user's files over them. A broken row of the user's stops the command.
    pub fn load(matches: &ArgMatches) -> Result<Self, CliError> {
        let (config, named) = catalog_folders(matches);
        let catalog = store::Catalog::load(config.as_deref(), named.as_deref()).map_err(store_error)?;
        let errors: Vec<&Finding> =
            catalog.findings.iter().filter(|f| f.severity == hardware::Severity::Error).collect();
        if let Some(first) = errors.first() {
            let files: Vec<String> = catalog.files.iter().map(|f| f.display().to_string()).collect();
            return Err(CliError::new(first).hint(format!(
                "{} error(s) in your catalog files; see all with `nodewise catalog check {}`",
                errors.len(),
                files.join(" ")
            )));
        }
        Ok(Self { hardware: catalog.hardware, market: catalog.market, today: today(matches)? })
    }

    /// [`World::load`] with the user's own prices.
    pub fn load_priced(matches: &ArgMatches, prices: &[(String, UsdPerHour)]) -> Result<Self, CliError> {
        let mut world = Self::load(matches)?;
        for (name, price) in prices {
            let id = world.gpu(name)?.id.to_string();
            world.market.override_price(&id, *price);
        }
        Ok(world)
    }

    /// Checks the named catalog files, or everything embedded and the user's own.
    pub fn check(matches: &ArgMatches, files: &[PathBuf]) -> Result<CheckReport, CliError> {
        let (config, named) = catalog_folders(matches);
        let own = store::Catalog::load(config.as_deref(), named.as_deref()).map_err(store_error)?;
        if !files.is_empty() {
            let findings = store::check_files(files, &own).map_err(store_error)?;
            return Ok(CheckReport { findings, checked: counted(files.len() as u64, "file") });
        }
        let mut findings = store::check_embedded();
        findings.extend(own.findings);
        let mut checked = format!(
            "{} GPUs, {} node types, {} providers, {} offers",
            own.hardware.gpus().len(),
            own.hardware.nodes().len(),
            own.market.providers().len(),
            own.market.offers().len()
        );
        if !own.files.is_empty() {
            checked.push_str(&format!(", {} of yours among them", counted(own.files.len() as u64, "file")));
        }
        Ok(CheckReport { findings, checked })
    }

    /// A GPU by id, with suggestions on a miss.
    pub fn gpu(&self, name: &str) -> Result<&Gpu, CliError> {
        self.hardware.find_gpu(name).map_err(|e| CliError::new(&e).hint(e.hint()))
    }

    /// Reads `[NODES x] COUNT x GPU`, a node type or an offer.
    pub fn on(&self, text: &str) -> Result<(NodeShape, u32), CliError> {
        let fail = |e: hardware::OnError| CliError::new(&e).hint(e.hint());
        let spec: OnSpec = text.trim().parse().map_err(fail)?;
        let (shape, nodes, _) = self.market.resolve_on(&spec, &self.hardware).map_err(fail)?;
        Ok((shape, nodes))
    }

    /// The model of a request: a bare size, a path, a catalog name, or a name in the local cache.
    pub fn spec(request: &PlanRequest, cached: bool) -> Result<ModelSpec, CliError> {
        match request.params {
            Some(params) => {
                let weights = request.weights.first().copied().unwrap_or(model::WeightFormat::Bf16);
                Ok(ModelSpec::bare(&format!("{params} parameters"), params, request.active, weights))
            }
            None => Self::model(&request.model, cached)?.into_spec(),
        }
    }

    /// A model by path or name. A name is looked up in the catalog, then in the local Hugging Face cache; with `cached`
    /// only in the cache.
    pub fn model(name: &str, cached: bool) -> Result<Found, CliError> {
        let path = Path::new(name);
        let weights = name.ends_with(".gguf") || name.ends_with(".safetensors");
        let looks_like_path =
            name.starts_with(['.', '/', '~']) || name.ends_with(".json") || weights || path.is_file() || path.is_dir();
        if looks_like_path && !cached {
            return Found::read(path);
        }
        let from_cache = || -> Result<Option<Found>, CliError> {
            let var = |key| std::env::var_os(key);
            let home = var("HOME").map(PathBuf::from);
            let cache = store::hub_cache(var("HF_HUB_CACHE").as_deref(), var("HF_HOME").as_deref(), home.as_deref());
            let Some(snapshot) = cache.and_then(|c| store::cached_snapshot(&c, name)) else { return Ok(None) };
            let mut found = Found::read(&snapshot)?;
            let revision = snapshot.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            let message = format!("read from the local Hugging Face cache, revision {revision}");
            if let Ok(spec) = &mut found.spec {
                spec.problems.push(model::Problem { key: "files".into(), message });
            }
            Ok(Some(found))
        };
        if cached {
            return from_cache()?.ok_or_else(|| {
                CliError::new(format!("`{name}` is not in the local Hugging Face cache"))
                    .hint("name it as `org/model`; `HF_HUB_CACHE` or `HF_HOME` say where the cache is")
            });
        }
        let entry = match Catalog::embedded().find(name) {
            Ok(entry) => entry,
            Err(e) => {
                return match from_cache()? {
                    Some(found) => Ok(found),
                    None => Err(CliError::new(&e).hint(e.hint())),
                };
            }
        };
        let spec = entry.spec().map_err(|e| CliError::new(&e).within(entry.name).hint(e.hint()))?;
        Ok(Found { name: entry.name.into(), spec: Ok(spec), checkpoint: None, gguf: None })
    }

    /// Every model of the embedded catalog.
    pub fn catalog_models() -> &'static [CatalogEntry] {
        Catalog::embedded().entries()
    }

    /// The embedded efficiency curves.
    pub fn curves() -> &'static Curves {
        Curves::embedded()
    }
}

fn today(matches: &ArgMatches) -> Result<Date, CliError> {
    match matches.get_one::<String>("today") {
        Some(text) => text.parse().map_err(|_| {
            CliError::new(format!("cannot read `{text}` as a date")).hint("type for example `2026-11-30`")
        }),
        None => {
            // the day in UTC: whole days since the epoch
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            let days = i64::try_from(since.as_secs() / 86_400).unwrap_or(0);
            jiff::civil::date(1970, 1, 1).checked_add(jiff::Span::new().days(days)).map_err(|e| {
                CliError::new(format!("the clock is out of range: {e}")).hint("say the day: `--today 2026-11-30`")
            })
        }
    }
}
