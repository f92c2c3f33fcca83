//! Sums over a checkpoint's tensors, and what they say about a config.

use std::collections::BTreeMap;

use serde_json::Value;
use units::{Bytes, Params};

use super::{FileError, Kind, Part};
use crate::format::{GgufMix, WeightFormat};
use crate::spec::{ModelSpec, Problem};

/// Most remarks that are kept.
const MAX_PROBLEMS: usize = 20;

/// Tensors, elements and bytes together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Tensors.
    pub tensors: u64,
    /// Elements as stored: a packed word counts once.
    pub elements: u64,
    /// Parameters: packed words unpacked, helpers (scales, zero points) not counted.
    pub params: u64,
    /// Bytes.
    pub bytes: u64,
}

impl Sum {
    fn add(&mut self, elements: u64, params: u64, bytes: u64) {
        self.tensors = self.tensors.saturating_add(1);
        self.elements = self.elements.saturating_add(elements);
        self.params = self.params.saturating_add(params);
        self.bytes = self.bytes.saturating_add(bytes);
    }
}

/// What the tensors say the checkpoint is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredFormat {
    /// Plain floats of that many bits.
    Float(u8),
    /// FP8.
    Fp8,
    /// 8-bit integers.
    Int8,
    /// 4-bit integers packed into words.
    Int4,
    /// NVFP4.
    Nvfp4,
    /// MXFP4.
    Mxfp4,
    /// A mix of ggml types; the one with the most bytes.
    Gguf(&'static str),
}

impl StoredFormat {
    /// Its name on the screen.
    pub fn name(self) -> String {
        match self {
            Self::Float(bits) => format!("{bits}-bit float"),
            Self::Fp8 => "fp8".into(),
            Self::Int8 => "int8".into(),
            Self::Int4 => "packed int4".into(),
            Self::Nvfp4 => "nvfp4".into(),
            Self::Mxfp4 => "mxfp4".into(),
            Self::Gguf(name) => format!("GGUF, mostly {name}"),
        }
    }
}

/// What a config says that tensors alone do not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Bits of a packed weight.
    pub bits: Option<u64>,
    /// Decoder layers; those behind them are MTP blocks.
    pub layers: Option<u64>,
}

impl Hints {
    /// Reads them from a config; what is not there or not JSON gives none.
    pub fn of_config(bytes: &[u8]) -> Self {
        let Ok(map) = crate::config::parse("config", bytes) else { return Self::default() };
        let inner = map.get("text_config").and_then(Value::as_object);
        let find = |key: &str| inner.and_then(|m| m.get(key)).or_else(|| map.get(key));
        let quant = find("quantization_config").or_else(|| find("quantization"));
        let bits = quant.and_then(|q| {
            let group = q.get("config_groups").and_then(Value::as_object).and_then(|g| g.values().next());
            q.get("bits").or_else(|| group?.get("weights")?.get("num_bits"))?.as_u64()
        });
        Self {
            bits: bits.filter(|b| matches!(b, 2 | 3 | 4 | 5 | 6 | 8)),
            layers: find("num_hidden_layers").and_then(Value::as_u64),
        }
    }
}

/// A checkpoint's tensors, summed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// Files that were read.
    pub files: u64,
    /// All tensors.
    pub total: Sum,
    /// MTP blocks, contained in `total`.
    pub mtp: Sum,
    /// By element type.
    pub by_dtype: BTreeMap<&'static str, Sum>,
    /// By part of the model.
    pub by_part: BTreeMap<Part, Sum>,
    /// What it is stored in; `None` without tensors.
    pub format: Option<StoredFormat>,
    /// What looks odd.
    pub problems: Vec<Problem>,
}

/// What a checkpoint's files weigh, where they were read: it beats what the config's formats would give.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// All tensors.
    pub stored_bytes: Bytes,
    /// All but MTP blocks: what a server loads.
    pub weights_bytes: Bytes,
    /// Parameters in the files, unpacked, MTP included.
    pub stored_params: Params,
}

/// Sums tensors as they pass.
#[derive(Clone, Debug, Default)]
pub struct Builder {
    hints: Hints,
    sums: Checkpoint,
    packed: BTreeMap<&'static str, u64>,
    nvfp4: bool,
    mxfp4: bool,
}

impl Builder {
    /// With what the config says.
    pub fn new(hints: Hints) -> Self {
        Self { hints, ..Self::default() }
    }

    /// Notes something odd; at most 20 are kept.
    pub fn problem(&mut self, message: String) {
        if self.sums.problems.len() < MAX_PROBLEMS {
            self.sums.problems.push(Problem { key: "files".into(), message });
        }
    }

    /// Counts one file.
    pub fn file(&mut self) {
        self.sums.files += 1;
    }

    /// Takes one tensor of a safetensors file.
    pub(crate) fn tensor(
        &mut self,
        name: &str,
        dtype: &'static str,
        shape: &[u64],
        elements: u64,
        bytes: u64,
    ) -> Result<(), FileError> {
        let kind = Kind::of(name, dtype);
        self.nvfp4 |= name.ends_with("_scale_2") || name.ends_with("weight_global_scale");
        // gpt-oss packs 16 bytes to a block along the last dimension
        self.mxfp4 |= name.ends_with("_blocks") && dtype == "U8" && shape.last() == Some(&16);
        let params = match kind {
            Kind::Helper => 0,
            Kind::Plain => elements,
            Kind::Packed => {
                let word = if dtype == "U8" { 8 } else { 32 };
                *self.packed.entry(dtype).or_default() += 1;
                let bits = if dtype == "U8" { 4 } else { self.hints.bits.unwrap_or(4) };
                elements.saturating_mul(word) / bits.max(1)
            }
        };
        self.add(name, dtype, elements, params, bytes);
        Ok(())
    }

