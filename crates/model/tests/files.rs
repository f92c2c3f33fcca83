//! Headers that the formats' own packages wrote (`files/make.py`), and headers that lie.

// what sets a test up may fail loudly too
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use model::files::{
    Builder, Checkpoint, FileError, GGML_TYPES, Gguf, Hints, Part, StoredFormat, read_gguf, read_index,
    read_safetensors, spec_of_gguf, split_name,
};
use model::{ModelError, WeightFormat, read_config};
use proptest::prelude::*;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files")
}

#[allow(clippy::disallowed_methods)]
fn head(name: &str) -> (Vec<u8>, u64) {
    let sizes = std::fs::read_to_string(folder().join("sizes.csv")).unwrap();
    let row = sizes.lines().find(|l| l.starts_with(&format!("{name},"))).unwrap();
    let size = row.split(',').nth(1).unwrap().parse().unwrap();
    (std::fs::read(folder().join(format!("{name}.head"))).unwrap(), size)
}

fn sums(name: &str, hints: Hints) -> Checkpoint {
    let (bytes, size) = head(name);
    let mut builder = Builder::new(hints);
    read_safetensors(&*bytes, size, &mut builder).unwrap();
    builder.finish(false)
}

fn gguf(names: &[&str]) -> (Gguf, Checkpoint) {
    let mut builder = Builder::new(Hints::default());
    let mut first: Option<Gguf> = None;
    for name in names {
        let (bytes, size) = head(name);
        let header = read_gguf(&*bytes, size, &mut builder).unwrap();
        match &mut first {
            None => first = Some(header),
            Some(f) => f.add_facts(&header),
        }
    }
    (first.unwrap(), builder.finish(true))
}

const LLAMA: &str = r#"{"model_type":"llama","torch_dtype":"float16","hidden_size":64,"intermediate_size":96,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"vocab_size":100,
    "tie_word_embeddings":false,"max_position_embeddings":128}"#;

#[test]
fn a_safetensors_file_agrees_with_its_config() {
    let sums = sums("llama.safetensors", Hints::default());
    // 2·100·64 + 64 + 2·(2·64·64 + 2·32·64 + 3·64·96 + 2·64)
    let params = 2 * 100 * 64 + 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96 + 2 * 64);
    assert_eq!((sums.total.tensors, sums.total.params, sums.total.bytes), (21, params, 2 * params));
    assert_eq!(sums.by_part[&Part::Head].params, 6400);
    assert_eq!(sums.format, Some(StoredFormat::Float(16)));
    let spec = read_config("x", LLAMA.as_bytes()).unwrap().with_checkpoint(&sums);
    assert_eq!(spec.stored_bytes().0, 2 * params);
    assert!(spec.problems.iter().all(|p| p.key != "files"), "{:?}", spec.problems);
}

#[test]
fn files_beat_the_config_and_say_by_how_much() {
    let sums = sums("llama.safetensors", Hints::default());
    let config = LLAMA.replace("\"tie_word_embeddings\":false", "\"tie_word_embeddings\":true");
    let spec = read_config("x", config.as_bytes()).unwrap().with_checkpoint(&sums);
    assert_eq!(spec.stored_bytes().0, sums.total.bytes);
    let remark = spec.problems.iter().find(|p| p.key == "files").unwrap();
    assert!(remark.message.contains("6,400 more"), "{}", remark.message);
}

#[test]
fn packed_words_count_as_what_they_unpack_to() {
    let int4 = sums("gptq.safetensors", Hints::default());
    assert_eq!((int4.total.params, int4.format), (2 * 64 * 64, Some(StoredFormat::Int4)));
    let eight = sums("gptq.safetensors", Hints { bits: Some(8), layers: None });
    assert_eq!((eight.total.params, eight.format), (64 * 64, Some(StoredFormat::Int8)));
    // 2 experts × 32 rows × 2 blocks × 32 weights, and a norm
    let mx = sums("mxfp4.safetensors", Hints::default());
    assert_eq!((mx.total.params, mx.format), (2 * 32 * 2 * 32 + 64, Some(StoredFormat::Mxfp4)));
}

