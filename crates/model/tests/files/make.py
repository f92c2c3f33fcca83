"""Writes the small weight files of these tests with the formats' own packages: pip install safetensors gguf numpy.

Run in this folder. `ggml_types.csv` is what the gguf package says of every type."""

import numpy as np
from gguf import GGUFWriter, GGMLQuantizationType, GGML_QUANT_SIZES
from safetensors.numpy import save_file


def z(*shape, dtype=np.float16):
    return np.zeros(shape, dtype=dtype)


def llama(layers=2, hidden=64, ffn=96, vocab=100, kv=32):
    out = {"model.embed_tokens.weight": z(vocab, hidden), "lm_head.weight": z(vocab, hidden), "model.norm.weight": z(hidden)}
    for i in range(layers):
        p = f"model.layers.{i}."
        for name, rows, cols in [
            ("self_attn.q_proj", hidden, hidden), ("self_attn.k_proj", kv, hidden), ("self_attn.v_proj", kv, hidden),
            ("self_attn.o_proj", hidden, hidden), ("mlp.gate_proj", ffn, hidden), ("mlp.up_proj", ffn, hidden),
            ("mlp.down_proj", hidden, ffn),
        ]:
            out[p + name + ".weight"] = z(rows, cols)
        out[p + "input_layernorm.weight"] = z(hidden)
        out[p + "post_attention_layernorm.weight"] = z(hidden)
    return out


save_file(llama(), "llama.safetensors", metadata={"format": "pt"})

gptq = {}
for name in ["q_proj", "o_proj"]:
    p = f"model.layers.0.self_attn.{name}."
    gptq[p + "qweight"] = z(64 // 8, 64, dtype=np.int32)
    gptq[p + "qzeros"] = z(2, 8, dtype=np.int32)
    gptq[p + "scales"] = z(2, 64)
    gptq[p + "g_idx"] = z(64, dtype=np.int32)
save_file(gptq, "gptq.safetensors")

save_file({
    "model.layers.0.mlp.experts.down_proj_blocks": z(2, 32, 2, 16, dtype=np.uint8),
    "model.layers.0.mlp.experts.down_proj_scales": z(2, 32, 2, dtype=np.uint8),
    "model.norm.weight": z(64),
}, "mxfp4.safetensors")


def gguf(path, arch, q, tied=False, split=None):
    w = GGUFWriter(path, arch)
    w.add_block_count(2)
    w.add_context_length(4096)
    w.add_embedding_length(256)
    w.add_feed_forward_length(512)
    w.add_head_count(4)
    w.add_head_count_kv(2)
    w.add_layer_norm_rms_eps(1e-5)
    w.add_tokenizer_model("gpt2")
    w.add_token_list([f"t{i}" for i in range(100)])
    w.add_chat_template("{{ messages }}")
    if split:
        w.add_uint16("split.no", split[0])
        w.add_uint16("split.count", split[1])
        w.add_int32("split.tensors.count", 20 if not tied else 19)
    block, size = GGML_QUANT_SIZES[q]
    def add(name, rows, cols, kind=q):
        if split and (("blk.1" in name) != (split[0] == 1)):
            return
        if kind == GGMLQuantizationType.F32:
            w.add_tensor(name, np.zeros((rows, cols) if rows else (cols,), dtype=np.float32))
        else:
            w.add_tensor(name, np.zeros((rows, cols // block * size), dtype=np.uint8), raw_dtype=kind)
    f32 = GGMLQuantizationType.F32
    add("token_embd.weight", 100, 256)
    if not tied:
        add("output.weight", 100, 256)
    add("output_norm.weight", 0, 256, f32)
    for i in range(2):
        b = f"blk.{i}."
        add(b + "attn_q.weight", 256, 256); add(b + "attn_k.weight", 128, 256); add(b + "attn_v.weight", 128, 256)
        add(b + "attn_output.weight", 256, 256); add(b + "ffn_gate.weight", 512, 256)
        add(b + "ffn_up.weight", 512, 256); add(b + "ffn_down.weight", 256, 512)
        add(b + "attn_norm.weight", 0, 256, f32); add(b + "ffn_norm.weight", 0, 256, f32)
    w.write_header_to_file(); w.write_kv_data_to_file(); w.write_tensors_to_file(); w.close()


Q = GGMLQuantizationType
gguf("llama-q4_k.gguf", "llama", Q.Q4_K)
gguf("unknown.gguf", "nosuch", Q.Q8_0, tied=True)
for i in range(2):
    gguf(f"split-{i + 1:05}-of-00002.gguf", "llama", Q.Q6_K, split=(i, 2))

with open("ggml_types.csv", "w") as f:
    f.write("id,name,block,bytes\n")
    for t, (block, size) in sorted(GGML_QUANT_SIZES.items()):
        f.write(f"{int(t)},{t.name},{block},{size}\n")

# only the headers are kept, beside the sizes of the whole files
import pathlib, struct
from gguf import GGUFReader
with open("sizes.csv", "w") as f:
    f.write("file,bytes,header\n")
    for path in sorted(pathlib.Path(".").glob("*.safetensors")) + sorted(pathlib.Path(".").glob("*.gguf")):
        data = path.read_bytes()
        if path.suffix == ".safetensors":
            header = 8 + struct.unpack("<Q", data[:8])[0]
        else:
            header = GGUFReader(path).data_offset
        f.write(f"{path.name},{len(data)},{header}\n")
        pathlib.Path(path.name + ".head").write_bytes(data[:header])
        path.unlink()
