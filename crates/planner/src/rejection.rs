//! The answer "no", with numbers: what was needed, what there is, and the nearest way out.

use std::collections::BTreeMap;

use units::{Bytes, Seconds, UsdPerHour, sig3};

/// Why a candidate is no plan.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The weights of the heaviest rank exceed what a GPU offers.
    WeightsTooLarge {
        /// Per GPU: weights, activations and runtime together.
        need: Bytes,
        /// Per GPU: what the engine may use.
        have: Bytes,
    },
    /// The weights fit, but not one sequence of the asked context.
    ContextTooLong {
        /// Tokens asked.
        need: u64,
        /// Tokens that the cache of a replica holds.
        have: u64,
    },
    /// TTFT misses its limit even with one request per replica.
    TtftTooLong {
        /// The limit.
        need: Seconds,
        /// The best this candidate does.
        have: Seconds,
    },
    /// TPOT misses its limit even with one request per replica.
    TpotTooLong {
        /// The limit.
        need: Seconds,
        /// The best this candidate does.
        have: Seconds,
    },
    /// No number of replicas that is tried carries the load without a standing queue.
    Overloaded {
        /// The most that were tried.
        replicas: u64,
    },
    /// More nodes than allowed.
    TooManyNodes {
        /// Nodes that carry the load.
        need: u64,
        /// The limit.
        have: u64,
    },
    /// Dearer than the budget.
    OverBudget {
        /// What it costs.
        need: UsdPerHour,
        /// The budget.
        have: UsdPerHour,
    },
    /// The host has too little memory to load the model.
    HostRamTooSmall {
        /// What loading needs.
        need: Bytes,
        /// What the host has.
        have: Bytes,
    },
    /// The local disk does not hold the checkpoint.
    DiskTooSmall {
        /// Bytes of the checkpoint.
        need: Bytes,
        /// Bytes of the disk.
        have: Bytes,
    },
    /// No offer can be ranked as asked.
    NoOffer {
        /// Why the offers that exist do not count, or that there are none.
        why: String,
    },
    /// Nothing is known about the network that a gang of nodes would need.
    NoFabric {
        /// What is missing.
        why: String,
    },
    /// The engine does not run on this GPU.
    EngineUnsupported {
        /// What it needs.
        why: String,
    },
    /// The layout does not cut this model.
    LayoutImpossible {
        /// Which number does not divide which.
        why: String,
    },
    /// No peak rate is known for a type that the model could run in.
    NoSpeedKnown {
        /// What is missing.
        why: String,
    },
}

impl Rejection {
    /// Stable name of the reason.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::WeightsTooLarge { .. } => "weights_too_large",
            Self::ContextTooLong { .. } => "context_too_long",
            Self::TtftTooLong { .. } => "ttft_too_long",
            Self::TpotTooLong { .. } => "tpot_too_long",
            Self::Overloaded { .. } => "overloaded",
            Self::TooManyNodes { .. } => "too_many_nodes",
            Self::OverBudget { .. } => "over_budget",
            Self::HostRamTooSmall { .. } => "host_ram_too_small",
            Self::DiskTooSmall { .. } => "disk_too_small",
            Self::NoOffer { .. } => "no_offer",
            Self::NoFabric { .. } => "network_unknown",
            Self::EngineUnsupported { .. } => "engine_unsupported",
            Self::LayoutImpossible { .. } => "layout_impossible",
            Self::NoSpeedKnown { .. } => "no_speed_known",
        }
    }

    /// How far it misses: need over have, infinite where there is nothing to compare.
    pub fn gap(&self) -> f64 {
        let ratio = |need: f64, have: f64| if have > 0.0 { need / have } else { f64::INFINITY };
        match self {
            Self::WeightsTooLarge { need, have }
            | Self::HostRamTooSmall { need, have }
            | Self::DiskTooSmall { need, have } => ratio(need.as_f64(), have.as_f64()),
            Self::ContextTooLong { need, have } | Self::TooManyNodes { need, have } => {
                ratio(*need as f64, *have as f64)
            }
            // a time limit is missed by what is reached over what is asked
            Self::TtftTooLong { need, have } | Self::TpotTooLong { need, have } => ratio(have.0, need.0),
            Self::OverBudget { need, have } => ratio(need.0, have.0),
            _ => f64::INFINITY,
        }
    }

    /// What would have been needed and what there is, in one sentence.
    pub fn sentence(&self) -> String {
        match self {
            Self::WeightsTooLarge { need, have } => {
                format!("needs {need} per GPU for weights and runtime, has {have}")
            }
            Self::ContextTooLong { need, have } => {
                format!("needs room for a sequence of {need} tokens, a replica holds {have}")
            }
            Self::TtftTooLong { need, have } => format!("TTFT limit {need}, reaches {have} at best"),
            Self::TpotTooLong { need, have } => format!("TPOT limit {need}, reaches {have} at best"),
            Self::Overloaded { replicas } => {
                format!("not even {} replicas carry the load", units::group_thousands(*replicas))
            }
            Self::TooManyNodes { need, have } => format!("needs {need} nodes, allowed are {have}"),
            Self::OverBudget { need, have } => format!("costs {need}, the budget is {have}"),
            Self::HostRamTooSmall { need, have } => format!("loading needs {need} of host memory, has {have}"),
            Self::DiskTooSmall { need, have } => format!("the checkpoint takes {need}, the local disk has {have}"),
            Self::NoOffer { why }
            | Self::NoFabric { why }
            | Self::EngineUnsupported { why }
            | Self::LayoutImpossible { why }
            | Self::NoSpeedKnown { why } => why.clone(),
        }
    }

    /// What to change.
    pub fn fix(&self) -> String {
        match self {
            Self::WeightsTooLarge { .. } => {
                "more or larger GPUs per replica, or a smaller format: `--weights fp8` or `--weights awq`".into()
            }
            Self::ContextTooLong { .. } => "a shorter `--context`, `--kv fp8`, or more GPUs per replica".into(),
            Self::TtftTooLong { have, .. } => format!("`--ttft {}s`, or a shorter `--input`", sig3(have.0 * 1.05)),
            Self::TpotTooLong { have, .. } => format!("`--tpot {}ms`, or a faster GPU", sig3(have.ms() * 1.05)),
            Self::Overloaded { .. } => "a smaller `--rate` or shorter requests".into(),
            Self::TooManyNodes { need, .. } => format!("`--max-nodes {need}`"),
            Self::OverBudget { need, .. } => format!("`--budget {}/h`", sig3(need.0 * 1.005)),
            Self::HostRamTooSmall { .. } => "a larger instance with the same GPUs".into(),
            Self::DiskTooSmall { .. } => "keep the weights on a network volume: `--network-disk`".into(),
            Self::NoOffer { .. } => {
                "`--objective throughput` needs no price; `--price GPU=2.10/h` brings your own; `--tier marketplace` counts more offers".into()
            }
            Self::NoFabric { .. } => "name the node to plan with a slow network assumed: `--node`".into(),
            Self::EngineUnsupported { .. } => "another engine: `--engine llamacpp`".into(),
            Self::LayoutImpossible { .. } => "another `--tp`, `--pp`, `--dp` or `--ep`".into(),
            Self::NoSpeedKnown { .. } => "`nodewise fit` answers without speed".into(),
        }
    }
}

