//! The term tree behind a number, as text and JSON.

use serde_json::{Value as Json, json};
use unicode_width::UnicodeWidthStr;
use units::{Term, Value};

use super::table::wrap;

/// An indented tree: name, value, basis, then the formula under it where there is one.
pub fn render(term: &Term, width: usize) -> String {
    let mut out = String::new();
    walk(term, 0, width, &mut out);
    out
}

fn walk(term: &Term, depth: usize, width: usize, out: &mut String) {
    let indent = "  ".repeat(depth);
    let name = format!("{indent}{}", term.name);
    let pad = 34usize.saturating_sub(name.width()).max(1);
    out.push_str(&format!("{name}{}{:>12}  {}\n", " ".repeat(pad), term.value.to_string(), term.basis));
    if !term.formula.is_empty() {
        let lead = format!("{indent}  = ");
        for (i, line) in wrap(&term.formula, width.saturating_sub(lead.width()).max(30)).into_iter().enumerate() {
            let lead = if i == 0 { lead.clone() } else { " ".repeat(lead.width()) };
            out.push_str(&format!("{lead}{line}\n"));
        }
    }
    for part in &term.parts {
        walk(part, depth + 1, width, out);
    }
}

/// The same tree for programs; the unit ends the value's key.
pub fn json(term: &Term) -> Json {
    let (key, value) = match term.value {
        Value::Bytes(b) => ("value_bytes", json!(b.0)),
        Value::Time(t) => ("value_ms", json!(t.ms())),
        Value::Number(n, _) => ("value", json!(n)),
        Value::UsdPerHour(p) => ("value_usd_per_hour", json!(p)),
    };
    let mut object = serde_json::Map::new();
    object.insert("name".into(), json!(term.name));
    object.insert(key.into(), value);
    if let Value::Number(_, unit) = term.value
        && !unit.is_empty()
    {
        object.insert("unit".into(), json!(unit));
    }
    object.insert("basis".into(), json!(term.basis.name()));
    if !term.formula.is_empty() {
        object.insert("formula".into(), json!(term.formula));
    }
    if !term.parts.is_empty() {
        object.insert("parts".into(), Json::Array(term.parts.iter().map(json).collect()));
    }
    Json::Object(object)
}
