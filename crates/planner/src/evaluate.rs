//! One cut of one model on one kind of node under the asked traffic: does it fit, how many replicas carry the load,
//! how fast is it then.

use std::collections::HashMap;

use hardware::NodeShape;
use model::{ModelSpec, WeightFormat};
use perf::{
    Arrival, Capacity, Curves, Engine, Formats, MemoryLoad, MemoryPlan, RankWeights, ServingEstimate, ServingLoad,
    StepModel, memory_figures, serving,
};
use units::Seconds;

use crate::layouts::Cut;
use crate::rejection::Rejection;
use crate::workload::{Load, Traffic};

/// Highest share of its capacity that a replica is loaded to where requests arrive at a rate: above it, queues
/// grow faster than a mean can say.
pub const MAX_UTILISATION: f64 = 0.85;

/// Most replicas that a plan may have.
const MAX_REPLICAS: u64 = 100_000;

/// A cut that carries the load.
#[derive(Clone, Debug)]
pub(crate) struct Evaluated {
    /// The cut.
    pub cut: Cut,
    /// Weight and KV format.
    pub formats: Formats,
    /// Replicas.
    pub replicas: u64,
    /// Nodes, all replicas together.
    pub nodes: u64,
    /// GPUs that are paid for, all nodes together.
    pub gpus: u64,
    /// Memory of the heaviest rank.
    pub memory: MemoryPlan,
    /// One replica under its share of the load.
    pub serving: ServingEstimate,
    /// What that share is.
    pub load: ServingLoad,
    /// Output tokens per second, all replicas together.
    pub output_tokens_per_s: f64,
    /// Requests per second, all replicas together.
    pub requests_per_s: f64,
}

impl Evaluated {
    /// Mean time from request to last token.
    pub(crate) fn latency(&self) -> Seconds {
        Seconds(self.serving.ttft.0 + self.serving.tpot.0 * (self.load.output - 1.0).max(0.0))
    }
}

/// Rank weights depend on the model, the layout and the format, not on the node: computed once for all nodes.
#[derive(Default)]
pub(crate) struct WeightCache {
    ranks: HashMap<(Cut, WeightFormat), Result<RankWeights, String>>,
}

impl WeightCache {
    /// The heaviest rank's weights of a cut, or why the model cannot be cut so.
    pub(crate) fn get(&mut self, spec: &ModelSpec, cut: Cut, format: WeightFormat) -> &Result<RankWeights, String> {
        self.ranks.entry((cut, format)).or_insert_with(|| match cut.layout.check(spec) {
            Ok(()) => Ok(RankWeights::compute(spec, &cut.layout, format)),
            Err(e) => Err(e.to_string()),
        })
    }
}

/// What stays the same over all candidates of one request.
pub(crate) struct Context<'a> {
    /// The model.
    pub spec: &'a ModelSpec,
    /// The traffic.
    pub traffic: &'a Traffic,
    /// The engine.
    pub engine: Engine,
    /// Efficiency curves.
    pub curves: &'static Curves,
}

