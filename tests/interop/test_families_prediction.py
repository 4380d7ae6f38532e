# SPDX-License-Identifier: Apache-2.0
"""Prediction layers that transformers does not compute: a layer of the model under the names that
published files have for such a layer is in Megatron what that layer is, behind `mtp.`."""
import json

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import hf_models
from test_families_towers import bailing

LIKE_DEEPSEEK = {"enorm": "enorm", "hnorm": "hnorm", "eh_proj": "eh_proj"}

# name: what the layer's names begin with, in the model and as a prediction layer; what stands in
# front of the others; and those by their names in Megatron.
CASES = {
    "exaone_moe": (
        "model.layers.0.",
        "mtp.layers.0.",
        "mtp.",
        {
            "enorm": "pre_fc_norm_embedding",
            "hnorm": "pre_fc_norm_hidden",
            "eh_proj": "fc",
            "final_layernorm": "norm",
        },
    ),
    "bailing_moe_v2": (
        "model.layers.2.",
        "model.layers.3.",
        "model.layers.3.",
        {**LIKE_DEEPSEEK, "final_layernorm": "final_layernorm"},
    ),
    "bailing_hybrid": (
        "model.layers.1.",
        "model.layers.3.",
        "model.layers.3.",
        {**LIKE_DEEPSEEK, "final_layernorm": "final_layernorm"},
    ),
    "deepseek_v4": (
        "model.layers.0.",
        "mtp.0.",
        "mtp.0.",
        {
            "enorm": "enorm",
            "hnorm": "hnorm",
            "e_proj": "e_proj",
            "h_proj": "h_proj",
            "final_layernorm": "norm",
        },
    ),
}


def model_of(folder, name):
    if name == "bailing_moe_v2":
        return bailing(folder)
    hf_models.create(folder, name, dtype=torch.bfloat16)
    return checkpoints.load_hf(folder), json.loads((folder / "config.json").read_text())


def build(folder, name):
    """Writes a model with one prediction layer to hf/; returns its tensors."""
    tensors, config = model_of(folder / "made", name)
    layer, predicted, around, others = CASES[name]
    generator = torch.Generator().manual_seed(5)
    hidden = config["hidden_size"]
    added = {
        predicted + key.removeprefix(layer): value.clone()
        for key, value in tensors.items()
        if key.startswith(layer)
    }
    assert len(added) > 9
    shapes = {"eh_proj": (hidden, 2 * hidden), "e_proj": (hidden, hidden), "h_proj": (hidden, hidden)}
    for ours, theirs in others.items():
        shape = shapes.get(ours, (hidden,))
        value = torch.randn(shape, generator=generator).bfloat16()
        added[f"{around}{theirs}.weight"] = value
    if name == "deepseek_v4":
        # Such a layer chooses its experts as the later layers do.
        del added["mtp.0.ffn.gate.tid2eid"]
        added["mtp.0.ffn.gate.bias"] = tensors["model.layers.1.ffn.gate.bias"].clone()
        for part in ("fn", "base", "scale"):
            added[f"mtp.0.hc_head_{part}"] = tensors[f"model.hc_head.hc_{part}"].clone() + 1
        added["mtp.0.attn.kv_norm.weight"] = added.pop("mtp.0.attn.norm.weight")
    config["num_nextn_predict_layers"] = 1
    tensors = {**tensors, **added}
    (folder / "hf").mkdir()
    (folder / "hf" / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "hf" / "model.safetensors", metadata={"format": "pt"})
    return tensors


@pytest.mark.parametrize("name", CASES)
def test_is_the_layer_that_it_repeats(shardwright, tmp_path, name):
    source = build(tmp_path, name)
    flags = ("--to", "torch_dist", "--tp", 2, "--mtp", "keep")
    pad = ("--make-vocab-size-divisible-by", 128)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags, *pad)
    made = checkpoints.load_dcp(tmp_path / "out")
    layer, _, around, others = CASES[name]
    ours = f"decoder.layers.{layer.split('.')[-2]}."
    inner = "mtp.layers.0.transformer_layer."
    expected = {key.removeprefix(ours): made[key] for key in made if key.startswith(ours)}
    if name == "deepseek_v4":
        del expected["mlp.router.tid2eid"]
        expected["mlp.router.expert_bias"] = made["decoder.layers.1.mlp.router.expert_bias"]
    assert len(expected) > 5
    got = {key.removeprefix(inner): made[key] for key in made if key.startswith(inner)}
    checkpoints.assert_same(got, expected)
    outside = {key for key in made if key.startswith("mtp.") and not key.startswith(inner)}
    heads = {f"mtp.layers.0.hc_head_{part}" for part in ("fn", "base", "scale")}
    assert outside - heads == {f"mtp.layers.0.{part}.weight" for part in others}
    for part, theirs in others.items():
        assert torch.equal(made[f"mtp.layers.0.{part}.weight"], source[f"{around}{theirs}.weight"])
    if name == "deepseek_v4":
        for part in ("fn", "base", "scale"):
            assert torch.equal(made[f"mtp.layers.0.hc_head_{part}"], source[f"mtp.0.hc_head_{part}"])
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", "--mtp", "keep")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
