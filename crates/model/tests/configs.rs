//! Single facts about configs: bytes, formats, regression cases, refusals.

use model::{Catalog, KvFormat, ModelError, ModelSpec, WeightFormat, read_config};
use units::{Bytes, Params};

fn spec(name: &str) -> ModelSpec {
    Catalog::embedded().find(name).expect("in the catalog").spec().expect("readable")
}

#[test]
fn checkpoint_bytes_by_format() {
    // published sizes of the two files
    assert_eq!(spec("openai/gpt-oss-120b").weights_bytes_checkpoint(), Bytes(65_248_815_744));
    assert_eq!(spec("openai/gpt-oss-20b").weights_bytes_checkpoint(), Bytes(13_761_264_768));
    let llama = spec("meta-llama/Meta-Llama-3.1-70B");
    assert_eq!(llama.weights, WeightFormat::Bf16);
    assert_eq!(llama.weights_bytes_checkpoint(), Bytes(2 * 70_553_706_496));
    // V3: scales of all blocks, MTP included, are 41,540,496 floats
    let v3 = spec("deepseek-ai/DeepSeek-V3");
    assert_eq!(v3.weights, WeightFormat::Fp8Block);
    let r1 = spec("deepseek-ai/DeepSeek-R1");
    assert_eq!(r1.weights_bytes_checkpoint(), v3.weights_bytes_checkpoint());
    assert_eq!(v3.stored_bytes(), r1.stored_bytes());
    assert_eq!(v3.stored_bytes(), Bytes(688_574_778_944 + 2 * 59 * 256));
}

#[test]
fn kimi_k2_5_keeps_all_but_experts_in_16_bit() {
    let kimi = spec("moonshotai/Kimi-K2.5");
    assert_eq!(kimi.weights, WeightFormat::Int4 { group: 32 });
    // 60 layers of 384 experts at 0.5625 bytes; the rest at 2
    let experts = 60 * 384 * 3 * 7168 * 2048_u64;
    assert_eq!(kimi.weights_bytes_checkpoint().0, experts / 16 * 9 + 2 * (kimi.params_total().0 - experts));
}

#[test]
fn gpt_oss_without_embedding_is_what_the_card_says() {
    assert_eq!(spec("gpt-oss-120b").params_active_without_embedding(), Params(5_711_982_912 - 201_088 * 2880));
    assert_eq!(spec("deepseek-v3").params_active_without_embedding(), Params(37_552_282_624 - 129_280 * 7168));
    // OPT: of the position table only a row; Gemma 3n: of its per-layer embeddings only a row
    let opt = spec("facebook/opt-13b");
    assert_eq!(opt.params_active_without_embedding(), Params(12_853_473_280 - 2050 * 5120));
    let gemma = spec("google/gemma-3n-E4B-text");
    assert_eq!(gemma.params_active_without_embedding(), Params(6_835_235_568 - 262_144 * 35 * 256));
    // a tied head reads the embedding
    let tied = spec("Qwen/Qwen3-0.6B");
    assert_eq!(tied.params_active_without_embedding(), tied.params_active());
}

#[test]
fn formats_of_one_model_by_size() {
    let m = spec("llama-3.1-70b");
    let gb = |f: &str| m.weights_bytes(f.parse().unwrap()).gb();
    assert!((gb("fp8") - 72.7).abs() < 0.1, "{}", gb("fp8"));
    assert!((gb("awq") - 39.8).abs() < 0.2, "{}", gb("awq"));
    // published Q4_K_M file: 42.5 GB, Q8_0: 75.0 GB
    assert!((gb("q4_k_m") - 42.5).abs() < 0.3, "{}", gb("q4_k_m"));
    assert!((gb("q8_0") - 75.0).abs() < 0.2, "{}", gb("q8_0"));
}

/// llmfit#1, #2, #3: 4-bit sizes of mixtures of experts are those of all experts.
#[test]
fn regression_four_bit_mixtures_count_all_experts() {
    let q4 = |name: &str| spec(name).weights_bytes("q4_k_m".parse().unwrap()).gb();
    assert!((70.0..76.0).contains(&q4("Qwen/Qwen3.5-122B-A10B")), "{}", q4("Qwen/Qwen3.5-122B-A10B"));
    assert!((395.0..410.0).contains(&q4("deepseek-r1")), "{}", q4("deepseek-r1"));
}

