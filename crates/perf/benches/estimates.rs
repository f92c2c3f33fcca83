//! What the planner pays per candidate.
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

use std::sync::LazyLock;

use divan::{Bencher, black_box};
use hardware::{Hardware, NodeShape, OnSpec};
use model::{Catalog, KvFormat, ModelSpec};
use perf::{
    Arrival, Batch, Capacity, Chunk, Curves, Engine, Formats, Layout, MemoryLoad, RankWeights, ServingLoad, StepModel,
    memory_figures, memory_with, serving,
};

fn main() {
    divan::main();
}

static SPEC: LazyLock<ModelSpec> =
    LazyLock::new(|| Catalog::embedded().find("deepseek-ai/DeepSeek-V3").unwrap().spec().unwrap());
static NODE: LazyLock<NodeShape> =
    LazyLock::new(|| "8xh200-sxm".parse::<OnSpec>().unwrap().resolve(&Hardware::embedded()).unwrap().0);
const LAYOUT: Layout = Layout { tp: 8, pp: 1, dp: 1, ep: 8 };

fn formats() -> Formats {
    Formats { weights: SPEC.weights, kv: KvFormat::Bf16 }
}

fn compiled() -> StepModel {
    StepModel::compile(&SPEC, &LAYOUT, &NODE, 1, Engine::Vllm, &formats(), Curves::embedded()).unwrap()
}

#[divan::bench]
fn compile(bencher: Bencher) {
    bencher.bench(compiled);
}

/// Models whose layers alternate have as many runs as layers.
#[divan::bench(args = ["openai/gpt-oss-120b", "google/gemma-3-27b-it", "meta-llama/Llama-3.1-405B"])]
fn compile_others(bencher: Bencher, name: &str) {
    let spec = Catalog::embedded().find(name).unwrap().spec().unwrap();
    let formats = Formats { weights: spec.weights, kv: KvFormat::Bf16 };
    let layout = Layout::tensor(8);
    bencher
        .bench(|| StepModel::compile(&spec, &layout, &NODE, 1, Engine::Vllm, black_box(&formats), Curves::embedded()));
}

#[divan::bench]
fn time_decode(bencher: Bencher) {
    let step = compiled();
    bencher.bench(|| step.time(black_box(&Batch::decode(64.0, 2048.0))));
}

#[divan::bench]
fn time_mixed(bencher: Bencher) {
    let step = compiled();
    let chunks = [Chunk { q: 2048.0, kv: 0.0 }];
    let batch = Batch { prefill: &chunks, decodes: 64.0, decode_kv_total: 131_072.0 };
    bencher.bench(|| step.time(black_box(&batch)));
}

#[divan::bench]
fn closed_loop(bencher: Bencher) {
    let step = compiled();
    let arrival = Arrival::Concurrency(64.0);
    let load = ServingLoad { input: 2048.0, output: 512.0, prefix_share: 0.0, arrival };
    bencher.bench(|| serving(&step, 500_000, black_box(&load)));
}

#[divan::bench]
fn open_loop(bencher: Bencher) {
    let step = compiled();
    let arrival = Arrival::Rate(3.0);
    let load = ServingLoad { input: 2048.0, output: 512.0, prefix_share: 0.0, arrival };
    bencher.bench(|| serving(&step, 500_000, black_box(&load)));
}

#[divan::bench]
fn rank_weights(bencher: Bencher) {
    bencher.bench(|| RankWeights::compute(&SPEC, black_box(&LAYOUT), SPEC.weights));
}

#[divan::bench]
fn memory_of_a_candidate(bencher: Bencher) {
    let weights = RankWeights::compute(&SPEC, &LAYOUT, SPEC.weights);
    let load = MemoryLoad::default();
    bencher.bench(|| {
        let f = formats();
        memory_figures(&SPEC, &weights, &NODE, Engine::Vllm, black_box(&f), &load, Capacity::CudaTotal)
    });
}

#[divan::bench]
fn memory_explained(bencher: Bencher) {
    let weights = RankWeights::compute(&SPEC, &LAYOUT, SPEC.weights);
    let load = MemoryLoad::default();
    bencher.bench(|| {
        let f = formats();
        memory_with(&SPEC, &weights, &NODE, Engine::Vllm, black_box(&f), &load, Capacity::CudaTotal)
    });
}
