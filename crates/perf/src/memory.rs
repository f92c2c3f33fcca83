//! Memory per GPU of the heaviest rank, every term named.

use hardware::{NodeShape, Topology};
use model::ModelSpec;
use units::{Basis, Bytes, Term, Value};

use crate::curves::Curves;
use crate::engine::{Engine, EngineProfile, Formats, FractionOf};
use crate::layout::Layout;
use crate::rank::{RankWeights, StageWeights, layer_cache};

/// Which figure stands for the memory of a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// What an engine sees (`--memory usable`).
    CudaTotal,
    /// The decimal gigabytes of the datasheet (`--memory nominal`).
    Nominal,
}

/// What the memory must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MemoryLoad {
    /// Sequences of one replica.
    pub sequences: u64,
    /// Tokens of each, input and output together.
    pub tokens: u64,
    /// Count weights only: no cache, activations or runtime.
    pub weights_only: bool,
    /// The engine's memory fraction, where another than its default is set.
    pub fraction: Option<f64>,
    /// Tokens of the largest step, where another than the engine's default is set.
    pub chunk_tokens: Option<u64>,
}

impl Default for MemoryLoad {
    /// 16 sequences of 2,560 tokens.
    fn default() -> Self {
        Self { sequences: 16, tokens: 2560, weights_only: false, fraction: None, chunk_tokens: None }
    }
}

/// Memory of one GPU of the heaviest rank. Where it fits, `capacity` is exactly the sum of the other terms.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryPlan {
    /// Memory of the GPU.
    pub capacity: Bytes,
    /// Weights of the rank.
    pub weights: Bytes,
    /// Cache and state of the asked load.
    pub kv: Bytes,
    /// Activations of the largest step, logits of the sampler's warm-up included.
    pub activations: Bytes,
    /// Driver context, collectives, workspaces, graphs.
    pub runtime: Bytes,
    /// What the engine's memory fraction withholds beyond that.
    pub reserve: Bytes,
    /// What is left; zero where it does not fit.
    pub free: Bytes,
    /// What is missing; zero where it fits.
    pub shortfall: Bytes,
    /// Whether it fits.
    pub fits: bool,
    /// Cache of one token of one sequence on this rank at the asked length, state included.
    pub kv_bytes_per_token: f64,
    /// Cache and state of one sequence of the asked length on this rank.
    pub kv_bytes_per_sequence: Bytes,
    /// Tokens that one replica can hold in sequences of the asked length.
    pub kv_tokens_max: u64,
    /// Sequences of the asked length that one replica can hold.
    pub sequences_max: u64,
    /// The same as a tree with formulas.
    pub term: Term,
}

/// Computes the memory plan of a layout on a node.
///
/// The layout is taken as it is: [`Layout::check`] says whether an engine would.
pub fn memory(
    spec: &ModelSpec,
    layout: &Layout,
    node: &NodeShape,
    engine: Engine,
    formats: &Formats,
    load: &MemoryLoad,
    capacity: Capacity,
) -> MemoryPlan {
    let weights = RankWeights::compute(spec, layout, formats.weights);
    memory_with(spec, &weights, node, engine, formats, load, capacity)
}

/// [`memory`] with the weights of the ranks computed before.
pub fn memory_with(
    spec: &ModelSpec,
    weights: &RankWeights,
    node: &NodeShape,
    engine: Engine,
    formats: &Formats,
    load: &MemoryLoad,
    capacity: Capacity,
) -> MemoryPlan {
    let figures = budget(spec, weights, node, engine, formats, load, capacity);
    let term = explain(&figures, weights, engine, load, capacity);
    figures.plan(term)
}

/// Whether the load fits and what the cache holds, without the explanation: for ranking many candidates.
pub fn memory_figures(
    spec: &ModelSpec,
    weights: &RankWeights,
    node: &NodeShape,
    engine: Engine,
    formats: &Formats,
    load: &MemoryLoad,
    capacity: Capacity,
) -> MemoryPlan {
    budget(spec, weights, node, engine, formats, load, capacity).plan(Term::bytes("memory", Bytes::ZERO))
}

#[derive(Clone, Debug)]
struct Budget {
    capacity: u64,
    capacity_basis: Basis,
    weights: u64,
    kv: u64,
    activations: u64,
    context: u64,
    runtime: u64,
    reserve: u64,
    fraction: f64,
    sequence: u64,
    tokens: u64,
    pool: u64,
    dp: u64,
    block: u64,
    stage: usize,
    /// Sequences and tokens that the replica holds.
    holds: (u64, u64),
}

impl Budget {
    fn need(&self) -> u64 {
        [self.weights, self.kv, self.activations, self.runtime, self.reserve].into_iter().fold(0, u64::saturating_add)
    }

