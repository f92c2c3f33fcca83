//! The one request behind flags, URL and JSON: typed fields, and their round trip through `key=value` pairs whose
//! keys are the command line's long flags.

use market::Purchase;
use model::{KvFormat, WeightFormat};
use perf::Engine;
use units::{Params, Seconds, UnitError, UsdPerHour};

use crate::workload::Workload;

use self::read::{bounded, choose, choose_ref, count, number, positive, push_list, push_names, unreachable_key};

mod keys;
mod read;
#[cfg(test)]
mod tests;
mod traffic;

pub use self::keys::{KEYS, Key, find_key};

/// Why a request cannot be answered as it stands.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use `{value}` for `{key}`: {problem}")]
pub struct RequestError {
    /// The key.
    pub key: String,
    /// The value given, cut to 80 characters.
    pub value: String,
    /// What is wrong.
    pub problem: String,
    /// What to type instead.
    pub hint: String,
}

impl RequestError {
    /// A refusal of `value` for `key`.
    pub fn new(key: &str, value: &str, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        let value = value.chars().take(80).collect();
        Self { key: key.into(), value, problem: problem.into(), hint: hint.into() }
    }
}

/// What plans are sorted by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Cost of one request of the asked shape.
    #[default]
    Cost,
    /// Dollars per hour of the whole deployment.
    Price,
    /// Output tokens per second per GPU.
    Throughput,
    /// Time from request to last token.
    Latency,
    /// Board power of all GPUs per output token.
    Power,
}

impl Objective {
    /// Every objective.
    pub const ALL: [Self; 5] = [Self::Cost, Self::Price, Self::Throughput, Self::Latency, Self::Power];

    /// The name behind `--objective`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cost => "cost",
            Self::Price => "price",
            Self::Throughput => "throughput",
            Self::Latency => "latency",
            Self::Power => "power",
        }
    }

    /// Whether a plan without a price cannot be ranked by it.
    pub fn needs_price(self) -> bool {
        matches!(self, Self::Cost | Self::Price)
    }
}

/// A request for plans. `None` and empty lists mean "not said": presets and defaults are applied, and reported, by
/// [`PlanRequest::traffic`].
#[derive(Clone, Debug, PartialEq)]
pub struct PlanRequest {
    /// Model name, path of a `config.json` or of a model directory; empty with `params`.
    pub model: String,
    /// A bare size instead of a model.
    pub params: Option<Params>,
    /// Active parameters of a bare size.
    pub active: Option<Params>,
    /// Weight formats allowed beside none (the checkpoint's own).
    pub weights: Vec<WeightFormat>,
    /// KV cache formats allowed; none means 16 bit.
    pub kv: Vec<KvFormat>,
    /// Use case that fills in what is not said.
    pub workload: Option<Workload>,
    /// Active users, turned into a rate by the preset's rule.
    pub users: Option<u64>,
    /// Prompt tokens.
    pub input: Option<u64>,
    /// Generated tokens.
    pub output: Option<u64>,
    /// Share of the prompt in a prefix cache, 0 to 1.
    pub prefix_share: Option<f64>,
    /// Requests in flight.
    pub concurrency: Option<f64>,
    /// Requests per second.
    pub rate: Option<f64>,
    /// Limit on mean TTFT.
    pub ttft: Option<Seconds>,
    /// Limit on mean TPOT.
    pub tpot: Option<Seconds>,
    /// Longest sequence to be servable.
    pub context: Option<u64>,
    /// GPU models allowed.
    pub gpus: Vec<String>,
    /// Node types (or `COUNT x GPU`) allowed.
    pub nodes: Vec<String>,
    /// Providers allowed.
    pub providers: Vec<String>,
    /// Regions allowed (a part of the name is enough).
    pub regions: Vec<String>,
    /// On-demand or spot.
    pub purchase: Purchase,
    /// Whether marketplace and community tiers count.
    pub marketplace: bool,
    /// Most nodes in all.
    pub max_nodes: Option<u32>,
    /// Most dollars per hour in all.
    pub budget: Option<UsdPerHour>,
    /// What to sort by.
    pub objective: Objective,
    /// Engine; none means vLLM.
    pub engine: Option<Engine>,
    /// Fixed tensor parallelism.
    pub tp: Option<u32>,
    /// Fixed pipeline parallelism.
    pub pp: Option<u32>,
    /// Fixed attention data parallelism.
    pub dp: Option<u32>,
    /// Fixed expert parallelism.
    pub ep: Option<u32>,
    /// Weights come from a network volume: local disks may be smaller than the checkpoint.
    pub network_disk: bool,
    /// The user's own prices per GPU: id and dollars per GPU-hour.
    pub prices: Vec<(String, UsdPerHour)>,
}

/// The largest token count that a request may name: 100 Mi tokens.
const MAX_TOKENS: u64 = 100 << 20;

