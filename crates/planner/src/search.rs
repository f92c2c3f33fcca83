//! Request → kinds of node → cuts → constraints → estimates → ranking.

use hardware::{Hardware, NodeShape};
use jiff::civil::Date;
use market::{Market, QuoteFilter};
use model::{KvFormat, ModelSpec, WeightFormat};
use perf::{Capacity, Curves, Engine, Formats, MemoryLoad, StepModel, memory};
use units::{Term, Watts};

use crate::checkpoints::checkpoint_in;
use crate::constraints::{budget, engine_runs, gang_fabric, host_disk, host_ram, max_nodes};
use crate::evaluate::{Context, Evaluated, MAX_UTILISATION, WeightCache};
use crate::layouts::{Cut, NodeSize, cuts};
use crate::plan::{Answer, ParetoPoint, Plan};
use crate::rank::{Figures, compare, pareto, picks};
use crate::rejection::{Rejection, Rejections};
use crate::request::{PlanRequest, RequestError};
use crate::sites::{Kind, Site, kinds, plan_offer};
use crate::workload::{Load, Traffic};

/// Nodes that one replica may span at most.
const MAX_SPAN: u32 = 16;

/// How much faster another layout on the same kind of node must be to stand in the list beside the best one.
const WORTH_A_ROW: f64 = 1.25;

/// Everything that stays the same from request to request.
#[derive(Clone, Copy)]
pub struct Planner<'a> {
    hardware: &'a Hardware,
    market: &'a Market,
    curves: &'static Curves,
    today: Date,
}

/// A candidate that carries the load, with the site that realises it.
struct Chosen {
    evaluated: Evaluated,
    site: usize,
    others: usize,
    fabric_shape: Option<NodeShape>,
}

impl<'a> Planner<'a> {
    /// A planner over these catalogs; ages of prices are counted to `today`.
    pub fn new(hardware: &'a Hardware, market: &'a Market, curves: &'static Curves, today: Date) -> Self {
        Self { hardware, market, curves, today }
    }

    /// Every plan for a request, ranked, with the reasons against the rest.
    pub fn plan(&self, spec: &ModelSpec, request: &PlanRequest) -> Result<Answer, RequestError> {
        request.check()?;
        request.check_model(spec)?;
        let traffic = request.traffic();
        let engine = request.engine.unwrap_or(Engine::Vllm);
        let filter = QuoteFilter {
            purchase: request.purchase,
            tier_marketplace: request.marketplace,
            providers: request.providers.clone(),
            regions: request.regions.clone(),
            today: self.today,
            multi_node: false,
        };
        let kinds = kinds(self.hardware, self.market, request, &filter)?;
        let context = Context { spec, traffic: &traffic, engine, curves: self.curves };
        let formats = formats(spec, request);
        let mut run = Run {
            planner: self,
            request,
            context,
            rejections: Rejections::default(),
            cache: WeightCache::default(),
            cuts: Vec::new(),
            candidates: 0,
            points: Vec::new(),
        };
        let mut plans: Vec<Plan> = Vec::new();
        for kind in &kinds {
            if let Err(no) = engine_runs(engine, &kind.shape.gpu) {
                run.candidates += 1;
                run.rejections.add(no, || kind.hardware());
                continue;
            }
            if request.objective.needs_price() && kind.sites.iter().all(|s| s.quote.is_none()) {
                run.candidates += 1;
                let why = format!("no {} offer that can be ranked", request.purchase.name());
                run.rejections.add(Rejection::NoOffer { why }, || kind.hardware());
                continue;
            }
            for f in &formats {
                run.kind(kind, *f, &mut plans);
            }
        }
        plans.sort_by(|a, b| compare(a, b, request.objective));
        let leading = picks(&plans, request.objective);
        let assumptions = Self::assumptions(spec, request, &traffic, engine, &plans);
        Ok(Answer {
            picks: leading,
            pareto: if traffic.output > 1 { pareto(run.points) } else { Vec::new() },
            plans,
            rejections: run.rejections.into_groups(),
            assumptions,
            candidates: run.candidates,
            traffic,
        })
    }

    /// The term tree of a plan: memory, time, cost.
    pub fn explain(&self, spec: &ModelSpec, plan: &Plan) -> Term {
        let Some(node) = self.shape_of(plan) else {
            return plan.explain(Term::time("step", plan.serving.tpot).formula("the node is no longer in the catalog"));
        };
        let traffic_tokens = (plan.load.input + plan.load.output) as u64;
        let sequences = (plan.serving.in_flight.ceil() as u64).max(1);
        let load = MemoryLoad { sequences, tokens: traffic_tokens, ..MemoryLoad::default() };
        let mut explained = plan.clone();
        explained.memory = memory(spec, &plan.layout, &node, plan.engine, &plan.formats, &load, Capacity::CudaTotal);
        let step = StepModel::compile(
            spec,
            &plan.layout,
            &node,
            plan.nodes_per_replica,
            plan.engine,
            &plan.formats,
            self.curves,
        );
        match step {
            Ok(step) => explained.explain(plan.serving.explain(&step)),
            Err(e) => explained.explain(Term::time("step", plan.serving.tpot).formula(e.to_string())),
        }
    }