/// gguf-parser-go#8, LMCache#2132: the latent, not expanded heads.
#[test]
fn regression_latent_cache() {
    let v3 = spec("deepseek-v3");
    assert_eq!(v3.kv_bytes(65_536, KvFormat::Bf16), Bytes(61 * 576 * 2 * 65_536));
    assert!(v3.has_mla());
    assert_eq!((v3.heads(), v3.kv_heads(), v3.experts(), v3.top_k()), (128, 1, 256, 8));
    assert_eq!(v3.layer_count(), 61);
}

/// gguf-parser-go#28, unsloth#4757: only full-attention layers of a hybrid hold a cache; windows cap the rest.
#[test]
fn regression_hybrid_and_windowed_caches() {
    assert_eq!(spec("Qwen/Qwen3.5-27B").kv_bytes(262_144, KvFormat::Bf16), Bytes(16 << 30));
    let gemma = spec("gemma-3-27b");
    let full = 10 * 2 * 16 * 128 * 2 * 131_072_u64;
    let local = 52 * 2 * 16 * 128 * 2 * 1024_u64;
    assert_eq!(gemma.kv_bytes(131_072, KvFormat::Bf16), Bytes(full + local));
    let oss = spec("gpt-oss-20b");
    assert_eq!(oss.kv_bytes(8192, KvFormat::Bf16), Bytes(2 * 8 * 64 * 2 * 12 * (8192 + 128)));
    // measured: 2,162,688 bytes per layer, 30 layers
    assert_eq!(spec("Qwen/Qwen3.5-35B-A3B").state_bytes_per_sequence(), Bytes(30 * 2_162_688));
}

#[test]
fn glm_5_3_indexer_keys_are_cached_where_they_are_owned() {
    let m = spec("GLM-5.3");
    assert_eq!(m.kv_bytes_per_token(KvFormat::Bf16), Bytes(78 * 576 * 2 + 21 * 256));
    // FP8 halves the latent, the indexer's keys stay
    assert_eq!(m.kv_bytes_per_token(KvFormat::Fp8), Bytes(78 * 576 + 21 * 256));
}

#[test]
fn bare_sizes_are_exact() {
    let weights = |text: &str| text.parse::<WeightFormat>().unwrap();
    for (format, gb) in [("fp8", 744.0), ("bf16", 1488.0), ("nvfp4", 418.5)] {
        let m = ModelSpec::bare("744B", Params(744_000_000_000), Some(Params(40_000_000_000)), weights(format));
        assert_eq!(m.params_total(), Params(744_000_000_000));
        assert_eq!(m.params_active(), Params(40_000_000_000));
        assert!((m.weights_bytes_checkpoint().gb() - gb).abs() < 0.001, "{format} {}", m.weights_bytes_checkpoint().0);
        assert!(!m.kv_known());
        assert_eq!(m.kv_bytes_per_token(KvFormat::Bf16), Bytes::ZERO);
        assert!(m.is_moe());
    }
    let fp8 = ModelSpec::bare("744B", Params(744_000_000_000), Some(Params(40_000_000_000)), weights("fp8"));
    assert_eq!(fp8.weights_bytes_checkpoint(), Bytes(744_000_000_000));
    let dense = ModelSpec::bare("7B", Params(7_000_000_001), None, WeightFormat::Fp16);
    assert_eq!(dense.params_total(), Params(7_000_000_001));
    assert_eq!(dense.params_active(), Params(7_000_000_001));
    assert_eq!(dense.weights_bytes_checkpoint(), Bytes(14_000_000_002));
    assert!(!dense.is_moe());
    for (total, active) in [(0, None), (5, Some(1)), (1_000_000_000_000, Some(1_000_000_000)), (u64::MAX, Some(1))] {
        let m = ModelSpec::bare("odd", Params(total), active.map(Params), WeightFormat::Bf16);
        assert_eq!(m.params_total(), Params(total));
    }
}

fn refusal(json: &str) -> String {
    let e = read_config("test/model", json.as_bytes()).expect_err("refused");
    assert!(!e.hint().is_empty());
    e.to_string()
}

