//! Efficiency curves: how much of a peak a kind of work reaches on a GPU, fitted on published measurements and kept
//! as data with origin, error and range.

use std::sync::LazyLock;

use hardware::{ComputeType, Gpu};
use units::{Basis, FlopPerSec, Seconds};

use crate::engine::{Engine, EngineProfile};
use crate::table::{Row, Rows, rows};

/// What a matrix product multiplies, as the curves tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GemmType {
    /// FP32 or TF32 operands.
    Fp32,
    /// 16-bit operands.
    Bits16,
    /// FP8 operands, scales per tensor or channel.
    Fp8,
    /// FP8 operands, scales per block.
    Fp8Block,
    /// INT8 operands.
    Int8,
    /// NVFP4 operands.
    Nvfp4,
    /// 8-bit weights, 16-bit arithmetic.
    WeightOnly8,
    /// Weights below 8 bit, 16-bit arithmetic.
    WeightOnly4,
}

impl GemmType {
    /// Every type.
    pub const ALL: [Self; 8] = [
        Self::Fp32,
        Self::Bits16,
        Self::Fp8,
        Self::Fp8Block,
        Self::Int8,
        Self::Nvfp4,
        Self::WeightOnly8,
        Self::WeightOnly4,
    ];

    /// The name in data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp32 => "fp32",
            Self::Bits16 => "bits16",
            Self::Fp8 => "fp8",
            Self::Fp8Block => "fp8_block",
            Self::Int8 => "int8",
            Self::Nvfp4 => "nvfp4",
            Self::WeightOnly8 => "weight_only8",
            Self::WeightOnly4 => "weight_only4",
        }
    }

    /// The peak that products of this type run against; `None` where the GPU lacks it.
    pub fn peak(self, gpu: &Gpu) -> Option<FlopPerSec> {
        let dense = |kind| gpu.peaks.dense(kind);
        match self {
            Self::Fp32 => dense(ComputeType::Tf32).or(dense(ComputeType::Fp32)).or(gpu.peaks.matrix16()),
            Self::Bits16 | Self::WeightOnly8 | Self::WeightOnly4 => gpu.peaks.matrix16(),
            Self::Fp8 | Self::Fp8Block => dense(ComputeType::Fp8),
            Self::Int8 => dense(ComputeType::Int8),
            Self::Nvfp4 => dense(ComputeType::Fp4),
        }
    }
}

/// Where a curve for a GPU came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lent {
    /// Fitted on this very GPU.
    Own,
    /// Lent by a GPU of the same architecture and memory kind.
    Architecture,
    /// A default for any GPU.
    Default,
}

impl Lent {
    /// A curve lent is weaker than one's own.
    fn weaken(self, basis: Basis) -> Basis {
        match self {
            Self::Own => basis,
            Self::Architecture => basis.weakest(Basis::Derived),
            Self::Default => Basis::Assumed,
        }
    }
}

/// Efficiency of matrix products: `time^4 = (FLOP / (peak × e_c) × (1 + wave / (m n)) × (1 + k_half / k))^4 +
/// (bytes / (bandwidth × e_m))^4`, plus a launch that graphs hide.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GemmCurve {
    /// Share of the dense peak at large shapes.
    pub e_c: f64,
    /// Share of the memory bandwidth at small `m`.
    pub e_m: f64,
    /// Output elements of a wave: below them part of the GPU idles.
    pub wave: f64,
    /// Inner length at which the k loop is half as efficient.
    pub k_half: f64,
    /// How it is known for this GPU.
    pub basis: Basis,
}

/// Efficiency of routed experts (grouped products).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpertCurve {
    /// Share of the dense peak.
    pub e_c: f64,
    /// Share of the memory bandwidth.
    pub e_m: f64,
    /// How it is known for this GPU.
    pub basis: Basis,
}

/// Efficiency of attention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttentionCurve {
    /// Share of the bandwidth at which decoding reads the cache.
    pub decode_bandwidth: f64,
    /// Share of the 16-bit peak of scores and values.
    pub compute: f64,
    /// How it is known for this GPU.
    pub basis: Basis,
}

