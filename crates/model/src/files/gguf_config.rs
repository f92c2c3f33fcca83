//! A GGUF's metadata as the config that the families read.

use serde_json::{Map, Value, json};

use super::{Checkpoint, Gguf, MetaValue};
use crate::error::ModelError;
use crate::near::nearest;
use crate::read::read_config;
use crate::spec::ModelSpec;

/// Architectures of GGUF files and the `model_type` whose reader knows them.
const ARCHITECTURES: &[(&str, &str)] = &[
    ("llama", "llama"),
    ("mistral3", "mistral"),
    ("qwen2", "qwen2"),
    ("qwen2moe", "qwen2_moe"),
    ("qwen3", "qwen3"),
    ("qwen3moe", "qwen3_moe"),
    ("gemma", "gemma"),
    ("gemma2", "gemma2"),
    ("gemma3", "gemma3_text"),
    ("phi3", "phi3"),
    ("deepseek2", "deepseek_v3"),
    ("glm4", "glm4"),
    ("glm4moe", "glm4_moe"),
    ("gpt-oss", "gpt_oss"),
    ("olmo2", "olmo2"),
    ("olmoe", "olmoe"),
    ("granite", "granite"),
    ("command-r", "cohere"),
    ("starcoder2", "starcoder2"),
    ("stablelm", "stablelm"),
    ("smollm3", "smollm3"),
    ("seed_oss", "seed_oss"),
    ("ernie4_5", "ernie4_5"),
];

/// Keys under the architecture's prefix and the config keys that they become.
const KEYS: &[(&str, &[&str])] = &[
    ("embedding_length", &["hidden_size"]),
    ("feed_forward_length", &["intermediate_size"]),
    ("attention.head_count", &["num_attention_heads"]),
    ("attention.head_count_kv", &["num_key_value_heads"]),
    ("attention.key_length", &["head_dim"]),
    ("context_length", &["max_position_embeddings"]),
    ("attention.sliding_window", &["sliding_window"]),
    ("expert_used_count", &["num_experts_per_tok"]),
    ("expert_feed_forward_length", &["moe_intermediate_size"]),
    ("expert_shared_count", &["n_shared_experts"]),
    ("leading_dense_block_count", &["first_k_dense_replace"]),
    ("nextn_predict_layers", &["num_nextn_predict_layers"]),
    ("attention.q_lora_rank", &["q_lora_rank"]),
    ("attention.kv_lora_rank", &["kv_lora_rank"]),
];

/// The config that a GGUF's metadata amounts to; an error for an architecture that no reader knows.
pub fn config_of(name: &str, file: &Gguf) -> Result<Value, ModelError> {
    let Some(arch) = file.architecture() else {
        return Err(ModelError::Missing { key: "general.architecture".into(), family: "GGUF".into() });
    };
    let known = || ARCHITECTURES.iter().map(|(a, _)| *a);
    let Some((_, model_type)) = ARCHITECTURES.iter().find(|(a, _)| *a == arch) else {
        let shown: String = arch.chars().take(60).collect();
        return Err(ModelError::UnknownArchitecture {
            name: name.chars().take(200).collect(),
            what: format!("the GGUF architecture `{shown}`"),
            suggestions: nearest(&shown, known(), 2).into_iter().map(|s| format!("`{s}`")).collect(),
        });
    };
    let mut config = Map::new();
    let mut put = |key: &str, value: Value| config.insert(key.to_owned(), value);
    put("dtype", json!("float16"));
    let experts = file.own("expert_count").filter(|n| *n > 0);
    let model_type = match (arch, experts) {
        ("llama", Some(_)) => "mixtral",
        _ => model_type,
    };
    put("model_type", json!(model_type));
    for (from, to) in KEYS {
        let value = match file.meta.get(&format!("{arch}.{from}")) {
            Some(MetaValue::Number(n)) => json!(n),
            // a list per layer counts where all are equal
            Some(MetaValue::Numbers(list)) => match list.split_first() {
                Some((first, rest)) if rest.iter().all(|n| n == first) => json!(first),
                _ => {
                    return Err(ModelError::UnknownArchitecture {
                        name: name.chars().take(200).collect(),
                        what: format!("`{from}`, which differs between layers,"),
                        suggestions: Vec::new(),
                    });
                }
            },
            _ => continue,
        };
        for key in *to {
            put(key, value.clone());
        }
    }
    if let Some(layers) = file.own("block_count") {
        put("num_hidden_layers", json!(layers.saturating_sub(file.own("nextn_predict_layers").unwrap_or(0))));
    }
    if let Some(vocab) = file.facts.vocab.or(file.own("vocab_size")).or(file.vocabulary()) {
        put("vocab_size", json!(vocab));
    }
    put("tie_word_embeddings", json!(!file.facts.head));
    if matches!(model_type, "llama" | "mistral" | "mixtral" | "glm4" | "glm4_moe") {
        put("attention_bias", json!(file.facts.q_bias));
    }
    if model_type == "glm4_moe" {
        put("use_qk_norm", json!(file.facts.q_norm));
    }
    if let Some(n) = experts {
        // each family reads its own of these
        let key = match model_type {
            "mixtral" | "gpt_oss" => "num_local_experts",
            "deepseek_v3" | "glm4_moe" => "n_routed_experts",
            _ => "num_experts",
        };
        put(key, json!(n));
        if let Some(width) = file.own("expert_shared_feed_forward_length").or(file.facts.shared_width)
            && model_type == "qwen2_moe"
        {
            put("shared_expert_intermediate_size", json!(width));
        }
    }
    if model_type == "deepseek_v3" {
        let rope = file.own("rope.dimension_count").unwrap_or(64);
        // newer files give the widths of the expanded heads apart from those of the latent
        let key = file.own("attention.key_length_mla").or(file.own("attention.key_length"));
        let value = file.own("attention.value_length_mla").or(file.own("attention.value_length"));
        put("qk_rope_head_dim", json!(rope));
        if let (Some(key), Some(value)) = (key, value) {
            put("qk_nope_head_dim", json!(key.saturating_sub(rope)));
            put("v_head_dim", json!(value));
        }
        let heads = file.own("attention.head_count");
        if let Some(heads) = heads {
            put("num_key_value_heads", json!(heads));
        }
        config.remove("head_dim");
    }
    Ok(Value::Object(config))
}

/// The anatomy that a GGUF's header gives, with the sums of its tensors.
pub fn spec_of_gguf(name: &str, file: &Gguf, sums: &Checkpoint) -> Result<ModelSpec, ModelError> {
    let config = config_of(name, file)?;
    let mut spec = read_config(name, config.to_string().as_bytes())?;
    spec.weights = sums.gguf_weights();
    spec.architecture = file.architecture().unwrap_or_default().chars().take(80).collect();
    // a mix's bytes follow from its tensors, not from its name: only parameters are compared
    let expected = spec.params_stored().0;
    let found = sums.measured();
    if found.stored_params.0 != expected {
        let by = i128::from(found.stored_params.0) - i128::from(expected);
        spec.problems.push(crate::spec::Problem {
            key: "files".into(),
            message: format!("hold {} parameters, {by:+} to what follows from the metadata", found.stored_params.0),
        });
    }
    spec.problems.extend(sums.problems.iter().cloned());
    spec.measured = Some(found);
    Ok(spec)
}