#[test]
fn hostile_files_are_refused_with_the_place() {
    assert_eq!(refusal("hello"), "`test/model` is not JSON: expected value at line 1 column 1");
    assert_eq!(refusal("{\"a\": [1, 2"), "`test/model` is not JSON: it ends too early at line 1 column 11");
    assert_eq!(refusal("[1]"), "`test/model` is a JSON list, not an object");
    assert_eq!(refusal("{}"), "the config has no `model_type` or `architectures`, which the config reader needs");
    assert_eq!(refusal("{\"model_type\": \"lama\"}"), "`test/model`: `model_type` `lama` is not understood");
    assert!(refusal("{\"model_type\": \"llama\"}").starts_with("the config has no `hidden_size`"));
    assert!(refusal(&"[".repeat(100_000)).contains("recursion limit"));
    let big = vec![b' '; model::MAX_FILE_BYTES + 1];
    let e = read_config("x", &big).unwrap_err();
    assert!(matches!(e, ModelError::TooLarge { .. }));
    assert_eq!(e.to_string(), "`x` has 16777217 bytes, the limit for a config is 16777216");
}

#[test]
fn impossible_values_are_refused_by_key() {
    let config = Catalog::embedded().find("llama-3.1-8b").unwrap().config();
    let with = |key: &str, value: &str| {
        let mut map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(config).unwrap();
        map.insert(key.into(), serde_json::from_str(value).unwrap());
        refusal(&serde_json::to_string(&map).unwrap())
    };
    assert_eq!(with("hidden_size", "-1"), "`hidden_size` is `-1`, but must be a whole number from 1 to 67108864");
    assert_eq!(with("hidden_size", "0"), "`hidden_size` is `0`, but must be a whole number from 1 to 67108864");
    assert_eq!(
        with("hidden_size", "4096.5"),
        "`hidden_size` is `4096.5`, but must be a whole number from 1 to 67108864"
    );
    assert_eq!(
        with("hidden_size", "\"big\""),
        "`hidden_size` is `\"big\"`, but must be a whole number from 1 to 67108864"
    );
    assert_eq!(
        with("num_hidden_layers", "1e9"),
        "`num_hidden_layers` is `1000000000.0`, but must be a whole number from 1 to 10000"
    );
    assert_eq!(
        with("num_key_value_heads", "7"),
        "`num_key_value_heads` is `7`, but must be a divisor of the 32 attention heads"
    );
    assert_eq!(with("tie_word_embeddings", "\"no\""), "`tie_word_embeddings` is `\"no\"`, but must be true or false");
    assert_eq!(
        with("layer_types", "[\"mystery\"]"),
        "`layer_types` is `a list of 1`, but must be a list of 32, one per layer"
    );
    assert!(with("vision_config", "{\"a\":1,\"b\":2}").contains("its part `vision_config` is not understood"));
    assert!(with("num_experts", "64").contains("experts in a family that has none"));
    assert!(with("quantization_config", "{\"quant_method\":\"magic\"}").contains("its quantisation \"magic\""));
    let kinds = format!("[{}]", vec!["\"mystery\""; 32].join(","));
    assert!(with("layer_types", &kinds).contains("the layer type `mystery` is not understood"));
}

#[test]
fn unknown_keys_and_defaults_become_problems() {
    let json = r#"{"model_type":"llama","hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,
        "intermediate_size":128,"vocab_size":100,"extra_adapters":3,"rope_theta":1e4,"eos_token_id":2,"time_step_limit":[0,Infinity]}"#;
    let spec = read_config("t", json.as_bytes()).unwrap();
    let keys: Vec<_> = spec.problems.iter().map(|p| p.key.as_str()).collect();
    assert!(keys.contains(&"extra_adapters"), "{keys:?}");
    assert!(keys.contains(&"num_key_value_heads") && keys.contains(&"dtype"), "{keys:?}");
    assert!(!keys.contains(&"rope_theta") && !keys.contains(&"eos_token_id"));
}

