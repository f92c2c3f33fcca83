//! A plan's answer as JSON: the keys that other programs rely on.

use model::ModelSpec;
use planner::{Answer, Load, Nearest, Plan, PlanOffer, PlanRequest, Rejection};
use serde_json::{Value, json};

use crate::out::terms;

/// The whole answer; `explain` gives the term tree of a plan where it was asked for.
pub fn document(
    spec: &ModelSpec,
    request: &PlanRequest,
    answer: &Answer,
    explain: &dyn Fn(&Plan) -> Option<units::Term>,
) -> Value {
    let t = &answer.traffic;
    let (concurrency, rate) = match t.load {
        Load::Concurrency(n) => (json!(n), Value::Null),
        Load::Rate(r) => (Value::Null, json!(r)),
    };
    let plan_value = |plan: &Plan| plan_json(plan, explain(plan));
    let picks = answer.picks.iter().map(|p| {
        let mut value = plan_json(&answer.plans[p.plan], None);
        value["reason"] = json!(p.reason.name());
        value["rank"] = json!(p.plan + 1);
        value["remark"] = json!(p.remark);
        value
    });
    json!({
        "request": crate::request_json::request_to_json(request),
        "command": request.to_command(),
        "query": request.to_query(),
        "model": {
            "name": spec.name,
            "parameters_total": spec.params_total().0,
            "parameters_active": spec.params_active().0,
            "weights_format": spec.weights.name(),
            "weights_bytes": spec.weights_bytes_checkpoint().0,
        },
        "load": {
            "input_tokens": t.input,
            "output_tokens": t.output,
            "prefix_share": t.prefix_share,
            "concurrency": concurrency,
            "requests_per_s": rate,
            "ttft_limit_ms": t.ttft.map(|s| s.ms()),
            "tpot_limit_ms": t.tpot.map(|s| s.ms()),
            "context_tokens": t.context,
        },
        "picks": picks.collect::<Vec<_>>(),
        "plans": answer.plans.iter().map(plan_value).collect::<Vec<_>>(),
        "pareto": answer.pareto.iter().map(|p| json!({
            "node": p.node, "gpu": p.gpu, "gpus": p.gpus,
            "layout": layout_json(&p.layout),
            "formats": {"weights": p.weights.name(), "kv": p.kv.name()},
            "tokens_per_s_per_user": p.interactivity,
            "output_tokens_per_s_per_gpu": p.output_tokens_per_s_per_gpu,
        })).collect::<Vec<_>>(),
        "rejections": answer.rejections.iter().map(|r| json!({
            "reason": r.reason,
            "count": r.count,
            "nearest": nearest_json(&r.nearest),
        })).collect::<Vec<_>>(),
        "assumptions": answer.assumptions,
        "candidates": answer.candidates,
    })
}

fn layout_json(l: &perf::Layout) -> Value {
    json!({"tp": l.tp, "pp": l.pp, "dp": l.dp, "ep": l.ep})
}

