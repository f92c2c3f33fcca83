//! One GPU model: memory, peaks, ports.

use units::{Basis, Bytes, BytesPerSec, FlopPerSec, Watts};

/// The exact id of a GPU model in the catalog, vendor first: `nvidia-h100-sxm`.
pub type GpuId = String;

/// Who makes a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Vendor {
    /// NVIDIA.
    Nvidia,
    /// AMD.
    Amd,
    /// Intel.
    Intel,
    /// Apple.
    Apple,
}

impl Vendor {
    /// The word that ids start with: `nvidia`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nvidia => "nvidia",
            Self::Amd => "amd",
            Self::Intel => "intel",
            Self::Apple => "apple",
        }
    }

    /// Reads a vendor's name in any case.
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Nvidia, Self::Amd, Self::Intel, Self::Apple].into_iter().find(|v| v.name().eq_ignore_ascii_case(text))
    }
}

/// A figure with the strength of its source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sourced<T> {
    /// The figure.
    pub value: T,
    /// How it is known.
    pub basis: Basis,
}

/// The memory of one GPU, three ways.
#[derive(Clone, Debug, PartialEq)]
pub struct GpuMemory {
    /// The label on the box, in decimal gigabytes: 80 GB is 80 × 10^9 bytes. Only for comparison with datasheets.
    pub nominal: Bytes,
    /// What the driver reports; assumed where no source is known or it only repeats the nominal number.
    pub usable: Sourced<Bytes>,
    /// What an engine sees as total device memory; measured on start-up logs, else usable − 0.5 GiB (assumed).
    pub cuda_total: Sourced<Bytes>,
    /// Peak memory bandwidth.
    pub bandwidth: BytesPerSec,
    /// `HBM3e`, `GDDR6X`, …
    pub kind: String,
    /// True where CPU and GPU share it (Apple, GB10, MI300A).
    pub unified: bool,
}

/// An arithmetic type with a peak of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ComputeType {
    /// Vector FP64.
    Fp64,
    /// FP64 on tensor or matrix cores.
    Fp64Tensor,
    /// Vector FP32.
    Fp32,
    /// TF32 tensor.
    Tf32,
    /// BF16 tensor, FP32 accumulate.
    Bf16,
    /// FP16 tensor, FP32 accumulate.
    Fp16,
    /// FP8 tensor.
    Fp8,
    /// FP4 tensor.
    Fp4,
    /// INT8 tensor.
    Int8,
}

impl ComputeType {
    /// Every type, in the order tables print them.
    pub const ALL: [Self; 9] = [
        Self::Fp64,
        Self::Fp64Tensor,
        Self::Fp32,
        Self::Tf32,
        Self::Bf16,
        Self::Fp16,
        Self::Fp8,
        Self::Fp4,
        Self::Int8,
    ];

    /// The name in output and data files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp64 => "fp64",
            Self::Fp64Tensor => "fp64_tensor",
            Self::Fp32 => "fp32",
            Self::Tf32 => "tf32",
            Self::Bf16 => "bf16",
            Self::Fp16 => "fp16",
            Self::Fp8 => "fp8",
            Self::Fp4 => "fp4",
            Self::Int8 => "int8",
        }
    }
}

/// Peak rates per arithmetic type, dense; `None` where the GPU lacks the type or no source gives it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Peaks {
    dense: [Option<FlopPerSec>; 9],
    sparse: [Option<FlopPerSec>; 9],
}

impl Peaks {
    /// The dense peak of a type.
    pub fn dense(&self, kind: ComputeType) -> Option<FlopPerSec> {
        self.dense[kind as usize]
    }

    /// The 2:4 sparse figure that datasheets print; never used to predict.
    pub fn sparse(&self, kind: ComputeType) -> Option<FlopPerSec> {
        self.sparse[kind as usize]
    }

    /// Sets the dense peak.
    pub fn set_dense(&mut self, kind: ComputeType, peak: Option<FlopPerSec>) {
        self.dense[kind as usize] = peak;
    }

