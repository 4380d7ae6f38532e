# SPDX-License-Identifier: Apache-2.0
"""Large Hugging Face checkpoints for benchmarks: made quickly, and recognised again bit by bit.

Every byte is a function of the tensor's name and the byte's place in the tensor, with no period, so
a wrong tensor, row or column cannot go unnoticed. The values mean nothing: some are NaNs.
"""

import hashlib
import json
import os
import struct

BLOCK = 1 << 20
SHARD_BYTES = 1_000_000_000
BYTES_PER_ELEMENT = 2  # bf16


def content(name, size):
    """The bytes of a tensor, block by block."""
    for start in range(0, size, BLOCK):
        seed = f"{name}\n{start}".encode()
        yield hashlib.shake_128(seed).digest(min(BLOCK, size - start))


def count_bytes(shape):
    size = BYTES_PER_ELEMENT
    for extent in shape:
        size *= extent
    return size


def attention_shapes(prefix, config):
    hidden = config["hidden_size"]
    queries = config["num_attention_heads"] * config["head_dim"]
    keys = config["num_key_value_heads"] * config["head_dim"]
    yield prefix + "input_layernorm.weight", (hidden,)
    yield prefix + "self_attn.q_proj.weight", (queries, hidden)
    yield prefix + "self_attn.k_proj.weight", (keys, hidden)
    yield prefix + "self_attn.v_proj.weight", (keys, hidden)
    yield prefix + "self_attn.o_proj.weight", (hidden, queries)
    if config["model_type"] == "qwen3_moe":
        yield prefix + "self_attn.q_norm.weight", (config["head_dim"],)
        yield prefix + "self_attn.k_norm.weight", (config["head_dim"],)
    yield prefix + "post_attention_layernorm.weight", (hidden,)


def gated_mlp_shapes(prefix, hidden, inner):
    yield prefix + "gate_proj.weight", (inner, hidden)
    yield prefix + "up_proj.weight", (inner, hidden)
    yield prefix + "down_proj.weight", (hidden, inner)


def shapes(config):
    """Every tensor of the model: name and shape, in the order in which they are stored."""
    hidden = config["hidden_size"]
    yield "model.embed_tokens.weight", (config["vocab_size"], hidden)
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        yield from attention_shapes(prefix, config)
        if config["model_type"] == "llama":
            yield from gated_mlp_shapes(prefix + "mlp.", hidden, config["intermediate_size"])
            continue
        yield prefix + "mlp.gate.weight", (config["num_experts"], hidden)
        for expert in range(config["num_experts"]):
            yield from gated_mlp_shapes(
                f"{prefix}mlp.experts.{expert}.", hidden, config["moe_intermediate_size"]
            )
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (config["vocab_size"], hidden)


SHARED_CONFIG = {
    "attention_bias": False,
    "bos_token_id": 1,
    "dtype": "bfloat16",
    "eos_token_id": 2,
    "hidden_act": "silu",
    "initializer_range": 0.02,
    "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0,
    "tie_word_embeddings": False,
    "vocab_size": 32000,
}


