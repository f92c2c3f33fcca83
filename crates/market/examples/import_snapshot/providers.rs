//! Providers: billing in seconds, first-tier storage and egress prices as numbers beside their wording.

use std::path::Path;

use super::{Cells, Result, Rows, Texts, plain, public, write};

const HEADER: &[&str] = &[
    "id",
    "name",
    "kind",
    "billing_granularity_s",
    "billing_minimum_s",
    "billing_text",
    "on_demand",
    "spot",
    "reserved",
    "spot_model",
    "spot_notice_s",
    "storage_usd_per_gb_month",
    "storage_text",
    "egress_usd_per_gb",
    "egress_text",
    "software",
    "currency",
    "evidence",
    "source",
    "date",
    "notes",
];

/// Seconds of a billing step or a notice.
fn seconds(id: &str, text: &str) -> Result<String> {
    let first = text.split([' ', '(', ',']).next().unwrap_or_default();
    Ok(match (text, first) {
        ("", _) | ("none", _) | ("provider dependent", _) => "",
        ("block (about 6 s)", _) => "6",
        (_, "second") => "1",
        (_, "minute") => "60",
        (_, "hour") => "3600",
        _ => match text {
            "60 s" => "60",
            "30 s" => "30",
            "5 min" => "300",
            "2 min" => "120",
            "1 h" => "3600",
            t if t.starts_with("5 s ") => "5",
            other => return Err(format!("{id}: `{other}` is no duration that is known").into()),
        },
    }
    .to_owned())
}

fn yes_no(text: &str) -> String {
    match text.split([' ', '(']).next().unwrap_or_default() {
        "yes" => "yes".into(),
        "no" => "no".into(),
        _ => String::new(),
    }
}

/// The first dollar amount in front of `/GB`; free is 0.
fn dollars(text: &str) -> String {
    if text.starts_with("free") {
        return "0".into();
    }
    // amounts in other currencies or per hour are left to the wording
    if text.contains("EUR") || text.contains("GB-h ") || text.contains("/GB-h") || text.contains("per host") {
        return String::new();
    }
    let Some(at) = text.find('$') else { return String::new() };
    let digits: String = text[at + 1..].chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.trim_end_matches('.').parse::<f64>().map(plain).unwrap_or_default()
}

/// Storage wordings whose first amount is not the disk that a node mounts: object storage, or a price per hour.
const STORAGE: &[(&str, f64)] = &[("coreweave", 0.07), ("hyperstack", 0.07)];

fn storage(id: &str, text: &str) -> String {
    STORAGE.iter().find(|(i, _)| *i == id).map_or_else(|| dollars(text), |(_, usd)| plain(*usd))
}

fn evidence(row: &Cells<'_>) -> &'static str {
    match row.get("evidence") {
        "stored" => "published",
        "mixed" => "mixed",
        _ => "unverified",
    }
}

pub(crate) fn import(folder: &Path, out: &Path, texts: &mut Texts) -> Result<()> {
    let providers = Rows::read(&folder.join("providers.csv"))?;
    let mut rows = Vec::new();
    for row in providers.cells() {
        let id = row.get("id");
        let billing = row.get("billing_granularity");
        let plain_unit = matches!(billing, "second" | "minute" | "hour" | "");
        rows.push(vec![
            id.to_owned(),
            row.get("name").to_owned(),
            row.get("kind").to_owned(),
            seconds(id, billing)?,
            seconds(id, row.get("billing_minimum"))?,
            if plain_unit { String::new() } else { billing.to_owned() },
            yes_no(row.get("on_demand")),
            yes_no(row.get("spot")),
            yes_no(row.get("reserved")),
            row.get("spot_model").to_owned(),
            seconds(id, row.get("spot_notice"))?,
            storage(id, row.get("storage_price")),
            row.get("storage_price").to_owned(),
            dollars(row.get("egress_price")),
            row.get("egress_price").to_owned(),
            row.get("software_stack").to_owned(),
            row.get("currency").to_owned(),
            evidence(&row).to_owned(),
            texts.id(&public(row.get("source"))),
            row.get("date").to_owned(),
            public(row.get("notes")),
        ]);
    }
    write(&out.join("providers.csv"), HEADER, &rows)
}
