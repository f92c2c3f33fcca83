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