impl Context<'_> {
    /// The memory of a cut if its weights fit and one sequence of the longest context does.
    pub(crate) fn memory(
        &self,
        node: &NodeShape,
        weights: &RankWeights,
        formats: &Formats,
    ) -> Result<MemoryPlan, Rejection> {
        let load = MemoryLoad { sequences: 1, tokens: self.traffic.context, ..MemoryLoad::default() };
        let plan = memory_figures(self.spec, weights, node, self.engine, formats, &load, Capacity::CudaTotal);
        if plan.fits {
            return Ok(plan);
        }
        let fixed = plan.weights + plan.activations + plan.runtime;
        let have = plan.capacity.saturating_sub(plan.reserve);
        if fixed >= have {
            Err(Rejection::WeightsTooLarge { need: fixed, have })
        } else {
            // a sequence lives in one attention data-parallel rank
            let dp = u64::from(weights.layout.dp.max(1));
            Err(Rejection::ContextTooLong { need: self.traffic.context, have: plan.kv_tokens_max / dp })
        }
    }

    /// The fewest replicas that carry the load within its limits, and what they do; whole nodes are filled.
    pub(crate) fn carry(
        &self,
        node: &NodeShape,
        cut: Cut,
        step: &StepModel,
        memory: MemoryPlan,
        formats: Formats,
    ) -> Result<Evaluated, Rejection> {
        let per_replica = |replicas: u64| -> ServingLoad {
            let share = |total: f64| total / replicas as f64;
            let arrival = match self.traffic.load {
                Load::Concurrency(n) => Arrival::Concurrency(share(n).max(1.0)),
                Load::Rate(rate) => Arrival::Rate(share(rate)),
            };
            ServingLoad {
                input: self.traffic.input as f64,
                output: self.traffic.output as f64,
                prefix_share: self.traffic.prefix_share,
                arrival,
            }
        };
        let run = |replicas: u64| serving(step, memory.kv_tokens_max, &per_replica(replicas));
        let most = match self.traffic.load {
            Load::Concurrency(n) => (n.ceil() as u64).clamp(1, MAX_REPLICAS),
            Load::Rate(_) => MAX_REPLICAS,
        };
        // a replica that is nearly idle is as fast as it gets: what it misses, no number of replicas mends
        let idle = run(most);
        self.limits(&idle).map_or(Ok(()), Err)?;
        let good = |replicas: u64| {
            let estimate = run(replicas);
            self.carries(&estimate, &per_replica(replicas)) && self.limits(&estimate).is_none()
        };
        let Some(replicas) = fewest(most, good) else { return Err(Rejection::Overloaded { replicas: most }) };
        let per_node = u64::from((node.gpus / cut.layout.gpus().max(1)).max(1));
        let nodes = if cut.nodes > 1 { replicas * u64::from(cut.nodes) } else { replicas.div_ceil(per_node) };
        // GPUs of a node are paid for whether used or not: fill it, but never with more replicas than requests
        let replicas = if cut.nodes > 1 { replicas } else { (nodes * per_node).min(most).max(replicas) };
        let estimate = run(replicas);
        let total = replicas as f64;
        Ok(Evaluated {
            cut,
            formats,
            replicas,
            nodes,
            gpus: nodes * u64::from(node.gpus),
            output_tokens_per_s: estimate.output_tokens_per_s * total,
            requests_per_s: estimate.requests_per_s * total,
            memory,
            load: per_replica(replicas),
            serving: estimate,
        })
    }

    /// Whether a replica serves its share without a standing queue.
    fn carries(&self, estimate: &ServingEstimate, load: &ServingLoad) -> bool {
        match load.arrival {
            Arrival::Concurrency(n) => estimate.admitted >= n * 0.999,
            Arrival::Rate(_) => !estimate.saturated && estimate.utilisation <= MAX_UTILISATION,
        }
    }

    /// The limit that an estimate misses, if any.
    fn limits(&self, estimate: &ServingEstimate) -> Option<Rejection> {
        if let Some(need) = self.traffic.ttft
            && estimate.ttft.0 > need.0
        {
            return Some(Rejection::TtftTooLong { need, have: estimate.ttft });
        }
        if let Some(need) = self.traffic.tpot
            && self.traffic.output > 1
            && estimate.tpot.0 > need.0
        {
            return Some(Rejection::TpotTooLong { need, have: estimate.tpot });
        }
        None
    }
}

/// The smallest `n` in `1..=most` for which `good` holds, given that it keeps holding above it.
fn fewest(most: u64, good: impl Fn(u64) -> bool) -> Option<u64> {
    let mut high = 1;
    while !good(high) {
        if high >= most {
            return None;
        }
        high = (high * 2).min(most);
    }
    let mut low = high / 2;
    // good(high) holds, good(low) does not (or low is 0)
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if good(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Some(high)
}

#[cfg(test)]
mod tests {
    use super::fewest;

    #[test]
    fn the_fewest_replicas_are_found() {
        for need in 1..200 {
            assert_eq!(fewest(1000, |n| n >= need), Some(need));
        }
        assert_eq!(fewest(8, |n| n >= 9), None);
        assert_eq!(fewest(9, |n| n >= 9), Some(9));
    }
}
