//! What a checkpoint is stored in: `dtype`, and `quantization_config` of the many tools that write one.

use serde_json::{Map, Value};

use crate::config::Reader;
use crate::error::ModelError;
use crate::format::WeightFormat;
use crate::spec::Role;

/// Format, roles left unquantised, bytes of an unquantised element.
pub(crate) struct Stored {
    pub(crate) weights: WeightFormat,
    pub(crate) unquantised: Vec<Role>,
    pub(crate) dtype_bytes: u8,
}

/// The format that the end of a repository's name promises, as vendors name their derivatives.
pub(crate) fn from_name(name: &str) -> Option<WeightFormat> {
    let lower = name.to_ascii_lowercase();
    // `…-Q4_K_M`, and `…:q8_0` as Ollama writes it
    let gguf = WeightFormat::names().iter().filter(|n| n.contains('_')).find(|n| lower.ends_with(**n));
    if let Some(format) = gguf.and_then(|n| n.parse().ok()) {
        return Some(format);
    }
    let folded = lower.replace(['_', '.'], "-");
    let has = |s: &str| folded.ends_with(s) || folded.contains(&format!("{s}-"));
    Some(if has("-nvfp4") || has("-fp4") {
        WeightFormat::Nvfp4
    } else if has("-mxfp4") {
        WeightFormat::Mxfp4
    } else if has("-fp8-dynamic") || has("-fp8-kv") {
        WeightFormat::Fp8Channel
    } else if has("-fp8") && ["nvidia/", "redhatai/", "neuralmagic/", "amd/"].iter().any(|o| folded.starts_with(o)) {
        // ModelOpt's, LLM Compressor's and Quark's static recipes
        WeightFormat::Fp8Tensor
    } else if has("-fp8") {
        WeightFormat::Fp8Block
    } else if has("-awq") {
        WeightFormat::Awq { group: 128 }
    } else if has("-gptq") || has("-gptq-int4") {
        WeightFormat::Gptq { group: 128 }
    } else if has("-w4a16") || has("-int4") {
        WeightFormat::Int4 { group: 128 }
    } else if has("-w8a8") || has("-w8a16") || has("-int8") {
        WeightFormat::Int8
    } else if has("-bnb-4bit") {
        WeightFormat::Nf4 { double: true }
    } else {
        return None;
    })
}

/// Reads what the checkpoint is stored in. `inner` is the decoder's reader, which falls back to the outer object.
pub(crate) fn stored(r: &Reader<'_>) -> Result<Stored, ModelError> {
    let dtype = r.text(&["dtype", "torch_dtype"])?;
    let (plain, dtype_bytes) = match dtype.map(|d| d.trim_start_matches("torch.")) {
        Some("float32" | "fp32") => (WeightFormat::Fp32, 4),
        Some("float16" | "fp16" | "half") => (WeightFormat::Fp16, 2),
        Some("bfloat16" | "bf16") => (WeightFormat::Bf16, 2),
        None | Some("auto") => {
            r.problem("dtype", "not given, taken as bfloat16");
            (WeightFormat::Bf16, 2)
        }
        Some(other) => {
            let other: String = other.chars().take(60).collect();
            r.problem("dtype", format!("`{other}` not understood, taken as bfloat16"));
            (WeightFormat::Bf16, 2)
        }
    };
    let config = r.raw(&["quantization_config", "quantization", "compression_config"]);
    let Some((key, value)) = config else {
        let weights = match from_name(r.name) {
            Some(format) => {
                r.problem(
                    "quantization_config",
                    format!("not in the config; taken as `{format}` from the repository's name"),
                );
                format
            }
            None => plain,
        };
        return Ok(Stored { weights, unquantised: Vec::new(), dtype_bytes });
    };
    let map = value.as_object().ok_or_else(|| r.bad(key, value, "an object"))?;
    let weights = match format_of(map) {
        Some(format) => format,
        None => {
            let shown: String =
                map.get("quant_method").or(map.get("quant_algo")).map(Value::to_string).unwrap_or_default();
            return Err(r.unknown(format!("its quantisation {}", shown.chars().take(60).collect::<String>())));
        }
    };
    let mut unquantised = Vec::new();
    for list in ["modules_to_not_convert", "ignore", "exclude_modules", "ignored_layers", "llm_int8_skip_modules"] {
        for pattern in map.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str) {
            for role in roles_of(pattern) {
                if !unquantised.contains(role) {
                    unquantised.push(*role);
                }
            }
        }
    }
    if text(map, "quant_algo").is_some_and(|a| a.eq_ignore_ascii_case("MIXED_PRECISION")) {
        r.problem(
            "quantization_config",
            format!("mixes formats per layer; all quantised matrices taken as `{weights}`"),
        );
    }
    Ok(Stored { weights, unquantised, dtype_bytes: dtype_bytes.min(2) })
}

fn text<'a>(map: &'a Map<String, Value>, key: &str) -> Option<&'a str> {
    map.get(key).and_then(Value::as_str)
}

