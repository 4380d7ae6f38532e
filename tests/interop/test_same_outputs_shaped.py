# SPDX-License-Identifier: Apache-2.0
"""A model whose layers a search has shaped computes in Megatron what a Llama does that has the same
layers: with rows of zeros where an MLP is narrower, keys and values more than once where heads share
them, and projections of zeros where a layer lacks a part."""
import json

import torch
import transformers

import checkpoints
import megatron_from_args
from test_families_omni import BLOCKS, decilm
from test_same_outputs import TOLERANCE, difference, hf_logits, megatron_logits

WIDEST = max(width for _, width in BLOCKS if width)


def as_llama(tensors):
    made = {name: value.float() for name, value in tensors.items() if ".layers." not in name}
    for number, (groups, width) in enumerate(BLOCKS):
        layer = f"model.layers.{number}."
        for part in "qkvo":
            name = f"{layer}self_attn.{part}_proj.weight"
            value = tensors[name].float() if groups else torch.zeros(72, 72)
            if groups and part in "kv":
                value = value.view(groups, 12, 72).repeat_interleave(6 // groups, 0).view(72, 72)
            made[name] = value
        for part, shape in (("gate", (WIDEST, 72)), ("up", (WIDEST, 72)), ("down", (72, WIDEST))):
            name = f"{layer}mlp.{part}_proj.weight"
            made[name] = torch.zeros(shape)
            if width:
                rows, columns = tensors[name].shape
                made[name][:rows, :columns] = tensors[name].float()
        for norm in ("input_layernorm", "post_attention_layernorm"):
            name = f"{layer}{norm}.weight"
            made[name] = tensors[name].float() if name in tensors else torch.ones(72)
    return made


def test_same_logits(shardwright, megatron, tmp_path):
    model_type, tensors = "nemotron-nas", decilm(tmp_path)
    settings = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert settings["model_type"] == model_type
    kept = ("hidden_size", "num_attention_heads", "num_hidden_layers", "rms_norm_eps", "vocab_size")
    config = transformers.AutoConfig.for_model(
        "llama",
        **{key: settings[key] for key in kept},
        intermediate_size=WIDEST,
        rope_parameters={"rope_type": "default", "rope_theta": settings["rope_theta"]},
        attn_implementation="eager",
    )
    llama = transformers.AutoModelForCausalLM.from_config(config).eval()
    llama.load_state_dict(as_llama(tensors))
    flags = ("--to", "torch_dist", "--tp", 2, "--spec", "local")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags)
    folder = checkpoints.iteration_folder(tmp_path / "out")
    args = megatron_from_args.read_arguments(folder)
    model = megatron_from_args.build(args)
    megatron_from_args.load(model, folder)
    expected = hf_logits(llama, 510)
    got = megatron_logits(model, 510)[..., :510]
    assert expected.std() > 0.5
    assert difference(got, expected) < TOLERANCE
