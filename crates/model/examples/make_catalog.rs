//! Makes `data/catalog.tsv` from a folder of `org__model.json` configs:
//! `cargo run -p nodewise-model --example make_catalog -- FOLDER > crates/model/data/catalog.tsv`.
//!
//! A row is `name`, `source`, config without the keys that say nothing about size, separated by tabs.

#![allow(clippy::disallowed_methods, reason = "a tool around the core reads and writes files and times itself")]

use std::io::Write;

use serde_json::{Map, Value};

const DROPPED: &[&str] = &[
    "id2label",
    "label2id",
    "task_specific_params",
    "auto_map",
    "transformers_version",
    "_source",
    "_name_or_path",
    "initializer_range",
    "use_cache",
    "bos_token_id",
    "eos_token_id",
    "pad_token_id",
    "rope_theta",
    "rope_scaling",
    "rope_parameters",
    "layer_rope_theta",
    "no_rope_layers",
    "rms_norm_eps",
    "layer_norm_eps",
    "attention_dropout",
    "activation_sparsity_pattern",
    "image_grid_pinpoints",
    "modules_to_not_convert_count",
    "ignore_count",
    "exclude_modules_count",
    "producer",
];

fn compact(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(k, v)| !DROPPED.contains(&k.as_str()) && !v.is_null());
            let kept = kept.map(|(k, v)| {
                let v = if k == "quantized_layers" { algorithms(v) } else { compact(v) };
                (k, v)
            });
            Value::Object(kept.collect::<Map<_, _>>())
        }
        other => other,
    }
}

/// One layer of each algorithm stands for all.
fn algorithms(value: Value) -> Value {
    let Value::Object(map) = value else { return value };
    let mut seen: Vec<Value> = Vec::new();
    let kept = map.into_iter().filter(|(_, v)| {
        let algorithm = v.get("quant_algo").cloned().unwrap_or_default();
        let new = !seen.contains(&algorithm);
        seen.push(algorithm);
        new
    });
    Value::Object(kept.collect())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: make_catalog FOLDER")?;
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.filter_map(|e| e.ok().map(|e| e.path())).collect();
    paths.sort();
    let mut out = std::io::stdout().lock();
    for path in paths {
        let stem = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let Some((org, model)) = stem.split_once("__") else { continue };
        // Python's `Infinity` is no JSON
        let text = std::fs::read_to_string(&path)?.replace("Infinity", "null");
        let value: Value = serde_json::from_str(&text)?;
        let source = match value.get("_source").and_then(Value::as_str) {
            Some(source) => source.replace(['\t', '\n'], " "),
            None => format!("https://huggingface.co/{org}/{model}/blob/main/config.json"),
        };
        writeln!(out, "{org}/{model}\t{source}\t{}", compact(value))?;
    }
    Ok(())
}
