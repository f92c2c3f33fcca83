//! Is there a checkpoint of this model in another format? A plan that re-quantises leans on one.

use model::{Catalog, WeightFormat};

/// Words in a checkpoint's name that say how it is stored or tuned, not which model it is.
const NOT_THE_MODEL: [&str; 19] = [
    "fp8", "nvfp4", "fp4", "mxfp4", "awq", "gptq", "int4", "int8", "w4a16", "w8a8", "bf16", "fp16", "dynamic", "block",
    "hf", "instruct", "it", "chat", "meta",
];

/// Which model a name is of: lower case, without organisation and words on format or tuning.
fn stem(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name).to_lowercase();
    let words = name.split(['-', '_', ' ']).filter(|w| !w.is_empty() && !NOT_THE_MODEL.contains(w));
    words.collect::<Vec<_>>().join("-")
}

/// Same kind of storage, whatever the size of blocks and groups.
fn alike(a: WeightFormat, b: WeightFormat) -> bool {
    use WeightFormat::{Awq, Fp8Block, Fp8Channel, Fp8Tensor, Gptq, Int4};
    let kind = |f: WeightFormat| match f {
        Fp8Block | Fp8Channel | Fp8Tensor => "fp8",
        Awq { .. } | Gptq { .. } | Int4 { .. } => "4-bit integers",
        other => other.name(),
    };
    kind(a) == kind(b)
}

/// The catalog's checkpoint of the same model in (about) this format, if it has one.
pub(crate) fn checkpoint_in(model: &str, format: WeightFormat) -> Option<&'static str> {
    let wanted = stem(model);
    Catalog::embedded()
        .entries()
        .iter()
        .filter(|e| stem(e.name) == wanted)
        .find(|e| e.spec().is_ok_and(|s| alike(s.weights, format)))
        .map(|e| e.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_checkpoint_of_the_same_model_is_found() {
        let fp8 = WeightFormat::Fp8Block;
        assert_eq!(checkpoint_in("meta-llama/Meta-Llama-3.1-70B", fp8), Some("nvidia/Llama-3.1-70B-Instruct-FP8"));
        assert_eq!(checkpoint_in("zai-org/GLM-5.3", fp8), Some("zai-org/GLM-5.3-FP8"));
        assert_eq!(checkpoint_in("meta-llama/Meta-Llama-3.1-70B", WeightFormat::Awq { group: 128 }), None);
        assert_eq!(checkpoint_in("my-own-model", fp8), None);
    }
}
