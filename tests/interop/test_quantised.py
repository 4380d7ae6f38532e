# SPDX-License-Identifier: Apache-2.0
"""Quantised Hugging Face models, against the same models multiplied out by torch."""
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import checkpoints
import hf_models
import quantised

GOLDEN_HF = checkpoints.GOLDEN / "hf"
# Blocks of 128 x 128 are partial at every edge of these.
WIDE = dict(hidden_size=200, intermediate_size=330, moe_intermediate_size=136, head_dim=36)
WIDE_MLA = dict(WIDE, kv_lora_rank=140, q_lora_rank=150, qk_nope_head_dim=24, v_head_dim=28)
del WIDE_MLA["head_dim"]


def fp8(block):
    return {"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": list(block)}


def compare(shardwright, twins, folder, *arguments):
    for name, source in (("one", twins.quantised), ("other", twins.plain)):
        done = shardwright("convert", source, folder / name, *arguments)
        if name == "one":
            said = done.stderr
    assert f"dequantised {twins.count} tensors: fp8 e4m3 to bfloat16" in said
    return folder / "one", folder / "other"


@pytest.mark.parametrize(
    "family, sizes, layout",
    [
        ("qwen3", WIDE, ("--tp", 3, "--pp", 3)),
        ("mixtral", WIDE, ("--tp", 1, "--pp", 3, "--ep", 2)),
        ("qwen3_moe", WIDE, ("--ep", 3, "--etp", 1)),
        ("deepseek_v3", WIDE_MLA, ("--tp", 2, "--ep", 2, "--etp", 1, "--pp", 3)),
    ],
)
def test_blocks_of_a_real_model(shardwright, tmp_path, family, sizes, layout):
    sizes = {**hf_models.FAMILY_SIZES.get(family, hf_models.SIZES), **sizes, "vocab_size": 510}
    hf_models.create(tmp_path / "hf", family, dtype=torch.bfloat16, **sizes)
    twins = quantised.Twins(tmp_path / "hf", tmp_path, fp8((128, 128)), lambda shape: (128, 128))
    one, other = compare(shardwright, twins, tmp_path, "--to", "torch_dist", *layout)
    checkpoints.assert_same(checkpoints.load_dcp(one), checkpoints.load_dcp(other))

    # The way back is the plain model, and says so.
    shardwright("convert", one, tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "back"), checkpoints.load_hf(twins.plain)
    )
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert config == json.loads((twins.plain / "config.json").read_text())


@pytest.mark.parametrize("family", ["qwen3", "mixtral", "deepseek_v3_mtp"])
@pytest.mark.parametrize("format", ["torch_dist", "legacy"])
def test_small_blocks_and_threads(shardwright, tmp_path, family, format):
    block = (7, 24)
    twins = quantised.Twins(GOLDEN_HF / family / "hf", tmp_path, fp8(block), lambda shape: block)
    one, other = compare(shardwright, twins, tmp_path, "--to", format, "--threads", 1)
    shardwright(
        "convert", twins.quantised, tmp_path / "again", "--to", format, "--threads", 4,
        "--max-memory", "64MiB",
    )
    if format == "torch_dist":
        checkpoints.assert_same(checkpoints.load_dcp(one), checkpoints.load_dcp(other))
    files = sorted(p.relative_to(one) for p in one.rglob("*") if p.is_file())
    assert files
    for file in files:
        assert (one / file).read_bytes() == (tmp_path / "again" / file).read_bytes(), file
        if format == "legacy" and file.suffix == ".pt":
            assert (one / file).read_bytes() == (other / file).read_bytes(), file


def groups(strategy):
    weights = {"num_bits": 8, "type": "float", "strategy": strategy}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


def rows_apart(shape):
    return (1, shape[1])


def whole(shape):
    return tuple(shape)


@pytest.mark.parametrize(
    "method, block_of, store, extra",
    [
        (groups("channel"), rows_apart, torch.bfloat16, ()),
        (groups("tensor"), whole, torch.float32, ("input_scale",)),
        ({"quant_method": "fbgemm_fp8"}, rows_apart, torch.float32, ()),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, whole, torch.float32, ("input_scale",)),
    ],
)
def test_scales_of_rows_and_tensors(shardwright, tmp_path, method, block_of, store, extra):
    twins = quantised.Twins(
        GOLDEN_HF / "qwen3" / "hf", tmp_path, method, block_of, "_scale", store, extra
    )
    one, other = compare(shardwright, twins, tmp_path, "--to", "torch_dist", "--tp", 2)
    checkpoints.assert_same(checkpoints.load_dcp(one), checkpoints.load_dcp(other))


def test_hf_to_hf_with_a_dtype_multiplies(shardwright, tmp_path):
    block = (16, 40)
    source = GOLDEN_HF / "mixtral" / "hf"
    twins = quantised.Twins(source, tmp_path, fp8(block), lambda shape: block)
    one, other = compare(shardwright, twins, tmp_path, "--to", "hf", "--dtype", "bfloat16")
    checkpoints.assert_same(checkpoints.load_hf(one), checkpoints.load_hf(other))
    assert "quantization_config" not in json.loads((one / "config.json").read_text())

    shardwright("convert", twins.quantised, tmp_path / "kept", "--to", "hf")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "kept"), checkpoints.load_hf(twins.quantised)
    )
    assert "quantization_config" in json.loads((tmp_path / "kept" / "config.json").read_text())


def test_every_code_at_every_kind_of_scale(shardwright, tmp_path):
    """All 256 codes in each row, a scale for each row: zeros, extremes and what is no number."""
    scales = [0.0, -0.0, 1.0, -3.7, 2.0**-149, 2.0**-126, 1e-39, 2.0**127, 3e38, 1 / 3]
    scales += [float("inf"), float("-inf"), float("nan"), 1.0009765625]
    source = GOLDEN_HF / "llama3" / "hf"
    twins = quantised.Twins(source, tmp_path, groups("channel"), rows_apart, "_scale")
    tensors = load_file(twins.quantised / "model.safetensors")
    name = "model.layers.0.mlp.down_proj.weight"
    rows, columns = tensors[name].shape
    codes = torch.arange(rows * columns).remainder(256).to(torch.uint8).reshape(rows, columns)
    tensors[name] = codes.view(quantised.F8)
    tensors[name + "_scale"] = torch.tensor(scales).repeat(rows)[:rows].reshape(rows, 1)
    assert columns * (rows // len(scales)) >= 256
    save_file(tensors, twins.quantised / "model.safetensors", metadata={"format": "pt"})
    shardwright("convert", twins.quantised, tmp_path / "out", "--to", "torch_dist")
    got = checkpoints.load_dcp(tmp_path / "out")["decoder.layers.mlp.linear_fc2.weight"][0]
    expected = quantised.dequantise(tensors[name], tensors[name + "_scale"], (1, columns))
    same = (got.view(torch.int16) == expected.view(torch.int16)) | (got.isnan() & expected.isnan())
    assert same.all()
    assert expected.isnan().any() and expected.isinf().any()
