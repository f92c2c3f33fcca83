//! Names as people write them.

use model::{Catalog, WeightFormat};

fn found(query: &str, expect: &str) {
    match Catalog::embedded().find(query) {
        Ok(entry) => assert_eq!(entry.name, expect, "for `{query}`"),
        Err(e) => panic!("{e}: {}", e.hint()),
    }
}

fn refused(query: &str) -> Vec<&'static str> {
    match Catalog::embedded().find(query) {
        Ok(entry) => panic!("`{query}` found {}", entry.name),
        Err(e) => e.suggestions,
    }
}

#[test]
fn every_name_finds_itself_in_any_case() {
    for name in Catalog::embedded().names() {
        found(name, name);
        found(&name.to_uppercase(), name);
    }
}

#[test]
fn without_organisation_and_with_other_separators() {
    found("deepseek-v3", "deepseek-ai/DeepSeek-V3");
    found("DeepSeek-R1", "deepseek-ai/DeepSeek-R1");
    found("deepseek v3", "deepseek-ai/DeepSeek-V3");
    found("llama-3.1-70b", "meta-llama/Meta-Llama-3.1-70B");
    found("Llama-3.1-70B", "meta-llama/Meta-Llama-3.1-70B");
    found("llama 3.1 70b", "meta-llama/Meta-Llama-3.1-70B");
    found("llama3.1-70b", "meta-llama/Meta-Llama-3.1-70B");
    found("llama_3.1_405b", "meta-llama/Meta-Llama-3.1-405B");
    found("Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B");
    found("Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct");
    found("Meta-Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct");
    found("meta-llama/Llama-3.1-405B", "meta-llama/Meta-Llama-3.1-405B");
    found("llama-3.3-70b", "meta-llama/Llama-3.3-70B-Instruct");
    found("GLM-5.3", "zai-org/GLM-5.3");
    found("glm5.3", "zai-org/GLM-5.3");
    found("Qwen3-235B", "Qwen/Qwen3-235B-A22B");
    found("qwen3-235b-a22b", "Qwen/Qwen3-235B-A22B");
    found("qwen3 32b", "Qwen/Qwen3-32B");
    found("gpt-oss-120b", "openai/gpt-oss-120b");
    found("gpt oss 20b", "openai/gpt-oss-20b");
    found("mixtral-8x7b", "mistralai/Mixtral-8x7B-v0.1");
    found("Mixtral-8x7B", "mistralai/Mixtral-8x7B-v0.1");
    found("mistral-7b", "mistralai/Mistral-7B-v0.1");
    found("kimi-k2", "moonshotai/Kimi-K2-Instruct");
    found("gemma-3-27b", "google/gemma-3-27b-it");
    found("llama3.1:70b", "meta-llama/Meta-Llama-3.1-70B");
    found("command-r-plus", "CohereLabs/c4ai-command-r-plus");
    found("Nemotron-3-Nano-30B-A3B", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16");
    found("Llama-3.3-Nemotron-Super-49B-v1", "nvidia/Llama-3_3-Nemotron-Super-49B-v1");
    found("llama-2-7b", "meta-llama/Llama-2-7b-hf");
    found("llama-3-8b", "meta-llama/Meta-Llama-3-8B");
    found("qwen2.5-72b", "Qwen/Qwen2.5-72B-Instruct");
    found("phi-4", "microsoft/phi-4");
    found("DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3");
    found("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1");
    found("meta-llama/Llama-3.1-70B-Instruct", "meta-llama/Meta-Llama-3.1-70B");
    found("Qwen/Qwen3-235B-A22B-Instruct-2507", "Qwen/Qwen3-235B-A22B");
    found("mistralai/Mixtral-8x7B-Instruct-v0.1", "mistralai/Mixtral-8x7B-v0.1");
    found("unsloth/Llama-3.1-8B", "meta-llama/Meta-Llama-3.1-8B");
    found("https://huggingface.co/openai/gpt-oss-20b", "openai/gpt-oss-20b");
}

#[test]
fn renamed_organisations() {
    found("zhipuai/GLM-4.5", "zai-org/GLM-4.5");
    found("THUDM/GLM-4-32B-0414", "zai-org/GLM-4-32B-0414");
    found("CohereForAI/c4ai-command-r-plus", "CohereLabs/c4ai-command-r-plus");
}

#[test]
fn derivatives_are_the_base_model_in_their_format_and_say_so() {
    let check = |query: &str, base: &str, format: WeightFormat| {
        found(query, base);
        let entry = Catalog::embedded().find(query).unwrap();
        assert_eq!(entry.derived_format(), Some(format), "{query}");
        let spec = entry.spec().unwrap();
        assert_eq!(spec.weights, format, "{query}");
        assert!(spec.problems.iter().any(|p| p.key == "name" && p.message.contains(query)), "{query}");
    };
    check("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct", WeightFormat::Fp8Channel);
    check("nvidia/DeepSeek-R1-NVFP4", "deepseek-ai/DeepSeek-R1", WeightFormat::Nvfp4);
    check("nvidia/Llama-3.1-405B-Instruct-FP8", "meta-llama/Meta-Llama-3.1-405B", WeightFormat::Fp8Tensor);
    check("nvidia/DeepSeek-R1-FP4-v2", "deepseek-ai/DeepSeek-R1", WeightFormat::Nvfp4);
    check(
        "neuralmagic/Meta-Llama-3.1-70B-Instruct-quantized.w4a16",
        "meta-llama/Meta-Llama-3.1-70B",
        WeightFormat::Int4 { group: 128 },
    );
    check(
        "hugging-quants/Meta-Llama-3.1-405B-Instruct-AWQ-INT4",
        "meta-llama/Meta-Llama-3.1-405B",
        WeightFormat::Awq { group: 128 },
    );
    check("llama3.1:70b-instruct-q4_K_M", "meta-llama/Meta-Llama-3.1-70B", "q4_k_m".parse().unwrap());
    check("Qwen/Qwen3-14B-FP8", "Qwen/Qwen3-14B", WeightFormat::Fp8Block);
    check("qwen2.5-32b-instruct-awq", "Qwen/Qwen2.5-32B-Instruct", WeightFormat::Awq { group: 128 });
}

#[test]
fn a_derivative_that_is_in_the_catalog_is_itself() {
    found("Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B-FP8");
    found("nvidia/GLM-5.3-NVFP4", "nvidia/GLM-5.3-NVFP4");
    found("GLM-5.3-FP8", "zai-org/GLM-5.3-FP8");
}

#[test]
fn another_size_is_never_the_answer() {
    assert!(refused("llama-3.1-7b").contains(&"meta-llama/Meta-Llama-3.1-8B"));
    assert!(!refused("gpt-oss").is_empty());
    assert!(!refused("llama-3.1").is_empty());
    assert!(!refused("qwen3-8").is_empty());
    refused("qwen3");
    refused("mixtral");
    refused("deepseek");
    refused("llama-3.3-7b");
    refused("mixtral-7b");
    refused("qwen3-235b-a2b");
    refused("llama-3.1-700b");
    refused("Qwen/DeepSeek-V3");
    refused("");
    refused("   ");
    refused("xyzzy");
    refused("/");
}
