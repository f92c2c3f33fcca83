//! What people do with a model, as request shapes: the presets behind `--for`, and the rule from users to a rate.

use std::str::FromStr;

use units::Seconds;

use crate::request::RequestError;

/// A kind of use with a typical request shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Workload {
    /// People talk to an assistant.
    Chat,
    /// Questions over retrieved documents.
    Rag,
    /// A coding agent that sends its growing context again and again.
    CodeAgent,
    /// Long chains of thought from short questions.
    Reasoning,
    /// Offline generation: only throughput counts.
    Batch,
    /// Embeddings: prefill only, no output tokens.
    Embed,
}

/// The shape and limits that a workload stands for. All figures are assumptions, printed with every answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Preset {
    /// Prompt tokens of one request.
    pub input: u64,
    /// Generated tokens of one request.
    pub output: u64,
    /// Share of the prompt that a prefix cache already holds.
    pub prefix_share: f64,
    /// Seconds between two requests of one active user, answer and pause together.
    pub seconds_between_requests: f64,
    /// Active users where none are given.
    pub users: u64,
    /// Limit on the mean time to first token.
    pub ttft: Option<Seconds>,
    /// Limit on the mean time per output token.
    pub tpot: Option<Seconds>,
}

impl Workload {
    /// Every workload, in the order help lists them.
    pub const ALL: [Self; 6] = [Self::Chat, Self::Rag, Self::CodeAgent, Self::Reasoning, Self::Batch, Self::Embed];

    /// The name behind `--for`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Rag => "rag",
            Self::CodeAgent => "code-agent",
            Self::Reasoning => "reasoning",
            Self::Batch => "batch",
            Self::Embed => "embed",
        }
    }

    /// The request shape it stands for.
    pub fn preset(self) -> Preset {
        let p = |input, output, prefix_share, seconds_between_requests, users, ttft: f64, tpot_ms: f64| Preset {
            input,
            output,
            prefix_share,
            seconds_between_requests,
            users,
            ttft: (ttft > 0.0).then_some(Seconds(ttft)),
            tpot: (tpot_ms > 0.0).then(|| Seconds::from_ms(tpot_ms)),
        };
        match self {
            // 20 tokens/s is about three times as fast as people read
            Self::Chat => p(2048, 512, 0.5, 40.0, 100, 2.0, 50.0),
            Self::Rag => p(8192, 512, 0.2, 60.0, 100, 3.0, 50.0),
            Self::CodeAgent => p(32_768, 1024, 0.8, 20.0, 20, 5.0, 30.0),
            Self::Reasoning => p(1024, 8192, 0.0, 180.0, 50, 2.0, 30.0),
            Self::Batch => p(1024, 1024, 0.0, 0.0, 256, 0.0, 0.0),
            Self::Embed => p(512, 0, 0.0, 1.0, 100, 0.5, 0.0),
        }
    }
}

impl FromStr for Workload {
    type Err = RequestError;
    fn from_str(text: &str) -> Result<Self, RequestError> {
        Self::ALL.into_iter().find(|w| w.name() == text).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|w| format!("`{}`", w.name())).collect();
            RequestError::new("for", text, "no such workload", format!("use one of {}", names.join(", ")))
        })
    }
}

/// How requests arrive at the whole deployment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// A fixed number of requests in flight: each finished one is followed by the next at once.
    Concurrency(f64),
    /// Requests per second, whatever the state of the servers.
    Rate(f64),
}

/// A request shape, a load and limits with nothing left open, and how each came about.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Prompt tokens.
    pub input: u64,
    /// Generated tokens.
    pub output: u64,
    /// Share of the prompt found in a prefix cache.
    pub prefix_share: f64,
    /// Arrivals.
    pub load: Load,
    /// Limit on mean TTFT.
    pub ttft: Option<Seconds>,
    /// Limit on mean TPOT.
    pub tpot: Option<Seconds>,
    /// Longest sequence that must be servable.
    pub context: u64,
    /// What was assumed, one sentence each.
    pub assumptions: Vec<String>,
}
