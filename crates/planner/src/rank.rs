//! Order, Pareto set and picks.

use std::cmp::Ordering;

use units::{Seconds, Watts};

use crate::plan::{ParetoPoint, Pick, PickReason, Plan};
use crate::request::Objective;

/// How much faster or more productive a step up must be to be worth a line.
const CLEAR_GAIN: f64 = 1.25;

/// Latencies within this factor of the shortest count as the shortest.
const SAME_SPEED: f64 = 1.05;

/// What an objective looks at, of a candidate or of a plan.
pub(crate) struct Figures {
    /// The whole deployment, one hour.
    pub usd_per_hour: Option<f64>,
    /// The whole deployment.
    pub requests_per_s: f64,
    /// GPUs that are paid for.
    pub gpus: u64,
    /// From request to last token.
    pub latency: Seconds,
    /// Board power of all GPUs.
    pub power: Option<Watts>,
}

impl Figures {
    /// What the objective minimises; `None` where these figures cannot be ranked by it.
    pub(crate) fn value(&self, objective: Objective) -> Option<f64> {
        let requests = Some(self.requests_per_s).filter(|r| *r > 0.0);
        match objective {
            Objective::Cost => Some(self.usd_per_hour? / requests?),
            Objective::Price => self.usd_per_hour,
            Objective::Throughput => Some(-self.requests_per_s / self.gpus.max(1) as f64),
            Objective::Latency => Some(self.latency.0),
            Objective::Power => Some(self.power?.0 / requests?),
        }
    }
}

/// Compares two plans: class of the offer, then the objective, then the original format, fewer GPUs, and ids, so that
/// the order never depends on the order of evaluation.
pub(crate) fn compare(a: &Plan, b: &Plan, objective: Objective) -> Ordering {
    let class = |p: &Plan| if objective.needs_price() { p.offer.as_ref().map_or(u8::MAX, |o| o.rank_class) } else { 0 };
    let value = |p: &Plan| p.value(objective).unwrap_or(f64::INFINITY);
    class(a)
        .cmp(&class(b))
        .then(value(a).total_cmp(&value(b)))
        .then(b.own_format.cmp(&a.own_format))
        .then(a.gpus.cmp(&b.gpus))
        .then_with(|| a.node.cmp(&b.node))
        .then_with(|| a.layout.to_string().cmp(&b.layout.to_string()))
        .then_with(|| a.formats.weights.name().cmp(b.formats.weights.name()))
        .then_with(|| a.formats.kv.name().cmp(b.formats.kv.name()))
}

/// The three leading plans of a sorted list: best by the objective, fastest, and the smallest step up.
pub(crate) fn picks(plans: &[Plan], objective: Objective) -> Vec<Pick> {
    let Some(best) = plans.first() else { return Vec::new() };
    let reason = if objective.needs_price() { PickReason::Cheapest } else { PickReason::Best };
    let mut picks = vec![Pick { reason, plan: 0, remark: weakness(plans, objective) }];
    // what leads must be as bookable as the best is
    let class = |p: &Plan| p.offer.as_ref().map_or(0, |o| o.rank_class);
    let bookable: Vec<usize> = (0..plans.len()).filter(|&i| class(&plans[i]) <= class(best)).collect();
    let shortest = bookable.iter().map(|&i| plans[i].latency().0).fold(f64::INFINITY, f64::min);
    // the estimate does not tell a twentieth apart: among such the first in order, which is the cheapest
    let fastest = bookable.iter().copied().find(|&i| plans[i].latency().0 <= shortest * SAME_SPEED).unwrap_or(0);
    let gain = best.latency().0 / plans[fastest].latency().0.max(f64::MIN_POSITIVE);
    let remark = if fastest == 0 {
        "the same plan".to_owned()
    } else {
        format!("{}x as fast{}", units::sig3(gain), dearer(best, &plans[fastest]))
    };
    picks.push(Pick { reason: PickReason::Fastest, plan: fastest, remark });
    // a step up costs more than the best and gives clearly more; the cheapest such
    let price = |p: &Plan| p.usd_per_hour().map_or(f64::INFINITY, |p| p.0);
    let faster = |p: &Plan| best.latency().0 / p.latency().0.max(f64::MIN_POSITIVE);
    let more = |p: &Plan| p.requests_per_s / best.requests_per_s.max(f64::MIN_POSITIVE);
    let step = bookable
        .iter()
        .copied()
        .filter(|&i| i > 0)
        .filter(|&i| price(&plans[i]).is_finite() && price(&plans[i]) > price(best))
        .filter(|&i| plans[i].own_format || !best.own_format)
        .filter(|&i| faster(&plans[i]) >= CLEAR_GAIN || more(&plans[i]) >= CLEAR_GAIN)
        .min_by(|&a, &b| price(&plans[a]).total_cmp(&price(&plans[b])).then(a.cmp(&b)));
    if let Some(i) = step {
        let mut gains = Vec::new();
        if faster(&plans[i]) >= CLEAR_GAIN {
            gains.push(format!("{}x as fast", units::sig3(faster(&plans[i]))));
        }
        if more(&plans[i]) >= CLEAR_GAIN {
            gains.push(format!("{}x the throughput", units::sig3(more(&plans[i]))));
        }
        let remark = format!("{}{}", gains.join(", "), dearer(best, &plans[i]));
        picks.push(Pick { reason: PickReason::StepUp, plan: i, remark });
    }
    picks
}

fn dearer(best: &Plan, other: &Plan) -> String {
    match (best.usd_per_hour(), other.usd_per_hour()) {
        (Some(a), Some(b)) if a.0 > 0.0 => format!(" at {}x the price", units::sig3(b.0 / a.0)),
        _ => String::new(),
    }
}

/// What a reader must know before buying the best plan: a stale price, and the best fresh one beside it.
fn weakness(plans: &[Plan], objective: Objective) -> String {
    let Some(best) = plans.first() else { return String::new() };
    let stale = |p: &Plan| p.offer.as_ref().is_some_and(|o| o.stale);
    if !objective.needs_price() || !stale(best) {
        return String::new();
    }
    let age = match best.offer.as_ref().and_then(|o| o.age_days) {
        Some(days) => format!("its price is {days} days old"),
        None => "its price is undated".to_owned(),
    };
    match plans.iter().find(|p| p.offer.as_ref().is_some_and(|o| !o.stale)) {
        Some(fresh) => {
            let offer = fresh.offer.as_ref();
            format!(
                "{age}; best with a fresh price: {} at {}{}",
                fresh.title(),
                fresh.usd_per_hour().map_or_else(String::new, |p| p.to_string()),
                offer.map_or_else(String::new, |o| format!(" ({}, {} days)", o.provider, o.age_days.unwrap_or(0)))
            )
        }
        None => format!("{age}; no plan has a fresher one"),
    }
}

/// Keeps the points that no other point beats in both interactivity and throughput per GPU.
pub(crate) fn pareto(mut points: Vec<ParetoPoint>) -> Vec<ParetoPoint> {
    points.sort_by(|a, b| {
        b.interactivity
            .total_cmp(&a.interactivity)
            .then(b.output_tokens_per_s_per_gpu.total_cmp(&a.output_tokens_per_s_per_gpu))
            .then_with(|| a.node.cmp(&b.node))
            .then_with(|| a.layout.to_string().cmp(&b.layout.to_string()))
    });
    let mut best = f64::NEG_INFINITY;
    points.retain(|p| {
        let keep = p.output_tokens_per_s_per_gpu > best;
        best = best.max(p.output_tokens_per_s_per_gpu);
        keep
    });
    points
}
