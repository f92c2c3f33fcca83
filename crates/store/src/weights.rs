//! A model as it lies on disk: its config, and the headers of its weight files.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use model::files::{Builder, Checkpoint, FileError, Gguf, Hints, read_gguf, read_index, read_safetensors, split_name};
use model::{ModelError, ModelSpec, Problem};

use crate::error::StoreError;
use crate::model_files::{MAX_MODEL_CONFIG, model_name, read_bounded};

/// Most entries of a folder that are looked at.
const MAX_ENTRIES: usize = 100_000;

/// What was found of a model.
#[derive(Clone, Debug)]
pub struct ModelRead {
    /// A name for it: the repository's where the path is a cache's, else the folder's or the file's.
    pub name: String,
    /// The file that its anatomy was read from.
    pub path: PathBuf,
    /// Its anatomy, with the sums of its files where they were read; the error where no reader knows it, `None` where
    /// there is no config at all.
    pub spec: Option<Result<ModelSpec, ModelError>>,
    /// The sums of its tensors.
    pub checkpoint: Option<Checkpoint>,
    /// The metadata of a GGUF.
    pub gguf: Option<Gguf>,
    /// The weight files that were read, headers only.
    pub files: Vec<PathBuf>,
}

/// Reads a model: a folder with a config and safetensors or GGUF files, one such file, or a config.
///
/// Of weight files only the headers are read. A consolidated copy beside shards is not counted, nor is anything in a
/// folder below.
pub fn read_model(path: &Path) -> Result<ModelRead, StoreError> {
    let meta = std::fs::metadata(path).map_err(|source| StoreError::Io { path: path.to_owned(), source })?;
    if meta.is_dir() {
        return folder(path);
    }
    match path.extension().and_then(|e| e.to_str()) {
        Some("gguf") => gguf(path),
        Some("safetensors") => {
            let (sums, files) = sum(&[path.to_owned()], Builder::new(Hints::default()))?;
            Ok(ModelRead {
                name: name_of(path),
                path: path.to_owned(),
                spec: None,
                checkpoint: Some(sums),
                gguf: None,
                files,
            })
        }
        _ => {
            let bytes = read_bounded(path, MAX_MODEL_CONFIG)?;
            Ok(config_only(path, &bytes))
        }
    }
}

fn config_only(path: &Path, bytes: &[u8]) -> ModelRead {
    let name = name_of(path);
    let spec = Some(model::read_config(&name, bytes));
    ModelRead { name, path: path.to_owned(), spec, checkpoint: None, gguf: None, files: Vec::new() }
}

/// `org/model` of a path into a Hugging Face cache, else the file's or folder's own name.
fn name_of(path: &Path) -> String {
    let repository = path.components().find_map(|c| {
        let rest = c.as_os_str().to_str()?.strip_prefix("models--")?;
        Some(rest.replacen("--", "/", 1))
    });
    repository.unwrap_or_else(|| model_name(path))
}

fn open(path: &Path) -> Result<(BufReader<File>, u64), StoreError> {
    let io = |source| StoreError::Io { path: path.to_owned(), source };
    // asked before opening: opening a pipe would wait for a writer
    let meta = std::fs::metadata(path).map_err(io)?;
    if !meta.is_file() {
        return Err(StoreError::NotAFile { path: path.to_owned() });
    }
    Ok((BufReader::with_capacity(1 << 16, File::open(path).map_err(io)?), meta.len()))
}

fn within(path: &Path) -> impl FnOnce(FileError) -> StoreError + use<'_> {
    move |source| StoreError::Weights { path: path.to_owned(), source }
}

fn sum(files: &[PathBuf], mut builder: Builder) -> Result<(Checkpoint, Vec<PathBuf>), StoreError> {
    for path in files {
        let (source, size) = open(path)?;
        read_safetensors(source, size, &mut builder).map_err(within(path))?;
        builder.file();
    }
    Ok((builder.finish(false), files.to_vec()))
}

/// A GGUF file, with its siblings where it is split.
fn gguf(path: &Path) -> Result<ModelRead, StoreError> {
    let file_name = path.file_name().and_then(|n| n.to_str()).unwrap_or_default();
    let files: Vec<PathBuf> = match split_name(file_name) {
        Some((stem, _, count)) => {
            (1..=count).map(|i| path.with_file_name(format!("{stem}-{i:05}-of-{count:05}.gguf"))).collect()
        }
        None => vec![path.to_owned()],
    };
    let mut builder = Builder::new(Hints::default());
    let mut first: Option<Gguf> = None;
    let (mut tensors, mut read) = (0, Vec::new());
    for file in &files {
        if !file.exists() {
            let missing = file.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
            builder.problem(format!("`{missing}` of this split checkpoint is missing: the sums are too small"));
            continue;
        }
        let (source, size) = open(file)?;
        let header = read_gguf(source, size, &mut builder).map_err(within(file))?;
        builder.file();
        tensors += header.tensors;
        read.push(file.clone());
        match &mut first {
            None => first = Some(header),
            Some(first) => first.add_facts(&header),
        }
    }
    let Some(header) = first else { return Err(StoreError::NoConfig { path: path.to_owned() }) };
    if let Some(split) = header.split().filter(|s| s.tensors > 0 && s.tensors != tensors) {
        builder.problem(format!("{} tensors are promised by the split, {tensors} are there", split.tensors));
    }
    let sums = builder.finish(true);
    let name = name_of(path);
    let spec = Some(model::files::spec_of_gguf(&name, &header, &sums));
    Ok(ModelRead { name, path: path.to_owned(), spec, checkpoint: Some(sums), gguf: Some(header), files: read })
}

