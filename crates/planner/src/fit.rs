//! Does a model fit these nodes, and what is left: memory only, no speed and no price.

use hardware::NodeShape;
use model::{KvFormat, ModelSpec, WeightFormat};
use perf::{Capacity, Engine, Formats, Layout, MemoryLoad, MemoryPlan, memory};

use crate::request::RequestError;

/// Sequences that a fit holds where none are asked for.
pub const DEFAULT_SEQUENCES: u64 = 16;
/// Tokens of each of them: 2,048 in, 512 out.
pub const DEFAULT_TOKENS: u64 = 2560;
/// Most nodes that are tried for [`Fit::nodes_needed`].
const MOST_NODES: u32 = 64;

/// What to fit where.
#[derive(Clone, Debug, PartialEq)]
pub struct FitRequest {
    /// Weight format; `None` is the checkpoint's own.
    pub weights: Option<WeightFormat>,
    /// KV format.
    pub kv: KvFormat,
    /// Engine.
    pub engine: Engine,
    /// Which memory counts.
    pub capacity: Capacity,
    /// Count only weights.
    pub weights_only: bool,
    /// Sequences held at once by one replica.
    pub sequences: u64,
    /// Tokens of each.
    pub tokens: u64,
    /// Fixed parts of the layout.
    pub tp: Option<u32>,
    /// Pipeline stages.
    pub pp: Option<u32>,
    /// Attention data parallelism.
    pub dp: Option<u32>,
    /// Expert parallelism.
    pub ep: Option<u32>,
}

/// The answer of a fit.
#[derive(Clone, Debug)]
pub struct Fit {
    /// Whether it fits the nodes that were asked for.
    pub fits: bool,
    /// Nodes asked for.
    pub nodes: u32,
    /// GPUs asked for.
    pub gpus: u32,
    /// The layout that was tried.
    pub layout: Layout,
    /// Formats.
    pub formats: Formats,
    /// The smallest count of these nodes that fits; `None` where none up to 64 does.
    pub nodes_needed: Option<u32>,
    /// Memory of the heaviest rank.
    pub memory: MemoryPlan,
}

impl FitRequest {
    /// The layout on `nodes` nodes: tensor parallel over the GPUs of a node, pipeline across nodes, unless fixed. Where
    /// the heads do not divide by the GPUs of a node, the largest tensor parallelism that does, and pipeline inside.
    pub fn layout(&self, spec: &ModelSpec, node: &NodeShape, nodes: u32) -> Result<Layout, RequestError> {
        let total = nodes * node.gpus;
        let moe = spec.is_moe();
        let dp = self.dp.unwrap_or(1);
        let mut best: Option<Layout> = None;
        let mut last = None;
        let tps: Vec<u32> = match self.tp {
            Some(tp) => vec![tp],
            None => {
                (1..=node.gpus.max(node.domain().min(total))).rev().filter(|tp| total.is_multiple_of(tp * dp)).collect()
            }
        };
        for tp in tps {
            let pp = match self.pp {
                Some(pp) => pp,
                None if self.tp.is_some() || self.dp.is_some() => (total / (tp * dp)).clamp(1, nodes.max(1)),
                None => total / (tp * dp),
            };
            let ep = self.ep.unwrap_or(if moe && dp > 1 { tp * dp } else { 1 });
            let layout = Layout { tp, pp, dp, ep };
            if layout.gpus() > total {
                last = Some(RequestError::new(
                    "tp",
                    &layout.to_string(),
                    format!("it takes {} GPUs, there are {total}", layout.gpus()),
                    format!("use at most {total} GPUs, or more nodes in `--on`"),
                ));
                continue;
            }
            match layout.check(spec) {
                Ok(()) => {
                    best = Some(layout);
                    break;
                }
                Err(e) => {
                    last.get_or_insert(RequestError::new("tp", &layout.to_string(), e.to_string(), e.hint()));
                }
            }
        }
        match (best, last) {
            (Some(layout), _) => Ok(layout),
            (None, Some(error)) => Err(error),
            (None, None) => Err(RequestError::new(
                "dp",
                &dp.to_string(),
                format!("{total} GPUs do not divide into it"),
                "use a divisor of the GPU count",
            )),
        }
    }

    fn on(&self, spec: &ModelSpec, node: &NodeShape, layout: Layout) -> MemoryPlan {
        let formats = self.formats(spec);
        let load = MemoryLoad {
            sequences: self.sequences,
            tokens: self.tokens,
            weights_only: self.weights_only,
            ..MemoryLoad::default()
        };
        memory(spec, &layout, node, self.engine, &formats, &load, self.capacity)
    }

    fn formats(&self, spec: &ModelSpec) -> Formats {
        Formats { weights: self.weights.unwrap_or(spec.weights), kv: self.kv }
    }
}

/// Fits a model on `nodes` nodes of one shape.
pub fn fit(spec: &ModelSpec, node: &NodeShape, nodes: u32, request: &FitRequest) -> Result<Fit, RequestError> {
    let layout = request.layout(spec, node, nodes)?;
    let memory = request.on(spec, node, layout);
    let fits = memory.fits;
    let fits_on = |n: u32| request.layout(spec, node, n).is_ok_and(|l| request.on(spec, node, l).fits);
    let nodes_needed = (1..=MOST_NODES).find(|&n| if n == nodes { fits } else { fits_on(n) });
    Ok(Fit { fits, nodes, gpus: nodes * node.gpus, layout, formats: request.formats(spec), nodes_needed, memory })
}
