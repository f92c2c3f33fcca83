//! Walking the layers into the table.

use hardware::{ComputeType, NodeShape};
use model::{Attention, FeedForward, LayerRun, Matrix, ModelSpec, Role, Shard, WeightFormat};
use units::{Basis, Seconds};

use crate::curves::{Curves, GemmCurve, GemmType, Stream};
use crate::engine::{Engine, Formats};
use crate::layout::Layout;
use crate::rank::{cut, matrix_bytes, stage_layers};
use crate::step::attention::{AttentionGroup, AttentionRates, power_mean};
use crate::step::links::Group;
use crate::step::{Bases, Column, CompileError, N, StepModel, grid};

/// One kind of matrix product of a rank: `count` of them with the same figures.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Product {
    part: usize,
    count: f64,
    /// FLOP per token over the effective peak, wave and k loop aside.
    compute_per_token: f64,
    /// Time that products of very few tokens take at least for want of parallel work.
    compute_floor: f64,
    /// Time to read the weights.
    weights: f64,
    /// Time per token to read inputs and write outputs.
    traffic_per_token: f64,
}

impl Product {
    /// Time and whether reading weights is the larger part.
    fn time(&self, tokens: f64) -> (f64, bool) {
        let compute = self.compute_per_token * tokens + self.compute_floor;
        let memory = self.weights + self.traffic_per_token * tokens;
        (self.count * power_mean(compute, memory), memory >= compute)
    }
}

/// Routed experts of one kind of layer.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Experts {
    layers: f64,
    experts: f64,
    top_k: f64,
    /// Time to read all experts of the rank once.
    weights: f64,
    compute_per_token: f64,
    traffic_per_token: f64,
}

impl Experts {
    /// `tokens` of the whole stage; the expected number of distinct experts is `E (1 − (1 − k/E)^tokens)`.
    fn time(&self, tokens: f64) -> (f64, bool) {
        let share = 1.0 - (tokens * (-self.top_k / self.experts).ln_1p()).exp();
        let memory = self.weights * share.clamp(0.0, 1.0) + self.traffic_per_token * tokens;
        let compute = self.compute_per_token * tokens;
        let time = (memory.powi(3) + compute.powi(3)).cbrt();
        (self.layers * time, memory >= compute)
    }
}

/// What products of a role run as: quantised or not, on what peak.
fn gemm_type(format: WeightFormat, quantised: bool, node: &NodeShape, dtype_bytes: u8) -> GemmType {
    let has = |kind| node.gpu.peaks.dense(kind).is_some();
    if !quantised {
        let wide = matches!(format, WeightFormat::Fp32) || dtype_bytes >= 4 && format == WeightFormat::Fp32;
        return if wide { GemmType::Fp32 } else { GemmType::Bits16 };
    }
    match (format, format.compute_bits()) {
        (WeightFormat::Int8, _) if has(ComputeType::Int8) => GemmType::Int8,
        (WeightFormat::Fp8Block, _) if has(ComputeType::Fp8) => GemmType::Fp8Block,
        (WeightFormat::Fp8Channel | WeightFormat::Fp8Tensor, _) if has(ComputeType::Fp8) => GemmType::Fp8,
        (_, 4) if has(ComputeType::Fp4) => GemmType::Nvfp4,
        _ if format.weight_bits() >= 8 => GemmType::WeightOnly8,
        _ => GemmType::WeightOnly4,
    }
}

