//! What must hold of every answer, over the embedded catalogs on a fixed day.

use std::sync::OnceLock;

use hardware::Hardware;
use jiff::civil::{Date, date};
use market::Market;
use model::{Catalog, ModelSpec};
use perf::Curves;
use planner::{Answer, PlanRequest, Planner, RequestError};
use proptest::prelude::*;

const TODAY: Date = date(2026, 11, 30);

fn world() -> &'static (Hardware, Market) {
    static WORLD: OnceLock<(Hardware, Market)> = OnceLock::new();
    WORLD.get_or_init(|| {
        let hardware = Hardware::embedded();
        let market = Market::embedded(&hardware);
        (hardware, market)
    })
}

fn spec(name: &str) -> ModelSpec {
    Catalog::embedded().find(name).expect("in the catalog").spec().expect("understood")
}

fn answer(pairs: &[(&str, &str)]) -> Result<Answer, RequestError> {
    let request = PlanRequest::from_pairs(pairs.iter().copied())?;
    let (hardware, market) = world();
    let mut market = market.clone();
    for (gpu, price) in &request.prices {
        let id = hardware.find_gpu(gpu).expect("a catalog GPU").id.to_string();
        market.override_price(&id, *price);
    }
    let planner = Planner::new(hardware, &market, Curves::embedded(), TODAY);
    planner.plan(&spec(&request.model), &request)
}

fn plan(pairs: &[(&str, &str)]) -> Answer {
    answer(pairs).expect("a good request")
}

#[test]
fn the_same_request_gives_the_same_answer_in_the_same_order() {
    let ask = || plan(&[("model", "llama-3.1-70b"), ("weights", "fp8")]);
    let (a, b) = (ask(), ask());
    let lines =
        |x: &Answer| x.plans.iter().map(|p| format!("{} {:?}", p.title(), p.usd_per_hour())).collect::<Vec<_>>();
    assert_eq!(lines(&a), lines(&b));
    assert_eq!(a.picks, b.picks);
}

#[test]
fn plans_meet_the_limits_that_were_asked() {
    let all = plan(&[
        ("model", "llama-3.1-70b"),
        ("input", "2048"),
        ("output", "256"),
        ("concurrency", "64"),
        ("ttft", "1s"),
        ("tpot", "25ms"),
        ("budget", "80/h"),
        ("max-nodes", "3"),
    ]);
    assert!(!all.plans.is_empty());
    for p in &all.plans {
        assert!(p.serving.ttft.0 <= 1.0 && p.serving.tpot.ms() <= 25.0, "{}", p.title());
        assert!(p.usd_per_hour().expect("priced").0 <= 80.0 && p.nodes <= 3, "{}", p.title());
        assert!(p.load.input == 2048.0 && p.load.output == 256.0);
        assert_eq!(p.gpus, p.nodes * u64::from(p.gpus_per_node));
        assert!(p.replicas * u64::from(p.layout.gpus()) <= p.gpus, "{}", p.title());
    }
}

#[test]
fn costs_are_one_price_seen_several_ways() {
    for p in &plan(&[("model", "llama-3.1-8b"), ("concurrency", "32"), ("input", "1024"), ("output", "512")]).plans {
        let hour = p.usd_per_hour().expect("priced").0;
        let million = p.usd_per_million_output_tokens().expect("generates");
        assert!((hour / (p.output_tokens_per_s * 3600.0) * 1e6 / million - 1.0).abs() < 1e-9);
        let thousand = p.usd_per_1000_requests().expect("serves");
        // 1,000 requests of 512 tokens are 0.512 million output tokens
        assert!((thousand / (million * 0.512) - 1.0).abs() < 0.01, "{} {thousand} {million}", p.title());
        assert!((p.output_tokens_per_s / (p.requests_per_s * 512.0) - 1.0).abs() < 1e-6);
    }
}

#[test]
fn bookable_nodes_rank_first_and_a_marketplace_gpu_never_makes_a_node_of_eight() {
    let all = plan(&[("model", "llama-3.1-405b"), ("weights", "fp8"), ("gpu", "h100-sxm"), ("tier", "marketplace")]);
    let classes: Vec<u8> = all.plans.iter().filter_map(|p| p.offer.as_ref()).map(|o| o.rank_class).collect();
    assert!(classes.is_sorted(), "{classes:?}");
    for p in all.plans.iter().filter(|p| p.gpus_per_node > 1) {
        let offer = p.offer.as_ref().expect("priced");
        assert!(!offer.kind.contains("marketplace") && !offer.kind.contains("from"), "{}", offer.kind);
    }
    for p in all.plans.iter().filter(|p| p.nodes_per_replica > 1) {
        assert!(!p.offer.as_ref().expect("priced").kind.contains("list price"), "{}", p.title());
    }
}

#[test]
fn a_price_of_your_own_replaces_every_quote_and_says_so() {
    let all = plan(&[("model", "llama-3.1-8b"), ("gpu", "h100-sxm"), ("price", "h100-sxm=1/h")]);
    for p in &all.plans {
        let offer = p.offer.as_ref().expect("priced");
        assert_eq!(offer.kind, "your price");
        assert!((offer.node_usd_per_hour.0 - f64::from(p.gpus_per_node)).abs() < 1e-9);
        assert!(!offer.stale);
    }
    assert!(all.assumptions.iter().any(|a| a.contains("your price for h100-sxm")), "{:?}", all.assumptions);
}

