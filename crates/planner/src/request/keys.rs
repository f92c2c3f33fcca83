//! The keys of a request: one table behind flags, query keys and JSON keys.

use super::RequestError;

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
