//! The part of `nodewise model` that speaks of files: sums by type and by part.

use serde_json::{Map, Value, json};
use units::{Bytes, group_thousands};

use crate::world::Found;

/// The sums for people; empty for a model of the catalog.
pub fn page(found: &Found) -> String {
    let Some(sums) = &found.checkpoint else { return String::new() };
    let mut out = String::from("\nfiles\n");
    let mut row = |name: &str, tensors: u64, params: u64, bytes: u64| {
        out.push_str(&format!(
            "  {name:<14}{:>10} tensors{:>22} parameters{:>18} B\n",
            group_thousands(tensors),
            group_thousands(params),
            group_thousands(bytes)
        ));
    };
    row("all", sums.total.tensors, sums.total.params, sums.total.bytes);
    for (name, sum) in &sums.by_dtype {
        row(name, sum.tensors, sum.params, sum.bytes);
    }
    for (part, sum) in &sums.by_part {
        row(part.name(), sum.tensors, sum.params, sum.bytes);
    }
    if let Some(format) = sums.format {
        out.push_str(&format!("  stored as {}, {}\n", format.name(), Bytes(sums.total.bytes)));
    }
    if let Some(gguf) = &found.gguf {
        let template = if gguf.chat_template() { "with" } else { "without" };
        let architecture: String = gguf.architecture().unwrap_or("unknown").escape_debug().take(60).collect();
        out.push_str(&format!(
            "  GGUF version {}, architecture {architecture}, {template} chat template\n",
            gguf.version
        ));
    }
    if found.spec.is_err() {
        for problem in &sums.problems {
            out.push_str(&format!("  {}\n", problem.message));
        }
    }
    out
}

/// The anatomy for programs with a `files` object where files were read.
pub fn json(found: &Found, anatomy: impl Fn(&model::ModelSpec) -> Value) -> Value {
    let mut out = match &found.spec {
        Ok(spec) => anatomy(spec),
        Err(e) => json!({"name": found.name, "error": e.message}),
    };
    let Some(sums) = &found.checkpoint else { return out };
    let sum = |s: &model::files::Sum| json!({"tensors": s.tensors, "elements": s.elements, "parameters": s.params, "bytes": s.bytes});
    let by_dtype: Map<String, Value> = sums.by_dtype.iter().map(|(n, s)| ((*n).to_owned(), sum(s))).collect();
    let by_part: Map<String, Value> = sums.by_part.iter().map(|(p, s)| (p.name().to_owned(), sum(s))).collect();
    out["files"] = json!({
        "count": sums.files,
        "total": sum(&sums.total),
        "mtp": sum(&sums.mtp),
        "by_type": by_dtype,
        "by_part": by_part,
        "format": sums.format.map(|f| f.name()),
        "chat_template": found.gguf.as_ref().map(|g| g.chat_template()),
        "problems": sums.problems.iter().map(|p| p.message.clone()).collect::<Vec<_>>(),
    });
    out
}
