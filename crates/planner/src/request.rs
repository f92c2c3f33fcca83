//! The one request behind flags, URL and JSON: typed fields, and their round trip through `key=value` pairs whose
//! keys are the command line's long flags.

use market::Purchase;
use model::{KvFormat, WeightFormat};
use perf::Engine;
use units::{Params, Seconds, Tokens, UnitError, UsdPerHour};

use crate::workload::{Load, Preset, Traffic, Workload};

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

/// One key of a request: its name is the long flag, the query key and the JSON key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// What the value is, for help: `TOKENS`.
    pub value: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Section of the help.
    pub section: &'static str,
    /// Whether it may be given more than once (or comma-separated).
    pub repeats: bool,
    /// Whether it is a switch without a value.
    pub switch: bool,
}

const fn key(section: &'static str, name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { name, value, help, section, repeats: false, switch: false }
}

const fn many(section: &'static str, name: &'static str, value: &'static str, help: &'static str) -> Key {
    Key { name, value, help, section, repeats: true, switch: false }
}

const fn switch(section: &'static str, name: &'static str, help: &'static str) -> Key {
    Key { name, value: "", help, section, repeats: false, switch: true }
}

const MODEL: &str = "Model";
const LOAD: &str = "Load";
const LIMITS: &str = "Limits";
const WHERE: &str = "Where";
const LAYOUT: &str = "Layout";

/// Every key, in the order of help, query and JSON.
pub const KEYS: &[Key] = &[
    key(MODEL, "model", "MODEL", "catalog name, config.json or model directory"),
    key(MODEL, "params", "SIZE", "a bare parameter count instead of a model, like 744B"),
    key(MODEL, "active", "SIZE", "active parameters of a bare size, like 40B"),
    many(MODEL, "weights", "FORMAT", "weight formats allowed: fp8, awq, nvfp4, ... [default: the checkpoint's own]"),
    many(MODEL, "kv", "FORMAT", "KV cache formats allowed: bf16, fp8 [default: bf16]"),
    key(LOAD, "for", "USE", "chat, rag, code-agent, reasoning, batch or embed [default: chat]"),
    key(LOAD, "users", "N", "active users, turned into a rate by the preset's rule"),
    key(LOAD, "input", "TOKENS", "prompt tokens of one request"),
    key(LOAD, "output", "TOKENS", "generated tokens of one request"),
    key(LOAD, "prefix-share", "SHARE", "part of the prompt already in the prefix cache, 0 to 1"),
    key(LOAD, "concurrency", "N", "requests in flight, all replicas together"),
    key(LOAD, "rate", "N", "requests per second, all replicas together"),
    key(LIMITS, "ttft", "TIME", "limit on the mean time to first token, like 500ms"),
    key(LIMITS, "tpot", "TIME", "limit on the mean time per output token, like 30ms"),
    key(LIMITS, "context", "TOKENS", "longest sequence that must be servable, like 128Ki"),
    key(LIMITS, "max-nodes", "N", "most nodes in all"),
    key(LIMITS, "budget", "PRICE", "most dollars in all, like $40/h"),
    key(LIMITS, "objective", "WHAT", "sort by cost, price, throughput, latency or power [default: cost]"),
    many(WHERE, "gpu", "GPU", "only these GPUs, like h100-sxm"),
    many(WHERE, "node", "NODE", "only these nodes, like dgx-h100, aws/p5.48xlarge or 8xh100-sxm"),
    many(WHERE, "provider", "ID", "only these providers"),
    many(WHERE, "region", "NAME", "only regions that begin with this, like us-"),
    key(WHERE, "purchase", "HOW", "on-demand or spot [default: on-demand]"),
    key(WHERE, "tier", "TIER", "standard, or marketplace to count marketplace and community offers"),
    many(WHERE, "price", "GPU=PRICE", "your own price per GPU, like h100-sxm=2.10/h; replaces every quote of it"),
    switch(WHERE, "network-disk", "weights come from a network volume: local disks may be small"),
    key(LAYOUT, "engine", "NAME", "vllm, sglang, trtllm or llamacpp [default: vllm]"),
    key(LAYOUT, "tp", "N", "fix tensor parallelism"),
    key(LAYOUT, "pp", "N", "fix pipeline parallelism"),
    key(LAYOUT, "dp", "N", "fix attention data parallelism"),
    key(LAYOUT, "ep", "N", "fix expert parallelism"),
];

