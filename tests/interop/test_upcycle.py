# SPDX-License-Identifier: Apache-2.0
"""Dense models that become models with experts, against Megatron-Core's own upcycling of the model."""
import zlib

import pytest
import torch

import checkpoints
import hf_models

DENSE = {
    "model_type": "llama", "num_hidden_layers": 2, "hidden_size": 32, "intermediate_size": 96,
    "num_attention_heads": 4, "num_key_value_heads": 2, "rms_norm_eps": 1e-5, "vocab_size": 128,
    "max_position_embeddings": 64, "tie_word_embeddings": False,
}  # fmt: skip
SEED, DEVIATION = 77, 0.02
CASES = {
    "copies": dict(experts=3, topk=2),
    "cut": dict(experts=6, granularity=3, topk=3),
    "before": dict(experts=8, granularity=2, topk=4, pre_softmax=True),
    "one": dict(experts=4, granularity=4, topk=1, pre_softmax=True),
}


def word_of(case):
    return ",".join(f"{key}={str(value).lower()}" for key, value in case.items())


def mixed(state):
    state = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    state = (state ^ (state >> 27)) * 0x94D049BB133111EB % 2**64
    return state ^ (state >> 31)


def new_router(layer, rows, hidden):
    """By the rule of docs/recipes/edit.md."""
    golden = 0x9E3779B97F4A7C15
    name = f"decoder.layers.{layer}.mlp.router.weight"
    key = mixed((SEED * golden + zlib.crc32(name.encode())) % 2**64)
    numbers = []
    for index in range(rows * hidden):
        draws = [mixed((key + (6 * index + i) * golden) % 2**64) for i in range(1, 7)]
        total = sum((draw >> 32) + draw % 2**32 for draw in draws)
        numbers.append((total - 6 * (2**32 - 1)) / 2**32 * DEVIATION)
    return torch.tensor(numbers, dtype=torch.float64).reshape(rows, hidden).bfloat16()


def moe_config(dense, case):
    size = dense["intermediate_size"] // case.get("granularity", 1)
    return {**dense, "num_experts": case["experts"], "num_experts_per_tok": case["topk"],
            "moe_intermediate_size": size, "pre_softmax": case.get("pre_softmax", False)}  # fmt: skip


@pytest.mark.parametrize("activation", ["silu", "relu2", "gelu"])
@pytest.mark.parametrize("name", CASES)
def test_experts_are_those_of_megatron(name, activation, shardwright, megatron, tmp_path):
    from megatron.core.transformer.moe.upcycling_utils import upcycle_state_dict

    case, spec = CASES[name], "te" if activation == "silu" else "local"
    hf = {**DENSE, "hidden_act": activation}
    dense = megatron.build(hf, spec)
    torch.manual_seed(1)
    for parameter in dense.parameters():
        parameter.data.normal_()
    megatron.save(dense, tmp_path / "dense", hf)
    shardwright("convert", tmp_path / "dense", tmp_path / "moe", "--to", "torch_dist",
                "--spec", spec, "--upcycle", f"{word_of(case)},seed={SEED}")  # fmt: skip
    model = megatron.build(moe_config(hf, case), spec)
    megatron.load(model, checkpoints.iteration_folder(tmp_path / "moe"), "raise_all")

    # Megatron takes the first of the model's random rows: here those that ours has.
    reference = megatron.build(moe_config(hf, case), spec)
    rows = case["experts"] // case.get("granularity", 1)
    for number, layer in enumerate(reference.decoder.layers):
        layer.mlp.router.weight.data[:rows] = new_router(number, rows, hf["hidden_size"])
        if layer.mlp.router.bias is not None:  # theirs is random, and stays so
            layer.mlp.router.bias.data.zero_()
    expected = upcycle_state_dict([reference], [dense])["model"]
    parameters = dict(model.named_parameters())
    assert any("router" in key for key in parameters)
    for key, parameter in parameters.items():
        assert checkpoints.same_bits(parameter.data, expected[key]), key


def test_what_megatron_builds_without_experts_is_refused(shardwright, tmp_path):
    sizes = dict(vocab_size=64, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4,
                 feed_forward_proj="gated-gelu")  # fmt: skip
    hf_models.t5_with_a_head(tmp_path / "t5", sizes)
    refused = shardwright("convert", tmp_path / "t5", tmp_path / "moe", "--to", "torch_dist",
                          "--upcycle", "experts=4", expect=2)  # fmt: skip
    assert "layers of BERT and T5 have no experts" in refused.stderr
    assert not (tmp_path / "moe").exists()
