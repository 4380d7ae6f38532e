# SPDX-License-Identifier: Apache-2.0
"""Quantised Hugging Face models, against the same models multiplied out by torch."""
import json

import pytest
import torch
from safetensors.torch import load_file, save_file

import checkpoints
import hf_models
import hf_sizes
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


def test_a_config_that_says_what_no_tensor_is(shardwright, tmp_path):
    """A model that was multiplied out, whose config.json still asks loaders for scales; and the reverse."""
    sizes = {**hf_sizes.SIZES, **WIDE, "vocab_size": 510}
    hf_models.create(tmp_path / "hf", "qwen3", dtype=torch.bfloat16, **sizes)
    twins = quantised.Twins(tmp_path / "hf", tmp_path, fp8((128, 128)), lambda shape: (128, 128))
    words = "quantization_config says that weights are quantised (fp8), and no tensor is"
    for folder in (twins.quantised, twins.plain):
        assert words not in shardwright("verify", folder).stdout
    config = json.loads((twins.plain / "config.json").read_text())
    (twins.plain / "config.json").write_text(json.dumps(config | {"quantization_config": fp8((128, 128))}))
    assert words in shardwright("verify", twins.plain).stdout
    (twins.quantised / "config.json").write_text(json.dumps(config))
    assert "no quantization_config" in shardwright("verify", twins.quantised, expect=1).stdout


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
    sizes = {**hf_sizes.FAMILY_SIZES.get(family, hf_sizes.SIZES), **sizes, "vocab_size": 510}
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