/// Time of a collective: `alpha + ramp × sqrt(min(size, 1 MB) / 1 MB) + wire bytes / (link × efficiency)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollectiveCurve {
    /// Time of an empty one.
    pub alpha: Seconds,
    /// Extra time that grows up to a megabyte.
    pub ramp: Seconds,
    /// Share of the link's bandwidth of one direction.
    pub efficiency: f64,
    /// How it is known.
    pub basis: Basis,
}

/// How an engine's own kernels read weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stream {
    /// Share of the memory bandwidth.
    pub e_m: f64,
    /// Small kernels of one dense layer.
    pub layer: Seconds,
    /// How it is known.
    pub basis: Basis,
}

/// Multiplicative error band of an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Band {
    /// Times the estimate: 10 % of comparable measurements lie below.
    pub low: f64,
    /// Times the estimate: 10 % of comparable measurements lie above.
    pub high: f64,
}

/// Small kernels of a mechanism in units of those of one dense layer.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct KernelCounts {
    /// Quantised attention projections.
    pub quantised: f64,
    /// Routed experts.
    pub moe: f64,
    /// Shared experts.
    pub shared_expert: f64,
    /// Multi-head latent attention.
    pub mla: f64,
    /// Sparse attention.
    pub sparse_attention: f64,
    /// Linear attention and state spaces.
    pub linear_attention: f64,
}

/// All curves.
#[derive(Clone, Debug)]
pub struct Curves {
    gemm: Vec<Scoped<(GemmType, GemmCurve)>>,
    experts: Vec<Scoped<Ratios>>,
    attention: Vec<Scoped<Ratios>>,
    collectives: Vec<Collective>,
    fused: Rows,
    streams: Rows,
    bands: Rows,
    kernels: KernelCounts,
    engines: [EngineProfile; 4],
}

/// A figure and the GPUs that it is for: an id, an architecture or `*`, with a kind of memory.
#[derive(Clone, Debug)]
struct Scoped<T> {
    scope: String,
    memory: String,
    value: T,
    basis: Basis,
}

/// What a kind of kernel reaches of what plain products reach.
#[derive(Clone, Copy, Debug)]
struct Ratios {
    compute: f64,
    memory: f64,
}

#[derive(Clone, Debug)]
struct Collective {
    op: String,
    link: String,
    ranks: u32,
    curve: CollectiveCurve,
}

static EMBEDDED: LazyLock<Curves> = LazyLock::new(|| {
    Curves::parse(&Files {
        gemm: include_str!("../data/gemm.csv"),
        experts: include_str!("../data/experts.csv"),
        attention: include_str!("../data/attention.csv"),
        collectives: include_str!("../data/collectives.csv"),
        fused: include_str!("../data/fused.csv"),
        streams: include_str!("../data/streams.csv"),
        bands: include_str!("../data/bands.csv"),
        kernels: include_str!("../data/kernels.csv"),
        engines: include_str!("../data/engines.csv"),
    })
});

/// The texts of the data files.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    /// `gemm.csv`.
    pub gemm: &'a str,
    /// `experts.csv`.
    pub experts: &'a str,
    /// `attention.csv`.
    pub attention: &'a str,
    /// `collectives.csv`.
    pub collectives: &'a str,
    /// `fused.csv`.
    pub fused: &'a str,
    /// `streams.csv`.
    pub streams: &'a str,
    /// `bands.csv`.
    pub bands: &'a str,
    /// `kernels.csv`.
    pub kernels: &'a str,
    /// `engines.csv`.
    pub engines: &'a str,
}