    fn shape_of(&self, plan: &Plan) -> Option<NodeShape> {
        match self.hardware.node(&plan.node) {
            Some(node) => self.hardware.shape(node),
            None => Some(NodeShape::generic(self.hardware.gpu(&plan.gpu)?, plan.gpus_per_node)),
        }
    }

    /// Everything that the reader did not say, the traffic's own assumptions first.
    fn assumptions(
        spec: &ModelSpec,
        request: &PlanRequest,
        traffic: &Traffic,
        engine: Engine,
        plans: &[Plan],
    ) -> Vec<String> {
        let mut out = traffic.assumptions.clone();
        out.push(format!("engine {} with its default memory settings", engine.name()));
        if !spec.kv_known() {
            out.push(
                "the KV cache of a bare size is unknown and counted as nothing: name a model for a true answer".into(),
            );
        }
        if plans.iter().any(|p| !p.own_format) {
            out.push("`?` after a format: not the checkpoint's own, quality not assessed".into());
        }
        if matches!(traffic.load, Load::Rate(_)) {
            out.push(format!("replicas are loaded to at most {:.0} % of their capacity", MAX_UTILISATION * 100.0));
        }
        for (gpu, price) in &request.prices {
            out.push(format!("your price for {gpu}: {price} per GPU, in place of every quote of it"));
        }
        for problem in spec.problems.iter().take(5) {
            out.push(format!("model file, {}: {}", problem.key, problem.message));
        }
        if plans.iter().any(|p| p.offer.as_ref().is_some_and(|o| o.stale)) {
            out.push(format!("`!` after an age: older than {} days, `?!`: undated", market::STALE_AFTER_DAYS));
        }
        out
    }
}

/// The checkpoint's own format first, then the others allowed, each with every KV format allowed.
fn formats(spec: &ModelSpec, request: &PlanRequest) -> Vec<Formats> {
    let mut weights: Vec<WeightFormat> = vec![spec.weights];
    weights.extend(request.weights.iter().copied().filter(|w| *w != spec.weights));
    let kv: &[KvFormat] = if request.kv.is_empty() { &[KvFormat::Bf16] } else { &request.kv };
    weights.iter().flat_map(|&weights| kv.iter().map(move |&kv| Formats { weights, kv })).collect()
}

struct Run<'a, 'r> {
    planner: &'r Planner<'a>,
    request: &'r PlanRequest,
    context: Context<'r>,
    rejections: Rejections,
    cache: WeightCache,
    /// Cuts by node size, computed once.
    cuts: Vec<(NodeSize, Vec<Cut>)>,
    candidates: u64,
    points: Vec<ParetoPoint>,
}

impl Run<'_, '_> {
    fn kind(&mut self, kind: &Kind, formats: Formats, plans: &mut Vec<Plan>) {
        let size = NodeSize { gpus: kind.shape.gpus, domain: kind.shape.domain() };
        let all = self.cuts_for(size);
        let mut best: Option<(Chosen, (u8, f64))> = None;
        let mut fastest: Option<(Chosen, f64)> = None;
        let mut fits = false;
        // inside one node or one NVLink domain
        for cut in all.iter().filter(|c| c.nodes * size.gpus <= size.domain.max(size.gpus)) {
            let places: Vec<usize> = (0..kind.sites.len()).filter(|&i| cut.nodes == 1 || kind.sites[i].gang).collect();
            fits |= self.candidate(kind, &kind.shape, None, *cut, formats, &places, &mut best, &mut fastest);
        }
        // across nodes only where no single node holds the model, by the fewest nodes that do
        let gangs = all.iter().any(|c| c.nodes * size.gpus > size.domain.max(size.gpus));
        if !fits && gangs {
            for (fabric, places) in kind.fabrics() {
                if let Err(no) = gang_fabric(fabric.as_ref(), !self.request.nodes.is_empty()) {
                    self.candidates += 1;
                    self.rejections.add(no, || kind.hardware());
                    continue;
                }
                let shape = NodeShape { fabric, ..kind.shape.clone() };
                let mut span_fits = 0;
                for cut in all.iter().filter(|c| c.nodes * size.gpus > size.domain.max(size.gpus)) {
                    if span_fits > 0 && cut.nodes > span_fits {
                        break;
                    }
                    let shape_of = Some(&shape);
                    if self.candidate(kind, &shape, shape_of, *cut, formats, &places, &mut best, &mut fastest) {
                        span_fits = cut.nodes;
                    }
                }
            }
        }
        let Some((chosen, _)) = best else { return };
        let latency = chosen.evaluated.latency().0;
        let plan = self.finish(kind, chosen);
        if let Some((fast, _)) = fastest
            && fast.evaluated.latency().0 * WORTH_A_ROW <= latency
        {
            let other = self.finish(kind, fast);
            plans.push(other);
        }
        plans.push(plan);
    }