#[test]
fn layers_behind_the_last_are_mtp() {
    let sums = sums("llama.safetensors", Hints { bits: None, layers: Some(1) });
    let layer = 2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 96 + 2 * 64;
    assert_eq!(sums.mtp.params, layer);
    assert_eq!(sums.measured().weights_bytes.0, sums.total.bytes - 2 * layer);
}

#[test]
fn a_gguf_header_alone_gives_the_anatomy() {
    let (header, sums) = gguf(&["llama-q4_k.gguf"]);
    assert_eq!((header.version, header.architecture(), header.vocabulary()), (3, Some("llama"), Some(100)));
    assert!(header.chat_template());
    assert_eq!((header.own("context_length"), header.own("attention.head_count_kv")), (Some(4096), Some(2)));
    let spec = spec_of_gguf("x", &header, &sums).unwrap();
    let layer = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 256 * 512;
    let quantised = 2 * 100 * 256 + 2 * layer;
    assert_eq!(spec.params_total().0, quantised + 256 + 2 * 2 * 256);
    // Q4_K: 144 bytes per 256 weights; norms in 32 bit
    assert_eq!(spec.weights_bytes_checkpoint().0, quantised / 256 * 144 + 4 * (256 + 4 * 256));
    assert_eq!(spec.weights, "q4_k_m".parse::<WeightFormat>().unwrap());
    assert!(spec.problems.iter().all(|p| p.key != "files"), "{:?}", spec.problems);
}

#[test]
fn a_split_gguf_sums_its_parts() {
    let (header, sums) = gguf(&["split-00001-of-00002.gguf", "split-00002-of-00002.gguf"]);
    let split = header.split().unwrap();
    assert_eq!((split.index, split.count), (0, 2));
    assert_eq!(sums.total.params, gguf(&["llama-q4_k.gguf"]).1.total.params);
    assert_eq!(split_name("a-b-00002-of-00003.gguf"), Some(("a-b", 2, 3)));
    for bad in
        ["a-00004-of-00003.gguf", "a-0001-of-0003.gguf", "a.gguf", "a-00000-of-00003.gguf", "a-+0001-of-00003.gguf"]
    {
        assert_eq!(split_name(bad), None, "{bad}");
    }
}

#[test]
fn an_unknown_architecture_still_has_sums() {
    let (header, sums) = gguf(&["unknown.gguf"]);
    assert_eq!(sums.total.tensors, 20);
    let e = spec_of_gguf("x", &header, &sums).unwrap_err();
    assert!(matches!(&e, ModelError::UnknownArchitecture { what, .. } if what.contains("nosuch")), "{e}");
}

#[test]
#[allow(clippy::disallowed_methods)]
fn block_sizes_are_those_of_the_gguf_package() {
    let text = std::fs::read_to_string(folder().join("ggml_types.csv")).unwrap();
    assert_eq!(text.lines().count() - 1, GGML_TYPES.len());
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let t = model::files::ggml_type(cells[0].parse().unwrap()).unwrap();
        // the package gives Q8_1 two 32-bit scales; ggml's own block has two of 16 bits, and no file holds the type
        let bytes = if t.name == "Q8_1" { "40".to_owned() } else { t.bytes.to_string() };
        assert_eq!((t.name, t.block.to_string().as_str(), bytes.as_str()), (cells[1], cells[2], cells[3]));
    }
}

fn tensors(json: &str, data: u64) -> Result<Checkpoint, FileError> {
    let mut bytes = (json.len() as u64).to_le_bytes().to_vec();
    bytes.extend_from_slice(json.as_bytes());
    let mut builder = Builder::default();
    read_safetensors(&*bytes, bytes.len() as u64 + data, &mut builder)?;
    Ok(builder.finish(false))
}

