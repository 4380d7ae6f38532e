# SPDX-License-Identifier: Apache-2.0
"""What planning costs for DeepSeek-V3's shapes: 45 thousand tensors, 1.34 TB in sparse files.

    python3 bench/sparse_moe.py build/release/shardwright /any/disk

Writes headers only: the files' contents are holes. Plans the conversion to torch_dist and to legacy
files at TP8 PP8 EP32, and prints the time and the memory that each takes.
"""

import argparse
import json
import os
import re
import struct
import subprocess

LAYERS, DENSE, EXPERTS = 61, 3, 256
HIDDEN, FFN, EXPERT_FFN, VOCAB = 7168, 18432, 2048, 129280
HEADS, Q_RANK, KV_RANK, NOPE, ROPE, VALUE = 128, 1536, 512, 128, 64, 128
SHARD_BYTES = 8_000_000_000

CONFIG = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "dtype": "bfloat16",
    "attention_bias": False, "first_k_dense_replace": DENSE, "hidden_act": "silu",
    "hidden_size": HIDDEN, "intermediate_size": FFN, "kv_lora_rank": KV_RANK,
    "max_position_embeddings": 163840, "moe_intermediate_size": EXPERT_FFN, "moe_layer_freq": 1,
    "n_group": 8, "n_routed_experts": EXPERTS, "n_shared_experts": 1, "norm_topk_prob": True,
    "num_attention_heads": HEADS, "num_experts_per_tok": 8, "num_hidden_layers": LAYERS,
    "num_key_value_heads": HEADS, "num_nextn_predict_layers": 0, "q_lora_rank": Q_RANK,
    "qk_nope_head_dim": NOPE, "qk_rope_head_dim": ROPE, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
    "routed_scaling_factor": 2.5, "scoring_func": "sigmoid", "tie_word_embeddings": False,
    "topk_group": 4, "topk_method": "noaux_tc", "v_head_dim": VALUE, "vocab_size": VOCAB,
}  # fmt: skip


def glu(prefix, width):
    yield f"{prefix}.gate_proj.weight", "BF16", [width, HIDDEN]
    yield f"{prefix}.up_proj.weight", "BF16", [width, HIDDEN]
    yield f"{prefix}.down_proj.weight", "BF16", [HIDDEN, width]


def tensors():
    yield "model.embed_tokens.weight", "BF16", [VOCAB, HIDDEN]
    for layer in range(LAYERS):
        at = f"model.layers.{layer}"
        yield f"{at}.input_layernorm.weight", "BF16", [HIDDEN]
        yield f"{at}.post_attention_layernorm.weight", "BF16", [HIDDEN]
        yield f"{at}.self_attn.q_a_proj.weight", "BF16", [Q_RANK, HIDDEN]
        yield f"{at}.self_attn.q_a_layernorm.weight", "BF16", [Q_RANK]
        yield f"{at}.self_attn.q_b_proj.weight", "BF16", [HEADS * (NOPE + ROPE), Q_RANK]
        yield f"{at}.self_attn.kv_a_proj_with_mqa.weight", "BF16", [KV_RANK + ROPE, HIDDEN]
        yield f"{at}.self_attn.kv_a_layernorm.weight", "BF16", [KV_RANK]
        yield f"{at}.self_attn.kv_b_proj.weight", "BF16", [HEADS * (NOPE + VALUE), KV_RANK]
        yield f"{at}.self_attn.o_proj.weight", "BF16", [HIDDEN, HEADS * VALUE]
        if layer < DENSE:
            yield from glu(f"{at}.mlp", FFN)
            continue
        yield f"{at}.mlp.gate.weight", "BF16", [EXPERTS, HIDDEN]
        yield f"{at}.mlp.gate.e_score_correction_bias", "F32", [EXPERTS]
        yield from glu(f"{at}.mlp.shared_experts", EXPERT_FFN)
        for expert in range(EXPERTS):
            yield from glu(f"{at}.mlp.experts.{expert}", EXPERT_FFN)
    yield "model.norm.weight", "BF16", [HIDDEN]
    yield "lm_head.weight", "BF16", [VOCAB, HIDDEN]


def write_model(folder):
    os.makedirs(folder, exist_ok=True)
    shards, end = [{}], 0
    for name, dtype, shape in tensors():
        size = {"BF16": 2, "F32": 4}[dtype]
        for extent in shape:
            size *= extent
        if end and end + size > SHARD_BYTES:
            shards.append({})
            end = 0
        shards[-1][name] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    weight_map, total = {}, 0
    for number, shard in enumerate(shards, 1):
        file = f"model-{number:05}-of-{len(shards):05}.safetensors"
        header = json.dumps(shard).encode()
        header += b" " * (-len(header) % 8)
        size = max(entry["data_offsets"][1] for entry in shard.values())
        with open(f"{folder}/{file}", "wb") as out:
            out.write(struct.pack("<Q", len(header)) + header)
            out.truncate(8 + len(header) + size)
        weight_map.update(dict.fromkeys(shard, file))
        total += size
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    for file, value in [("config.json", CONFIG), ("model.safetensors.index.json", index)]:
        with open(f"{folder}/{file}", "w") as out:
            json.dump(value, out)
    return len(weight_map), total


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program")
    parser.add_argument("folder")
    options = parser.parse_args()
    source = f"{options.folder}/sparse_moe"
    count, total = write_model(source)
    print(f"{count} tensors, {total / 1e12:.2f} TB")
    for form in ["torch_dist", "legacy"]:
        command = [options.program, "plan", source, f"{options.folder}/unused", "--to", form]
        command += ["--tp", "8", "--pp", "8", "--ep", "32"]
        done = subprocess.run(["/usr/bin/time", "-v", *command], capture_output=True, text=True)
        if "Maximum resident" not in done.stderr or "error" in done.stderr:
            raise SystemExit(done.stderr)
        kib = int(re.search(r"Maximum resident set size \(kbytes\): (\d+)", done.stderr)[1])
        wall = re.search(r"Elapsed .*: (\S+)", done.stderr)[1]
        print(f"plan --to {form}: {kib / 1024:.0f} MiB, {wall}")


if __name__ == "__main__":
    main()