    /// Tries one cut; keeps it where it is the best or the fastest so far. Whether its memory fits is returned.
    #[allow(clippy::too_many_arguments, reason = "one candidate is all of these")]
    fn candidate(
        &mut self,
        kind: &Kind,
        shape: &NodeShape,
        fabric_shape: Option<&NodeShape>,
        cut: Cut,
        formats: Formats,
        places: &[usize],
        best: &mut Option<(Chosen, (u8, f64))>,
        fastest: &mut Option<(Chosen, f64)>,
    ) -> bool {
        self.candidates += 1;
        let name = || {
            let nodes = if cut.nodes > 1 { format!("{} x ", cut.nodes) } else { String::new() };
            format!("{nodes}{}, {}, {}", kind.hardware(), cut.layout, formats.weights.name())
        };
        let weights = match self.cache.get(self.context.spec, cut, formats.weights) {
            Ok(weights) => weights,
            Err(why) => {
                self.rejections.add(Rejection::LayoutImpossible { why: why.clone() }, name);
                return false;
            }
        };
        let memory = match self.context.memory(shape, weights, &formats) {
            Ok(memory) => memory,
            Err(no) => {
                self.rejections.add(no, name);
                return false;
            }
        };
        let weights_per_gpu = memory.weights;
        let step = match StepModel::compile(
            self.context.spec,
            &cut.layout,
            shape,
            cut.nodes,
            self.context.engine,
            &formats,
            self.context.curves,
        ) {
            Ok(step) => step,
            Err(e) => {
                self.rejections.add(Rejection::NoSpeedKnown { why: e.to_string() }, name);
                return true;
            }
        };
        let evaluated = match self.context.carry(shape, cut, &step, memory, formats) {
            Ok(evaluated) => evaluated,
            Err(no) => {
                self.rejections.add(no, name);
                return true;
            }
        };
        if let Err(no) = max_nodes(evaluated.nodes, self.request.max_nodes) {
            self.rejections.add(no, name);
            return true;
        }
        let Some((site, others)) = self.site(kind, &evaluated, weights_per_gpu, places, &name) else { return true };
        let quote = kind.sites[site].quote.as_ref();
        let per_hour = quote.map(|q| q.usd_per_hour * evaluated.nodes as f64);
        if let Some(cost) = per_hour
            && let Err(no) = budget(cost, self.request.budget)
        {
            self.rejections.add(no, name);
            return true;
        }
        if self.request.budget.is_some() && per_hour.is_none() {
            let why = "a budget is set and this node has no price".to_owned();
            self.rejections.add(Rejection::NoOffer { why }, name);
            return true;
        }
        if evaluated.load.output > 1.0 && evaluated.serving.tpot.0 > 0.0 {
            self.points.push(ParetoPoint {
                hardware: format!("{} x {}", evaluated.nodes, kind.hardware()),
                node: kind.sites[site].node.clone(),
                gpu: kind.shape.gpu.id.to_string(),
                gpus: evaluated.gpus,
                layout: cut.layout,
                weights: formats.weights,
                kv: formats.kv,
                interactivity: 1.0 / evaluated.serving.tpot.0,
                output_tokens_per_s_per_gpu: evaluated.output_tokens_per_s / evaluated.gpus.max(1) as f64,
            });
        }
        let objective = self.request.objective;
        let latency = evaluated.latency();
        let figures = Figures {
            usd_per_hour: per_hour.map(|p| p.0),
            requests_per_s: evaluated.requests_per_s,
            gpus: evaluated.gpus,
            latency,
            power: power(kind, evaluated.gpus),
        };
        // as plans are ordered: what can be booked first, then the objective
        let class = if objective.needs_price() { kind.sites[site].rank_class } else { 0 };
        let value = (class, figures.value(objective).unwrap_or(f64::INFINITY));
        let chosen = |evaluated: Evaluated| Chosen { evaluated, site, others, fabric_shape: fabric_shape.cloned() };
        if fastest.as_ref().is_none_or(|(_, v)| latency.0 < *v) {
            *fastest = Some((chosen(evaluated.clone()), latency.0));
        }
        if best.as_ref().is_none_or(|(_, v)| value < *v) {
            *best = Some((chosen(evaluated), value));
        }
        true
    }