impl PlanRequest {
    /// Sets one key from text; a repeated key adds. Lists may be comma-separated.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), RequestError> {
        let value = value.trim();
        let unit = |e: UnitError| RequestError::new(key, value, e.problem.clone(), e.hint.clone());
        let fail = |problem: &str, hint: &str| Err(RequestError::new(key, value, problem, hint));
        match find_key(key)?.name {
            "model" => {
                if value.is_empty() {
                    return fail("it is empty", "name a model: `nodewise model --all` lists the catalog");
                }
                self.model = value.into();
            }
            "params" => self.params = Some(positive(key, value, value.parse::<Params>().map_err(unit)?, |p| p.0 > 0)?),
            "active" => self.active = Some(positive(key, value, value.parse::<Params>().map_err(unit)?, |p| p.0 > 0)?),
            "weights" => push_list(&mut self.weights, value, |v| {
                v.parse().map_err(|e: model::FormatError| RequestError::new(key, v, e.to_string(), e.hint()))
            })?,
            "kv" => push_list(&mut self.kv, value, |v| {
                v.parse().map_err(|e: model::FormatError| RequestError::new(key, v, e.to_string(), e.hint()))
            })?,
            "for" => self.workload = Some(value.parse()?),
            "users" => self.users = Some(count(key, value, 1, 1_000_000_000)?),
            "input" => self.input = Some(count(key, value, 1, MAX_TOKENS)?),
            "output" => self.output = Some(count(key, value, 0, MAX_TOKENS)?),
            "context" => self.context = Some(count(key, value, 1, MAX_TOKENS)?),
            "prefix-share" => {
                let share: f64 = number(key, value)?;
                if !(0.0..=1.0).contains(&share) {
                    return fail("it is not between 0 and 1", "type a share, for example `0.5`");
                }
                self.prefix_share = Some(share);
            }
            "concurrency" => self.concurrency = Some(bounded(key, value, 1.0, 1e7)?),
            "rate" => self.rate = Some(bounded(key, value.strip_suffix("/s").unwrap_or(value), 1e-6, 1e7)?),
            "ttft" => self.ttft = Some(positive(key, value, value.parse::<Seconds>().map_err(unit)?, |s| s.0 > 0.0)?),
            "tpot" => self.tpot = Some(positive(key, value, value.parse::<Seconds>().map_err(unit)?, |s| s.0 > 0.0)?),
            "max-nodes" => self.max_nodes = Some(count(key, value, 1, 100_000)? as u32),
            "budget" => {
                self.budget = Some(positive(key, value, value.parse::<UsdPerHour>().map_err(unit)?, |p| p.0 > 0.0)?);
            }
            "objective" => {
                self.objective = choose(key, value, &Objective::ALL, |o| o.name())?;
            }
            "gpu" => push_names(key, &mut self.gpus, value)?,
            "node" => push_names(key, &mut self.nodes, value)?,
            "provider" => push_names(key, &mut self.providers, value)?,
            "region" => push_names(key, &mut self.regions, value)?,
            "purchase" => {
                self.purchase = choose(key, value, &[Purchase::OnDemand, Purchase::Spot], |p| p.name())?;
            }
            "tier" => self.marketplace = *choose_ref(key, value, &[("standard", false), ("marketplace", true)])?,
            "price" => push_list(&mut self.prices, value, |v| {
                let Some((gpu, price)) = v.split_once('=') else {
                    return Err(RequestError::new(key, v, "it has no `=`", "type for example `h100-sxm=2.10/h`"));
                };
                let price: UsdPerHour =
                    price.parse().map_err(|e: UnitError| RequestError::new(key, v, e.problem, e.hint))?;
                Ok((gpu.trim().to_owned(), positive(key, v, price, |p| p.0 > 0.0)?))
            })?,
            "network-disk" => {
                self.network_disk = *choose_ref(key, value, &[("", true), ("true", true), ("false", false)])?
            }
            "engine" => {
                self.engine = Some(choose(key, value, &Engine::ALL, |e| e.name())?);
            }
            "tp" => self.tp = Some(count(key, value, 1, 1024)? as u32),
            "pp" => self.pp = Some(count(key, value, 1, 1024)? as u32),
            "dp" => self.dp = Some(count(key, value, 1, 1024)? as u32),
            "ep" => self.ep = Some(count(key, value, 1, 1024)? as u32),
            other => unreachable_key(other)?,
        }
        Ok(())
    }

    /// Every key that was said, with its value as [`set`](Self::set) reads it, in the order of [`KEYS`].
    pub fn pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = Vec::new();
        for key in KEYS {
            let mut put = |value: String| pairs.push((key.name, value));
            match key.name {
                "model" if !self.model.is_empty() => put(self.model.clone()),
                "params" => self.params.iter().for_each(|p| put(exact(p.0))),
                "active" => self.active.iter().for_each(|p| put(exact(p.0))),
                "weights" => self.weights.iter().for_each(|w| put(w.name().to_string())),
                "kv" => self.kv.iter().for_each(|k| put(k.name().to_string())),
                "for" => self.workload.iter().for_each(|w| put(w.name().into())),
                "users" => self.users.iter().for_each(|n| put(n.to_string())),
                "input" => self.input.iter().for_each(|n| put(n.to_string())),
                "output" => self.output.iter().for_each(|n| put(n.to_string())),
                "prefix-share" => self.prefix_share.iter().for_each(|n| put(n.to_string())),
                "concurrency" => self.concurrency.iter().for_each(|n| put(n.to_string())),
                "rate" => self.rate.iter().for_each(|n| put(n.to_string())),
                "ttft" => self.ttft.iter().for_each(|s| put(duration(*s))),
                "tpot" => self.tpot.iter().for_each(|s| put(duration(*s))),
                "context" => self.context.iter().for_each(|n| put(n.to_string())),
                "max-nodes" => self.max_nodes.iter().for_each(|n| put(n.to_string())),
                "budget" => self.budget.iter().for_each(|p| put(format!("{}/h", p.0))),
                "objective" if self.objective != Objective::default() => put(self.objective.name().into()),
                "gpu" => self.gpus.iter().for_each(|g| put(g.clone())),
                "node" => self.nodes.iter().for_each(|g| put(g.clone())),
                "provider" => self.providers.iter().for_each(|g| put(g.clone())),
                "region" => self.regions.iter().for_each(|g| put(g.clone())),
                "purchase" if self.purchase != Purchase::OnDemand => put(self.purchase.name().into()),
                "tier" if self.marketplace => put("marketplace".into()),
                "price" => self.prices.iter().for_each(|(gpu, p)| put(format!("{gpu}={}/h", p.0))),
                "network-disk" if self.network_disk => put("true".into()),
                "engine" => self.engine.iter().for_each(|e| put(e.name().into())),
                "tp" => self.tp.iter().for_each(|n| put(n.to_string())),
                "pp" => self.pp.iter().for_each(|n| put(n.to_string())),
                "dp" => self.dp.iter().for_each(|n| put(n.to_string())),
                "ep" => self.ep.iter().for_each(|n| put(n.to_string())),
                _ => {}
            }
        }
        pairs
    }

    /// A request from pairs in any order.
    pub fn from_pairs<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, RequestError> {
        let mut request = Self::default();
        for (key, value) in pairs {
            request.set(key.as_ref(), value.as_ref())?;
        }
        Ok(request)
    }

    /// The request as a URL query string, keys in stable order, defaults left out.
    pub fn to_query(&self) -> String {
        form_urlencoded::Serializer::new(String::new()).extend_pairs(self.pairs()).finish()
    }

    /// A request from a URL query string (a leading `?` is fine).
    pub fn from_query(query: &str) -> Result<Self, RequestError> {
        let query = query.strip_prefix('?').unwrap_or(query);
        Self::from_pairs(form_urlencoded::parse(query.as_bytes()))
    }

    /// The request as arguments of `nodewise plan`, quoted for a POSIX shell.
    pub fn to_command(&self) -> String {
        let mut out = String::from("nodewise plan");
        for (key, value) in self.pairs() {
            let switch = KEYS.iter().any(|k| k.name == key && k.switch);
            if key == "model" {
                out.push_str(&format!(" {}", shell_quote(&value)));
            } else if switch {
                out.push_str(&format!(" --{key}"));
            } else {
                out.push_str(&format!(" --{key} {}", shell_quote(&value)));
            }
        }
        out
    }
}

