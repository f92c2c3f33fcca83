//! A fast closed form of continuous batching: means of TTFT, TPOT and throughput of one replica.
//!
//! In a closed loop busy time is conserved: while one request lives, every one of the `n` in flight is prefilled once
//! and `output` decode steps run, so `output × td + n × P = TTFT + output × TPOT`. With prompt chunks mixed into decode
//! steps each token waits for the share of others' prefill that falls on it: `TPOT = td + w (n − 1) P / output`.
//! A paged engine never runs out of memory by load: what the cache cannot hold waits.

use units::{Basis, Seconds, Term, Value};

use crate::step::{Batch, Chunk, StepModel};

/// How requests come to one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrival {
    /// This many at all times: a new one starts when one ends.
    Concurrency(f64),
    /// This many per second, whatever happens.
    Rate(f64),
}

/// The load of one replica.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingLoad {
    /// Mean prompt tokens.
    pub input: f64,
    /// Mean generated tokens; 1 or less for embedding and scoring.
    pub output: f64,
    /// Share of the prompt that is cached already, 0 to 1.
    pub prefix_share: f64,
    /// Arrivals.
    pub arrival: Arrival,
}

/// What bounds the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Reading weights.
    Weights,
    /// Room for the cache: requests wait to be admitted.
    KvCapacity,
    /// Reading the cache.
    Bandwidth,
    /// Arithmetic.
    Compute,
    /// Links between GPUs.
    Link,
    /// The engine's own time per step.
    Overhead,
    /// The engine's limit of running sequences.
    Sequences,
}

impl Limit {
    /// The word used in output.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weights => "weights",
            Self::KvCapacity => "kv-capacity",
            Self::Bandwidth => "kv-bandwidth",
            Self::Compute => "compute",
            Self::Link => "link",
            Self::Overhead => "overhead",
            Self::Sequences => "max-sequences",
        }
    }
}

/// Means of one replica under a load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServingEstimate {
    /// Mean time to first token, waiting included (of a saturated replica: without the endless queue).
    pub ttft: Seconds,
    /// Mean time per output token after the first; zero where at most one is generated.
    pub tpot: Seconds,
    /// Generated tokens per second of the replica.
    pub output_tokens_per_s: f64,
    /// Requests per second of the replica.
    pub requests_per_s: f64,
    /// Requests in the system, waiting ones included.
    pub in_flight: f64,
    /// Requests that run at once.
    pub admitted: f64,
    /// Throughput over the most that the replica can do; above 1 where a rate exceeds it.
    pub utilisation: f64,
    /// True where the rate exceeds what the replica can do, or where not even one request fits the cache.
    pub saturated: bool,
    /// What bounds it.
    pub limited_by: Limit,
    /// Multipliers that enclose 80 % of comparable measurements of TTFT.
    pub ttft_band: (f64, f64),
    /// The same for TPOT.
    pub tpot_band: (f64, f64),
    /// The weakest basis among the inputs.
    pub basis: Basis,
    /// Time of a decode step at the admitted load, without others' prefill.
    pub decode_step: Seconds,
    /// Busy time that the prefill of one request costs the replica.
    pub prefill_cost: Seconds,
    /// Mean time that a request waits to be admitted.
    pub queue: Seconds,
    /// Mean time to first token of a burst: all admitted requests arriving at one moment.
    pub burst_ttft: Seconds,
    /// The load that was asked.
    pub load: ServingLoad,
}

/// Mean share of the output that a running request holds in the cache when admission is decided.
const OUTPUT_HELD: f64 = 0.55;

/// The closed form. `kv_tokens_max` bounds what runs at once, unless the model keeps no cache or its cache is not known.
pub fn serving(step: &StepModel, kv_tokens_max: u64, load: &ServingLoad) -> ServingEstimate {
    Closed::new(step, kv_tokens_max, load).estimate()
}

struct Closed<'a> {
    step: &'a StepModel,
    load: ServingLoad,
    input: f64,
    fresh: f64,
    cached: f64,
    output: f64,
    context: f64,
    chunks: f64,
    chunk: f64,
    lanes: f64,
    most: f64,
    most_limit: Limit,
}

/// One operating point.
#[derive(Clone, Copy, Debug, Default)]
struct Point {
    ttft: f64,
    tpot: f64,
    decode: f64,
    prefill: f64,
    throughput: f64,
}

fn positive(value: f64, least: f64) -> f64 {
    if value.is_finite() && value > least { value } else { least }
}

