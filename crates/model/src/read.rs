//! From the bytes of a `config.json` to the anatomy.

use serde_json::Value;

use crate::checkpoints;
use crate::config::{Reader, parse};
use crate::error::ModelError;
use crate::families;
use crate::near::nearest;
use crate::spec::ModelSpec;

/// Reads a config. `name` is what the model is called (`org/model`, or the file): it stands in messages, and finds what
/// is known of that checkpoint beyond its config (elements stored beside the parameters).
pub fn read_config(name: &str, bytes: &[u8]) -> Result<ModelSpec, ModelError> {
    let map = parse(name, bytes)?;
    let r = Reader::new(name, &map);
    let architecture = match map.get("architectures") {
        Some(Value::Array(list)) => list.first().and_then(Value::as_str),
        _ => None,
    };
    let model_type = r.text(&["model_type"])?;
    let how = match (model_type, architecture) {
        // grok-2 carries the `model_type` of an unrelated captioning model
        (Some("git"), Some("Grok1ForCausalLM")) => families::find("grok-2"),
        (Some(t), _) => families::find(t),
        (None, Some(a)) => families::find(&snake(a)),
        (None, None) => {
            return Err(ModelError::Missing { key: "model_type` or `architectures".into(), family: "config".into() });
        }
    };
    let Some(how) = how else {
        let shown: String = model_type.or(architecture).unwrap_or_default().chars().take(60).collect();
        let key = if model_type.is_some() { "model_type" } else { "architectures" };
        return Err(ModelError::UnknownArchitecture {
            name: name.chars().take(200).collect(),
            what: format!("`{key}` `{shown}`"),
            suggestions: nearest(&shown, families::known(), 3).into_iter().map(|s| format!("`{s}`")).collect(),
        });
    };
    let mut spec = how.read(&r)?;
    r.finish()?;
    spec.problems = r.take_problems();
    checkpoints::apply(&mut spec);
    Ok(spec)
}

/// `LlamaForCausalLM` to `llama`, `Qwen3MoeForCausalLM` to `qwen3_moe`.
fn snake(architecture: &str) -> String {
    let stem = architecture.split("For").next().unwrap_or(architecture);
    let stem = stem.strip_suffix("Model").unwrap_or(stem);
    let mut out = String::new();
    for (i, c) in stem.chars().take(60).enumerate() {
        if c.is_ascii_uppercase() && i > 0 {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}