/// Quotes a word for a POSIX shell where it needs it.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ':' | '=' | ',' | '+' | '@');
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// A duration in milliseconds where that reads well and comes back the same, else in seconds.
fn duration(time: Seconds) -> String {
    let ms = format!("{}ms", (time.ms() * 1e6).round() / 1e6);
    if time.0 < 1.0 && ms.parse() == Ok(time) { ms } else { format!("{}s", time.0) }
}

/// A parameter count in the largest unit that keeps it exact.
fn exact(n: u64) -> String {
    for (unit, size) in [("T", 1_000_000_000_000), ("B", 1_000_000_000), ("M", 1_000_000), ("k", 1_000)] {
        if n.is_multiple_of(size) {
            return format!("{}{unit}", n / size);
        }
    }
    // a thousandth of a thousand is exact in three decimals
    format!("{}.{:03}k", n / 1000, n % 1000)
}

impl Default for PlanRequest {
    fn default() -> Self {
        Self {
            model: String::new(),
            params: None,
            active: None,
            weights: Vec::new(),
            kv: Vec::new(),
            workload: None,
            users: None,
            input: None,
            output: None,
            prefix_share: None,
            concurrency: None,
            rate: None,
            ttft: None,
            tpot: None,
            context: None,
            gpus: Vec::new(),
            nodes: Vec::new(),
            providers: Vec::new(),
            regions: Vec::new(),
            purchase: Purchase::OnDemand,
            marketplace: false,
            max_nodes: None,
            budget: None,
            objective: Objective::default(),
            engine: None,
            tp: None,
            pp: None,
            dp: None,
            ep: None,
            network_disk: false,
            prices: Vec::new(),
        }
    }
}