/// All rejections of one reason.
#[derive(Clone, Debug, PartialEq)]
pub struct RejectionGroup {
    /// Stable name of the reason.
    pub reason: &'static str,
    /// Candidates that it removed.
    pub count: u64,
    /// The candidate that missed by the least, and by how much.
    pub nearest: Nearest,
}

/// The nearest miss of a reason.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    /// The candidate: node, layout and format.
    pub candidate: String,
    /// Its rejection.
    pub rejection: Rejection,
}

/// Collects rejections without keeping them all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rejections {
    groups: BTreeMap<&'static str, RejectionGroup>,
}

impl Rejections {
    /// Notes one; `candidate` is only called where it is the nearest of its reason so far.
    pub(crate) fn add(&mut self, rejection: Rejection, candidate: impl FnOnce() -> String) {
        self.add_many(rejection, 1, candidate);
    }

    /// Notes `count` equal ones.
    pub(crate) fn add_many(&mut self, rejection: Rejection, count: u64, candidate: impl FnOnce() -> String) {
        match self.groups.get_mut(rejection.reason()) {
            Some(group) => {
                group.count += count;
                if rejection.gap() < group.nearest.rejection.gap() {
                    group.nearest = Nearest { candidate: candidate(), rejection };
                }
            }
            None => {
                let reason = rejection.reason();
                let nearest = Nearest { candidate: candidate(), rejection };
                self.groups.insert(reason, RejectionGroup { reason, count, nearest });
            }
        }
    }

    /// The groups, most frequent first.
    pub(crate) fn into_groups(self) -> Vec<RejectionGroup> {
        let mut groups: Vec<_> = self.groups.into_values().collect();
        groups.sort_by(|a, b| b.count.cmp(&a.count).then(a.reason.cmp(b.reason)));
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_miss_of_a_reason_is_kept() {
        let mut all = Rejections::default();
        for (name, need) in [("far", 90), ("near", 81), ("farther", 120)] {
            all.add(Rejection::WeightsTooLarge { need: Bytes(need), have: Bytes(80) }, || name.into());
        }
        all.add(Rejection::TooManyNodes { need: 3, have: 2 }, || "three".into());
        let groups = all.into_groups();
        assert_eq!((groups[0].reason, groups[0].count), ("weights_too_large", 3));
        assert_eq!(groups[0].nearest.candidate, "near");
        assert_eq!(groups[1].nearest.rejection.fix(), "`--max-nodes 3`");
    }

    #[test]
    fn a_time_limit_is_missed_by_what_is_reached() {
        let close = Rejection::TpotTooLong { need: Seconds(0.010), have: Seconds(0.011) };
        let far = Rejection::TpotTooLong { need: Seconds(0.010), have: Seconds(0.050) };
        assert!(close.gap() < far.gap());
        assert_eq!(close.sentence(), "TPOT limit 10.0 ms, reaches 11.0 ms at best");
    }
}