/// Bytes per token that the kernels between the products of one layer move on one rank: residual and norm twice (two
/// vectors read, two written, 16 bit), rotary embedding and cache writes (query, key and value read and written), gated
/// activation (gate and up read, product written), input quantisation (16 bit read, 8 bit written), and for experts
/// the permutation and the weighted sum of `top_k` copies. All of it is whole on every tensor-parallel rank but what is
/// cut with the matrices.
fn elementwise_bytes(run: &LayerRun, spec: &ModelSpec, layout: &Layout, format: WeightFormat) -> f64 {
    let hidden = spec.hidden as f64;
    let mut bytes = 16.0 * hidden;
    let top_k = match run.feed_forward {
        FeedForward::Moe { top_k, .. } => f64::from(top_k),
        FeedForward::Dense | FeedForward::None => 0.0,
    };
    let groups = f64::from(layout.ep);
    let inner = f64::from(layout.stage_gpus()) / groups;
    for m in &run.matrices {
        let rank = cut(m, layout);
        let (mut input, mut output) = (rank.input as f64, rank.output as f64);
        if m.role == Role::Expert {
            // a rank's share of the copies of a token, cut inside its group
            (input, output) = (input * top_k / groups, output * top_k / groups / inner);
        }
        bytes += match (m.role, m.shard) {
            (Role::Attention | Role::Mixer, Shard::Output | Shard::KvHeads { .. }) => 4.0 * output,
            (Role::Mlp | Role::SharedExpert, Shard::Output) => 3.0 * output,
            (Role::Expert, _) if m.input == spec.hidden => 3.0 * output,
            _ => 0.0,
        };
        if format.quantises(m.role, spec.unquantised_in(format)) && format.compute_bits() <= 8 {
            bytes += 3.0 * input;
        }
    }
    bytes + 8.0 * hidden * top_k / groups
}