    /// Sets the sparse figure.
    pub fn set_sparse(&mut self, kind: ComputeType, peak: Option<FlopPerSec>) {
        self.sparse[kind as usize] = peak;
    }

    /// The dense peak that 16-bit matrix products run at: BF16, else FP16 (Turing, Volta), else FP32.
    pub fn matrix16(&self) -> Option<FlopPerSec> {
        self.dense(ComputeType::Bf16).or(self.dense(ComputeType::Fp16)).or(self.dense(ComputeType::Fp32))
    }
}

/// A GPU's port to its peers, other than PCIe.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkPort {
    /// `NVLink 4`, `Infinity Fabric`, `Xe Link`, `RoCE`.
    pub name: String,
    /// NVLink generation, where it is NVLink.
    pub nvlink_generation: Option<u8>,
    /// All links of the GPU together, one direction.
    pub per_direction: BytesPerSec,
    /// True for a PCIe card whose port needs a bridge (pairs, or up to four for H200 NVL).
    pub needs_bridge: bool,
    /// How many GPUs one bridge joins, where `needs_bridge`.
    pub bridge_gpus: u32,
}

/// The PCIe port of a GPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PciePort {
    /// Generation: 3, 4, 5, 6.
    pub generation: u8,
    /// Lanes, mostly 16.
    pub lanes: u8,
}

impl PciePort {
    /// Raw bandwidth of one direction: transfers/s × lanes × line code (128b/130b; FLIT for generation 6) / 8.
    /// Source: PCI-SIG rates 8, 16, 32, 64 GT/s; a 5.0 x16 port moves 63 GB/s one way.
    pub fn per_direction(self) -> BytesPerSec {
        let gigatransfers = match self.generation {
            0 | 1 => 2.5,
            2 => 5.0,
            g => 8.0 * f64::from(1u32 << (u32::from(g.min(8)) - 3)),
        };
        let code = match self.generation {
            0..=2 => 0.8,
            3..=5 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        };
        BytesPerSec(gigatransfers * 1e9 * f64::from(self.lanes) * code / 8.0)
    }
}

/// One GPU model.
#[derive(Clone, Debug, PartialEq)]
pub struct Gpu {
    /// Exact id, vendor first.
    pub id: GpuId,
    /// Who makes it.
    pub vendor: Vendor,
    /// The name people write.
    pub name: String,
    /// `Hopper`, `CDNA3`, …
    pub architecture: String,
    /// `SXM5`, `PCIe`, `OAM`, `superchip`, `SoC`, …
    pub form_factor: String,
    /// Memory, three ways, and its bandwidth.
    pub memory: GpuMemory,
    /// Peak rates.
    pub peaks: Peaks,
    /// Board power limit.
    pub tdp: Option<Watts>,
    /// Port to peers other than PCIe.
    pub link: Option<LinkPort>,
    /// PCIe port.
    pub pcie: Option<PciePort>,
    /// MIG slices, where it can be cut.
    pub mig_slices: Option<u8>,
    /// Year it was launched.
    pub launch_year: Option<u16>,
    /// CUDA compute capability (`9.0`) or gfx name.
    pub compute_capability: Option<String>,
    /// Announced, figures not final.
    pub preliminary: bool,
    /// Where the row comes from.
    pub source: String,
    /// What a second source said.
    pub cross_check: String,
    /// Traps and remarks.
    pub notes: String,
}

impl Gpu {
    /// The id without the vendor, as people type it: `h100-sxm`.
    pub fn short_id(&self) -> &str {
        self.id.split_once('-').map_or(self.id.as_str(), |(_, rest)| rest)
    }

    /// True for boards that live on a switched or meshed baseboard (SXM, OAM, superchip), false for cards.
    pub fn is_baseboard(&self) -> bool {
        self.form_factor.starts_with("SXM")
            || matches!(self.form_factor.as_str(), "OAM" | "superchip" | "Helios module")
    }
}