    fn plan(&self, term: Term) -> MemoryPlan {
        let need = self.need();
        let fits = need <= self.capacity;
        let (sequences_max, kv_tokens_max) = self.holds;
        MemoryPlan {
            capacity: Bytes(self.capacity),
            weights: Bytes(self.weights),
            kv: Bytes(self.kv),
            activations: Bytes(self.activations),
            runtime: Bytes(self.runtime),
            reserve: Bytes(self.reserve),
            free: Bytes(self.capacity.saturating_sub(need)),
            shortfall: Bytes(need.saturating_sub(self.capacity)),
            fits,
            kv_bytes_per_token: self.sequence as f64 / self.tokens.max(1) as f64,
            kv_bytes_per_sequence: Bytes(self.sequence),
            kv_tokens_max,
            sequences_max,
            term,
        }
    }

    /// Sequences and tokens that the pool holds over all attention ranks; zero where a sequence costs nothing
    /// because nothing is known of the cache.
    fn holds(&self) -> (u64, u64) {
        if self.sequence == 0 {
            return (0, 0);
        }
        let sequences = (self.pool / self.sequence).saturating_mul(self.dp);
        let exact = self.pool as f64 / self.sequence as f64 * self.tokens.max(1) as f64;
        let per_rank = (exact as u64) / self.block * self.block;
        (sequences, per_rank.saturating_mul(self.dp))
    }
}

fn budget(
    spec: &ModelSpec,
    weights: &RankWeights,
    node: &NodeShape,
    engine: Engine,
    formats: &Formats,
    load: &MemoryLoad,
    capacity: Capacity,
) -> Budget {
    let memory = &node.gpu.memory;
    let mut profile = Curves::embedded().engine(engine).on_device(memory.cuda_total.value);
    if !matches!(node.topology, Topology::NvSwitch { .. } | Topology::Mesh) {
        (profile.context_parallel, profile.non_torch_parallel) = (profile.context_cards, profile.non_torch_cards);
    }
    let profile = &profile;
    let (total, basis) = match capacity {
        Capacity::CudaTotal => (memory.cuda_total.value.0, memory.cuda_total.basis),
        Capacity::Nominal => (memory.nominal.0, Basis::Measured),
    };
    let stages: Vec<Budget> = weights
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| stage_budget(spec, weights, stage, index, profile, formats, load, capacity, total, basis))
        .collect();
    // the stage with the least room decides what the replica holds, the one with the largest need what fits
    let holds = stages.iter().map(Budget::holds).reduce(|a, b| (a.0.min(b.0), a.1.min(b.1)));
    let heaviest = stages.into_iter().reduce(|a, b| if b.need() > a.need() { b } else { a });
    let mut heaviest = heaviest.unwrap_or_else(|| empty(total, basis, profile));
    heaviest.holds = holds.unwrap_or_default();
    heaviest
}

fn empty(total: u64, basis: Basis, profile: &EngineProfile) -> Budget {
    Budget {
        capacity: total,
        capacity_basis: basis,
        weights: 0,
        kv: 0,
        activations: 0,
        context: 0,
        runtime: 0,
        reserve: 0,
        fraction: profile.fraction,
        sequence: 0,
        tokens: 0,
        pool: 0,
        dp: 1,
        block: 1,
        stage: 0,
        holds: (0, 0),
    }
}

#[allow(clippy::too_many_arguments, reason = "one call site; the arguments are the columns of the estimate")]
fn stage_budget(
    spec: &ModelSpec,
    weights: &RankWeights,
    stage: &StageWeights,
    index: usize,
    profile: &EngineProfile,
    formats: &Formats,
    load: &MemoryLoad,
    capacity: Capacity,
    total: u64,
    basis: Basis,
) -> Budget {
    let layout = &weights.layout;
    let dp = u64::from(layout.dp.max(1));
    let fraction = load.fraction.filter(|f| (0.0..=1.0).contains(f)).unwrap_or(profile.fraction);
    let rank_weights = stage.parts.total().0;

    let mut sequence = 0u64;
    for &(run, count) in &stage.runs {
        let run = &spec.layers[run];
        for attention in std::iter::once(&run.attention).chain(&run.cross) {
            let cache = layer_cache(attention, layout.tp, formats.kv, spec.dtype_bytes, profile.window);
            sequence = sequence
                .saturating_add(cache.bytes(load.tokens, profile.block_tokens).saturating_mul(u64::from(count)));
        }
    }

    let (kv, activations, context, work) = if load.weights_only {
        (0, 0, 0, 0)
    } else {
        let kv = sequence.saturating_mul(load.sequences.div_ceil(dp));
        let parallel = layout.gpus() > 1;
        let context = if parallel { profile.context_parallel.0 } else { profile.context.0 };
        let tensor = layout.stage_gpus() > 1;
        let work = if tensor { profile.non_torch_parallel.0 } else { profile.non_torch.0 };
        (kv, activations(spec, weights, stage, profile, load), context, work)
    };
    let graphs = if load.weights_only { 0 } else { profile.graphs.0 };
    let runtime = context.saturating_add(work).saturating_add(graphs);

    let left = |part: f64| Bytes::floor((1.0 - part).max(0.0) * total as f64).0;
    let reserve = if load.weights_only && capacity == Capacity::Nominal {
        0
    } else {
        match profile.fraction_of {
            // context (and graphs of older versions) live in what the fraction leaves
            FractionOf::Total => {
                let outside = context.saturating_add(if profile.graphs_in_budget { 0 } else { graphs });
                left(fraction).saturating_sub(outside)
            }
            FractionOf::FreeBeforeLoad => {
                let before = total.saturating_sub(context);
                let kept = Bytes::floor((1.0 - fraction) * before as f64).0;
                kept.saturating_sub(activations).saturating_sub(work).saturating_sub(graphs)
            }
            FractionOf::FreeAfterLoad => {
                let free = total.saturating_sub(rank_weights).saturating_sub(activations).saturating_sub(runtime);
                Bytes::floor((1.0 - fraction) * free as f64).0
            }
            FractionOf::Nothing => 0,
        }
    };
    let pool = [rank_weights, activations, runtime, reserve].into_iter().fold(total, u64::saturating_sub);
    Budget {
        capacity: total,
        capacity_basis: basis,
        weights: rank_weights,
        kv,
        activations,
        context,
        runtime,
        reserve,
        fraction,
        sequence,
        tokens: load.tokens,
        pool,
        dp,
        block: profile.block_tokens,
        stage: index,
        holds: (0, 0),
    }
}