impl<'a> Closed<'a> {
    fn new(step: &'a StepModel, kv_tokens_max: u64, load: &ServingLoad) -> Self {
        let profile = step.engine();
        let input = positive(load.input, 1.0).min(1e9);
        let share = positive(load.prefix_share, 0.0).min(1.0);
        let fresh = (input * (1.0 - share)).max(1.0);
        let cached = input - fresh;
        let output = positive(load.output, 0.0).min(1e9);
        let chunks = (fresh / profile.chunk_tokens as f64).ceil().max(1.0);
        let lanes = step.lanes();
        let slots = profile.max_sequences as f64 * f64::from(step.layout().dp.max(1));
        let room = if output <= 1.0 || !step.keeps_cache {
            f64::INFINITY
        } else {
            kv_tokens_max as f64 / (input + OUTPUT_HELD * output)
        };
        let (most, most_limit) = if room < slots { (room, Limit::KvCapacity) } else { (slots, Limit::Sequences) };
        Self {
            step,
            load: *load,
            input,
            fresh,
            cached,
            output,
            context: input + 0.5 * output,
            chunks,
            chunk: fresh / chunks,
            lanes,
            most,
            most_limit,
        }
    }

    /// Time of a round with `prompts` prompt chunks beside `decodes`; chunks have their mean place in the prompt.
    fn round(&self, prompts: f64, decodes: f64) -> f64 {
        let count = (prompts.round().max(1.0) as usize).min(4096);
        let chunk = Chunk { q: self.chunk, kv: self.cached + 0.5 * (self.chunks - 1.0) * self.chunk };
        let chunks = vec![chunk; count];
        let batch = Batch { prefill: &chunks, decodes, decode_kv_total: decodes * self.context };
        self.step.time(&batch).0
    }

    fn decode(&self, sequences: f64) -> f64 {
        self.step.time(&Batch::decode(sequences, self.context)).0
    }

    /// Prefill only: prompts share steps until those are full.
    fn prefill_only(&self, n: f64) -> Point {
        let per_lane = (self.step.engine().chunk_tokens as f64 / self.chunk).floor().max(1.0);
        let together = (n / self.lanes).floor().clamp(1.0, per_lane) * self.lanes;
        let together = together.min(n.max(1.0)).max(1.0).round();
        let service = self.chunks * self.round(together, 0.0);
        let waves = (n / together).max(1.0);
        let ttft = service * 0.5 * (waves + 1.0) + self.step.engine().admission.0;
        Point { ttft, tpot: 0.0, decode: 0.0, prefill: service / together, throughput: n.min(together) / service }
    }

    /// `n` requests run at once.
    fn at(&self, n: f64) -> Point {
        if self.output <= 1.0 {
            return self.prefill_only(n);
        }
        let profile = self.step.engine();
        let decode = self.decode(n.max(1.0));
        let others = (n - 1.0).max(0.0);
        let used = self.lanes.min(n.max(1.0)).round();
        let base = if others > 0.0 { self.decode(others) } else { 0.0 };
        let mixed = self.round(used, others);
        let prefill = self.chunks * (mixed - base).max(0.0) / used;
        let tpot = decode + profile.interference * others * prefill / self.output;
        // own prefill: chunks pass the stages one after the other, beside the decoding of others
        let stages = f64::from(self.step.layout().pp.max(1));
        let own = self.round(self.lanes, others) * (self.chunks + stages - 1.0) / stages;
        let life = own + self.output * tpot;
        let busy = (others * prefill / life).min(0.95);
        let wait = (prefill * busy / (2.0 * (1.0 - busy))).min(0.5 * others * prefill);
        // a request that arrives waits for the step that runs
        let residual = if others > 0.0 { 0.5 * base } else { 0.0 };
        let ttft = profile.admission.0 + residual + wait + own;
        let residence = ttft + (self.output - 1.0).max(0.0) * tpot;
        Point { ttft, tpot, decode, prefill, throughput: n / residence }
    }