    /// The best site whose host can load the model, and how many more can.
    fn site(
        &mut self,
        kind: &Kind,
        evaluated: &Evaluated,
        weights_per_gpu: units::Bytes,
        places: &[usize],
        name: &dyn Fn() -> String,
    ) -> Option<(usize, usize)> {
        let checkpoint = self.context.spec.weights_bytes(evaluated.formats.weights);
        let priced = self.request.objective.needs_price();
        let mut found: Option<usize> = None;
        let mut others = 0;
        let mut no: Option<Rejection> = None;
        for &i in places {
            let site: &Site = &kind.sites[i];
            if priced && site.quote.is_none() {
                no.get_or_insert(Rejection::NoOffer { why: "nothing is known to sell it".into() });
                continue;
            }
            let hosts = host_ram(site.ram, kind.shape.gpus, weights_per_gpu)
                .and_then(|()| host_disk(site.disk, checkpoint, self.request.network_disk));
            match hosts {
                Ok(()) if found.is_none() => found = Some(i),
                Ok(()) => others += 1,
                Err(reason) => {
                    no.get_or_insert(reason);
                }
            }
        }
        if found.is_none() {
            let why = "no offer may form a gang of several nodes: per-GPU list prices never do".to_owned();
            self.rejections.add(no.unwrap_or(Rejection::NoOffer { why }), name);
        }
        Some((found?, others))
    }

    fn cuts_for(&mut self, size: NodeSize) -> Vec<Cut> {
        if let Some((_, cuts)) = self.cuts.iter().find(|(s, _)| *s == size) {
            return cuts.clone();
        }
        let span = self.request.max_nodes.map_or(MAX_SPAN, |n| n.min(MAX_SPAN)).max(size.domain / size.gpus.max(1));
        let mut all = cuts(self.context.spec, self.request, size, span);
        all.sort_by_key(|c| c.nodes);
        self.cuts.push((size, all.clone()));
        all
    }

    fn finish(&self, kind: &Kind, chosen: Chosen) -> Plan {
        let Chosen { evaluated: e, site, others, fabric_shape, .. } = chosen;
        let site: &Site = &kind.sites[site];
        let shape = fabric_shape.as_ref().unwrap_or(&kind.shape);
        let offer = plan_offer(self.planner.market, site, others);
        let spec = self.context.spec;
        let own_format = e.formats.weights == spec.weights;
        let mut notes = Vec::new();
        if !own_format {
            let format = e.formats.weights;
            let checkpoint = match checkpoint_in(&spec.name, format) {
                Some(name) => format!("the catalog has {name}"),
                None => "the catalog has no such checkpoint".to_owned(),
            };
            let name = format.name();
            notes.push(format!("{name} is not the checkpoint's own format: quality not assessed; {checkpoint}"));
        }
        if shape.topology_basis == units::Basis::Assumed && shape.gpus > 1 {
            notes.push(format!("links inside the node are assumed: {}", shape.topology.name()));
        }
        if let Some(quote) = &site.quote {
            notes.extend(quote.marks().into_iter().filter(|m| !m.starts_with("stale")));
        }
        if e.cut.nodes > 1 && shape.fabric.as_ref().and_then(|f| f.node_rate).is_none() && shape.domain() <= shape.gpus
        {
            notes.push("the network between the nodes is unknown and assumed slow".into());
        }
        if kind.shape.gpu.preliminary {
            notes.push(format!("{} is announced, its figures are not final", kind.shape.gpu.short_id()));
        }
        Plan {
            node: site.node.clone(),
            hardware: kind.hardware(),
            gpu: kind.shape.gpu.id.to_string(),
            gpus_per_node: kind.shape.gpus,
            nodes: e.nodes,
            gpus: e.gpus,
            layout: e.cut.layout,
            nodes_per_replica: e.cut.nodes,
            formats: e.formats,
            own_format,
            engine: self.context.engine,
            replicas: e.replicas,
            output_tokens_per_s: e.output_tokens_per_s,
            requests_per_s: e.requests_per_s,
            power: power(kind, e.gpus),
            serving: e.serving,
            load: e.load,
            memory: e.memory,
            offer,
            notes,
        }
    }
}

/// Board power of so many GPUs of a kind, where the limit of one is known.
fn power(kind: &Kind, gpus: u64) -> Option<Watts> {
    kind.shape.gpu.tdp.map(|w| Watts(w.0 * gpus as f64))
}
