//! The building blocks that families share: attention, feed-forward networks, experts, latent attention, mixers.

use crate::spec::{Attention, FeedForward, Indexer, LayerRun, Matrix, Role, Shard, StateSpec, Window};

/// One `output` × `input` matrix without bias.
pub(crate) fn matrix(name: &'static str, role: Role, output: u64, input: u64, shard: Shard) -> Matrix {
    Matrix { name, role, output, input, copies: 1, bias: false, shard }
}

impl Matrix {
    /// The same with or without a bias.
    pub(crate) fn with_bias(self, bias: bool) -> Self {
        Self { bias, ..self }
    }
}

/// A layer under construction.
#[derive(Clone, Debug)]
pub(crate) struct Layer {
    pub(crate) attention: Attention,
    pub(crate) cross: Option<Attention>,
    pub(crate) feed_forward: FeedForward,
    pub(crate) matrices: Vec<Matrix>,
    pub(crate) small: u64,
}

impl Layer {
    pub(crate) fn new(small: u64) -> Self {
        Self { attention: Attention::None, cross: None, feed_forward: FeedForward::None, matrices: Vec::new(), small }
    }

    pub(crate) fn run(self, count: u32) -> LayerRun {
        LayerRun {
            count,
            attention: self.attention,
            cross: self.cross,
            feed_forward: self.feed_forward,
            matrices: self.matrices,
            small: self.small,
        }
    }
}

/// Appends a layer, joining it to the last run where equal.
pub(crate) fn push(runs: &mut Vec<LayerRun>, layer: Layer) {
    let run = layer.run(1);
    if let Some(last) = runs.last_mut() {
        let count = std::mem::replace(&mut last.count, 1);
        if *last == run {
            last.count = count.saturating_add(1);
            return;
        }
        last.count = count;
    }
    runs.push(run);
}

fn small_u32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Grouped-query attention of any flavour.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gqa {
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) k_dim: u64,
    pub(crate) v_dim: u64,
    pub(crate) qkv_bias: bool,
    pub(crate) o_bias: bool,
    /// Query projection twice as wide, half of it an output gate.
    pub(crate) gate: bool,
    /// Keys double as values: no value projection.
    pub(crate) k_is_v: bool,
    /// Layers that reuse another's cache have no key and value projections.
    pub(crate) own_cache: bool,
    pub(crate) window: Window,
}

impl Gqa {
    pub(crate) fn add(self, layer: &mut Layer) {
        let kv = Shard::KvHeads { groups: small_u32(self.kv_heads) };
        let q = self.heads.saturating_mul(self.k_dim).saturating_mul(if self.gate { 2 } else { 1 });
        let a = Role::Attention;
        layer.matrices.push(matrix("q_proj", a, q, self.hidden, Shard::Output).with_bias(self.qkv_bias));
        if self.own_cache {
            let k = self.kv_heads.saturating_mul(self.k_dim);
            let v = self.kv_heads.saturating_mul(self.v_dim);
            layer.matrices.push(matrix("k_proj", a, k, self.hidden, kv).with_bias(self.qkv_bias));
            if !self.k_is_v {
                layer.matrices.push(matrix("v_proj", a, v, self.hidden, kv).with_bias(self.qkv_bias));
            }
        }
        let o = self.heads.saturating_mul(self.v_dim);
        layer.matrices.push(matrix("o_proj", a, self.hidden, o, Shard::Input).with_bias(self.o_bias));
        layer.attention = self.kind();
    }

    fn kind(self) -> Attention {
        Attention::Gqa {
            heads: small_u32(self.heads),
            kv_heads: small_u32(self.kv_heads),
            k_dim: small_u32(self.k_dim),
            v_dim: small_u32(self.v_dim),
            window: self.window,
            own_cache: self.own_cache,
        }
    }
}

/// Multi-head latent attention (DeepSeek-V2 and later).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mla {
    pub(crate) hidden: u64,
    pub(crate) heads: u64,
    pub(crate) q_rank: Option<u64>,
    pub(crate) kv_rank: u64,
    pub(crate) rope: u64,
    pub(crate) nope: u64,
    pub(crate) v_dim: u64,
    pub(crate) bias: bool,
    pub(crate) indexer: Option<Indexer>,
}