    /// Takes one tensor of a GGUF file.
    pub(crate) fn ggml(&mut self, name: &str, dtype: &'static str, elements: u64, bytes: u64) {
        self.add(name, dtype, elements, elements, bytes);
    }

    /// Replaces the number of decoder layers behind which MTP blocks stand.
    pub(crate) fn layers(&mut self, layers: Option<u64>) {
        self.hints.layers = layers;
    }

    fn add(&mut self, name: &str, dtype: &'static str, elements: u64, params: u64, bytes: u64) {
        let part = Part::of(name, self.hints.layers);
        self.sums.total.add(elements, params, bytes);
        self.sums.by_dtype.entry(dtype).or_default().add(elements, params, bytes);
        self.sums.by_part.entry(part).or_default().add(elements, params, bytes);
        if part == Part::Mtp {
            self.sums.mtp.add(elements, params, bytes);
        }
    }

    /// The sums.
    pub fn finish(mut self, gguf: bool) -> Checkpoint {
        let widest = self.sums.by_dtype.iter().max_by_key(|(_, s)| s.bytes).map(|(name, _)| *name);
        let packed = |name: &str| self.packed.contains_key(name);
        self.sums.format = widest.map(|name| match name {
            _ if gguf => StoredFormat::Gguf(name),
            // packed U8: which of the 4-bit floats its companions say
            _ if packed("U8") && self.nvfp4 => StoredFormat::Nvfp4,
            _ if packed("U8") && self.mxfp4 => StoredFormat::Mxfp4,
            _ if packed("I32") || packed("U32") || packed("U8") => match self.hints.bits {
                Some(8) => StoredFormat::Int8,
                _ => StoredFormat::Int4,
            },
            n if n.starts_with("F8") => StoredFormat::Fp8,
            "I8" | "U8" => StoredFormat::Int8,
            "F64" => StoredFormat::Float(64),
            "F32" => StoredFormat::Float(32),
            _ => StoredFormat::Float(16),
        });
        self.sums
    }
}

impl Checkpoint {
    /// What the tensors weigh.
    pub fn measured(&self) -> Measured {
        Measured {
            stored_bytes: Bytes(self.total.bytes),
            weights_bytes: Bytes(self.total.bytes.saturating_sub(self.mtp.bytes)),
            stored_params: Params(self.total.params),
        }
    }

    /// The usual mix whose quantised matrices are mostly of the type that this GGUF holds most of.
    pub fn gguf_weights(&self) -> WeightFormat {
        match self.format {
            Some(StoredFormat::Gguf(name)) => match name {
                "F32" => WeightFormat::Fp32,
                "F16" => WeightFormat::Fp16,
                "BF16" => WeightFormat::Bf16,
                "MXFP4" => WeightFormat::Mxfp4,
                "NVFP4" => WeightFormat::Nvfp4,
                "Q8_0" | "Q8_1" | "Q8_K" | "I8" => WeightFormat::Gguf(GgufMix::Q8_0),
                "Q6_K" => WeightFormat::Gguf(GgufMix::Q6K),
                "Q5_K" | "Q5_0" | "Q5_1" => WeightFormat::Gguf(GgufMix::Q5KM),
                "Q4_0" | "Q4_1" | "IQ4_NL" | "IQ4_XS" => WeightFormat::Gguf(GgufMix::Q4_0),
                "Q3_K" | "IQ3_S" | "IQ3_XXS" => WeightFormat::Gguf(GgufMix::Q3KM),
                "Q2_K" | "IQ2_S" | "IQ2_XS" | "IQ2_XXS" | "IQ1_S" | "IQ1_M" | "TQ1_0" | "TQ2_0" => {
                    WeightFormat::Gguf(GgufMix::Q2K)
                }
                _ => WeightFormat::Gguf(GgufMix::Q4KM),
            },
            _ => WeightFormat::Bf16,
        }
    }
}

impl ModelSpec {
    /// The same with the sums of real tensors in place of what the config's formats give; where both differ a remark
    /// says by how much.
    pub fn with_checkpoint(mut self, files: &Checkpoint) -> Self {
        let (expected, expected_bytes) = (self.params_stored().0, self.stored_bytes().0);
        let found = files.measured();
        let mut differ = |what: &str, found: u64, expected: u64| {
            if found != expected {
                let sign = if found < expected { "fewer" } else { "more" };
                let by = units::group_thousands(found.abs_diff(expected));
                let shown = units::group_thousands(found);
                let message = format!("hold {shown} {what}, {by} {sign} than follow from the config; the files count");
                self.problems.push(Problem { key: "files".into(), message });
            }
        };
        differ("parameters", found.stored_params.0, expected);
        differ("bytes of tensors", found.stored_bytes.0, expected_bytes);
        self.problems.extend(files.problems.iter().cloned());
        self.measured = Some(found);
        self
    }
}
