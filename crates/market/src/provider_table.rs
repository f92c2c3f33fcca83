//! The provider table.

use hardware::table::{read_table, shorten};
use hardware::{Finding, Sources};
use units::Seconds;

use crate::provider::Provider;

hardware::columns!(
    id,
    name,
    kind,
    billing_granularity_s,
    billing_minimum_s,
    billing_text,
    on_demand,
    spot,
    reserved,
    spot_model,
    spot_notice_s,
    storage_usd_per_gb_month,
    storage_text,
    egress_usd_per_gb,
    egress_text,
    software,
    currency,
    evidence,
    source,
    date,
    notes,
);

pub(crate) fn read_providers(file: &str, csv: &str, sources: &Sources, findings: &mut Vec<Finding>) -> Vec<Provider> {
    let mut providers: Vec<Provider> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    read_table(file, csv, COLUMNS, 1, findings, |row| {
        let Some(id) = row.required(Col::id as usize) else { return };
        if !id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') {
            row.error(format!("provider id `{}` has other characters than a-z, 0-9 and `-`", shorten(id)));
            return;
        }
        if !seen.insert(id.to_owned()) {
            row.error(format!("provider `{id}` stands twice in this file"));
            return;
        }
        let date = match row.text(Col::date as usize) {
            "" => None,
            text => match text.parse() {
                Ok(date) => Some(date),
                Err(_) => {
                    row.error(format!("`date`: `{}` is not YYYY-MM-DD", shorten(text)));
                    None
                }
            },
        };
        providers.push(Provider {
            id: id.to_owned(),
            name: row.filled(Col::name as usize).unwrap_or(id).to_owned(),
            kind: row.text(Col::kind as usize).to_owned(),
            billing_granularity: row.number(Col::billing_granularity_s as usize, 0.001, 1e8).map(Seconds),
            billing_minimum: row.number(Col::billing_minimum_s as usize, 0.0, 1e9).map(Seconds),
            billing_text: row.text(Col::billing_text as usize).to_owned(),
            on_demand: row.flag(Col::on_demand as usize),
            spot: row.flag(Col::spot as usize),
            reserved: row.flag(Col::reserved as usize),
            spot_model: row.text(Col::spot_model as usize).to_owned(),
            spot_notice: row.number(Col::spot_notice_s as usize, 0.0, 1e6).map(Seconds),
            storage_usd_per_gb_month: row.number(Col::storage_usd_per_gb_month as usize, 0.0, 100.0),
            storage_text: row.text(Col::storage_text as usize).to_owned(),
            egress_usd_per_gb: row.number(Col::egress_usd_per_gb as usize, 0.0, 100.0),
            egress_text: row.text(Col::egress_text as usize).to_owned(),
            software: row.text(Col::software as usize).to_owned(),
            currency: row.text(Col::currency as usize).to_owned(),
            evidence: row.text(Col::evidence as usize).to_owned(),
            source: sources.text(row.text(Col::source as usize)),
            date,
            notes: row.text(Col::notes as usize).to_owned(),
        });
    });
    providers
}