#[test]
fn a_stale_winner_names_the_best_fresh_plan() {
    let all = plan(&[("model", "llama-3.1-70b")]);
    let best = &all.plans[0];
    assert!(best.offer.as_ref().expect("priced").stale, "this test wants a stale winner; got {}", best.title());
    assert!(all.picks[0].remark.contains("best with a fresh price"), "{}", all.picks[0].remark);
}

#[test]
fn another_format_is_never_silent() {
    let all = plan(&[("model", "llama-3.1-70b"), ("weights", "awq")]);
    let others: Vec<_> = all.plans.iter().filter(|p| !p.own_format).collect();
    assert!(!others.is_empty() && others.len() < all.plans.len(), "the original stays in the list");
    for p in others {
        assert!(p.notes.iter().any(|n| n.contains("quality not assessed")), "{:?}", p.notes);
    }
}

#[test]
fn a_gpu_without_offers_is_ranked_where_no_price_is_needed() {
    let none = plan(&[("model", "llama-3.1-8b"), ("gpu", "h20")]);
    assert!(none.plans.is_empty());
    assert_eq!(none.rejections[0].reason, "no_offer");
    let some = plan(&[("model", "llama-3.1-8b"), ("gpu", "h20"), ("objective", "throughput")]);
    assert!(!some.plans.is_empty() && some.plans.iter().all(|p| p.offer.is_none()));
}

#[test]
fn rejections_carry_need_have_and_a_fix() {
    let all = plan(&[("model", "llama-3.1-405b"), ("gpu", "h100-sxm"), ("max-nodes", "1")]);
    assert!(all.plans.is_empty());
    let group = all.rejections.iter().find(|r| r.reason == "weights_too_large").expect("405B in bf16 on one node");
    assert!(group.count > 1);
    let sentence = group.nearest.rejection.sentence();
    assert!(sentence.contains("GiB per GPU") && group.nearest.candidate.contains("8xh100-sxm"), "{sentence}");
    assert!(group.nearest.rejection.fix().contains("--weights"));
}

#[test]
fn the_pareto_set_is_not_beaten() {
    let all = plan(&[("model", "llama-3.1-70b"), ("concurrency", "64"), ("input", "1024"), ("output", "512")]);
    assert!(all.pareto.len() > 1);
    for pair in all.pareto.windows(2) {
        assert!(pair[0].interactivity >= pair[1].interactivity);
        assert!(pair[0].output_tokens_per_s_per_gpu < pair[1].output_tokens_per_s_per_gpu);
    }
    for p in &all.plans {
        let beaten = all.pareto.iter().any(|q| {
            q.interactivity >= p.interactivity() * (1.0 - 1e-9)
                && q.output_tokens_per_s_per_gpu >= p.output_tokens_per_s_per_gpu() * (1.0 - 1e-9)
        });
        assert!(beaten, "{} is in no shadow of the Pareto set", p.title());
    }
}

#[test]
fn unknown_names_are_refused() {
    for (key, value) in [("gpu", "h10"), ("node", "dgx-x"), ("provider", "amazon")] {
        let error = answer(&[("model", "llama-3.1-8b"), (key, value)]).expect_err(value);
        assert_eq!(error.key, key);
        assert!(!error.hint.is_empty());
    }
}

#[test]
fn more_active_bytes_take_longer_per_token() {
    // one node of 8 x H200, one request at a time: order by the bytes that a token reads
    let alone = |model: &str| {
        let all = plan(&[
            ("model", model),
            ("node", "8xh200-sxm"),
            ("objective", "latency"),
            ("input", "1024"),
            ("output", "1024"),
            ("concurrency", "1"),
            ("tp", "8"),
        ]);
        all.plans.iter().map(|p| p.serving.tpot.ms()).fold(f64::INFINITY, f64::min)
    };
    let order = ["llama-3.1-8b", "llama-3.1-70b", "llama-3.1-405b"];
    let times: Vec<f64> = order.iter().map(|m| alone(m)).collect();
    assert!(times.is_sorted() && times.iter().all(|t| t.is_finite()), "{order:?} {times:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// A tighter limit never brings a cheaper best plan.
    #[test]
    fn tighter_limits_never_cost_less(tpot in 12u32..60, load in 4u32..64) {
        let cost = |ms: u32| {
            let limit = format!("{ms}ms");
            let load = load.to_string();
            let all = plan(&[
                ("model", "llama-3.1-8b"),
                ("provider", "lambda"),
                ("input", "1024"),
                ("output", "256"),
                ("rate", &load),
                ("tpot", &limit),
            ]);
            all.plans.first().and_then(|p| p.usd_per_hour()).map_or(f64::INFINITY, |p| p.0)
        };
        prop_assert!(cost(tpot) + 1e-9 >= cost(tpot + 10));
    }
}