#[test]
fn lying_safetensors_headers_are_refused() {
    let one = r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
    assert_eq!(tensors(one, 4).unwrap().total.params, 2);
    let check = |json: &str, data: u64, wanted: &str| {
        let e = tensors(json, data).unwrap_err();
        assert!(e.to_string().contains(wanted), "{e} lacks {wanted}");
        assert!(!e.hint().is_empty());
    };
    check(one, 3, "ends at byte 4 of the data, the file holds 3");
    check(&one.replace("[2]", "[3]"), 4, "must be F16 of shape [3]");
    check(&one.replace("[2]", "[4294967296,4294967296,2]"), 4, "4 bytes");
    check(&one.replace("[2]", "[1,1,1,1,1,1,1,1,2]"), 4, "more than 8 dimensions");
    check(&one.replace("[2]", "[NaN]"), 4, "not valid JSON");
    check(&one.replace("[2]", "[-2]"), 4, "not valid JSON");
    check(&one.replace("[0,4]", "[4,0]"), 4, "does not end before it starts");
    check(&one.replace("[0,4]", "[0]"), 4, "two offsets");
    check(&one.replace("F16", "F17"), 4, "a known element type");
    check(
        r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"a":{"dtype":"F16","shape":[2],"data_offsets":[4,8]}}"#,
        8,
        "twice",
    );
    check(
        r#"{"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}}"#,
        8,
        "overlap at byte 2",
    );
    check(
        &format!("{{\"__metadata__\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000)),
        0,
        "expected an object of texts as metadata",
    );
    check(&format!("{{\"{}\":{{}}}}", "n".repeat(2000)), 0, "bytes of a tensor's name: 2000");
    check(&format!("{{\"{}\":{{}}}}", "n".repeat(9 << 20)), 0, "more than 8 MiB");
    check("{\"a\":", 0, "ends too early");
    check("[]", 0, "an object of tensors");
    let start =
        |bytes: &[u8], size: u64| read_safetensors(bytes, size, &mut Builder::default()).unwrap_err().to_string();
    assert!(start(&[1, 2], 2).contains("8 bytes are needed"));
    assert!(start(&100u64.to_le_bytes(), 50).contains("108 bytes are needed"));
    assert!(start(&u64::MAX.to_le_bytes(), 50).contains("the limit is 104857600"));
    assert!(start(b"GGUF\x03\0\0\0", 50).contains("as a GGUF file does"));
    assert!(start(b"version https", 130).contains("LFS pointer"));
}

#[test]
fn an_index_names_plain_files_only() {
    let read = |file: &str| {
        let json = serde_json::json!({"metadata": {"total_size": 12.0}, "weight_map": {"a": file}}).to_string();
        read_index(json.as_bytes(), json.len() as u64)
    };
    let index = read("model-00001-of-00002.safetensors").unwrap();
    assert_eq!((index.tensors, index.shards.len(), index.total_size), (1, 1, Some(12)));
    for bad in ["../a", "/etc/passwd", "a/b", "..", "", "a\\b", "C:a", "a\0", "a\nb"] {
        assert!(matches!(read(bad), Err(FileError::Path { .. })), "{bad:?}");
    }
    let twice = br#"{"weight_map":{"a":"x","a":"y"}}"#;
    assert!(matches!(read_index(&twice[..], twice.len() as u64), Err(FileError::Duplicate { .. })));
    let empty = b"{}";
    assert!(matches!(read_index(&empty[..], 2), Err(FileError::WrongKind { .. })));
}

/// A GGUF of these counts and this body.
fn header(tensors: u64, entries: u64, body: &[u8], size: u64) -> Result<Gguf, FileError> {
    let mut bytes = b"GGUF\x03\0\0\0".to_vec();
    bytes.extend(tensors.to_le_bytes());
    bytes.extend(entries.to_le_bytes());
    bytes.extend(body);
    let size = size.max(bytes.len() as u64);
    read_gguf(&*bytes, size, &mut Builder::default())
}

fn text(t: &str) -> Vec<u8> {
    let mut out = (t.len() as u64).to_le_bytes().to_vec();
    out.extend(t.as_bytes());
    out
}

fn tensor(name: &str, dims: &[u64], kind: u32, offset: u64) -> Vec<u8> {
    let mut out = text(name);
    out.extend(u32::try_from(dims.len()).unwrap().to_le_bytes());
    dims.iter().for_each(|d| out.extend(d.to_le_bytes()));
    out.extend(kind.to_le_bytes());
    out.extend(offset.to_le_bytes());
    out
}

