//! Known models by name. The catalog holds configs, not sizes: an entry is read like any other config when asked for.

use std::sync::OnceLock;

use units::Params;

use crate::error::ModelError;
use crate::format::WeightFormat;
use crate::names::{Name, OTHER, canonical_org};
use crate::near::distance;
use crate::quant;
use crate::read::read_config;
use crate::spec::{ModelSpec, Problem};

/// Rows of name, source and compact config; made by `examples/make_catalog.rs`.
const ROWS: &str = include_str!("../data/catalog.tsv");

/// No model of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no catalog model is called `{query}`")]
pub struct NotFound {
    /// What was asked, cut to 80 characters.
    pub query: String,
    /// Names that are close, best first.
    pub suggestions: Vec<&'static str>,
}

impl NotFound {
    /// What to type instead.
    pub fn hint(&self) -> String {
        if self.suggestions.is_empty() {
            return "list them with `nodewise model --all`, or give a `config.json` or `--params 70B`".into();
        }
        let names: Vec<_> = self.suggestions.iter().map(|s| format!("`{s}`")).collect();
        format!("did you mean {}?", names.join(" or "))
    }
}

/// A model of the catalog, perhaps asked for under the name of a derivative.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogEntry {
    /// Its name in the catalog: `org/model`.
    pub name: &'static str,
    /// Where its config comes from.
    pub source: &'static str,
    config: &'static str,
    derived: Option<Derived>,
}

/// A name that the catalog does not have, answered with a base model.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Derived {
    asked: String,
    format: Option<WeightFormat>,
}

impl CatalogEntry {
    /// Its config, as JSON.
    pub fn config(&self) -> &'static str {
        self.config
    }

    /// The format that the asked name promises where it differs from the catalog's entry.
    pub fn derived_format(&self) -> Option<WeightFormat> {
        self.derived.as_ref().and_then(|d| d.format)
    }

    /// Its anatomy. Where the name asked for was a derivative, the base model's with the derivative's format, and a
    /// problem that says so.
    pub fn spec(&self) -> Result<ModelSpec, ModelError> {
        let mut spec = read_config(self.name, self.config.as_bytes())?;
        if let Some(derived) = &self.derived {
            let mut message = format!("`{}` is not in the catalog, answered with `{}`", derived.asked, self.name);
            if let Some(format) = derived.format {
                spec.weights = format;
                spec.unquantised = Vec::new();
                spec.stored_extra.retain(|(reason, _)| !reason.contains("scales"));
                message.push_str(&format!(" stored as `{format}`, whatever layers its vendor left out"));
            }
            spec.problems.push(Problem { key: "name".into(), message });
        }
        Ok(spec)
    }
}

/// The embedded catalog.
#[derive(Debug)]
pub struct Catalog {
    entries: Vec<CatalogEntry>,
}

impl Catalog {
    /// The catalog that is part of the program. Splits rows only; configs are parsed when asked for.
    pub fn embedded() -> &'static Self {
        static CATALOG: OnceLock<Catalog> = OnceLock::new();
        CATALOG.get_or_init(|| {
            let entries = ROWS.lines().filter_map(|row| {
                let mut cells = row.splitn(3, '\t');
                Some(CatalogEntry { name: cells.next()?, source: cells.next()?, config: cells.next()?, derived: None })
            });
            Self { entries: entries.collect() }
        })
    }

    /// All names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.entries.iter().map(|e| e.name)
    }

    /// All entries, sorted by name.
    pub fn entries(&self) -> &[CatalogEntry] {
        &self.entries
    }

    /// The model that a person means: any case and separators, with or without organisation, under a renamed
    /// organisation, with or without `-Instruct` where only one is here, or as a vendor's quantised derivative. A name
    /// that could mean models of different sizes finds none of them but suggests.
    pub fn find(&self, query: &str) -> Result<CatalogEntry, NotFound> {
        let query: String = query.trim().chars().take(200).collect();
        let bare = query.strip_prefix("https://huggingface.co/").unwrap_or(&query).trim_end_matches('/');
        if let Some(entry) = self.entries.iter().find(|e| e.name.eq_ignore_ascii_case(bare)) {
            return Ok(entry.clone());
        }
        let asked = Name::parse(bare);
        let known_org = asked.org.as_ref().is_some_and(|org| self.entries.iter().any(|e| org_of(e) == *org));
        let mut best: Option<(u32, &CatalogEntry)> = None;
        let mut tie = false;
        for entry in &self.entries {
            let name = Name::parse(entry.name);
            let Some(mut cost) = asked.cost(&name) else { continue };
            match (&asked.org, &name.org) {
                (Some(a), Some(b)) if a == b => {}
                (None, _) => {}
                // another known publisher's model of that name must be a derivative by its format
                (Some(_), _) if known_org && asked.format.is_none() => continue,
                _ => cost += OTHER,
            }
            match best {
                Some((lowest, _)) if lowest < cost => {}
                Some((lowest, first)) if lowest == cost => tie |= !same_size(first, entry),
                _ => {
                    best = Some((cost, entry));
                    tie = false;
                }
            }
        }
        match best {
            Some((cost, entry)) if !tie => {
                let format = match (&asked.format, Name::parse(entry.name).format) {
                    (Some(text), here) if here.as_ref() != Some(text) => quant::from_name(bare),
                    _ => None,
                };
                let derived = (cost >= OTHER || format.is_some()).then(|| Derived { asked: bare.to_owned(), format });
                Ok(CatalogEntry { derived, ..entry.clone() })
            }
            _ => Err(NotFound { suggestions: self.suggest(&asked), query: query.chars().take(80).collect() }),
        }
    }

    /// Up to four names that share most with what was asked.
    fn suggest(&self, asked: &Name) -> Vec<&'static str> {
        let query = asked.joined();
        let limit = (query.chars().count() / 2).max(2);
        let mut scored: Vec<(usize, &'static str)> = self
            .entries
            .iter()
            .map(|e| {
                let name = Name::parse(e.name).joined();
                let begins = !query.is_empty() && name.starts_with(&query);
                (if begins { 0 } else { distance(&query, &name) }, e.name)
            })
            .filter(|(d, _)| *d <= limit)
            .collect();
        scored.sort();
        scored.into_iter().take(4).map(|(_, n)| n).collect()
    }
}

fn org_of(entry: &CatalogEntry) -> String {
    entry.name.split_once('/').map(|(org, _)| canonical_org(org)).unwrap_or_default()
}

fn same_size(a: &CatalogEntry, b: &CatalogEntry) -> bool {
    let total =
        |e: &CatalogEntry| read_config(e.name, e.config.as_bytes()).map(|s| s.params_total()).unwrap_or(Params(0));
    a.config == b.config || (total(a) == total(b) && total(a) > Params(0))
}