@pytest.mark.parametrize("place", ["hf_quant_config.json", "compression_config"])
def test_older_tools_say_it_elsewhere(shardwright, tmp_path, place):
    """ModelOpt before 0.29 beside config.json, compressed-tensors before 0.7 under another key."""
    is_beside = place == "hf_quant_config.json"
    method = {"quant_method": "modelopt", "quant_algo": "FP8"} if is_beside else groups("tensor")
    twins = quantised.Twins(
        GOLDEN_HF / "qwen3" / "hf", tmp_path, method, whole, "_scale", torch.float32
    )
    config = json.loads((twins.quantised / "config.json").read_text())
    said = config.pop("quantization_config")
    if is_beside:
        told = {"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}
        (twins.quantised / place).write_text(json.dumps(told))
    else:
        config[place] = said
    (twins.quantised / "config.json").write_text(json.dumps(config))
    one, other = compare(shardwright, twins, tmp_path, "--to", "torch_dist", "--tp", 2)
    checkpoints.assert_same(checkpoints.load_dcp(one), checkpoints.load_dcp(other))
    shardwright("convert", one, tmp_path / "back", "--to", "hf")
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert place not in config and "quantization_config" not in config
    assert not (tmp_path / "back" / "hf_quant_config.json").exists()
    told = shardwright("convert", twins.quantised, tmp_path / "copy", "--to", "hf").stderr
    assert f"quantization_config is what {place} says" in told
    shardwright("convert", tmp_path / "copy", tmp_path / "again", "--to", "torch_dist")
    checkpoints.assert_same(
        checkpoints.load_dcp(tmp_path / "again"), checkpoints.load_dcp(other)
    )
    shardwright("convert", twins.quantised, tmp_path / "named", "--to", "torch_dist",
                "--hf-config", twins.quantised)


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


def test_what_describes_the_quantisation_goes_with_it(shardwright, tmp_path):
    method = {"quant_method": "modelopt", "quant_algo": "FP8"}
    twins = quantised.Twins(GOLDEN_HF / "qwen3" / "hf", tmp_path, method, whole, "_scale")
    (twins.quantised / "hf_quant_config.json").write_text("{}")
    done = shardwright("convert", twins.quantised, tmp_path / "out", "--to", "torch_dist")
    assert "hf_quant_config.json is left out" in done.stderr
    carried = checkpoints.iteration_folder(tmp_path / "out") / "hf"
    assert not (carried / "hf_quant_config.json").exists()
    assert "quantization_config" not in json.loads((carried / "config.json").read_text())
    keys = (checkpoints.iteration_folder(tmp_path / "out") / "hf" / "source_keys.json").read_text()
    assert "_scale" not in keys and "float8" not in keys
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    assert not (tmp_path / "back" / "hf_quant_config.json").exists()
    assert (tmp_path / "back" / "generation_config.json").exists()
    shardwright(
        "convert", tmp_path / "out", tmp_path / "bare", "--to", "hf", "--hf-config", twins.quantised
    )
    assert not (tmp_path / "bare" / "hf_quant_config.json").exists()
    assert "quantization_config" not in json.loads((tmp_path / "bare" / "config.json").read_text())


def test_prediction_layers_are_dropped_with_their_scales(shardwright, tmp_path):
    source = GOLDEN_HF / "deepseek_v3_mtp" / "hf"
    twins = quantised.Twins(source, tmp_path, fp8((16, 16)), lambda shape: (16, 16))
    for name, source in (("one", twins.quantised), ("other", twins.plain)):
        shardwright("convert", source, tmp_path / name, "--to", "torch_dist", "--mtp", "drop")
    one, other = (checkpoints.load_dcp(tmp_path / name) for name in ("one", "other"))
    assert not any(name.startswith("mtp.") for name in one)
    checkpoints.assert_same(one, other)


def test_copies_with_other_scales_are_kept(shardwright, tmp_path):
    """The same values in the head of the model and of its prediction layer, with other scales."""
    source = GOLDEN_HF / "deepseek_v3_mtp" / "hf"
    twins = quantised.Twins(source, tmp_path, fp8((16, 16)), lambda shape: (16, 16))
    file = twins.quantised / "model.safetensors"
    tensors = load_file(file)
    (copy,) = [name for name in tensors if name.endswith("shared_head.head.weight")]
    values, scales = quantised.quantise(tensors["lm_head.weight"], (16, 16))
    for name, factor in (("lm_head.weight", 1), (copy, 2)):
        tensors[name], tensors[name + "_scale_inv"] = values.clone(), scales * factor
    save_file(tensors, file, metadata={"format": "pt"})
    shardwright("convert", twins.quantised, tmp_path / "out", "--to", "torch_dist")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    back = checkpoints.load_hf(tmp_path / "back")
    for name, factor in (("lm_head.weight", 1), (copy, 2)):
        expected = quantised.dequantise(values, scales * factor, (16, 16))
        assert checkpoints.same_bits(back[name], expected), name


def test_halves_of_pairs_are_refused(shardwright, tmp_path):
    source = GOLDEN_HF / "qwen3" / "hf"
    twins = quantised.Twins(source, tmp_path, fp8((16, 16)), lambda shape: (16, 16))
    file = twins.quantised / "model.safetensors"
    name = "model.layers.1.mlp.up_proj.weight"
    tensors = load_file(file)

    def refusal(without):
        kept = {key: tensor for key, tensor in tensors.items() if key != without}
        save_file(kept, file, metadata={"format": "pt"})
        out = tmp_path / "out"
        done = shardwright("convert", twins.quantised, out, "--to", "torch_dist", expect=2)
        assert not out.exists()
        return done.stderr

    assert f"tensor {name}: found float8_e4m3fn without scales" in refusal(name + "_scale_inv")
    assert f"tensor {name}_scale_inv: found scales without values" in refusal(name)
    (twins.quantised / "config.json").write_bytes((source / "config.json").read_bytes())
    assert "no quantization_config in config.json" in refusal(None)
    # Copied as they are: nothing has to be understood.
    shardwright("convert", twins.quantised, tmp_path / "copy", "--to", "safetensors")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "copy"), tensors)