/// A key by name, or a refusal that suggests the nearest.
pub fn find_key(name: &str) -> Result<&'static Key, RequestError> {
    KEYS.iter().find(|k| k.name == name).ok_or_else(|| {
        let mut near: Vec<(usize, String)> = KEYS
            .iter()
            .map(|k| (strsim::osa_distance(k.name, &name.chars().take(40).collect::<String>()), k.name))
            .filter(|(far, key)| *far <= 2 || (name.len() > 2 && key.contains(name)))
            .map(|(far, key)| (far, format!("`{key}`")))
            .collect();
        near.sort();
        let near: Vec<String> = near.into_iter().take(3).map(|(_, key)| key).collect();
        let hint = if near.is_empty() {
            format!("keys are {}", KEYS.iter().map(|k| k.name).collect::<Vec<_>>().join(", "))
        } else {
            format!("did you mean {}?", near.join(" or "))
        };
        RequestError::new(name, "", "no such key", hint)
    })
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

    /// Checks that no two keys contradict each other.
    pub fn check(&self) -> Result<(), RequestError> {
        let clash =
            |key: &str, value: String, problem: &str, hint: &str| Err(RequestError::new(key, &value, problem, hint));
        if self.model.is_empty() && self.params.is_none() {
            return clash("model", String::new(), "no model is named", "name one, or give a bare size: `--params 70B`");
        }
        if !self.model.is_empty() && self.params.is_some() {
            return clash("params", self.model.clone(), "a model is named too", "leave out the model or `--params`");
        }
        if let (Some(params), Some(active)) = (self.params, self.active)
            && active > params
        {
            return clash("active", active.to_string(), "more than `--params`", "active parameters are a part of all");
        }
        if self.active.is_some() && self.params.is_none() {
            return clash("active", String::new(), "a model's file says it", "use it only with `--params`");
        }
        if self.concurrency.is_some() && self.rate.is_some() {
            return clash(
                "rate",
                self.rate.unwrap_or(0.0).to_string(),
                "`--concurrency` is given too",
                "choose one of them",
            );
        }
        if self.users.is_some() && (self.concurrency.is_some() || self.rate.is_some()) {
            let hint = "users are turned into a rate: leave out `--users`, or `--rate` and `--concurrency`";
            return clash("users", self.users.unwrap_or(0).to_string(), "a load is given too", hint);
        }
        let traffic = self.traffic();
        if let Some(context) = self.context
            && context < traffic.input + traffic.output
        {
            let need = traffic.input + traffic.output;
            let problem = format!("input and output together are {need} tokens");
            return Err(RequestError::new("context", &context.to_string(), problem, format!("use at least `{need}`")));
        }
        Ok(())
    }

    /// The load with every gap filled from the preset, and what was assumed.
    pub fn traffic(&self) -> Traffic {
        let mut assumptions = Vec::new();
        let said_load = self.concurrency.is_some() || self.rate.is_some();
        let said_anything = said_load || self.users.is_some() || self.input.is_some() || self.output.is_some();
        let workload = self.workload.unwrap_or(Workload::Chat);
        let preset: Preset = workload.preset();
        if self.workload.is_none() && !said_anything {
            assumptions.push("no load was given: `--for chat` is assumed".to_owned());
        }
        let input = self.input.unwrap_or(preset.input);
        let output = self.output.unwrap_or(preset.output);
        if self.input.is_none() || self.output.is_none() {
            assumptions.push(format!("a {} request is {input} tokens in, {output} out (preset)", workload.name()));
        }
        // the preset's cached share belongs to its own prompts: with the user's own shape nothing is assumed cached
        let preset_shape = self.input.is_none();
        let prefix_share = self.prefix_share.unwrap_or(if preset_shape { preset.prefix_share } else { 0.0 });
        if self.prefix_share.is_none() && prefix_share > 0.0 {
            assumptions
                .push(format!("{:.0} % of each prompt is found in the prefix cache (preset)", prefix_share * 100.0));
        }
        let load = if let Some(n) = self.concurrency {
            Load::Concurrency(n)
        } else if let Some(rate) = self.rate {
            Load::Rate(rate)
        } else {
            let users = self.users.unwrap_or(preset.users);
            let what = if self.users.is_some() { "" } else { " (preset)" };
            if preset.seconds_between_requests > 0.0 {
                let rate = users as f64 / preset.seconds_between_requests;
                assumptions.push(format!(
                    "{users} active users{what} send a request every {} s each: {} requests/s",
                    preset.seconds_between_requests,
                    units::sig3(rate)
                ));
                Load::Rate(rate)
            } else {
                assumptions.push(format!("{users} requests are kept in flight{what}"));
                Load::Concurrency(users as f64)
            }
        };
        // limits of a preset hold only where the use was named or nothing at all was said
        let preset_limits = self.workload.is_some() || !said_anything || self.users.is_some();
        let ttft = self.ttft.or(if preset_limits { preset.ttft } else { None });
        let tpot = self.tpot.or(if preset_limits { preset.tpot } else { None });
        if preset_limits && (self.ttft.is_none() && ttft.is_some() || self.tpot.is_none() && tpot.is_some()) {
            let mut limits = Vec::new();
            limits.extend(ttft.filter(|_| self.ttft.is_none()).map(|t| format!("TTFT {t}")));
            limits.extend(tpot.filter(|_| self.tpot.is_none()).map(|t| format!("TPOT {t}")));
            assumptions.push(format!("limits of the {} preset: {}", workload.name(), limits.join(", ")));
        }
        if ttft.is_some() || tpot.is_some() {
            assumptions.push("limits are held against the closed form's mean, not a percentile".to_owned());
        }
        let context = self.context.unwrap_or(input + output);
        Traffic { input, output, prefix_share, load, ttft, tpot, context, assumptions }
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

fn unreachable_key(name: &str) -> Result<(), RequestError> {
    // a key of the table without an arm in `set`: refused rather than ignored
    Err(RequestError::new(name, "", "it cannot be set here", "report this as a bug"))
}

fn positive<T>(key: &str, text: &str, value: T, ok: impl Fn(&T) -> bool) -> Result<T, RequestError> {
    if ok(&value) { Ok(value) } else { Err(RequestError::new(key, text, "it is zero", "give more than zero")) }
}

fn number(key: &str, text: &str) -> Result<f64, RequestError> {
    match text.parse::<f64>() {
        Ok(n) if n.is_finite() => Ok(n),
        _ => Err(RequestError::new(key, text, "it is not a number", "type for example `0.5`")),
    }
}

fn bounded(key: &str, text: &str, low: f64, high: f64) -> Result<f64, RequestError> {
    let n = match text.parse::<Tokens>() {
        Ok(n) if text.contains(|c: char| c.is_ascii_alphabetic()) => n.as_f64(),
        _ => number(key, text)?,
    };
    if n < low || n > high {
        let problem = format!("it is not between {low} and {high}");
        return Err(RequestError::new(key, text, problem, "type for example `8`"));
    }
    Ok(n)
}

fn count(key: &str, text: &str, low: u64, high: u64) -> Result<u64, RequestError> {
    let n = text.parse::<Tokens>().map_err(|e| RequestError::new(key, text, e.problem, e.hint))?.0;
    if n < low || n > high {
        return Err(RequestError::new(
            key,
            text,
            format!("it is not between {low} and {high}"),
            format!("type for example `{}`", low.max(4)),
        ));
    }
    Ok(n)
}

fn choose<T: Copy>(key: &str, text: &str, all: &[T], name: impl Fn(T) -> &'static str) -> Result<T, RequestError> {
    all.iter().copied().find(|t| name(*t) == text).ok_or_else(|| {
        let names: Vec<_> = all.iter().map(|t| format!("`{}`", name(*t))).collect();
        RequestError::new(key, text, "no such choice", format!("use one of {}", names.join(", ")))
    })
}

fn choose_ref<'a, T>(key: &str, text: &str, all: &'a [(&'static str, T)]) -> Result<&'a T, RequestError> {
    all.iter().find(|(name, _)| *name == text).map(|(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = all.iter().filter(|(n, _)| !n.is_empty()).map(|(n, _)| format!("`{n}`")).collect();
        RequestError::new(key, text, "no such choice", format!("use one of {}", names.join(", ")))
    })
}

fn push_names(key: &str, list: &mut Vec<String>, text: &str) -> Result<(), RequestError> {
    push_list(list, text, |v| {
        if v.is_empty() {
            Err(RequestError::new(key, text, "it is empty", "name one, or leave the key out"))
        } else {
            Ok(v.to_owned())
        }
    })
}

fn push_list<T: PartialEq>(
    list: &mut Vec<T>,
    text: &str,
    read: impl Fn(&str) -> Result<T, RequestError>,
) -> Result<(), RequestError> {
    for part in text.split(',') {
        let item = read(part.trim())?;
        if !list.contains(&item) {
            list.push(item);
        }
        if list.len() > 1000 {
            return Err(RequestError::new("", text, "more than 1000 items", "name fewer"));
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;
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
}
