# SPDX-License-Identifier: Apache-2.0
"""Small Hugging Face models with random weights, for the examples: no download, no torch."""
import json
import pathlib

import numpy

HIDDEN, HEADS, GROUPS, HEAD, FFN, LAYERS, VOCABULARY = 64, 4, 2, 16, 96, 4, 256


def write_llama(folder):
    """A Llama of four layers. Gives the folder."""
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "rope_theta": 10000.0,
        **_sizes(),
    }
    tensors = _outside()
    for layer in range(LAYERS):
        tensors.update(_attention(layer))
        name = f"model.layers.{layer}.mlp."
        tensors[name + "gate_proj.weight"] = (FFN, HIDDEN)
        tensors[name + "up_proj.weight"] = (FFN, HIDDEN)
        tensors[name + "down_proj.weight"] = (HIDDEN, FFN)
    return _write(folder, config, tensors)


def write_mixtral(folder, experts=4):
    """A Mixtral of four layers with `experts` experts in each. Gives the folder."""
    config = {
        "architectures": ["MixtralForCausalLM"],
        "model_type": "mixtral",
        "num_local_experts": experts,
        "num_experts_per_tok": 2,
        "rope_theta": 1000000.0,
        **_sizes(),
    }
    tensors = _outside()
    for layer in range(LAYERS):
        tensors.update(_attention(layer))
        name = f"model.layers.{layer}.block_sparse_moe."
        tensors[name + "gate.weight"] = (experts, HIDDEN)
        for expert in range(experts):
            tensors[f"{name}experts.{expert}.w1.weight"] = (FFN, HIDDEN)
            tensors[f"{name}experts.{expert}.w2.weight"] = (HIDDEN, FFN)
            tensors[f"{name}experts.{expert}.w3.weight"] = (FFN, HIDDEN)
    return _write(folder, config, tensors)


def _sizes():
    return {
        "hidden_size": HIDDEN,
        "intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": GROUPS,
        "head_dim": HEAD,
        "vocab_size": VOCABULARY,
        "max_position_embeddings": 512,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "tie_word_embeddings": False,
        "torch_dtype": "float32",
    }


def _outside():
    return {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
        "lm_head.weight": (VOCABULARY, HIDDEN),
    }


def _attention(layer):
    name = f"model.layers.{layer}."
    return {
        name + "input_layernorm.weight": (HIDDEN,),
        name + "post_attention_layernorm.weight": (HIDDEN,),
        name + "self_attn.q_proj.weight": (HEADS * HEAD, HIDDEN),
        name + "self_attn.k_proj.weight": (GROUPS * HEAD, HIDDEN),
        name + "self_attn.v_proj.weight": (GROUPS * HEAD, HIDDEN),
        name + "self_attn.o_proj.weight": (HIDDEN, HEADS * HEAD),
    }


def _write(folder, config, shapes):
    """A safetensors file is the length of a JSON header, the header, and the bytes."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True)
    random = numpy.random.default_rng(0)
    header, data = {}, b""
    for name, shape in shapes.items():
        array = (random.standard_normal(shape) / 8).astype("<f4")
        header[name] = {
            "dtype": "F32",
            "shape": list(shape),
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (folder / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)
    return folder