impl Mla {
    pub(crate) fn add(self, layer: &mut Layer) {
        let a = Role::Attention;
        let head = self.nope.saturating_add(self.rope);
        let q = self.heads.saturating_mul(head);
        match self.q_rank {
            Some(rank) => {
                layer.matrices.push(matrix("q_a_proj", a, rank, self.hidden, Shard::Replicated).with_bias(self.bias));
                layer.matrices.push(matrix("q_b_proj", a, q, rank, Shard::Output));
                layer.small = layer.small.saturating_add(rank);
            }
            None => layer.matrices.push(matrix("q_proj", a, q, self.hidden, Shard::Output)),
        }
        let latent = self.kv_rank.saturating_add(self.rope);
        layer.matrices.push(matrix("kv_a_proj", a, latent, self.hidden, Shard::Replicated).with_bias(self.bias));
        layer.small = layer.small.saturating_add(self.kv_rank);
        let expanded = self.heads.saturating_mul(self.nope.saturating_add(self.v_dim));
        layer.matrices.push(matrix("kv_b_proj", a, expanded, self.kv_rank, Shard::Output));
        let o = self.heads.saturating_mul(self.v_dim);
        layer.matrices.push(matrix("o_proj", a, self.hidden, o, Shard::Input).with_bias(self.bias));
        if let Some(indexer) = self.indexer.filter(|i| i.owns) {
            let (n, d) = (u64::from(indexer.heads), u64::from(indexer.dim));
            let rank = self.q_rank.unwrap_or(self.hidden);
            let i = Role::Indexer;
            layer.matrices.push(matrix("indexer_wq_b", i, n.saturating_mul(d), rank, Shard::Replicated));
            layer.matrices.push(matrix("indexer_wk", i, d, self.hidden, Shard::Replicated));
            // head weights stay in 16 bit in every checkpoint
            layer.matrices.push(matrix("indexer_weights_proj", Role::Other, n, self.hidden, Shard::Replicated));
            layer.small = layer.small.saturating_add(2 * d);
        }
        layer.attention = Attention::Mla {
            heads: small_u32(self.heads),
            kv_lora_rank: small_u32(self.kv_rank),
            rope_dim: small_u32(self.rope),
            nope_dim: small_u32(self.nope),
            v_dim: small_u32(self.v_dim),
            indexer: self.indexer,
            window: Window::Full,
        };
    }
}

/// A feed-forward network of one role: gated (three matrices) or plain (two).
pub(crate) fn mlp(layer: &mut Layer, role: Role, hidden: u64, width: u64, copies: u64, gated: bool, bias: bool) {
    let (out, inn) = match role {
        Role::Expert => (Shard::Experts, Shard::Experts),
        _ => (Shard::Output, Shard::Input),
    };
    let mut add = |name, o, i, shard| {
        layer.matrices.push(Matrix { copies, ..matrix(name, role, o, i, shard).with_bias(bias) });
    };
    if gated {
        add("gate_proj", width, hidden, out);
    }
    add("up_proj", width, hidden, out);
    add("down_proj", hidden, width, inn);
    if role == Role::Mlp && layer.feed_forward == FeedForward::None {
        layer.feed_forward = FeedForward::Dense;
    }
}

/// Routed experts with their router and shared experts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moe {
    pub(crate) hidden: u64,
    pub(crate) experts: u64,
    pub(crate) top_k: u64,
    pub(crate) width: u64,
    /// Width of all shared experts together; 0 without.
    pub(crate) shared: u64,
    /// Whether a scalar gate weighs the shared expert.
    pub(crate) shared_gate: bool,
    pub(crate) gated: bool,
    pub(crate) bias: bool,
    pub(crate) router_bias: bool,
}

impl Moe {
    pub(crate) fn add(self, layer: &mut Layer) {
        let router = matrix("router", Role::Router, self.experts, self.hidden, Shard::Replicated);
        layer.matrices.push(router.with_bias(self.router_bias));
        mlp(layer, Role::Expert, self.hidden, self.width, self.experts, self.gated, self.bias);
        if self.shared > 0 {
            mlp(layer, Role::SharedExpert, self.hidden, self.shared, 1, self.gated, self.bias);
        }
        if self.shared_gate {
            layer.small = layer.small.saturating_add(self.hidden);
        }
        layer.feed_forward = FeedForward::Moe { experts: small_u32(self.experts), top_k: small_u32(self.top_k) };
    }
}

/// Gated delta net (Qwen3-Next, Qwen3.5).
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeltaNet {
    pub(crate) hidden: u64,
    pub(crate) k_heads: u64,
    pub(crate) v_heads: u64,
    pub(crate) k_dim: u64,
    pub(crate) v_dim: u64,
    pub(crate) taps: u64,
}