    fn estimate(&self) -> ServingEstimate {
        // less than one request: nothing runs
        let impossible = self.most < 1.0;
        let most = self.most.max(1.0);
        let peak = self.at(most);
        let (n, point, queue, in_flight, utilisation, saturated) = match self.load.arrival {
            Arrival::Concurrency(c) => {
                let c = positive(c, 1.0).min(1e9);
                let n = c.min(most);
                let point = self.at(n);
                let queue = (c - n) / point.throughput;
                (n, point, queue, c, point.throughput / peak.throughput, false)
            }
            Arrival::Rate(rate) => {
                let rate = positive(rate, 0.0);
                let utilisation = rate / peak.throughput;
                if utilisation > 1.0 {
                    (most, peak, 0.0, most, utilisation, true)
                } else {
                    let n = self.running(rate, most);
                    let point = self.at(n.max(1.0));
                    let queue = if self.output <= 1.0 {
                        0.5 * utilisation / (1.0 - utilisation).max(0.01) * point.prefill
                    } else {
                        0.0
                    };
                    let point = Point { throughput: rate, ..point };
                    (n, point, queue, n + rate * queue, utilisation, false)
                }
            }
        };
        let band = |b: crate::curves::Band| (b.low, b.high);
        ServingEstimate {
            ttft: Seconds(point.ttft + queue),
            tpot: Seconds(point.tpot),
            output_tokens_per_s: point.throughput * self.output,
            requests_per_s: point.throughput,
            in_flight,
            admitted: n,
            utilisation,
            saturated: saturated || impossible,
            limited_by: self.limit(n, &point, impossible || saturated || in_flight > n),
            ttft_band: band(self.step.ttft_band()),
            tpot_band: band(self.step.tpot_band()),
            basis: self.step.basis(),
            decode_step: Seconds(point.decode),
            prefill_cost: Seconds(point.prefill),
            queue: Seconds(queue),
            burst_ttft: Seconds(self.prefill_only(n.max(1.0)).ttft),
            load: self.load,
        }
    }

    /// Little's law: the number in flight whose throughput is the rate, by bisection (throughput grows with it).
    fn running(&self, rate: f64, most: f64) -> f64 {
        let one = self.at(1.0);
        if rate <= one.throughput {
            return rate / one.throughput;
        }
        let (mut low, mut high) = (1.0, most);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if self.at(middle).throughput < rate {
                low = middle;
            } else {
                high = middle;
            }
            if high - low < 1e-3 * high {
                break;
            }
        }
        high
    }

    fn limit(&self, n: f64, point: &Point, waiting: bool) -> Limit {
        if waiting && self.output > 1.0 {
            return self.most_limit;
        }
        let mut shares = self.step.shares(&Batch::decode(n.max(1.0), self.context));
        if self.output <= 1.0 {
            return Limit::Compute;
        }
        // others' prefill is arithmetic in all but the smallest prompts
        shares.compute += (n - 1.0).max(0.0) * point.prefill / self.output;
        [
            (shares.weights, Limit::Weights),
            (shares.cache, Limit::Bandwidth),
            (shares.compute, Limit::Compute),
            (shares.link, Limit::Link),
            (shares.overhead, Limit::Overhead),
        ]
        .into_iter()
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or(Limit::Compute, |(_, limit)| limit)
    }
}

impl ServingEstimate {
    /// Mean TTFT of a benchmark that starts all clients at one moment and sends `prompts_per_client` each: the first
    /// of them arrive as a burst, the others as in the steady state.
    pub fn benchmark_ttft(&self, prompts_per_client: f64) -> Seconds {
        let first = 1.0 / positive(prompts_per_client, 1.0);
        self.ttft * (1.0 - first) + (self.burst_ttft + self.queue) * first
    }

    /// The estimate as a tree: TPOT into decode step (with its parts) and others' prefill, and TTFT beside it.
    pub fn explain(&self, step: &StepModel) -> Term {
        let closed = Closed::new(step, 0, &self.load);
        let n = self.admitted.max(1.0);
        let decode = step.explain(&Batch::decode(n, closed.context));
        let decode = Term { name: "decode_step".into(), ..decode };
        let interference = Seconds((self.tpot.0 - self.decode_step.0).max(0.0));
        let mut tpot = Term::time("tpot", self.tpot).formula("decode step + others' prefill per token");
        if self.tpot.0 > 0.0 {
            tpot = tpot.parts([
                decode,
                Term::time("others_prefill", interference).basis(self.basis).formula(format!(
                    "({} - 1) x {} / {} tokens",
                    units::sig3(n),
                    self.prefill_cost,
                    units::sig3(closed.output)
                )),
            ]);
        }
        let ttft = Term::time("ttft", self.ttft).basis(self.basis).formula(format!(
            "queue {} + admission + running step + own prefill of {} tokens in {} chunks",
            self.queue,
            units::sig3(closed.fresh),
            units::sig3(closed.chunks)
        ));
        Term::new("serving", Value::Number(self.output_tokens_per_s, "output tokens/s"))
            .basis(self.basis)
            .formula(format!(
                "{} running / (TTFT + {} x TPOT) x output, {} tokens in",
                units::sig3(self.admitted),
                units::sig3((closed.output - 1.0).max(0.0)),
                units::sig3(closed.input)
            ))
            .parts([ttft, tpot])
    }
}