fn plan_json(plan: &Plan, explain: Option<units::Term>) -> Value {
    let s = &plan.serving;
    let generates = plan.load.output > 1.0;
    let mut value = json!({
        "node": plan.node,
        "gpu": plan.gpu,
        "gpus_per_node": plan.gpus_per_node,
        "nodes": plan.nodes,
        "gpus": plan.gpus,
        "layout": layout_json(&plan.layout),
        "nodes_per_replica": plan.nodes_per_replica,
        "formats": {"weights": plan.formats.weights.name(), "kv": plan.formats.kv.name()},
        "own_format": plan.own_format,
        "engine": plan.engine.name(),
        "replicas": plan.replicas,
        "ttft_ms": s.ttft.ms(),
        "ttft_ms_low": s.ttft.ms() * s.ttft_band.0,
        "ttft_ms_high": s.ttft.ms() * s.ttft_band.1,
        "tpot_ms": if generates { json!(s.tpot.ms()) } else { Value::Null },
        "tpot_ms_low": if generates { json!(s.tpot.ms() * s.tpot_band.0) } else { Value::Null },
        "tpot_ms_high": if generates { json!(s.tpot.ms() * s.tpot_band.1) } else { Value::Null },
        "basis": s.basis.name(),
        "limited_by": s.limited_by.name(),
        "in_flight_per_replica": s.in_flight,
        "utilisation": s.utilisation,
        "requests_per_s": plan.requests_per_s,
        "output_tokens_per_s": plan.output_tokens_per_s,
        "output_tokens_per_s_per_gpu": plan.output_tokens_per_s_per_gpu(),
        "power_w": plan.power.map(|w| w.0),
        "memory": memory_json(&plan.memory),
        "usd_per_hour": plan.usd_per_hour().map(|p| p.0),
        "usd_per_month": plan.usd_per_hour().map(|p| p.per_month()),
        "usd_per_million_output_tokens": plan.usd_per_million_output_tokens(),
        "usd_per_million_total_tokens": plan.usd_per_million_total_tokens(),
        "usd_per_1000_requests": plan.usd_per_1000_requests(),
        "offer": plan.offer.as_ref().map(offer_json),
        "notes": plan.notes,
    });
    if let Some(term) = explain {
        value["explain"] = terms::json(&term);
    }
    value
}

/// The memory of the heaviest rank, with the keys that `fit` prints.
pub fn memory_json(m: &perf::MemoryPlan) -> Value {
    json!({
        "usable_bytes": m.capacity.0,
        "weights_bytes": m.weights.0,
        "kv_bytes": m.kv.0,
        "activations_bytes": m.activations.0,
        "runtime_bytes": m.runtime.0,
        "reserve_bytes": m.reserve.0,
        "free_bytes": if m.fits { json!(m.free.0) } else { json!(-(m.shortfall.0 as i64)) },
    })
}

fn offer_json(o: &PlanOffer) -> Value {
    json!({
        "provider": o.provider,
        "instance": o.instance,
        "region": o.region,
        "kind": o.kind,
        "usd_per_hour": o.node_usd_per_hour.0,
        "date": o.date.map(|d| d.to_string()),
        "age_days": o.age_days,
        "stale": o.stale,
        "source": o.source,
        "other_offers": o.others,
    })
}

/// The nearest miss: who, what was needed and what there is (the unit ends the key), and the way out.
fn nearest_json(nearest: &Nearest) -> Value {
    let rejection = &nearest.rejection;
    let mut value = json!({
        "candidate": nearest.candidate,
        "message": rejection.sentence(),
        "fix": rejection.fix(),
    });
    let mut amounts = |unit: &str, need: Value, have: Value| {
        value[format!("need{unit}")] = need;
        value[format!("have{unit}")] = have;
    };
    match rejection {
        Rejection::WeightsTooLarge { need, have }
        | Rejection::HostRamTooSmall { need, have }
        | Rejection::DiskTooSmall { need, have } => amounts("_bytes", json!(need.0), json!(have.0)),
        Rejection::ContextTooLong { need, have } => amounts("_tokens", json!(need), json!(have)),
        Rejection::TooManyNodes { need, have } => amounts("_nodes", json!(need), json!(have)),
        Rejection::TtftTooLong { need, have } | Rejection::TpotTooLong { need, have } => {
            amounts("_ms", json!(need.ms()), json!(have.ms()));
        }
        Rejection::OverBudget { need, have } => amounts("_usd_per_hour", json!(need.0), json!(have.0)),
        Rejection::Overloaded { .. }
        | Rejection::NoOffer { .. }
        | Rejection::NoFabric { .. }
        | Rejection::EngineUnsupported { .. }
        | Rejection::LayoutImpossible { .. }
        | Rejection::NoSpeedKnown { .. } => {}
    }
    value
}
