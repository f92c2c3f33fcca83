//! Ways to cut a replica over the GPUs of one or several nodes.

use model::ModelSpec;
use perf::Layout;

use crate::request::PlanRequest;

/// A layout and how many nodes one replica of it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Cut {
    /// The parallel layout.
    pub layout: Layout,
    /// Nodes that one replica spans; 1 where it shares a node or fills it.
    pub nodes: u32,
}

/// What the enumeration must know of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NodeSize {
    /// GPUs in the node.
    pub gpus: u32,
    /// GPUs that reach each other over NVLink or a mesh (more than `gpus` in a rack of trays).
    pub domain: u32,
}

/// Nodes per replica that are tried where a replica does not fit one node.
const SPANS: [u32; 6] = [2, 3, 4, 6, 8, 16];

/// Every layout worth trying on a node of this size.
///
/// Rules: tensor parallelism stays inside the node or the NVLink domain; pipeline and attention data parallelism may
/// cross nodes; expert parallelism spans all ranks of a stage or none. A fixed `--tp`, `--pp`, `--dp` or `--ep`
/// keeps only layouts with that number.
pub(crate) fn cuts(spec: &ModelSpec, request: &PlanRequest, size: NodeSize, max_span: u32) -> Vec<Cut> {
    let mut cuts = Vec::new();
    let moe = spec.is_moe();
    let layered = spec.layer_count() > 0;
    let reach = size.domain.max(size.gpus);
    let by_name = [request.tp, request.pp, request.dp, request.ep].iter().any(Option::is_some);
    let mut push = |tp: u32, dp: u32, pp: u32, ep: u32, nodes: u32| {
        let layout = Layout { tp, pp, dp, ep };
        let fixed = |want: Option<u32>, is: u32| want.is_none_or(|w| w == is);
        let wanted = fixed(request.tp, tp) && fixed(request.pp, pp) && fixed(request.dp, dp) && fixed(request.ep, ep);
        // a layout of ours that does not divide the model is no candidate; one of the user's is, and is refused by name
        if wanted && (by_name || layout.check(spec).is_ok()) {
            let cut = Cut { layout, nodes };
            if !cuts.contains(&cut) {
                cuts.push(cut);
            }
        }
    };
    // inside one node, or one domain of several trays
    for replica in sizes(reach) {
        let nodes = replica.div_ceil(size.gpus);
        if nodes > max_span || (nodes > 1 && !replica.is_multiple_of(size.gpus)) {
            continue;
        }
        for pp in divisors(replica) {
            if pp > 1 && !layered {
                continue;
            }
            let stage = replica / pp;
            for tp in divisors(stage) {
                let dp = stage / tp;
                if dp > 1 && !moe {
                    continue;
                }
                if dp == 1 {
                    push(tp, 1, pp, 1, nodes);
                }
                if moe && stage > 1 {
                    push(tp, dp, pp, stage, nodes);
                }
            }
        }
    }
    // across nodes
    if layered {
        // servers of one GPU are not built to form large gangs
        let most = if size.gpus == 1 { max_span.min(4) } else { max_span };
        for span in SPANS.into_iter().filter(|&s| s <= most && s > reach / size.gpus) {
            for tp in divisors(size.gpus) {
                let dp = size.gpus / tp;
                if dp == 1 || moe {
                    push(tp, dp, span, if dp > 1 { size.gpus } else { 1 }, span);
                    if moe {
                        push(tp, dp, span, size.gpus, span);
                        push(tp, dp * span, 1, size.gpus * span, span);
                    }
                }
            }
        }
    }
    cuts
}

/// Replica sizes up to `most`: powers of two and the whole.
fn sizes(most: u32) -> Vec<u32> {
    let mut sizes: Vec<u32> = (0..32).map(|i| 1u32 << i).take_while(|&s| s <= most).collect();
    if !sizes.contains(&most) {
        sizes.push(most);
    }
    sizes
}

/// Divisors of `n` that are powers of two, and `n` itself.
fn divisors(n: u32) -> Vec<u32> {
    let mut all: Vec<u32> =
        (0..32).map(|i| 1u32 << i).take_while(|&d| d <= n).filter(|&d| n.is_multiple_of(d)).collect();
    if !all.contains(&n) {
        all.push(n);
    }
    all
}