impl Curves {
    /// The curves that come with the program.
    pub fn embedded() -> &'static Self {
        &EMBEDDED
    }

    /// Reads the data files. Rows that lack a figure are left out; a missing engine is taken with neutral figures.
    pub fn parse(files: &Files<'_>) -> Self {
        let engine_rows = rows(files.engines);
        let engine = |e| EngineProfile::read(e, &engine_rows).unwrap_or_else(|| EngineProfile::neutral(e));
        let kernel_rows = rows(files.kernels);
        let kernel = |name: &str| {
            kernel_rows.iter().find(|r| r.text("mechanism") == name).and_then(|r| r.number("multiplier")).unwrap_or(0.0)
        };
        Self {
            gemm: scoped(files.gemm, gemm_row),
            experts: scoped(files.experts, ratios),
            attention: scoped(files.attention, ratios),
            collectives: rows(files.collectives).iter().filter_map(collective).collect(),
            fused: rows(files.fused),
            streams: rows(files.streams),
            bands: rows(files.bands),
            kernels: KernelCounts {
                quantised: kernel("quantised"),
                moe: kernel("moe"),
                shared_expert: kernel("shared_expert"),
                mla: kernel("mla"),
                sparse_attention: kernel("sparse_attention"),
                linear_attention: kernel("linear_attention"),
            },
            engines: Engine::ALL.map(engine),
        }
    }

    /// The figures of an engine.
    pub fn engine(&self, engine: Engine) -> &EngineProfile {
        &self.engines[engine as usize]
    }

    /// Small kernels by mechanism.
    pub fn kernels(&self) -> &KernelCounts {
        &self.kernels
    }

    /// Efficiency of matrix products on a GPU: its own curve, else one of its architecture, else the default of its
    /// memory kind; a type without any curve borrows that of 16-bit products. Weights stream at the share of the
    /// bandwidth that the GPU's own 16-bit products reach, whatever they encode.
    pub fn gemm(&self, gpu: &Gpu, kind: GemmType) -> GemmCurve {
        let with = |kind: GemmType| {
            let found = nearest(&self.gemm, gpu, |row| row.value.0 == kind);
            found.map(|(row, lent)| (GemmCurve { basis: lent.weaken(row.basis), ..row.value.1 }, lent))
        };
        let guess = GemmCurve { e_c: 0.5, e_m: 0.7, wave: 0.0, k_half: 0.0, basis: Basis::Assumed };
        let sixteen = with(GemmType::Bits16).map(|(curve, _)| curve);
        match (with(kind), sixteen) {
            (Some((curve, lent)), _) if lent < Lent::Default => curve,
            (Some((curve, _)), Some(own)) if own.basis < Basis::Assumed => {
                // the arithmetic of weight-only types is that of 16 bit, only its cost is lent
                let same = matches!(kind, GemmType::WeightOnly8 | GemmType::WeightOnly4);
                GemmCurve { e_m: own.e_m, basis: if same { Basis::Derived } else { Basis::Assumed }, ..curve }
            }
            (Some((curve, _)), _) => curve,
            (None, sixteen) => GemmCurve { basis: Basis::Assumed, ..sixteen.unwrap_or(guess) },
        }
    }

    /// Efficiency of routed experts: that of plain products of the type times the ratio that grouped products reach.
    pub fn experts(&self, gpu: &Gpu, plain: &GemmCurve) -> ExpertCurve {
        let (ratio, basis) = reached(&self.experts, gpu);
        ExpertCurve {
            e_c: (plain.e_c * ratio.compute).min(1.0),
            e_m: (plain.e_m * ratio.memory).min(1.0),
            basis: plain.basis.weakest(basis),
        }
    }

    /// Efficiency of attention: that of plain 16-bit products of the GPU times the ratio that attention kernels reach.
    pub fn attention(&self, gpu: &Gpu, plain: &GemmCurve) -> AttentionCurve {
        let (ratio, basis) = reached(&self.attention, gpu);
        AttentionCurve {
            decode_bandwidth: (plain.e_m * ratio.memory).min(1.0),
            compute: (plain.e_c * ratio.compute).min(1.0),
            // where the GPU's own products are known, a lent ratio makes the result derived, not a guess
            basis: if plain.basis < Basis::Assumed { plain.basis.weakest(basis.min(Basis::Derived)) } else { basis },
        }
    }

    /// A collective over `ranks` on a kind of link (`nvlink-4`, `pcie-5`, `fabric`): the curve of the next rank count
    /// at or above, else of the largest known; the basis falls to derived where the count is not its own. A link
    /// without curves of its own borrows those of its kind.
    pub fn collective(&self, op: &str, link: &str, ranks: u32) -> CollectiveCurve {
        let kind = link.split('-').next().unwrap_or(link);
        let exact = |c: &&Collective| c.op == op && c.link == link;
        let similar = |c: &&Collective| c.op == op && c.link.split('-').next() == Some(kind);
        let pick = |of: &dyn Fn(&&Collective) -> bool| -> Option<&Collective> {
            let above = self.collectives.iter().filter(of).filter(|c| c.ranks >= ranks).min_by_key(|c| c.ranks);
            above.or_else(|| self.collectives.iter().filter(of).max_by_key(|c| c.ranks))
        };
        let (found, lent) = match pick(&exact) {
            Some(c) => (Some(c), Lent::Own),
            None => (pick(&similar), Lent::Architecture),
        };
        match found {
            Some(c) => {
                let lent = if c.ranks == ranks { lent } else { lent.max(Lent::Architecture) };
                // beyond the largest known count, latency grows with the number of steps of a tree
                let steps = (f64::from(ranks.max(2)).log2() / f64::from(c.ranks.max(2)).log2()).max(1.0);
                CollectiveCurve { alpha: c.curve.alpha * steps, basis: lent.weaken(c.curve.basis), ..c.curve }
            }
            None => CollectiveCurve {
                alpha: Seconds::from_us(20.0),
                ramp: Seconds::ZERO,
                efficiency: 0.5,
                basis: Basis::Assumed,
            },
        }
    }

    /// Where an engine reads weights with kernels of its own: their share of the bandwidth of this GPU's memory kind, and
    /// the time of a layer's small kernels.
    pub fn stream(&self, engine: Engine, gpu: &Gpu) -> Option<Stream> {
        let memory = memory_kind(gpu);
        let row = self.streams.iter().find(|r| r.text("engine") == engine.name() && r.text("memory") == memory)?;
        Some(Stream {
            e_m: row.number("e_m").filter(|e| *e > 0.0)?,
            layer: Seconds::from_us(row.number("layer_us")?),
            basis: row.basis(),
        })
    }

    /// The engines' own all-reduce for small messages on a link, where there is one.
    pub fn fused_all_reduce(&self, link: &str, ranks: u32) -> Option<CollectiveCurve> {
        let row = self.fused.iter().find(|r| r.text("link") == link)?;
        let peers = f64::from(ranks.saturating_sub(1));
        let us = row.number("base_us")? + row.number("per_peer_us")? * peers;
        Some(CollectiveCurve {
            alpha: Seconds::from_us(us),
            ramp: Seconds::ZERO,
            efficiency: row.number("efficiency").filter(|e| *e > 0.0)?,
            basis: row.basis(),
        })
    }

    /// The error band of a figure (`tpot`, `ttft`) by the weakest basis of its inputs.
    pub fn band(&self, figure: &str, basis: Basis) -> Band {
        let found = self.bands.iter().find(|r| r.text("figure") == figure && r.text("input_basis") == basis.name());
        found
            .and_then(|r| Some(Band { low: r.number("low")?, high: r.number("high")? }))
            .unwrap_or(Band { low: 0.4, high: 2.5 })
    }
}

