# SPDX-License-Identifier: Apache-2.0
"""What MLite's models call and hold of Hugging Face models: as its loaders pack them."""
import re

import torch

NAMES = {
    "embed_tokens.weight": "embed.embedding.weight",
    "norm.weight": "norm.weight",
    "input_layernorm.weight": "input_layernorm.weight",
    "mlp.gate.weight": "moe.router.gate.weight",
    "enorm.weight": "enorm.weight",
    "hnorm.weight": "hnorm.weight",
    "eh_proj.weight": "eh_proj.linear.weight",
    "shared_head.norm.weight": "final_layernorm.weight",
}
LATENT = {
    "q_a_proj.weight": "linear_q_down_proj.weight",
    "q_a_layernorm.weight": "linear_q_up_proj.linear.layer_norm_weight",
    "q_b_proj.weight": "linear_q_up_proj.linear.weight",
    "kv_a_proj_with_mqa.weight": "linear_kv_down_proj.weight",
    "kv_a_layernorm.weight": "linear_kv_up_proj.linear.layer_norm_weight",
    "kv_b_proj.weight": "linear_kv_up_proj.linear.weight",
    "o_proj.weight": "linear_proj.linear.weight",
}


def grouped(config, q, k, v, gated=False):
    """Each group's queries (and their gates), its key, its value."""
    groups, heads = config["num_key_value_heads"], config["num_attention_heads"]
    rows = config["head_dim"]
    parts = []
    for group in range(groups):
        own = range(group * heads // groups, (group + 1) * heads // groups)
        each = 2 * rows if gated else rows
        parts += [q[head * each : head * each + rows] for head in own]
        if gated:
            parts += [q[head * each + rows : (head + 1) * each] for head in own]
        parts += [one[group * rows : (group + 1) * rows] for one in (k, v)]
    return torch.cat(parts)


class Packing:
    """The tensors of a Hugging Face model's layer, taken one after the other."""

    def __init__(self, tensors, config):
        self.left, self.config, self.made = dict(tensors), config, {}

    def take(self, name):
        return self.left.pop(name)

    def has(self, name):
        return name in self.left

    def rename(self, hf, own):
        if self.has(hf):
            self.made[own] = self.take(hf)

    def join(self, hf, own):
        if all(self.has(name) for name in hf):
            self.made[own] = torch.cat([self.take(name) for name in hf])

    def experts(self, hf, own, names=("gate_proj", "up_proj", "down_proj")):
        """One by one, or packed as transformers holds them."""
        gate, up, down = names
        if self.has(f"{hf}.gate_up_proj"):
            both, downs = self.take(f"{hf}.gate_up_proj"), self.take(f"{hf}.down_proj")
            for e in range(len(both)):
                self.made[f"{own}.fc1.weight{e}"] = both[e].clone()
                self.made[f"{own}.fc2.weight{e}"] = downs[e].clone()
        e = 0
        while self.has(f"{hf}.{e}.{down}.weight"):
            self.join([f"{hf}.{e}.{x}.weight" for x in (gate, up)], f"{own}.fc1.weight{e}")
            self.rename(f"{hf}.{e}.{down}.weight", f"{own}.fc2.weight{e}")
            e += 1


def qwen3_moe_layer(layer, hf, own):
    attention = [f"{hf}self_attn.{x}_proj.weight" for x in "qkv"]
    layer.rename(f"{hf}input_layernorm.weight", f"{own}attn.qkv.linear.layer_norm_weight")
    packed = grouped(layer.config, *(layer.take(name) for name in attention))
    layer.made[f"{own}attn.qkv.linear.weight"] = packed
    for x in "qk":
        layer.rename(f"{hf}self_attn.{x}_norm.weight", f"{own}attn.{x}_norm.weight")
    layer.rename(f"{hf}self_attn.o_proj.weight", f"{own}attn.proj.linear.weight")
    layer.rename(f"{hf}post_attention_layernorm.weight", f"{own}mlp_norm.weight")


def latent_layer(layer, hf, own, attention):
    """Of Kimi-K2 and GLM-5."""
    layer.rename(f"{hf}input_layernorm.weight", f"{own}input_layernorm.weight")
    for name in [name for name in layer.left if name.startswith(f"{hf}self_attn.")]:
        layer.rename(name, own + attention(name[len(f"{hf}self_attn.") :]))
    is_dense = layer.has(f"{hf}mlp.down_proj.weight")
    norm = "mlp.gate_up.linear.layer_norm_weight" if is_dense else "mlp_norm.weight"
    layer.rename(f"{hf}post_attention_layernorm.weight", own + norm)
    halves = [f"{hf}mlp.{x}_proj.weight" for x in ("gate", "up")]
    layer.join(halves, f"{own}mlp.gate_up.linear.weight")
    layer.rename(f"{hf}mlp.down_proj.weight", f"{own}mlp.down.linear.weight")


def qwen3_5_layer(layer, hf, own):
    full, linear = f"{own}full_attn.", f"{own}linear_attn."
    if layer.has(f"{hf}self_attn.q_proj.weight"):
        layer.rename(f"{hf}input_layernorm.weight", f"{full}qkv.linear.layer_norm_weight")
        parts = [layer.take(f"{hf}self_attn.{x}_proj.weight") for x in "qkv"]
        layer.made[f"{full}qkv.linear.weight"] = grouped(layer.config, *parts, gated=True)
        for x in "qk":
            layer.rename(f"{hf}self_attn.{x}_norm.weight", f"{full}{x}_norm.weight")
        layer.rename(f"{hf}self_attn.o_proj.weight", f"{full}proj.linear.weight")
    else:
        layer.rename(f"{hf}input_layernorm.weight", f"{linear}in_proj.linear.layer_norm_weight")
        parts = [f"{hf}linear_attn.in_proj_{x}.weight" for x in ("qkv", "z", "b", "a")]
        layer.join(parts, f"{linear}in_proj.linear.weight")
        for x in ("conv1d.weight", "dt_bias", "A_log"):
            layer.rename(f"{hf}linear_attn.{x}", linear + x)
        layer.made[f"{linear}norm.weight"] = layer.take(f"{hf}linear_attn.norm.weight") - 1
        layer.rename(f"{hf}linear_attn.out_proj.weight", f"{linear}o_proj.linear.weight")
    layer.rename(f"{hf}post_attention_layernorm.weight", f"{own}mlp_norm.weight")


LAYERS = {
    "qwen3_moe": qwen3_moe_layer,
    "kimi_k2": lambda *layer: latent_layer(*layer, lambda x: f"self_attention.{LATENT[x]}"),
    "glm5": lambda *layer: latent_layer(*layer, lambda x: f"self_attention.self_attention.{x}"),
    "qwen3_5": qwen3_5_layer,
}


def mlite_of(tensors, config, model):
    """By MLite's names, experts numbered through; and what MLite keeps in buffers, which it does
    not save."""
    if model == "deepseek_v4":
        return deepseek_v4_of(tensors, config)
    packing, layers = Packing(tensors, config), config["num_hidden_layers"]
    numbers = {re.match(r"model\.layers\.(\d+)\.", name) for name in tensors}
    for number in sorted({int(each[1]) for each in numbers if each}):
        hf, own = f"model.layers.{number}.", f"layers.{number}."
        if number >= layers:
            head = f"mtp.layers.{number - layers}."
            own = f"{head}transformer_layer."
            for name in ("enorm", "hnorm", "eh_proj", "shared_head.norm"):
                packing.rename(f"{hf}{name}.weight", head + NAMES[f"{name}.weight"])
            for copy in ("embed_tokens", "shared_head.head"):
                packing.left.pop(f"{hf}{copy}.weight", None)
        LAYERS[model](packing, hf, own)
        packing.rename(f"{hf}mlp.gate.weight", f"{own}moe.router.gate.weight")
        for shared in ("shared_expert", "shared_experts"):
            halves = [f"{hf}mlp.{shared}.{x}_proj.weight" for x in ("gate", "up")]
            packing.join(halves, f"{own}moe.shared_expert.gate_up.linear.weight")
            packing.rename(
                f"{hf}mlp.{shared}.down_proj.weight", f"{own}moe.shared_expert.down.linear.weight"
            )
        packing.rename(
            f"{hf}mlp.shared_expert_gate.weight", f"{own}moe.shared_expert.shared_gate.weight"
        )
        packing.experts(f"{hf}mlp.experts", f"{own}moe.experts")
    packing.rename("model.embed_tokens.weight", "embed.embedding.weight")
    packing.rename("model.norm.weight", "norm.weight")
    packing.rename("lm_head.weight", "head.col.linear.weight")
    return packing.made, packing.left


def deepseek_v4_of(tensors, config):
    packing = Packing(tensors, config)
    for name in list(tensors):
        match = re.match(r"(?:model\.)?layers\.(\d+)\.attn\.(.*)", name)
        if match:
            rest = match[2].replace("indexer.scorer.", "indexer.")
            rest = "sinks" if rest == "attn_sink" else rest
            packing.rename(name, f"model.layers.{match[1]}.self_attn.self_attn.{rest}")
        match = re.match(r"(?:model\.)?layers\.(\d+)\.hc_(attn|ffn)_(\w+)", name)
        if match:
            packing.rename(name, f"model.layers.{match[1]}.{match[2]}_hc.hc_{match[3]}")
        match = re.match(r"(?:model\.)?hc_head(?:\.hc)?_(\w+)", name)
        if match:
            packing.rename(name, f"model.hc_head.hc_{match[1]}")
    for number in range(config["num_hidden_layers"]):
        for hf in (f"layers.{number}.", f"model.layers.{number}."):
            own = f"model.layers.{number}."
            packing.rename(f"{hf}attn_norm.weight", f"{own}input_layernorm.weight")
            packing.rename(f"{hf}ffn_norm.weight", f"{own}post_attention_layernorm.weight")
            packing.rename(f"{hf}ffn.gate.weight", f"{own}mlp.gate.gate.weight")
            shared = f"{hf}ffn.shared_experts."
            halves = [f"{shared}{x}.weight" for x in ("w1", "w3")]
            packing.join(halves, f"{own}mlp.shared_experts.gate_up.linear.weight")
            packing.rename(f"{shared}w2.weight", f"{own}mlp.shared_experts.down.linear.weight")
            packing.experts(f"{hf}ffn.experts", f"{own}mlp.experts", ("w1", "w3", "w2"))
    for hf, own in (
        ("embed.weight", "model.embed_tokens.embedding.weight"),
        ("model.embed_tokens.weight", "model.embed_tokens.embedding.weight"),
        ("norm.weight", "model.norm.weight"),
        ("model.norm.weight", "model.norm.weight"),
        ("head.weight", "lm_head.col.linear.weight"),
        ("lm_head.weight", "lm_head.col.linear.weight"),
    ):
        packing.rename(hf, own)
    return packing.made, packing.left