fn number(map: &Map<String, Value>, key: &str) -> Option<u64> {
    map.get(key).and_then(Value::as_u64)
}

fn group(map: &Map<String, Value>, default: u16) -> u16 {
    number(map, "group_size").and_then(|g| u16::try_from(g).ok()).filter(|g| *g > 0).unwrap_or(default)
}

fn format_of(map: &Map<String, Value>) -> Option<WeightFormat> {
    let method = text(map, "quant_method").unwrap_or_default().to_ascii_lowercase();
    let algorithm = text(map, "quant_algo").unwrap_or_default().to_ascii_uppercase();
    let groups = || map.get("config_groups").and_then(Value::as_object).into_iter().flatten().map(|(_, g)| g);
    // the narrowest group is the one that holds most weights: mixed recipes put experts there
    let narrowest = groups().filter_map(group_format).min_by_key(|f| f.weight_bits());
    if algorithm == "MIXED_PRECISION" {
        let layers = map.get("quantized_layers").and_then(Value::as_object).into_iter().flatten();
        let four = layers.filter_map(|(_, v)| v.get("quant_algo")).any(|a| a.as_str() == Some("NVFP4"));
        let moe = text(map, "moe_quant_algo") == Some("NVFP4");
        return if four || moe { Some(WeightFormat::Nvfp4) } else { narrowest };
    }
    if let Some(format) = narrowest {
        return Some(format);
    }
    match (method.as_str(), algorithm.as_str()) {
        ("fp8", _) if map.get("weight_block_size").is_some_and(|b| !b.is_null()) => Some(WeightFormat::Fp8Block),
        ("fp8", _) => Some(WeightFormat::Fp8Tensor),
        ("fbgemm_fp8", _) => Some(WeightFormat::Fp8Channel),
        ("awq", _) => Some(WeightFormat::Awq { group: group(map, 128) }),
        ("gptq", _) if number(map, "bits") == Some(8) => Some(WeightFormat::Int8),
        ("gptq", _) => Some(WeightFormat::Gptq { group: group(map, 128) }),
        ("mxfp4", _) => Some(WeightFormat::Mxfp4),
        ("bitsandbytes", _) if map.get("load_in_8bit") == Some(&Value::Bool(true)) => Some(WeightFormat::Int8),
        ("bitsandbytes", _) => {
            Some(WeightFormat::Nf4 { double: map.get("bnb_4bit_use_double_quant") == Some(&Value::Bool(true)) })
        }
        (_, "NVFP4" | "NVFP4_AWQ") => Some(WeightFormat::Nvfp4),
        (_, "FP8") => Some(WeightFormat::Fp8Tensor),
        (_, "W4A16_AWQ") => Some(WeightFormat::Awq { group: group(map, 128) }),
        // MLX writes only bits and group size
        ("", "") if number(map, "bits") == Some(4) => Some(WeightFormat::Awq { group: group(map, 64) }),
        ("", "") if number(map, "bits") == Some(8) => Some(WeightFormat::Int8),
        _ => None,
    }
}

/// Format of one group of compressed-tensors or ModelOpt.
fn group_format(value: &Value) -> Option<WeightFormat> {
    let weights = value.get("weights")?.as_object()?;
    let strategy = text(weights, "strategy").unwrap_or_default();
    let kind = text(weights, "type").unwrap_or_default();
    match (kind, number(weights, "num_bits")?) {
        ("float", 8) if strategy == "block" => Some(WeightFormat::Fp8Block),
        ("float", 8) if strategy == "channel" => Some(WeightFormat::Fp8Channel),
        ("float", 8) => Some(WeightFormat::Fp8Tensor),
        ("float", 4) if number(weights, "group_size") == Some(32) => Some(WeightFormat::Mxfp4),
        ("float", 4) => Some(WeightFormat::Nvfp4),
        ("int", 8) => Some(WeightFormat::Int8),
        ("int", 4) => Some(WeightFormat::Int4 { group: group(weights, 128) }),
        _ => None,
    }
}

/// Whole roles that a module pattern leaves out; patterns of single small modules name none.
fn roles_of(pattern: &str) -> &'static [Role] {
    let single = ["norm", "_bias", "gate.", "indexer", "in_proj_a", "in_proj_b", "conv1d", "router", "kv_b_proj"];
    // the first layers only, left out by some recipes
    let narrow = |p: &str| single.iter().any(|s| p.contains(s)) || p.ends_with(".gate");
    if pattern.contains("shared_expert") && !pattern.contains("shared_expert_gate") {
        &[Role::SharedExpert]
    } else if narrow(pattern) || pattern.contains("mtp") {
        &[]
    } else if pattern.contains("self_attn") || pattern.contains(".attn.") {
        &[Role::Attention, Role::Indexer]
    } else if pattern.contains("linear_attn") {
        &[Role::Mixer]
    } else if pattern.contains("mlp\\.(gate") || pattern.ends_with(".mlp*") {
        &[Role::Mlp]
    } else {
        &[]
    }
}