/// Llama 4 without its vision part is the text model, and says so.
#[test]
fn a_missing_tower_is_said() {
    let entry = Catalog::embedded().find("meta-llama/Llama-4-Scout-17B-16E-Instruct").unwrap();
    let mut map: serde_json::Map<String, serde_json::Value> = serde_json::from_str(entry.config()).unwrap();
    map.remove("vision_config");
    let spec = read_config("scout", &serde_json::to_vec(&map).unwrap()).unwrap();
    assert!(spec.problems.iter().any(|p| p.key == "vision_config"));
    assert!(spec.params_total() < entry.spec().unwrap().params_total());
    assert!(spec.towers.is_empty());
}

/// gguf-parser-go#14: layers of Gemma 3n that reuse a cache hold none; 20 of 35 do.
#[test]
fn regression_shared_cache_layers() {
    let m = spec("google/gemma-3n-E4B-text");
    assert_eq!(m.kv_bytes_per_token(KvFormat::Bf16), Bytes(20 * 2 * 2 * 256 * 2));
    assert_eq!(m.layer_count(), 35);
}

/// unsloth#4757, LMCache#694, vllm-fit#2, LMCache#2834.
#[test]
fn regression_cache_per_token() {
    let kv = |name: &str| spec(name).kv_bytes_per_token(KvFormat::Bf16).0;
    assert!((spec("nvidia/DeepSeek-V3.1-NVFP4").kv_bytes(163_840, KvFormat::Bf16).gib() - 10.72).abs() < 0.01);
    assert_eq!(kv("deepseek-v3"), 70_272);
    assert_eq!(kv("llama-3.1-8b"), 2 * 32 * 8 * 128 * 2);
    assert_eq!(kv("tencent/Hunyuan-7B-Instruct"), 2 * 32 * 8 * 128 * 2);
    assert_eq!(kv("Qwen/Qwen2.5-7B-Instruct"), 57_344);
}

/// Sliding window set but switched off (Qwen2.5) means full attention.
#[test]
fn regression_a_window_that_is_off_caps_nothing() {
    let m = spec("Qwen/Qwen2.5-7B-Instruct");
    assert_eq!(m.kv_bytes(200_000, KvFormat::Bf16), Bytes(57_344 * 200_000));
    // Mistral-7B-v0.1 has one that is on
    let mistral = spec("mistralai/Mistral-7B-v0.1");
    assert_eq!(mistral.kv_bytes(200_000, KvFormat::Bf16), mistral.kv_bytes(4096, KvFormat::Bf16));
}

/// State per layer as cache objects of the reference implementation hold it.
#[test]
fn states_of_hybrids() {
    let m = spec("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16");
    assert_eq!(m.state_bytes_per_sequence(), Bytes(23 * 2_146_304));
    assert_eq!(spec("ai21labs/Jamba-v0.1").state_bytes_per_sequence(), Bytes(28 * 589_824));
    assert_eq!(spec("llama-3.1-8b").state_bytes_per_sequence(), Bytes::ZERO);
}

/// Whisper keeps keys of 1,500 encoder positions, and of its own tokens.
#[test]
fn cross_attention_is_cached_once_per_source_token() {
    let m = spec("openai/whisper-large-v3");
    let per_token = 2 * 1280 * 2 * 32_u64;
    assert_eq!(m.kv_bytes_per_token(KvFormat::Bf16), Bytes(per_token));
    assert_eq!(m.kv_bytes(100, KvFormat::Bf16), Bytes(per_token * (1500 + 100)));
}

/// Two published sizes: 7B in 16 bit is about 14 GB, 70B about 140 GB.
#[test]
fn well_known_sizes() {
    assert!((spec("llama-2-7b").weights_bytes(WeightFormat::Fp16).gb() - 13.48).abs() < 0.01);
    assert!((spec("llama-3.1-70b").weights_bytes_checkpoint().gb() - 141.1).abs() < 0.1);
    let sum = |m: &ModelSpec| m.layers.iter().map(|r| u64::from(r.count)).sum::<u64>();
    for name in ["llama-3.1-405b", "GLM-5.3", "gpt-oss-120b", "qwen3-235b"] {
        assert_eq!(sum(&spec(name)), spec(name).layer_count());
    }
    assert_eq!(spec("GLM-5.3").weights_bytes_checkpoint(), Bytes(2 * 743_377_000_704));
    assert!((spec("zai-org/GLM-5.3-FP8").weights_bytes_checkpoint().gb() - 745.6).abs() < 0.1);
}