def test_every_code_at_every_kind_of_scale(shardwright, tmp_path):
    """All 256 codes in each row, a scale for each row: zeros and extremes. One that is NaN or infinite
    is refused."""
    scales = [0.0, -0.0, 1.0, -3.7, 2.0**-149, 2.0**-126, 1e-39, 2.0**127, 3e38, 1 / 3]
    scales += [2.0**-130, -(2.0**100), 1.0009765625]
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
    for none in ("nan", "inf", "-inf"):
        tensors[name + "_scale"][7] = float(none)
        save_file(tensors, twins.quantised / "model.safetensors", metadata={"format": "pt"})
        done = shardwright("convert", twins.quantised, tmp_path / "no", "--to", "torch_dist", expect=2)
        assert f"tensor {name}_scale: scale number 7 is NaN, infinite or" in done.stderr
        assert not (tmp_path / "no").exists()


MXFP4 = GOLDEN_HF / "gpt_oss_mxfp4" / "hf"


def fp4(blocks, scales):
    """[experts, rows, groups, 16] pairs and exponents as [experts, columns, rows] numbers."""
    magnitudes = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    values = torch.cat([magnitudes, -magnitudes])
    pairs = torch.stack([blocks & 15, blocks >> 4], dim=-1).flatten(-2)
    factors = torch.exp2(scales.double() - 127)
    numbers = values[pairs.long()] * factors.unsqueeze(-1)
    return numbers.float().to(torch.bfloat16).flatten(-2).transpose(1, 2).contiguous()


def test_mxfp4_comes_back_as_plain_tensors(shardwright, tmp_path):
    done = shardwright("convert", MXFP4, tmp_path / "out", "--to", "torch_dist", "--ep", 2)
    assert "quantization_config is removed" in done.stderr
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    expected = checkpoints.load_hf(MXFP4)
    for name in [name for name in expected if name.endswith("_blocks")]:
        plain = name.removesuffix("_blocks")
        expected[plain] = fp4(expected.pop(name), expected.pop(plain + "_scales"))
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)
    before = json.loads((MXFP4 / "config.json").read_text())
    del before["quantization_config"]
    assert json.loads((tmp_path / "back" / "config.json").read_text()) == before


def test_every_fp4_code_at_every_exponent(shardwright, tmp_path):
    folder = tmp_path / "hf"
    folder.mkdir()
    (folder / "config.json").write_bytes((MXFP4 / "config.json").read_bytes())
    tensors = checkpoints.load_hf(MXFP4)
    name = "model.layers.1.mlp.experts.down_proj"
    shape = tensors[name + "_blocks"].shape
    groups = shape[0] * shape[1] * shape[2]
    assert groups >= 2 * 256
    low = torch.arange(16, dtype=torch.uint8)
    # In one group each code is the low half of a byte, in the next one the high half.
    pairs = torch.stack([low | (15 - low) << 4, 15 - low | low << 4])
    tensors[name + "_blocks"] = pairs[torch.arange(groups) // 256 % 2].reshape(shape)
    exponents = torch.arange(groups).remainder(256).clamp(max=254).to(torch.uint8)
    tensors[name + "_scales"] = exponents.reshape(shape[:3])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    shardwright("convert", folder, tmp_path / "out", "--to", "torch_dist")
    got = checkpoints.load_dcp(tmp_path / "out")["decoder.layers.mlp.experts.experts.linear_fc2.weight"]
    expected = fp4(tensors[name + "_blocks"], tensors[name + "_scales"]).transpose(1, 2)
    same = (got[1].view(torch.int16) == expected.contiguous().view(torch.int16)) | (
        got[1].isnan() & expected.isnan()
    )
    assert same.all()
    assert expected.isinf().any()
    # The code that means NaN: transformers makes infinities of it, and NaNs of zeros.
    tensors[name + "_scales"].view(-1)[255] = 255
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    done = shardwright("convert", folder, tmp_path / "no", "--to", "torch_dist", expect=2)
    assert f"tensor {name}_scales: scale number 255 is NaN, infinite or" in done.stderr