fn names(folder: &Path) -> Result<Vec<String>, StoreError> {
    let io = |source| StoreError::Io { path: folder.to_owned(), source };
    let mut out: Vec<String> = std::fs::read_dir(folder)
        .map_err(io)?
        .take(MAX_ENTRIES)
        .filter_map(|e| e.ok()?.file_name().into_string().ok())
        .collect();
    out.sort();
    Ok(out)
}

fn is_copy(name: &str) -> bool {
    name.starts_with("consolidated")
}

/// `model-00001-of-00003.safetensors`.
fn is_shard(name: &str) -> bool {
    name.strip_suffix(".safetensors").is_some_and(|stem| split_name(&format!("{stem}.gguf")).is_some())
}

fn folder(path: &Path) -> Result<ModelRead, StoreError> {
    let names = names(path)?;
    let config = ["config.json", "params.json"].into_iter().find(|n| names.iter().any(|m| m == n));
    let safetensors: Vec<&String> = names.iter().filter(|n| n.ends_with(".safetensors")).collect();
    let index = names.iter().filter(|n| n.ends_with(".safetensors.index.json")).min_by_key(|n| is_copy(n));
    if safetensors.is_empty() && index.is_none() {
        let quants: Vec<&String> = names
            .iter()
            .filter(|n| n.ends_with(".gguf") && !n.starts_with("mmproj"))
            .filter(|n| split_name(n).is_none_or(|(_, number, _)| number == 1))
            .collect();
        match quants.as_slice() {
            [] => {}
            [one] => return gguf(&path.join(one)),
            many => {
                let files = many.iter().take(12).map(|n| (*n).clone()).collect();
                return Err(StoreError::SeveralModels { path: path.to_owned(), files });
            }
        }
    }
    let mut read = match config {
        Some(name) => {
            let file = path.join(name);
            let bytes = read_bounded(&file, MAX_MODEL_CONFIG)?;
            let hints = Hints::of_config(&bytes);
            (config_only(&file, &bytes), hints)
        }
        None if safetensors.is_empty() => return Err(StoreError::NoConfig { path: path.to_owned() }),
        None => {
            let name = name_of(&path.join("config.json"));
            let path = path.to_owned();
            let files = Vec::new();
            (ModelRead { name, path, spec: None, checkpoint: None, gguf: None, files }, Hints::default())
        }
    };
    let mut builder = Builder::new(read.1);
    let (chosen, promised) = choose(path, &safetensors, index, &mut builder)?;
    let (present, missing): (Vec<PathBuf>, Vec<PathBuf>) = chosen.into_iter().partition(|p| p.exists());
    let out = &mut read.0;
    if present.is_empty() {
        return Ok(read.0);
    }
    let complete = missing.is_empty();
    if !complete {
        builder.problem(format!("{} of {} shards are missing", missing.len(), missing.len() + present.len()));
    }
    let (mut sums, files) = sum(&present, builder)?;
    if let Some(promised) = promised.filter(|p| complete && *p != sums.total.tensors) {
        let message = format!("the index lists {promised} tensors, the shards hold {}", sums.total.tensors);
        sums.problems.push(Problem { key: "files".into(), message });
    }
    out.files = files;
    out.spec = out.spec.take().map(|spec| {
        spec.map(|mut spec| {
            if complete {
                return spec.with_checkpoint(&sums);
            }
            // a part of the tensors says nothing about the whole
            spec.problems.extend(sums.problems.iter().cloned());
            spec
        })
    });
    out.checkpoint = Some(sums);
    Ok(read.0)
}

/// Which safetensors files make up the checkpoint, and how many tensors its index lists.
fn choose(
    path: &Path,
    all: &[&String],
    index: Option<&String>,
    builder: &mut Builder,
) -> Result<(Vec<PathBuf>, Option<u64>), StoreError> {
    if let Some(name) = index {
        let file = path.join(name);
        let (source, size) = open(&file)?;
        let index = read_index(source, size).map_err(within(&file))?;
        let beside = all.iter().filter(|n| !index.shards.contains(n.as_str())).count();
        if beside > 0 {
            builder.problem(format!("{beside} safetensors file(s) beside the index are not counted"));
        }
        return Ok((index.shards.iter().map(|s| path.join(s)).collect(), Some(index.tensors)));
    }
    let pick = |keep: &dyn Fn(&str) -> bool| -> Vec<&String> { all.iter().copied().filter(|n| keep(n)).collect() };
    let shards = pick(&|n| is_shard(n) && !is_copy(n));
    let whole = pick(&|n| n == "model.safetensors");
    let others = pick(&|n| !is_copy(n) && !n.starts_with("adapter"));
    let chosen = [shards, whole, others, all.to_vec()].into_iter().find(|c| !c.is_empty()).unwrap_or_default();
    if chosen.len() < all.len() {
        builder.problem(format!(
            "{} further safetensors file(s) are copies or extras, not counted",
            all.len() - chosen.len()
        ));
    }
    Ok((chosen.into_iter().map(|n| path.join(n)).collect(), None))
}
