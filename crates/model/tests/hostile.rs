//! No config panics, whatever is in it.

use model::{Catalog, KvFormat, WeightFormat, read_config};
use proptest::prelude::*;
use serde_json::Value;

fn exercise(json: &[u8]) {
    let Ok(spec) = read_config("org/model", json) else { return };
    let _ = (spec.params_total(), spec.params_active(), spec.params_stored(), spec.params_active_without_embedding());
    for name in WeightFormat::names() {
        if let Ok(format) = name.parse() {
            let _ = spec.weights_bytes(format);
        }
    }
    let _ = (spec.stored_bytes(), spec.state_bytes_per_sequence(), spec.kv_bytes_per_token(KvFormat::Q8_0));
    let (short, long) = (spec.kv_bytes(1000, KvFormat::Fp8), spec.kv_bytes(100_000, KvFormat::Fp8));
    assert!(short <= long);
    let _ = (spec.heads(), spec.kv_heads(), spec.layer_count(), spec.experts());
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        (0u64..200).prop_map(Value::from),
        "[a-z_]{0,12}".prop_map(Value::from),
        Just(Value::from(u64::MAX)),
        Just(Value::from(1u64 << 26)),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[a-z_]{1,12}", inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

/// Replaces the `at`-th value of a tree, counted depth first.
fn replace(value: &mut Value, at: &mut usize, with: &Value) {
    if *at == 0 {
        *value = with.clone();
        *at = usize::MAX;
        return;
    }
    *at = at.saturating_sub(usize::from(*at != usize::MAX));
    match value {
        Value::Array(list) => list.iter_mut().for_each(|v| replace(v, at, with)),
        Value::Object(map) => map.values_mut().for_each(|v| replace(v, at, with)),
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        exercise(&bytes);
    }

    #[test]
    fn arbitrary_json(value in json(), kind in 0usize..200) {
        let mut value = value;
        if let (Value::Object(map), Some(entry)) = (&mut value, Catalog::embedded().entries().get(kind)) {
            let config: Value = serde_json::from_str(entry.config()).unwrap();
            map.insert("model_type".into(), config["model_type"].clone());
        }
        exercise(&serde_json::to_vec(&value).unwrap());
    }

    #[test]
    fn mutated_configs(
        which in 0usize..284,
        edits in prop::collection::vec((0usize..80, json()), 1..4),
        cut in prop::option::of(0usize..2000),
    ) {
        let Some(entry) = Catalog::embedded().entries().get(which) else { return Ok(()) };
        let mut value: Value = serde_json::from_str(entry.config()).unwrap();
        for (at, with) in &edits {
            let mut at = at + 1;
            replace(&mut value, &mut at, with);
        }
        let mut bytes = serde_json::to_vec(&value).unwrap();
        if let Some(cut) = cut {
            bytes.truncate(cut);
        }
        exercise(&bytes);
    }

    #[test]
    fn any_query(query in "\\PC{0,60}") {
        let _ = Catalog::embedded().find(&query);
    }
}
