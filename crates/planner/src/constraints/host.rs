//! Can the host around the GPUs load the model?

use units::Bytes;

use crate::rejection::Rejection;

/// Host memory that loading takes: the operating system and server (4 GiB), per GPU one worker process (2 GiB) and
/// one checkpoint shard in flight (5 GB at most, as model hubs cut them). Assumed; engines stream the rest.
pub(crate) fn host_ram_need(gpus: u32, weights_per_gpu: Bytes) -> Bytes {
    let shard = weights_per_gpu.0.min(5_000_000_000);
    Bytes((4u64 << 30) + u64::from(gpus) * ((2u64 << 30) + shard))
}

/// Rejects hosts with too little memory, where it is known.
pub(crate) fn host_ram(ram: Option<Bytes>, gpus: u32, weights_per_gpu: Bytes) -> Result<(), Rejection> {
    let need = host_ram_need(gpus, weights_per_gpu);
    match ram {
        Some(have) if have < need => Err(Rejection::HostRamTooSmall { need, have }),
        _ => Ok(()),
    }
}

/// Rejects local disks that do not hold the checkpoint, where their size is known and no network volume is used.
pub(crate) fn host_disk(disk: Option<Bytes>, checkpoint: Bytes, network_disk: bool) -> Result<(), Rejection> {
    match disk {
        Some(have) if have < checkpoint && !network_disk => Err(Rejection::DiskTooSmall { need: checkpoint, have }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_is_no_reason_to_refuse() {
        assert_eq!(host_ram(None, 8, Bytes::from_gb(80.0)), Ok(()));
        assert_eq!(host_disk(None, Bytes::from_gb(800.0), false), Ok(()));
    }

    #[test]
    fn known_and_too_small_is() {
        let need = host_ram_need(1, Bytes::from_gb(16.0));
        assert_eq!(need, Bytes((6 << 30) + 5_000_000_000));
        let have = Bytes::from_gib(8.0);
        assert_eq!(host_ram(Some(have), 1, Bytes::from_gb(16.0)), Err(Rejection::HostRamTooSmall { need, have }));
        let disk = Bytes::from_gb(100.0);
        let model = Bytes::from_gb(140.0);
        assert_eq!(host_disk(Some(disk), model, false), Err(Rejection::DiskTooSmall { need: model, have: disk }));
        assert_eq!(host_disk(Some(disk), model, true), Ok(()));
    }
}
