//! Round trips, presets and refusals.

use super::*;
use crate::workload::Load;
use proptest::prelude::*;

fn request(pairs: &[(&str, &str)]) -> Result<PlanRequest, RequestError> {
    PlanRequest::from_pairs(pairs.iter().copied())
}

#[test]
fn every_key_of_the_table_can_be_set_and_comes_back() {
    for key in KEYS {
        let value = match key.name {
            "model" => "llama-3.1-8b",
            "params" => "744B",
            "active" => "40B",
            "weights" => "awq",
            "kv" => "fp8",
            "for" => "rag",
            "ttft" | "tpot" => "250ms",
            "budget" => "40/h",
            "objective" => "latency",
            "gpu" => "h100-sxm",
            "node" => "dgx-h100",
            "provider" => "aws",
            "region" => "us",
            "purchase" => "spot",
            "tier" => "marketplace",
            "price" => "h100-sxm=2.1/h",
            "network-disk" => "true",
            "engine" => "sglang",
            "prefix-share" => "0.5",
            _ => "4",
        };
        let set = request(&[(key.name, value)]).unwrap();
        assert_eq!(set.pairs(), vec![(key.name, value.to_owned())], "{}", key.name);
        assert_eq!(PlanRequest::from_query(&set.to_query()).unwrap(), set, "{}", key.name);
    }
}

#[test]
fn a_misspelt_key_is_suggested() {
    let error = request(&[("concurency", "4")]).unwrap_err();
    assert_eq!(error.hint, "did you mean `concurrency`?");
}

#[test]
fn contradictions_are_refused() {
    let base = ("model", "llama-3.1-8b");
    for (more, key) in [
        (vec![("concurrency", "4"), ("rate", "2")], "rate"),
        (vec![("users", "4"), ("rate", "2")], "users"),
        (vec![("params", "8B")], "params"),
        (vec![("active", "8B")], "active"),
        (vec![("input", "4000"), ("context", "100")], "context"),
    ] {
        let mut pairs = vec![base];
        pairs.extend(more);
        assert_eq!(request(&pairs).unwrap().check().unwrap_err().key, key);
    }
    assert_eq!(PlanRequest::default().check().unwrap_err().key, "model");
}

#[test]
fn presets_fill_only_what_was_not_said() {
    let chat = request(&[("model", "m")]).unwrap().traffic();
    assert_eq!((chat.input, chat.output, chat.load), (2048, 512, Load::Rate(2.5)));
    assert!(chat.ttft.is_some() && chat.assumptions[0].contains("--for chat"));
    let own = request(&[("model", "m"), ("input", "1000"), ("output", "100"), ("concurrency", "8")]).unwrap();
    let own = own.traffic();
    assert_eq!((own.input, own.output, own.load), (1000, 100, Load::Concurrency(8.0)));
    assert_eq!((own.ttft, own.tpot, own.prefix_share), (None, None, 0.0));
    assert!(own.assumptions.is_empty(), "{:?}", own.assumptions);
    let users = request(&[("model", "m"), ("for", "rag"), ("users", "600")]).unwrap().traffic();
    assert_eq!(users.load, Load::Rate(10.0));
}

#[test]
fn the_command_reproduces_the_request() {
    let made = request(&[("model", "my model"), ("price", "h100-sxm=2.1/h"), ("network-disk", "true")]).unwrap();
    assert_eq!(made.to_command(), "nodewise plan 'my model' --price h100-sxm=2.1/h --network-disk");
}

proptest! {
    #[test]
    fn requests_round_trip_through_pairs_and_queries(
        model in "[a-zA-Z0-9/._ &=?%-]{1,30}",
        input in 1u64..1_000_000,
        output in proptest::option::of(0u64..100_000),
        concurrency in proptest::option::of(1.0f64..1e6),
        share in proptest::option::of(0.0f64..=1.0),
        ttft in proptest::option::of(1e-3f64..100.0),
        params in proptest::option::of(1u64..2_000_000_000_000),
        budget in proptest::option::of(0.01f64..10_000.0),
        gpus in proptest::collection::vec("[a-z0-9-]{1,12}", 0..4),
        marketplace: bool,
    ) {
        let mut made = PlanRequest { input: Some(input), output, concurrency, prefix_share: share, marketplace, ..PlanRequest::default() };
        made.model = model.trim().to_owned();
        prop_assume!(!made.model.is_empty());
        made.ttft = ttft.map(Seconds);
        made.params = params.map(Params);
        made.budget = budget.map(UsdPerHour);
        for gpu in gpus {
            if !made.gpus.contains(&gpu) {
                made.gpus.push(gpu);
            }
        }
        prop_assert_eq!(&PlanRequest::from_pairs(made.pairs()).unwrap(), &made);
        prop_assert_eq!(&PlanRequest::from_query(&made.to_query()).unwrap(), &made);
    }

    #[test]
    fn no_text_panics(key in "\\PC{0,20}", value in "\\PC{0,40}", which in 0usize..KEYS.len()) {
        let mut made = PlanRequest::default();
        let _ = made.set(&key, &value);
        let _ = made.set(KEYS[which].name, &value);
        let _ = PlanRequest::from_query(&value);
        let _ = made.traffic();
    }
}