/// Activations of the profile run: the widest layer over the largest step, or the sampler's warm-up over float32
/// logits (the whole vocabulary: ranks gather it), whichever is larger; expert copies come on top.
fn activations(
    spec: &ModelSpec,
    weights: &RankWeights,
    stage: &StageWeights,
    profile: &EngineProfile,
    load: &MemoryLoad,
) -> u64 {
    let chunk = load.chunk_tokens.unwrap_or(profile.chunk_tokens).max(1);
    let hidden = weights.activation_bytes_per_token.saturating_mul(chunk);
    let logits = if stage.has_head && (spec.head.is_some() || spec.tied) {
        Bytes::ceil(profile.logit_copies * profile.logit_slots * spec.vocab as f64 * 4.0).0
    } else {
        0
    };
    hidden.max(logits).saturating_add(weights.dispatch_bytes_per_token.saturating_mul(chunk))
}

fn explain(b: &Budget, weights: &RankWeights, engine: Engine, load: &MemoryLoad, capacity: Capacity) -> Term {
    let stage = weights.stages.get(b.stage);
    let parts = stage.map(|s| s.parts).unwrap_or_default();
    let leaf = |name: &str, bytes: u64| Term::bytes(name, Bytes(bytes)).basis(Basis::Measured);
    let stage_note = match weights.stages.len() {
        0 | 1 => String::new(),
        n => format!(", stage {} of {n}", b.stage + 1),
    };
    let weight_term = Term::bytes("weights", Bytes(b.weights))
        .basis(Basis::Measured)
        .formula(format!("{} cut by {}{stage_note}", weights.format, weights.layout))
        .parts(
            [
                ("attention", parts.attention),
                ("dense", parts.dense),
                ("experts", parts.experts),
                ("vocabulary", parts.vocabulary),
                ("other", parts.other),
            ]
            .into_iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| leaf(name, bytes)),
        );
    let sequences = load.sequences.div_ceil(b.dp);
    let kv = Term::bytes("kv", Bytes(b.kv)).basis(Basis::Measured).formula(if b.kv == 0 {
        "not counted, or not known".to_owned()
    } else {
        format!("{sequences} sequences x {} ({} tokens each)", Bytes(b.sequence), b.tokens)
    });
    let activations = Term::bytes("activations", Bytes(b.activations))
        .basis(Basis::Calibrated)
        .formula("max(largest step x widest layer, warm-up logits) + expert copies");
    let runtime = Term::bytes("runtime", Bytes(b.runtime))
        .basis(Basis::Derived)
        .formula(format!("driver context {} + collectives, workspaces and graphs", Bytes(b.context)));
    let reserve = Term::bytes("reserve", Bytes(b.reserve))
        .basis(Basis::Derived)
        .formula(format!("what {engine}'s memory fraction {} withholds", units::sig3(b.fraction)));
    let free = Term::bytes("free", Bytes(b.capacity.saturating_sub(b.need())))
        .basis(Basis::Derived)
        .formula("capacity - the sum of the others");
    let basis = match capacity {
        Capacity::CudaTotal => b.capacity_basis,
        Capacity::Nominal => Basis::Measured,
    };
    let mut term = Term::new("capacity", Value::Bytes(Bytes(b.capacity)))
        .basis(basis)
        .formula(match capacity {
            Capacity::CudaTotal => "what an engine sees on this GPU",
            Capacity::Nominal => "decimal gigabytes of the datasheet",
        })
        .parts([weight_term, kv, activations, runtime, reserve]);
    if b.need() <= b.capacity {
        term = term.parts([free]);
    }
    term
}
