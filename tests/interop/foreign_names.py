# SPDX-License-Identifier: Apache-2.0
"""Models under the names of trainers that have their own, as those publish the correspondence.

torchtitan: the `state_dict_adapter` of each of its models. torchtune: `hf_to_tune` and its
likes. Meta: the script of transformers that reads `consolidated.*.pth`.
"""
import re

import torch

TITAN_ENDS = {
    "model.embed_tokens.weight": "tok_embeddings.weight",
    "model.norm.weight": "norm.weight",
    "lm_head.weight": "output.weight",
}
TITAN_LAYER = {
    "self_attn.o_proj.weight": "attention.wo.weight",
    "mlp.gate_proj.weight": "feed_forward.w1.weight",
    "mlp.up_proj.weight": "feed_forward.w3.weight",
    "mlp.down_proj.weight": "feed_forward.w2.weight",
    "input_layernorm.weight": "attention_norm.weight",
    "post_attention_layernorm.weight": "ffn_norm.weight",
    "self_attn.q_proj.weight": "attention.{qkv}wq.weight",
    "self_attn.k_proj.weight": "attention.{qkv}wk.weight",
    "self_attn.v_proj.weight": "attention.{qkv}wv.weight",
    "mlp.gate.weight": "moe.router.gate.weight",
}
TITAN_QWEN = {
    "self_attn.q_norm.weight": "attention.q_norm.weight",
    "self_attn.k_norm.weight": "attention.k_norm.weight",
}
TITAN_DEEPSEEK = {
    "self_attn.q_proj.weight": "attention.wq.weight",
    "self_attn.q_a_proj.weight": "attention.wq_a.weight",
    "self_attn.q_a_layernorm.weight": "attention.q_norm.weight",
    "self_attn.q_b_proj.weight": "attention.wq_b.weight",
    "self_attn.kv_a_proj_with_mqa.weight": "attention.wkv_a.weight",
    "self_attn.kv_a_layernorm.weight": "attention.kv_norm.weight",
    "self_attn.kv_b_proj.weight": "attention.wkv_b.weight",
    "mlp.shared_experts.gate_proj.weight": "moe.shared_experts.w1.weight",
    "mlp.shared_experts.up_proj.weight": "moe.shared_experts.w3.weight",
    "mlp.shared_experts.down_proj.weight": "moe.shared_experts.w2.weight",
    "mlp.gate.e_score_correction_bias": "moe.expert_bias",
}
TITAN_EXPERTS = {"gate_proj": "w1", "up_proj": "w3", "down_proj": "w2"}
TUNE_ENDS = {
    "model.embed_tokens.weight": "tok_embeddings.weight",
    "model.norm.weight": "norm.scale",
    "lm_head.weight": "output.weight",
}
TUNE_LAYER = {
    "self_attn.o_proj.weight": "attn.output_proj.weight",
    "mlp.gate_proj.weight": "mlp.w1.weight",
    "mlp.up_proj.weight": "mlp.w3.weight",
    "mlp.down_proj.weight": "mlp.w2.weight",
    "input_layernorm.weight": "sa_norm.scale",
    "post_attention_layernorm.weight": "mlp_norm.scale",
    "self_attn.q_norm.weight": "attn.q_norm.scale",
    "self_attn.k_norm.weight": "attn.k_norm.scale",
    **{f"self_attn.{x}_proj.{kind}": f"attn.{x}_proj.{kind}"
       for x in "qkv" for kind in ("weight", "bias")},
}


def side_by_side(weight, head_dim):
    """Rows of q or k as Meta has them: the two rows of each rotary pair one behind the other."""
    rows, columns = weight.shape
    heads = rows // head_dim
    return weight.view(heads, 2, head_dim // 2, columns).transpose(1, 2).reshape(rows, columns)


def is_rotary(name):
    return re.search(r"self_attn\.[qk]_proj\.weight$", name) is not None


def renamed(tensors, ends, layer, head_dim=None):
    """Under other names; with `head_dim`, rows of q and k as Meta has them."""
    result = {}
    for name, tensor in tensors.items():
        split = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name)
        new = f"layers.{split[1]}.{layer[split[2]]}" if split else ends[name]
        result[new] = side_by_side(tensor, head_dim) if head_dim and is_rotary(name) else tensor
    return result


