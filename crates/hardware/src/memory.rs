//! How much of a GPU's memory a program gets, where no measurement says.
//!
//! The label is decimal in name and binary in silicon: an "80 GB" H100 carries 80 GiB of HBM, of which the driver
//! reports 79.6 GiB and an engine sees 79.19. Where a source gives the driver's figure it is used (`Measured`); where it
//! is missing or only repeats the label, the share below is taken (`Assumed`). Each share is the median of driver figure
//! over label among the catalog rows of the same kind that have one; a test holds them against the data.

use units::{Basis, Bytes};

use crate::gpu::{Sourced, Vendor};

/// Share of the label that the driver reports on HBM parts (H100, H200, B200, B300: 0.995 to 0.996).
pub const SHARE_HBM: f64 = 0.995;
/// The same on data-centre cards with GDDR, whose ECC takes a sixteenth (A10, A40, L4, L40S, T4: 0.9375).
pub const SHARE_GDDR_ECC: f64 = 0.9375;
/// The same on GeForce and workstation cards, ECC off as shipped (RTX 5090, 5070, RTX PRO 6000: 0.992 to 0.996).
pub const SHARE_GDDR: f64 = 0.995;
/// Share of unified memory that Apple's driver lets a GPU wire by default.
pub const SHARE_APPLE: f64 = 0.75;
/// What the CUDA or HIP context of an engine withholds from the driver's figure.
pub const CONTEXT_GIB: f64 = 0.5;

/// What decides the share of memory that a program gets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryFacts<'a> {
    pub vendor: Vendor,
    pub name: &'a str,
    pub kind: &'a str,
    pub nominal_gb: f64,
    pub usable_gib: Option<f64>,
    pub cuda_total_gib: Option<f64>,
}

/// True for cards that ship with ECC off: GeForce, RTX, GTX, TITAN, Quadro, Radeon, Arc.
fn ships_without_ecc(name: &str) -> bool {
    ["RTX", "GTX", "TITAN", "Quadro", "Radeon", "Arc"].iter().any(|word| name.contains(word))
}

/// The share of the label that the driver is assumed to report.
pub fn assumed_share(vendor: Vendor, name: &str, kind: &str) -> f64 {
    match vendor {
        Vendor::Apple => SHARE_APPLE,
        // ROCm documents VRAM in GiB with the label's number, and MI300X logs agree to 0.2 %
        Vendor::Amd => 1.0,
        Vendor::Nvidia | Vendor::Intel if kind.starts_with("HBM") => SHARE_HBM,
        Vendor::Nvidia if kind.starts_with("GDDR") && !ships_without_ecc(name) => SHARE_GDDR_ECC,
        Vendor::Nvidia | Vendor::Intel => SHARE_GDDR,
    }
}

impl MemoryFacts<'_> {
    /// Usable and cuda_total, each with its basis; cuda_total never exceeds usable.
    pub(crate) fn resolve(self) -> (Sourced<Bytes>, Sourced<Bytes>) {
        let known = self.usable_gib.filter(|gib| (gib - self.nominal_gb).abs() > 1e-9);
        let mut usable = match known {
            Some(gib) => Sourced { value: Bytes::from_gib(gib), basis: Basis::Measured },
            None => Sourced {
                value: Bytes::from_gib(self.nominal_gb * assumed_share(self.vendor, self.name, self.kind)),
                basis: Basis::Assumed,
            },
        };
        let cuda_total = match self.cuda_total_gib {
            Some(gib) => {
                let seen = Bytes::from_gib(gib);
                // an engine can't see more than the driver has: then the assumption (or the rounding) was too low,
                // or too high where memory is shared with the host
                let shared = self.kind.contains("unified");
                if usable.value < seen || (shared && usable.basis == Basis::Assumed) {
                    usable.value = if shared { Bytes::from_gib(gib + CONTEXT_GIB) } else { seen };
                }
                Sourced { value: seen, basis: Basis::Measured }
            }
            None => Sourced { value: usable.value.saturating_sub(Bytes::from_gib(CONTEXT_GIB)), basis: Basis::Assumed },
        };
        (usable, cuda_total)
    }
}