fn collective(row: &Row) -> Option<Collective> {
    Some(Collective {
        op: row.text("op").to_owned(),
        link: row.text("link").to_owned(),
        ranks: row.number("ranks")? as u32,
        curve: CollectiveCurve {
            alpha: Seconds::from_us(row.number("alpha_us")?),
            ramp: Seconds::from_us(row.number("ramp_us")?),
            efficiency: row.number("efficiency").filter(|e| *e > 0.0)?,
            basis: row.basis(),
        },
    })
}

/// The kind of memory as the curves tell it apart.
fn memory_kind(gpu: &Gpu) -> &'static str {
    let kind = &gpu.memory.kind;
    if kind.starts_with("HBM") {
        "hbm"
    } else if kind.starts_with("GDDR") {
        "gddr"
    } else {
        "other"
    }
}

fn scoped<T>(text: &str, value: impl Fn(&Row) -> Option<T>) -> Vec<Scoped<T>> {
    let one = |row: &Row| {
        let (scope, memory) = (row.text("scope").to_owned(), row.text("memory").to_owned());
        Some(Scoped { scope, memory, value: value(row)?, basis: row.basis() })
    };
    rows(text).iter().filter_map(one).collect()
}

fn gemm_row(row: &Row) -> Option<(GemmType, GemmCurve)> {
    let share = |column| row.number(column).filter(|v| *v > 0.0);
    let curve = GemmCurve {
        e_c: share("e_c")?,
        e_m: share("e_m")?,
        wave: row.number("wave_elements")?,
        k_half: row.number("k_half")?,
        basis: row.basis(),
    };
    Some((GemmType::ALL.into_iter().find(|k| k.name() == row.text("dtype"))?, curve))
}