def dense_config(least_bytes):
    """A Llama-like model with as many layers as `least_bytes` asks for."""
    config = {
        **SHARED_CONFIG,
        "architectures": ["LlamaForCausalLM"],
        "head_dim": 128,
        "hidden_size": 2048,
        "intermediate_size": 5632,
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": 16,
        "num_hidden_layers": 1,
        "num_key_value_heads": 8,
    }
    one = model_bytes(config)
    per_layer = model_bytes({**config, "num_hidden_layers": 2}) - one
    config["num_hidden_layers"] += max(0, -(-(least_bytes - one) // per_layer))
    return config


def moe_config(least_bytes):
    """A Qwen3-MoE-like model: 36 layers of 128 experts, which are 13,824 chunks in torch_dist; the
    experts are as wide as `least_bytes` asks for."""
    config = {
        **SHARED_CONFIG,
        "architectures": ["Qwen3MoeForCausalLM"],
        "decoder_sparse_step": 1,
        "head_dim": 64,
        "hidden_size": 512,
        "intermediate_size": 1536,
        "mlp_only_layers": [],
        "model_type": "qwen3_moe",
        "moe_intermediate_size": 16,
        "norm_topk_prob": True,
        "num_attention_heads": 8,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 36,
        "num_key_value_heads": 4,
        "output_router_logits": False,
        "router_aux_loss_coef": 0.001,
        "sliding_window": None,
        "use_sliding_window": False,
    }
    narrow = model_bytes(config)
    per_step = model_bytes({**config, "moe_intermediate_size": 32}) - narrow
    config["moe_intermediate_size"] += 16 * max(0, -(-(least_bytes - narrow) // per_step))
    return config


def model_bytes(config):
    return sum(count_bytes(shape) for _, shape in shapes(config))


def fill_shards(config):
    """Tensors by file, at most SHARD_BYTES each."""
    shards, filled = [[]], 0
    for name, shape in shapes(config):
        size = count_bytes(shape)
        if shards[-1] and filled + size > SHARD_BYTES:
            shards.append([])
            filled = 0
        shards[-1].append((name, shape))
        filled += size
    return shards


def write_shard(path, tensors):
    """Writes one safetensors file and gives the digest of each of its tensors."""
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors:
        begin, end = end, end + count_bytes(shape)
        header[name] = {"dtype": "BF16", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    digests = {}
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            digest = hashlib.sha256()
            for block in content(name, count_bytes(shape)):
                digest.update(block)
                file.write(block)
            digests[name] = [list(shape), digest.hexdigest()]
    return digests


def generate(folder, config):
    """Writes the model to `folder`/hf and what it must contain to `folder`/manifest.json. Nothing is
    done where both are there already."""
    manifest_path = os.path.join(folder, "manifest.json")
    if os.path.exists(manifest_path):
        return
    hf = os.path.join(folder, "hf")
    os.makedirs(hf, exist_ok=True)
    shards = fill_shards(config)
    manifest, weight_map = {}, {}
    for number, tensors in enumerate(shards, 1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        manifest.update(write_shard(os.path.join(hf, name), tensors))
        weight_map.update((tensor, name) for tensor, _ in tensors)
    index = {"metadata": {"total_size": model_bytes(config)}, "weight_map": weight_map}
    for name, value in (("model.safetensors.index.json", index), ("config.json", config)):
        with open(os.path.join(hf, name), "w") as file:
            json.dump(value, file, indent=2, sort_keys=True)
    with open(manifest_path + ".new", "w") as file:
        json.dump(manifest, file)
    os.rename(manifest_path + ".new", manifest_path)  # last: it says that the model is complete


def digests_of_file(path):
    """Shape and digest of each tensor of a safetensors file."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        found = {}
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            file.seek(8 + length + begin)
            digest, left = hashlib.sha256(), end - begin
            while left > 0:
                block = file.read(min(BLOCK, left))
                if not block:
                    raise ValueError(f"{path}: ends inside {name}")
                digest.update(block)
                left -= len(block)
            if entry["dtype"] != "BF16":
                raise ValueError(f"{path}: {name} became {entry['dtype']}")
            found[name] = [entry["shape"], digest.hexdigest()]
    return found


def differences(hf, folder):
    """What of the model in `hf` is not what generate() made: a list of sentences, empty if equal."""
    with open(os.path.join(folder, "manifest.json")) as file:
        expected = json.load(file)
    problems, found = [], {}
    for name in sorted(os.listdir(hf)):
        if not name.endswith(".safetensors"):
            continue
        for tensor, value in digests_of_file(os.path.join(hf, name)).items():
            if tensor in found:
                problems.append(f"{tensor} is stored twice")
            found[tensor] = value
    problems += [f"{name} is missing" for name in expected if name not in found]
    problems += [f"{name} was never there" for name in found if name not in expected]
    for name, (shape, digest) in expected.items():
        if name not in found:
            continue
        if found[name][0] != shape:
            problems.append(f"{name} has shape {found[name][0]}, expected {shape}")
        elif found[name][1] != digest:
            problems.append(f"{name} has other bytes")
    if os.path.exists(os.path.join(hf, "model.safetensors.index.json")):
        with open(os.path.join(hf, "model.safetensors.index.json")) as file:
            if set(json.load(file)["weight_map"]) != set(expected):
                problems.append("model.safetensors.index.json lists other tensors")
    return problems