def stacked(tensors, experts):
    """The experts of each layer as torchtitan stacks them, and all other tensors."""
    rest, stacks = {}, {}
    for name, tensor in tensors.items():
        split = re.fullmatch(r"model\.layers\.(\d+)\.mlp\.experts\.(\d+)\.(\w+)\.weight", name)
        if split:
            key = f"layers.{split[1]}.{experts}{TITAN_EXPERTS[split[3]]}"
            key += "" if experts == "moe.experts." else "_EDF" if "down" in name else "_EFD"
            stacks.setdefault(key, {})[int(split[2])] = tensor
        else:
            rest[name] = tensor
    return rest, {k: torch.stack([v[i] for i in range(len(v))]) for k, v in stacks.items()}


def titan(tensors, config, newer=False):
    """As torchtitan calls and lays out a Hugging Face model of that configuration."""
    family = config["model_type"]
    layer = dict(TITAN_LAYER, **(TITAN_DEEPSEEK if family == "deepseek_v3" else TITAN_QWEN))
    if newer:
        layer["mlp.gate.e_score_correction_bias"] = "moe.expert_bias_E"
    qkv = "qkv_linear." if newer else ""
    layer = {hf: own.replace("{qkv}", qkv) for hf, own in layer.items()}
    ends = dict(TITAN_ENDS, **({"lm_head.weight": "lm_head.weight"} if newer else {}))
    experts = "moe.routed_experts.inner_experts." if newer else "moe.experts."
    rest, stacks = stacked(tensors, experts)
    head_dim = config["head_dim"] if family in ("llama", "mistral") else None
    return {**renamed(rest, ends, layer, head_dim), **stacks}


PRIME_LAYER = {
    "mlp.gate.weight": "mlp.router.gate.weight",
    "mlp.gate.e_score_correction_bias": "mlp.expert_bias",
    "mlp.shared_experts.gate_proj.weight": "mlp.shared_expert.w1",
    "mlp.shared_experts.up_proj.weight": "mlp.shared_expert.w3",
    "mlp.shared_experts.down_proj.weight": "mlp.shared_expert.w2",
}


def prime(tensors):
    """As prime-rl does it: Hugging Face's names but for routers and experts, and counters beside them."""
    rest, stacks = stacked(tensors, "moe.experts.")
    own = {f"model.{name.replace('moe.', 'mlp.')}": tensor for name, tensor in stacks.items()}
    for name, tensor in rest.items():
        split = re.fullmatch(r"(model\.layers\.\d+\.)(.*)", name)
        new = split[1] + PRIME_LAYER.get(split[2], split[2]) if split else name
        own[new] = tensor
        if new.endswith("router.gate.weight"):
            own[new.replace("router.gate.weight", "tokens_per_expert")] = torch.zeros(len(tensor))
    return own


def tune(tensors, config):
    """As torchtune does it."""
    is_meta = config["model_type"] in ("llama", "mistral")
    head_dim = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    return renamed(tensors, TUNE_ENDS, TUNE_LAYER, head_dim if is_meta else None)


CUTS = {
    "tok_embeddings.weight": None, "output.weight": 0, "wq": 0, "wk": 0, "wv": 0, "wo": 1,
    "w1": 0, "w3": 0, "w2": 1,
}  # fmt: skip


def consolidated(tensors, config, ranks, embedding_axis):
    """The state dicts of Meta's model-parallel ranks."""
    whole = titan(tensors, config)
    parts = [{} for _ in range(ranks)]
    for name, tensor in whole.items():
        key = name if name in CUTS else name.split(".")[-2]
        axis = embedding_axis if name == "tok_embeddings.weight" else CUTS.get(key)
        for rank, part in enumerate(parts):
            piece = tensor if axis is None else tensor.chunk(ranks, axis)[rank]
            part[name] = piece.clone()
    for part in parts:
        part["rope.freqs"] = torch.zeros(config["head_dim"] // 2)
    return parts