fn ratios(row: &Row) -> Option<Ratios> {
    let share = |column| row.number(column).filter(|v| *v > 0.0);
    Some(Ratios { compute: share("ratio_c")?, memory: share("ratio_m")? })
}

/// The ratios for a GPU, and how they are known.
fn reached(rows: &[Scoped<Ratios>], gpu: &Gpu) -> (Ratios, Basis) {
    let found = nearest(rows, gpu, |_| true).map(|(row, lent)| (row.value, lent.weaken(row.basis)));
    found.unwrap_or((Ratios { compute: 0.5, memory: 0.8 }, Basis::Assumed))
}

/// The row for a GPU: by its id, else by architecture and memory kind, else the default (`*`) of that memory kind.
fn nearest<'a, T>(
    rows: &'a [Scoped<T>],
    gpu: &Gpu,
    keep: impl Fn(&Scoped<T>) -> bool,
) -> Option<(&'a Scoped<T>, Lent)> {
    let memory = memory_kind(gpu);
    let mut best: Option<(&Scoped<T>, Lent)> = None;
    for row in rows.iter().filter(|r| keep(r)) {
        let lent = if row.scope == gpu.id {
            Lent::Own
        } else if row.scope == gpu.architecture && row.memory == memory {
            Lent::Architecture
        } else if row.scope == "*" && (row.memory == memory || row.memory == "any") {
            Lent::Default
        } else {
            continue;
        };
        if best.is_none_or(|(_, other)| lent < other) {
            best = Some((row, lent));
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_row_is_read() {
        let count = |text: &str| text.lines().filter(|l| !l.starts_with('#')).count() - 1;
        let curves = Curves::embedded();
        assert_eq!(curves.gemm.len(), count(include_str!("../data/gemm.csv")));
        assert_eq!(curves.experts.len(), count(include_str!("../data/experts.csv")));
        assert_eq!(curves.attention.len(), count(include_str!("../data/attention.csv")));
        assert_eq!(curves.collectives.len(), count(include_str!("../data/collectives.csv")));
        assert_eq!(curves.bands.len(), count(include_str!("../data/bands.csv")));
        for engine in Engine::ALL {
            assert_ne!(*curves.engine(engine), EngineProfile::neutral(engine), "{engine}");
        }
        assert!(curves.kernels.mla > 1.0 && curves.kernels.quantised > 0.0);
    }

    #[test]
    fn collectives_are_lent_by_the_next_count_and_the_kind_of_link() {
        let curves = Curves::embedded();
        let at = |link: &str, ranks| curves.collective("all_reduce", link, ranks);
        assert_eq!(at("nvlink-4", 8).basis, Basis::Calibrated);
        assert_eq!(at("nvlink-4", 6), CollectiveCurve { basis: Basis::Derived, ..at("nvlink-4", 8) });
        assert!(at("nvlink-5", 72).alpha > at("nvlink-5", 8).alpha);
        assert_eq!(at("nvlink-other", 8).basis, Basis::Derived);
        assert_eq!(at("carrier-pigeon", 2).basis, Basis::Assumed);
    }
}
