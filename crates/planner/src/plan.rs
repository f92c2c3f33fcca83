//! A complete plan, and the answer that carries plans, picks, the Pareto set and the reasons against the rest.

use jiff::civil::Date;
use model::{KvFormat, WeightFormat};
use perf::{Engine, Formats, Layout, MemoryPlan, ServingEstimate, ServingLoad};
use units::{Basis, Seconds, Term, UsdPerHour, Value, Watts};

use crate::rank::Figures;
use crate::rejection::RejectionGroup;
use crate::request::Objective;
use crate::workload::Traffic;

/// The offer that a plan is priced with.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanOffer {
    /// Provider id.
    pub provider: String,
    /// The provider's instance name.
    pub instance: String,
    /// Region, empty where the source gives none.
    pub region: String,
    /// Kind of the offer: `bookable node`, `list price x 8, NVLink unknown`, `your price`.
    pub kind: String,
    /// One node for one hour.
    pub node_usd_per_hour: UsdPerHour,
    /// Day of the quote, where known.
    pub date: Option<Date>,
    /// Age in days on the day of the request.
    pub age_days: Option<i64>,
    /// Older than 90 days, or undated.
    pub stale: bool,
    /// 0 for what can be booked as it stands; higher classes rank below.
    pub rank_class: u8,
    /// Where the quote was read.
    pub source: String,
    /// How many other offers carry the same plan, dearer or ranked below.
    pub others: usize,
}

/// One complete answer: nothing is left to choose.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Node type id, or `generic/8xGPU`.
    pub node: String,
    /// `8xh100-sxm`: one node as count and GPU, whatever its maker or provider calls it.
    pub hardware: String,
    /// GPU id.
    pub gpu: String,
    /// GPUs of one node.
    pub gpus_per_node: u32,
    /// Nodes, all replicas together.
    pub nodes: u64,
    /// GPUs, all nodes together.
    pub gpus: u64,
    /// Layout of one replica.
    pub layout: Layout,
    /// Nodes that one replica spans.
    pub nodes_per_replica: u32,
    /// Weight and KV format.
    pub formats: Formats,
    /// Whether the weights are the checkpoint's own.
    pub own_format: bool,
    /// Engine.
    pub engine: Engine,
    /// Replicas.
    pub replicas: u64,
    /// One replica under its share of the load.
    pub serving: ServingEstimate,
    /// That share.
    pub load: ServingLoad,
    /// Memory of the heaviest rank.
    pub memory: MemoryPlan,
    /// Output tokens per second, all replicas together.
    pub output_tokens_per_s: f64,
    /// Requests per second, all replicas together.
    pub requests_per_s: f64,
    /// Board power of all GPUs, where known.
    pub power: Option<Watts>,
    /// The offer, where there is one.
    pub offer: Option<PlanOffer>,
    /// What a reader must know before using this plan.
    pub notes: Vec<String>,
}

impl Plan {
    /// All nodes, one hour.
    pub fn usd_per_hour(&self) -> Option<UsdPerHour> {
        self.offer.as_ref().map(|o| o.node_usd_per_hour * self.nodes as f64)
    }

    /// Dollars per million output tokens; `None` without a price or without output.
    pub fn usd_per_million_output_tokens(&self) -> Option<f64> {
        self.per_million(self.output_tokens_per_s)
    }

    /// Dollars per million tokens, input and output together.
    pub fn usd_per_million_total_tokens(&self) -> Option<f64> {
        self.per_million(self.requests_per_s * (self.load.input + self.load.output))
    }

    /// Dollars per thousand requests of the asked shape.
    pub fn usd_per_1000_requests(&self) -> Option<f64> {
        let per_hour = self.requests_per_s * 3600.0;
        (per_hour > 0.0).then_some(())?;
        Some(self.usd_per_hour()?.0 / per_hour * 1000.0)
    }

    fn per_million(&self, tokens_per_s: f64) -> Option<f64> {
        let per_hour = tokens_per_s * 3600.0;
        (per_hour > 0.0).then_some(())?;
        Some(self.usd_per_hour()?.0 / per_hour * 1e6)
    }

    /// Output tokens per second per GPU that is paid for; requests per second per GPU where nothing is generated.
    pub fn output_tokens_per_s_per_gpu(&self) -> f64 {
        self.output_tokens_per_s / self.gpus.max(1) as f64
    }

    /// Tokens per second that one user sees: 1 / TPOT.
    pub fn interactivity(&self) -> f64 {
        if self.serving.tpot.0 > 0.0 { 1.0 / self.serving.tpot.0 } else { 0.0 }
    }