pub(crate) fn compile(
    spec: &ModelSpec,
    layout: &Layout,
    node: &NodeShape,
    nodes_per_replica: u32,
    engine: Engine,
    formats: &Formats,
    curves: &'static Curves,
) -> Result<StepModel, CompileError> {
    layout.check(spec)?;
    let gpu = &node.gpu;
    if spec.layers.is_empty() {
        return Err(CompileError::NoLayers { model: spec.name.clone() });
    }
    let available = u64::from(nodes_per_replica) * u64::from(node.gpus);
    if u64::from(layout.gpus()) > available {
        return Err(CompileError::TooFewGpus {
            layout: *layout,
            gpus: layout.gpus(),
            nodes: nodes_per_replica,
            per_node: node.gpus,
        });
    }
    let no_peak = || CompileError::NoPeak { gpu: gpu.id.clone() };
    let peak16 = gpu.peaks.matrix16().filter(|p| p.0 > 0.0).ok_or_else(no_peak)?.0;
    let bandwidth = gpu.memory.bandwidth.0;
    if bandwidth.is_nan() || bandwidth <= 0.0 {
        return Err(CompileError::NoBandwidth { gpu: gpu.id.clone() });
    }

    let mut walk = Walk {
        spec,
        layout,
        node,
        formats,
        curves,
        peak16,
        bandwidth,
        products: Vec::new(),
        experts: Vec::new(),
        gemm: [None; 8],
        stream: curves.stream(engine, gpu),
        basis: Basis::Measured,
        expert_basis: Basis::Measured,
        notes: Vec::new(),
    };
    let total_layers: u32 = spec.layers.iter().map(|r| r.count).fold(0, u32::saturating_add);
    // stages wait for the longest
    let longest = stage_layers(total_layers, layout.pp).into_iter().max().unwrap_or(total_layers);
    let uneven = f64::from(longest) * f64::from(layout.pp) / f64::from(total_layers.max(1));

    let attention_curve = curves.attention(gpu, &walk.gemm(GemmType::Bits16));
    let rates = AttentionRates {
        bandwidth: bandwidth * attention_curve.decode_bandwidth,
        compute: peak16 * attention_curve.compute,
    };
    let mut profile = curves.engine(engine).on_device(gpu.memory.cuda_total.value);
    if let Some(stream) = walk.stream {
        (profile.layer, profile.basis) = (stream.layer, stream.basis);
    }
    let kernels = curves.kernels();
    let mut attention: Vec<AttentionGroup> = Vec::new();
    let mut equivalents = 0.0;
    let mut elementwise = 0.0;
    let mut kinds: Vec<(&LayerRun, f64)> = Vec::new();
    let (mut reduces, mut exchanges) = (0.0, 0.0);
    let mut exchange_width = 0.0;
    for run in &spec.layers {
        let layers = f64::from(run.count) * uneven;
        for kind in std::iter::once(&run.attention).chain(&run.cross) {
            let group = AttentionGroup::new(kind, layers, spec.dtype_bytes, layout.tp, formats.kv, rates);
            if !attention.iter_mut().any(|g| g.merge(&group)) {
                attention.push(group);
            }
        }
        // layers that differ by their window alone share their products
        let same = |k: &&mut (&LayerRun, f64)| k.0.feed_forward == run.feed_forward && k.0.matrices == run.matrices;
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.1 += layers,
            None => kinds.push((run, layers)),
        }
        let quantised = formats.weights.quantises(Role::Attention, spec.unquantised_in(formats.weights));
        let mut count = 1.0;
        if quantised {
            count += kernels.quantised;
        }
        match &run.attention {
            Attention::Mla { indexer, .. } => {
                count += kernels.mla;
                if indexer.is_some() {
                    count += kernels.sparse_attention;
                }
            }
            Attention::Linear(_) => count += kernels.linear_attention,
            Attention::Gqa { .. } | Attention::Cross { .. } | Attention::None => {}
        }
        reduces += layers;
        match run.feed_forward {
            FeedForward::Moe { top_k, .. } => {
                count += kernels.moe;
                if run.matrices.iter().any(|m| m.role == Role::SharedExpert) {
                    count += kernels.shared_expert;
                }
                if layout.dp > 1 {
                    exchanges += layers;
                    exchange_width = f64::from(top_k).max(exchange_width);
                } else {
                    reduces += layers;
                }
            }
            FeedForward::Dense => reduces += layers,
            FeedForward::None => {}
        }
        equivalents += layers * count;
    }
    for &(run, layers) in &kinds {
        for m in &run.matrices {
            walk.matrix(m, layers, run.feed_forward);
        }
        if spec.hidden > 0 {
            elementwise += layers * elementwise_bytes(run, spec, layout, formats.weights);
        }
    }
    walk.merge_products();

    let mut notes = std::mem::take(&mut walk.notes);
    let tensor = Group::new(node, layout.tp, &mut notes);
    let stage = Group::new(node, layout.stage_gpus(), &mut notes);
    let replica = Group::new(node, layout.gpus(), &mut notes);
    notes.dedup();
    let (tensor_c, stage_c, replica_c) = {
        let of = |group: &Group| group.collectives(curves, profile.fused_all_reduce);
        (of(&tensor), of(&stage), of(&replica))
    };
    // how a board is wired hardly moves the error; an unknown fabric does
    let (mut links, mut wiring) = (Basis::Measured, Basis::Measured);
    for (ranks, group, timed) in [
        (layout.tp, &tensor, &tensor_c),
        (layout.stage_gpus(), &stage, &stage_c),
        (layout.gpus(), &replica, &replica_c),
    ] {
        if ranks > 1 {
            links = links.weakest(group.basis).weakest(timed.basis());
            wiring = node.topology_basis;
        }
    }
    let elementwise = elementwise / (bandwidth * walk.gemm(GemmType::Bits16).e_m);
    let hidden_bytes = spec.hidden as f64 * 2.0;
    let stages = f64::from(layout.pp);
    let dp = f64::from(layout.dp);
    let columns: Vec<Column> = grid()
        .map(|tokens| {
            let mut parts = [0.0; N];
            let mut weight_bound = 0.0;
            for product in &walk.products {
                let (time, bound) = product.time(tokens);
                parts[product.part] += time;
                if bound {
                    weight_bound += time;
                }
            }
            for experts in &walk.experts {
                let (time, bound) = experts.time(tokens * dp);
                parts[2] += time;
                if bound {
                    weight_bound += time;
                }
            }
            let bytes = tokens * hidden_bytes;
            if layout.tp > 1 {
                parts[3] = reduces * tensor_c.all_reduce(bytes);
            }
            if layout.dp > 1 {
                let copies = exchange_width.min(f64::from(layout.stage_gpus()));
                let gather = 2.0 * stage_c.gather(bytes * dp);
                // dispatch in 8 bit, combine in 16 bit
                let exchange = stage_c.all_to_all(bytes * copies * 0.5) + stage_c.all_to_all(bytes * copies);
                parts[4] = exchanges * gather.min(exchange);
            }
            if layout.pp > 1 {
                parts[5] = stages * replica_c.send(bytes);
            }
            parts[6] = tokens * elementwise;
            Column { parts, weight_bound }
        })
        .collect();

    let head_product = walk.head();
    let head: Vec<f64> = grid()
        .map(|sequences| {
            let product = head_product.map_or(0.0, |p| p.time(sequences).0);
            let gather = if layout.tp > 1 { tensor_c.gather(sequences * spec.vocab as f64 * 2.0) } else { 0.0 };
            product + gather
        })
        .collect();
    let bases = Bases {
        products: walk.basis,
        experts: walk.expert_basis,
        attention: attention_curve.basis,
        links: links.weakest(wiring),
        engine: profile.basis,
    };
    let error_basis = Bases { links, ..bases }.weakest();

    let totals = columns.iter().map(|c| c.parts.iter().sum()).collect();
    Ok(StepModel {
        keeps_cache: attention.iter().any(AttentionGroup::keeps_cache),
        columns,
        totals,
        head,
        attention,
        step_overhead: profile.step.0 * stages,
        kernel_overhead: profile.layer.0 * equivalents,
        sequence_overhead: profile.sequence.0,
        layout: *layout,
        profile,
        bases,
        notes,
        tpot_band: curves.band("tpot", error_basis),
        ttft_band: curves.band("ttft", error_basis),
    })
}