impl DeltaNet {
    pub(crate) fn add(self, layer: &mut Layer) {
        let m = Role::Mixer;
        let k = self.k_heads.saturating_mul(self.k_dim);
        let v = self.v_heads.saturating_mul(self.v_dim);
        let conv = k.saturating_mul(2).saturating_add(v);
        layer.matrices.push(matrix("in_proj_qkv", m, conv, self.hidden, Shard::Output));
        layer.matrices.push(matrix("in_proj_z", m, v, self.hidden, Shard::Output));
        // two narrow gates, 16 bit in every checkpoint
        layer.matrices.push(matrix("in_proj_ba", Role::Other, 2 * self.v_heads, self.hidden, Shard::Output));
        layer.matrices.push(matrix("out_proj", m, self.hidden, v, Shard::Input));
        let small = conv.saturating_mul(self.taps).saturating_add(2 * self.v_heads).saturating_add(self.v_dim);
        layer.small = layer.small.saturating_add(small);
        layer.attention = Attention::Linear(StateSpec {
            recurrent_elements: self.v_heads.saturating_mul(self.k_dim).saturating_mul(self.v_dim),
            recurrent_bytes: 4,
            conv_elements: conv.saturating_mul(self.taps),
            heads: small_u32(self.v_heads),
        });
    }
}

/// Mamba-2 mixer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mamba2 {
    pub(crate) hidden: u64,
    pub(crate) inner: u64,
    pub(crate) heads: u64,
    pub(crate) groups: u64,
    pub(crate) state: u64,
    pub(crate) taps: u64,
    pub(crate) conv_bias: bool,
    pub(crate) bias: bool,
}

impl Mamba2 {
    pub(crate) fn add(self, layer: &mut Layer) {
        let m = Role::Mixer;
        let bc = self.groups.saturating_mul(self.state).saturating_mul(2);
        let conv = self.inner.saturating_add(bc);
        let input = conv.saturating_add(self.inner).saturating_add(self.heads);
        layer.matrices.push(matrix("in_proj", m, input, self.hidden, Shard::Output).with_bias(self.bias));
        layer.matrices.push(matrix("out_proj", m, self.hidden, self.inner, Shard::Input).with_bias(self.bias));
        let taps = self.taps.saturating_add(u64::from(self.conv_bias));
        let small = conv.saturating_mul(taps).saturating_add(3 * self.heads).saturating_add(self.inner);
        layer.small = layer.small.saturating_add(small);
        layer.attention = Attention::Linear(StateSpec {
            recurrent_elements: self.inner.saturating_mul(self.state),
            recurrent_bytes: 4,
            conv_elements: conv.saturating_mul(self.taps),
            heads: small_u32(self.heads),
        });
    }
}

/// Mamba-1 mixer; `norms` adds Jamba's norms of time step, B and C.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mamba1 {
    pub(crate) hidden: u64,
    pub(crate) inner: u64,
    pub(crate) rank: u64,
    pub(crate) state: u64,
    pub(crate) taps: u64,
    pub(crate) conv_bias: bool,
    pub(crate) bias: bool,
    pub(crate) norms: bool,
}

impl Mamba1 {
    pub(crate) fn add(self, layer: &mut Layer) {
        let m = Role::Mixer;
        let bc = self.state.saturating_mul(2);
        let x = self.rank.saturating_add(bc);
        layer.matrices.push(matrix("in_proj", m, 2 * self.inner, self.hidden, Shard::Output).with_bias(self.bias));
        layer.matrices.push(matrix("x_proj", m, x, self.inner, Shard::Input));
        layer.matrices.push(matrix("dt_proj", m, self.inner, self.rank, Shard::Output).with_bias(true));
        layer.matrices.push(matrix("out_proj", m, self.hidden, self.inner, Shard::Input).with_bias(self.bias));
        let taps = self.taps.saturating_add(u64::from(self.conv_bias));
        // conv, A, D
        let mut small = self.inner.saturating_mul(taps.saturating_add(self.state).saturating_add(1));
        if self.norms {
            small = small.saturating_add(x);
        }
        layer.small = layer.small.saturating_add(small);
        layer.attention = Attention::Linear(StateSpec {
            recurrent_elements: self.inner.saturating_mul(self.state),
            recurrent_bytes: 4,
            conv_elements: self.inner.saturating_mul(self.taps),
            heads: small_u32(self.inner),
        });
    }
}