    /// Mean time from request to last token.
    pub fn latency(&self) -> Seconds {
        Seconds(self.serving.ttft.0 + self.serving.tpot.0 * (self.load.output - 1.0).max(0.0))
    }

    /// What the objective minimises; `None` where the plan cannot be ranked by it.
    pub fn value(&self, objective: Objective) -> Option<f64> {
        let figures = Figures {
            usd_per_hour: self.usd_per_hour().map(|p| p.0),
            requests_per_s: self.requests_per_s,
            gpus: self.gpus,
            latency: self.latency(),
            power: self.power,
        };
        figures.value(objective)
    }

    /// `2 x 8xh100-sxm (aws-p5.48xlarge), 2 x TP8, fp8`: the plan in a line.
    pub fn title(&self) -> String {
        let replicas = if self.replicas == 1 { String::new() } else { format!("{} x ", self.replicas) };
        let node = if self.node.starts_with("generic/") { String::new() } else { format!(" ({})", self.node) };
        let nodes = if self.nodes == 1 { String::new() } else { format!("{} x ", self.nodes) };
        format!("{nodes}{}{node}, {replicas}{}, {}", self.hardware, self.layout, self.formats.weights.name())
    }

    /// The term tree of the plan: memory, time and cost.
    pub fn explain(&self, step: Term) -> Term {
        let mut parts = vec![self.memory.term.clone(), step];
        if let (Some(offer), Some(total)) = (&self.offer, self.usd_per_hour()) {
            let basis = if offer.stale || offer.rank_class > 0 { Basis::Assumed } else { Basis::Measured };
            parts.push(
                Term::new("price", Value::UsdPerHour(total.0))
                    .formula(format!(
                        "{} nodes x {} ({}, {})",
                        self.nodes, offer.node_usd_per_hour, offer.provider, offer.kind
                    ))
                    .basis(basis),
            );
            if let Some(cost) = self.usd_per_1000_requests() {
                parts.push(
                    Term::new("cost_of_1000_requests", Value::Number(cost, "USD"))
                        .formula(format!("price / ({} requests/s x 3600 s) x 1000", units::sig3(self.requests_per_s)))
                        .basis(basis),
                );
            }
        }
        Term::new("plan", Value::Number(self.gpus as f64, "GPUs")).formula(self.title()).parts(parts)
    }
}

/// `8xh100-sxm`: a GPU count and an id without the vendor, as `--on` reads it.
pub(crate) fn hardware_name(gpus: u32, gpu: &str) -> String {
    format!("{gpus}x{}", gpu.split_once('-').map_or(gpu, |(_, short)| short))
}

/// Why a plan is one of the three that lead the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PickReason {
    /// The lowest cost or price: the cheapest that meets the request.
    Cheapest,
    /// The best by an objective other than money.
    Best,
    /// The shortest time from request to last token.
    Fastest,
    /// The least more money for a clear gain in latency or throughput.
    StepUp,
}

impl PickReason {
    /// Stable name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cheapest => "cheapest",
            Self::Best => "best",
            Self::Fastest => "fastest",
            Self::StepUp => "step_up",
        }
    }
}

/// One of the three leading plans.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pick {
    /// Why it leads.
    pub reason: PickReason,
    /// Its place in [`Answer::plans`].
    pub plan: usize,
    /// What it gains and costs beside the cheapest; what weakens it.
    pub remark: String,
}

/// A point of the Pareto set: nothing is both faster for one user and more productive per GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct ParetoPoint {
    /// `2 x 8xh100-sxm`.
    pub hardware: String,
    /// Node type id, or `generic/8xGPU`.
    pub node: String,
    /// GPU id.
    pub gpu: String,
    /// GPUs in all.
    pub gpus: u64,
    /// Layout.
    pub layout: Layout,
    /// Weight format.
    pub weights: WeightFormat,
    /// KV format.
    pub kv: KvFormat,
    /// 1 / TPOT.
    pub interactivity: f64,
    /// Output tokens per second per GPU.
    pub output_tokens_per_s_per_gpu: f64,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The traffic that was planned for.
    pub traffic: Traffic,
    /// Leading plans.
    pub picks: Vec<Pick>,
    /// Every plan, best first.
    pub plans: Vec<Plan>,
    /// The Pareto set, most interactive first.
    pub pareto: Vec<ParetoPoint>,
    /// Rejections by reason, most frequent first.
    pub rejections: Vec<RejectionGroup>,
    /// Everything assumed.
    pub assumptions: Vec<String>,
    /// Candidates looked at.
    pub candidates: u64,
}