struct Walk<'a> {
    spec: &'a ModelSpec,
    layout: &'a Layout,
    node: &'a NodeShape,
    formats: &'a Formats,
    curves: &'static Curves,
    peak16: f64,
    bandwidth: f64,
    products: Vec<Product>,
    experts: Vec<Experts>,
    gemm: [Option<GemmCurve>; 8],
    /// Weight-reading kernels of the engine's own.
    stream: Option<Stream>,
    /// Weakest curve of plain products.
    basis: Basis,
    /// Weakest curve of routed experts.
    expert_basis: Basis,
    notes: Vec<String>,
}

impl Walk<'_> {
    /// The curve of a type, looked up once.
    fn gemm(&mut self, kind: GemmType) -> GemmCurve {
        let (curves, gpu, stream) = (self.curves, &self.node.gpu, self.stream);
        *self.gemm[kind as usize].get_or_insert_with(|| {
            let curve = curves.gemm(gpu, kind);
            match stream {
                // matrix-vector kernels have neither waves nor a pipelined k loop
                Some(s) => GemmCurve { e_m: s.e_m, wave: 0.0, k_half: 0.0, basis: curve.basis.max(s.basis), ..curve },
                None => curve,
            }
        })
    }

    fn kind(&self, role: Role) -> GemmType {
        let quantised = self.formats.weights.quantises(role, self.spec.unquantised_in(self.formats.weights));
        gemm_type(self.formats.weights, quantised, self.node, self.spec.dtype_bytes)
    }

    fn peak(&self, kind: GemmType) -> f64 {
        kind.peak(&self.node.gpu).map(|p| p.0).filter(|p| *p > 0.0).unwrap_or(self.peak16)
    }

    fn matrix(&mut self, m: &Matrix, layers: f64, feed_forward: FeedForward) {
        let part = match m.role {
            Role::Attention | Role::Indexer | Role::Mixer => 0,
            Role::Mlp | Role::SharedExpert | Role::Router | Role::Other => 1,
            Role::Expert => {
                self.expert(m, layers, feed_forward);
                return;
            }
            Role::Embedding | Role::Head | Role::Tower => return,
        };
        if let Some(product) = self.product(m, part, layers) {
            self.products.push(product);
        }
    }

    fn product(&mut self, m: &Matrix, part: usize, layers: f64) -> Option<Product> {
        let kind = self.kind(m.role);
        let curve = self.gemm(kind);
        self.basis = self.basis.weakest(curve.basis);
        let rank = cut(m, self.layout);
        let (n, k) = (rank.output as f64, rank.input as f64);
        if n < 1.0 || k < 1.0 {
            return None;
        }
        let peak = self.peak(kind) * curve.e_c;
        let bytes = matrix_bytes(m, self.layout, self.spec, self.formats.weights) as f64;
        let bandwidth = self.bandwidth * curve.e_m;
        // a bare size has no shapes: its parameters are read and multiplied, no more is known
        let shaped = self.spec.hidden > 0;
        let loops = if shaped { 1.0 + curve.k_half / k } else { 1.0 };
        let copies = rank.copies.max(1) as f64;
        let flop = 2.0 * n * k;
        Some(Product {
            part,
            count: layers * copies,
            compute_per_token: flop * loops / peak,
            // FLOP x wave / (m n) does not depend on m
            compute_floor: if shaped { 2.0 * k * curve.wave * loops / peak } else { 0.0 },
            weights: bytes / copies / bandwidth,
            traffic_per_token: if shaped { 2.0 * (n + k) / bandwidth } else { 0.0 },
        })
    }

    fn expert(&mut self, m: &Matrix, layers: f64, feed_forward: FeedForward) {
        let FeedForward::Moe { experts, top_k } = feed_forward else {
            return;
        };
        let kind = self.kind(Role::Expert);
        let plain = self.gemm(kind);
        let curve = self.curves.experts(&self.node.gpu, &plain);
        self.expert_basis = self.expert_basis.weakest(curve.basis);
        let gpus = f64::from(self.layout.stage_gpus());
        let inner = gpus / f64::from(self.layout.ep);
        let bytes = matrix_bytes(m, self.layout, self.spec, self.formats.weights) as f64;
        let bandwidth = self.bandwidth * curve.e_m;
        let top_k = f64::from(top_k.min(experts)).max(1.0);
        let one = m.output as f64 * m.input as f64;
        // activations of the copies that land on a rank; inside a group every rank sees all of a copy's input
        let traffic = if self.spec.hidden > 0 { m.output as f64 / inner.max(1.0) + m.input as f64 } else { 0.0 };
        let stage = Experts {
            layers,
            experts: f64::from(experts.max(1)).max(top_k),
            top_k,
            weights: bytes / bandwidth,
            compute_per_token: 2.0 * one * top_k / gpus / (self.peak(kind) * curve.e_c),
            traffic_per_token: 2.0 * top_k / f64::from(self.layout.ep) * traffic / bandwidth,
        };
        self.experts.push(stage);
    }

    /// The output head over one rank's slice of the vocabulary; `None` where the model has none.
    fn head(&mut self) -> Option<Product> {
        let tied = self.spec.embedding.iter().find(|m| m.role == Role::Embedding);
        let matrix = self.spec.head.as_ref().or(if self.spec.tied { tied } else { None })?;
        let m = Matrix { role: Role::Head, shard: Shard::Output, ..matrix.clone() };
        self.product(&m, 1, 1.0)
    }

    /// Adds up products with the same figures.
    fn merge_products(&mut self) {
        let mut merged: Vec<Product> = Vec::with_capacity(self.products.len());
        for product in &self.products {
            let same = merged.iter_mut().find(|p| Product { count: product.count, ..**p } == *product);
            match same {
                Some(p) => p.count += product.count,
                None => merged.push(*product),
            }
        }
        self.products = merged;
        let mut experts: Vec<Experts> = Vec::with_capacity(self.experts.len());
        for stage in &self.experts {
            match experts.iter_mut().find(|e| Experts { layers: stage.layers, ..**e } == *stage) {
                Some(e) => e.layers += stage.layers,
                None => experts.push(*stage),
            }
        }
        self.experts = experts;
    }
}

/// Time of a product alone, for the fit and its tests: one matrix of `n` × `k` over `m` tokens.
pub fn product_time(
    m: f64,
    n: f64,
    k: f64,
    weight_bytes: f64,
    peak: f64,
    bandwidth: f64,
    curve: &GemmCurve,
) -> Seconds {
    let loops = 1.0 + curve.k_half / k.max(1.0);
    let compute = 2.0 * k * (m * n + curve.wave) * loops / (peak * curve.e_c);
    let memory = (weight_bytes + 2.0 * m * (n + k)) / (bandwidth * curve.e_m);
    Seconds(power_mean(compute, memory))
}