#[test]
fn lying_gguf_headers_are_refused() {
    let check = |result: Result<Gguf, FileError>, wanted: &str| {
        let e = result.unwrap_err();
        assert!(e.to_string().contains(wanted), "{e} lacks {wanted}");
        assert!(!e.hint().is_empty());
    };
    check(header(1_000_000_000_000, 0, &[], 0), "tensors: 1000000000000, the limit is 2000000");
    check(header(1000, 0, &[], 0), "24024 bytes are needed");
    check(header(0, u64::MAX, &[], 0), "metadata entries");
    check(header(0, 1, &text("k"), 0), "ends inside its header");
    let mut long = u64::MAX.to_le_bytes().to_vec();
    check(header(0, 1, &long, 0), "ends inside its header");
    long = [text("k"), 8u32.to_le_bytes().to_vec(), (1u64 << 60).to_le_bytes().to_vec()].concat();
    check(header(0, 1, &long, 0), "ends inside its header");
    let list =
        |kind: u32, n: u64| [text("k"), [9u32, kind].map(u32::to_le_bytes).concat(), n.to_le_bytes().to_vec()].concat();
    check(header(0, 1, &list(4, 1 << 40), 1 << 50), "elements of a metadata list");
    check(header(0, 1, &list(9, 2), 1 << 20), "a list of lists");
    check(header(0, 1, &list(13, 2), 1 << 20), "value type 13");
    let pair = [text("k"), 4u32.to_le_bytes().to_vec(), 1u32.to_le_bytes().to_vec()].concat();
    check(header(0, 2, &[pair.clone(), pair].concat(), 0), "twice");
    check(header(1, 0, &tensor("a", &[32], 99, 0), 4096), "a known ggml type");
    check(header(1, 0, &tensor("a", &[33], 2, 0), 4096), "a multiple of 32 in Q4_0");
    check(header(1, 0, &tensor("a", &[1; 5], 0, 0), 4096), "at most 4 dimensions");
    check(header(1, 0, &tensor("a", &[1 << 40, 1 << 40], 0, 0), 4096), "a size below 2^64");
    check(header(1, 0, &tensor("a", &[8], 0, 5), 4096), "a multiple of the alignment 32");
    check(header(1, 0, &tensor("a", &[8], 0, u64::MAX - 31), 4096), "an offset in the file");
    check(header(1, 0, &tensor("a", &[8], 0, 1 << 20), 4096), "ends at byte 1048608");
    let two = |b: &str, at: u64| [tensor("a", &[16], 0, 0), tensor(b, &[16], 0, at)].concat();
    check(header(2, 0, &two("b", 32), 4096), "overlap at byte 32");
    check(header(2, 0, &two("a", 64), 4096), "twice");
    assert_eq!(header(2, 0, &two("b", 64), 4096).unwrap().tensors, 2);
    let start = |bytes: &[u8]| read_gguf(bytes, bytes.len() as u64, &mut Builder::default());
    check(start(b"GGML\x03\0\0\0"), "it starts with GGML");
    check(start(b"GGUF\x01\0\0\0"), "version 1");
    check(start(b"GGUF\0\0\0\x03"), "big-endian");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_mutation_panics(which in 0usize..4, edits in prop::collection::vec((any::<u16>(), any::<u8>()), 1..12), cut in any::<Option<u16>>()) {
        let name = ["llama.safetensors", "gptq.safetensors", "llama-q4_k.gguf", "unknown.gguf"][which];
        let (mut bytes, size) = head(name);
        for (at, value) in edits {
            let at = usize::from(at) % bytes.len();
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(usize::from(cut));
        }
        let mut builder = Builder::default();
        if which < 2 {
            let _ = read_safetensors(&*bytes, size, &mut builder);
        } else if let Ok(header) = read_gguf(&*bytes, size, &mut builder) {
            let _ = spec_of_gguf("x", &header, &builder.finish(true));
        }
    }
}
