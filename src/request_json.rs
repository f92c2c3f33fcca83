//! The JSON door of a request: an object whose keys are the long flags.

use planner::{PlanRequest, find_key};
use serde_json::{Map, Value};

use crate::error::CliError;

/// A request from a JSON object whose keys are the long flags; values are strings, numbers, booleans or lists of them.
pub fn request_from_json(text: &str) -> Result<PlanRequest, CliError> {
    let value: Value = serde_json::from_str(text).map_err(|e| {
        CliError::new(format!("not JSON: {e}")).hint("an object like {\"model\": \"llama-3.1-8b\", \"rate\": 2}")
    })?;
    let Value::Object(object) = value else {
        return Err(
            CliError::new("not a JSON object").hint("an object like {\"model\": \"llama-3.1-8b\", \"rate\": 2}")
        );
    };
    let mut request = PlanRequest::default();
    let mut set = |key: &str, value: &Value| -> Result<(), CliError> {
        let text = match value {
            Value::String(s) => s.clone(),
            Value::Number(n) => n.to_string(),
            Value::Bool(b) => b.to_string(),
            other => {
                return Err(CliError::new(format!("`{key}` cannot be {other}"))
                    .hint("use a string, a number or a list of them"));
            }
        };
        Ok(request.set(key, &text)?)
    };
    for (key, value) in &object {
        find_key(key)?;
        match value {
            Value::Null => {}
            Value::Array(items) => items.iter().try_for_each(|v| set(key, v))?,
            other => set(key, other)?,
        }
    }
    Ok(request)
}

/// A request as JSON: what [`request_from_json`] reads.
pub fn request_to_json(request: &PlanRequest) -> Value {
    let mut object = Map::new();
    for (name, value) in request.pairs() {
        let repeats = find_key(name).is_ok_and(|k| k.repeats);
        if repeats {
            let list = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(items) = list {
                items.push(Value::String(value));
            }
        } else {
            object.insert(name.into(), Value::String(value));
        }
    }
    Value::Object(object)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_lists_and_switches_are_read() {
        let text =
            r#"{"model": "llama-3.1-8b", "rate": 2.5, "gpu": ["h100-sxm", "l40s"], "network-disk": true, "tp": null}"#;
        let request = request_from_json(text).unwrap();
        assert_eq!(request.rate, Some(2.5));
        assert_eq!(request.gpus, ["h100-sxm", "l40s"]);
        assert!(request.network_disk && request.tp.is_none());
    }

    #[test]
    fn refusals_name_the_key() {
        for (text, what) in [
            ("[1]", "not a JSON object"),
            ("{", "not JSON"),
            (r#"{"modle": "x"}"#, "`modle`"),
            (r#"{"rate": {"a": 1}}"#, "`rate` cannot be"),
            (r#"{"tp": -1}"#, "`tp`"),
        ] {
            let error = request_from_json(text).unwrap_err();
            assert!(error.message.contains(what), "{text}: {}", error.message);
            assert!(!error.hints.is_empty(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn requests_round_trip(
            model in "[a-zA-Z0-9/.\"\\\\ é-]{1,20}",
            input in 1u64..1_000_000,
            rate in proptest::option::of(0.001f64..1e5),
            gpus in proptest::collection::btree_set("[a-z0-9-]{1,12}", 0..4),
            network_disk: bool,
        ) {
            prop_assume!(!model.trim().is_empty());
            let model = model.trim().to_owned();
            let gpus = gpus.into_iter().collect();
            let made = PlanRequest { model, input: Some(input), rate, gpus, network_disk, ..PlanRequest::default() };
            let text = request_to_json(&made).to_string();
            prop_assert_eq!(request_from_json(&text).unwrap(), made);
        }

        #[test]
        fn no_json_panics(text in "\\PC{0,200}") {
            let _ = request_from_json(&text);
        }
    }
}
