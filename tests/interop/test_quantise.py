# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models written as values and scales, against torch's casts by the makers' formulas."""
import json

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import hf_models
import hf_sizes
import packed
import quantised

GOLDEN_HF = checkpoints.GOLDEN / "hf"
BLOCK = (128, 128)
# Blocks are partial at every edge.
SIZES = dict(
    hf_sizes.FAMILY_SIZES["deepseek_v3"], hidden_size=200, intermediate_size=330,
    moe_intermediate_size=136, kv_lora_rank=140, q_lora_rank=150, qk_nope_head_dim=24,
    v_head_dim=28, vocab_size=510,
)  # fmt: skip
FP8 = {"activation_scheme": "dynamic", "fmt": "e4m3", "quant_method": "fp8",
       "weight_block_size": [128, 128]}  # fmt: skip


def next_power(values):
    bits = (values.view(torch.int32) + 0x7FFFFF) & 0x7F800000
    return bits.view(torch.float32)


def fp8(weight, ue8m0=False):
    """DeepSeek's: the greatest of a block, at least 1e-4, over 448, and a cast of the quotients."""
    rows, columns = (-(-n // b) for n, b in zip(weight.shape, BLOCK))
    scales = torch.empty(rows, columns)
    for r in range(rows):
        for c in range(columns):
            part = weight[r * 128 : (r + 1) * 128, c * 128 : (c + 1) * 128].float()
            scales[r, c] = part.abs().max().clamp(min=1e-4) / 448
    scales = next_power(scales) if ue8m0 else scales
    quotients = weight.float() / quantised.spread(scales, BLOCK, weight.shape)
    return quotients.clamp(-448, 448).to(quantised.F8), scales


def fp4(weight):
    """GPT-OSS's, of [experts, inputs, outputs]: halves are rounded away from zero."""
    groups = weight.float().transpose(1, 2).unflatten(-1, (-1, 32))
    scales = next_power(groups.abs().amax(-1) / 6)
    numbers = torch.where(scales == 0, 0, 1 / scales).unsqueeze(-1) * groups
    between = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
    codes = torch.bucketize(numbers.abs(), between, right=True) + 8 * numbers.signbit()
    blocks = (codes[..., 0::2] | codes[..., 1::2] << 4).to(torch.uint8)
    return blocks, (scales.view(torch.int32) >> 23).to(torch.uint8)


def config_of(folder):
    return json.loads((folder / "config.json").read_text())


def quantised_names(tensors, ending):
    return {name.removesuffix(ending) for name in tensors if name.endswith(ending)}


@pytest.fixture(scope="module")
def deepseek(tmp_path_factory):
    folder = tmp_path_factory.mktemp("deepseek")
    hf_models.create(folder, "deepseek_v3", dtype=torch.bfloat16, **SIZES)
    return folder


def is_linear(name, tensor):
    return quantised.is_linear(name, tensor) and "eh_proj" not in name


@pytest.mark.parametrize("form", ["fp8-block", "fp8-block-ue8m0"])
def test_blocks_are_those_of_torch(shardwright, deepseek, tmp_path, form):
    plain = checkpoints.load_hf(deepseek)
    expected = {}
    for name, tensor in plain.items():
        expected[name] = tensor
        if is_linear(name, tensor):
            expected[name], expected[name + "_scale_inv"] = fp8(tensor, form.endswith("ue8m0"))
    shardwright("convert", deepseek, tmp_path / "one", "--to", "hf", "--quantise", form)
    shardwright("convert", deepseek, tmp_path / "megatron", "--to", "torch_dist", "--tp", 2)
    done = shardwright("convert", tmp_path / "megatron", tmp_path / "two", "--to", "hf",
                       "--quantise", form, "--threads", 1, "--max-memory", "64MiB")  # fmt: skip
    assert "tensors to fp8 e4m3" in done.stderr
    for out in ("one", "two"):
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / out), expected)
        said = config_of(tmp_path / out)["quantization_config"]
        left = said.pop("modules_to_not_convert")
        assert "lm_head" in left and any(module.endswith(".mlp.gate") for module in left)
        assert said.pop("scale_fmt", None) == ("ue8m0" if form.endswith("ue8m0") else None)
        assert said == FP8
    # What is read again is off by a sixteenth of the number or half of the least step.
    shardwright("convert", tmp_path / "one", tmp_path / "back", "--to", "hf", "--dtype", "float32")
    back = checkpoints.load_hf(tmp_path / "back")
    for name in quantised_names(expected, "_scale_inv"):
        scales = quantised.spread(expected[name + "_scale_inv"], BLOCK, plain[name].shape)
        bound = torch.maximum(plain[name].float().abs() / 16, scales / 1024) * 1.0001
        assert ((back[name] - plain[name].float()).abs() <= bound).all(), name
    for command in (("verify", tmp_path / "two"), ("diff", tmp_path / "one", tmp_path / "two")):
        shardwright(*command)


@pytest.mark.parametrize("ue8m0", [False, True])
def test_a_release_comes_back(shardwright, deepseek, tmp_path, ue8m0):
    """Which tensors were quantised is remembered: one of them is left out here."""
    method = {**FP8, "scale_fmt": "ue8m0"} if ue8m0 else FP8
    tensors = checkpoints.load_hf(deepseek)
    left = next(name for name in tensors if name.endswith("o_proj.weight"))
    for name, tensor in list(tensors.items()):
        if is_linear(name, tensor) and name != left:
            tensors[name], tensors[name + "_scale_inv"] = fp8(tensor, ue8m0)
    release = tmp_path / "release"
    release.mkdir()
    save_file(tensors, release / "model.safetensors", metadata={"format": "pt"})
    config = {**config_of(deepseek), "quantization_config": method}
    (release / "config.json").write_text(json.dumps(config))

    shardwright("convert", release, tmp_path / "megatron", "--to", "torch_dist", "--ep", 2)
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf", "--quantise",
                "fp8-block")  # fmt: skip
    back = checkpoints.load_hf(tmp_path / "back")
    assert back.keys() == tensors.keys()
    assert config_of(tmp_path / "back")["quantization_config"] == method
    for name, tensor in tensors.items():
        scales = tensors.get(name + "_scale_inv")
        if name.endswith("_scale_inv"):
            continue
        if scales is None:
            assert checkpoints.same_bits(back[name], tensor), name
            continue
        found = back[name + "_scale_inv"]
        if not ue8m0:  # the greatest number of each block was rounded to bfloat16
            assert checkpoints.same_bits(back[name], tensor), name
            assert ((found / scales - 1).abs() <= 2**-8).all(), name
            continue
        # Blocks whose greatest code is 224 or less have room for another bit.
        rows, columns = (range(0, n, 128) for n in tensor.shape)
        most = torch.tensor([[tensor[r : r + 128, c : c + 128].float().abs().max() for c in columns]
                             for r in rows])  # fmt: skip
        full = most > 224
        assert full.any()
        assert (found == torch.where(full, scales, scales / 2)).all(), name
        same = quantised.spread(full, BLOCK, tensor.shape)
        assert (back[name].view(torch.uint8) == tensor.view(torch.uint8))[same].all(), name
        numbers = (quantised.dequantise(*pair, BLOCK)
                   for pair in ((back[name], found), (tensor, scales)))  # fmt: skip
        assert checkpoints.same_bits(*numbers), name

    # Scales of any value become powers of two where those are asked for.
    shardwright("convert", release, tmp_path / "powers", "--to", "hf", "--quantise",
                "fp8-block-ue8m0")  # fmt: skip
    powers = checkpoints.load_hf(tmp_path / "powers")
    assert config_of(tmp_path / "powers")["quantization_config"]["scale_fmt"] == "ue8m0"
    for name in quantised_names(tensors, "_scale_inv"):
        pair = tensors[name], tensors[name + "_scale_inv"]
        if not ue8m0:
            spread = quantised.spread(pair[1], BLOCK, pair[0].shape)
            pair = fp8(pair[0].float() * spread, True)  # not rounded in between
        assert checkpoints.same_bits(powers[name + "_scale_inv"], pair[1]), name
        assert checkpoints.same_bits(powers[name], pair[0]), name

    # Without Megatron in between nothing is rounded.
    done = shardwright("convert", release, tmp_path / "same", "--to", "hf", "--quantise",
                       "fp8-block")  # fmt: skip
    assert "quantised so already" in done.stderr
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "same"), tensors)
    assert config_of(tmp_path / "same")["dtype"] == "bfloat16"
    shardwright("convert", release, tmp_path / "half", "--to", "hf", "--quantise", "fp8-block",
                "--dtype", "float16")  # fmt: skip
    assert config_of(tmp_path / "half")["dtype"] == "float16"
    half = checkpoints.load_hf(tmp_path / "half")
    assert half["model.norm.weight"].dtype == torch.float16


def test_groups_of_fp4_are_those_of_gpt_oss(shardwright, tmp_path):
    source = GOLDEN_HF / "gpt_oss_mxfp4" / "hf"
    shardwright("convert", source, tmp_path / "megatron", "--to", "torch_dist", "--tp", 2)
    shardwright("convert", tmp_path / "megatron", tmp_path / "plain", "--to", "hf")
    plain = checkpoints.load_hf(tmp_path / "plain")
    generator = torch.Generator().manual_seed(1)
    for name, tensor in plain.items():
        if tensor.dim() == 3:  # numbers that no group of fp4 holds
            plain[name] = torch.randn(tensor.shape, generator=generator).to(torch.bfloat16)
    file = tmp_path / "plain" / "model.safetensors"
    save_file(plain, file, metadata={"format": "pt"})
    expected = dict(plain)
    for name, tensor in plain.items():
        if tensor.dim() == 3:
            del expected[name]
            expected[name + "_blocks"], expected[name + "_scales"] = fp4(tensor)
    assert len(expected) > len(plain)
    shardwright("convert", tmp_path / "plain", tmp_path / "one", "--to", "hf", "--quantise", "mxfp4")
    shardwright("convert", tmp_path / "plain", tmp_path / "again", "--to", "torch_dist", "--ep", 2)
    shardwright("convert", tmp_path / "again", tmp_path / "two", "--to", "hf", "--quantise", "mxfp4")
    for out in ("one", "two"):
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / out), expected)
        assert config_of(tmp_path / out)["quantization_config"]["quant_method"] == "mxfp4"

    # The release again: its numbers are the same, and so are the bytes of groups that reach 4 or 6.
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf", "--quantise",
                "mxfp4")  # fmt: skip
    release, back = checkpoints.load_hf(source), checkpoints.load_hf(tmp_path / "back")
    assert back.keys() == release.keys()
    for name in quantised_names(release, "_blocks"):
        blocks, scales = release[name + "_blocks"], release[name + "_scales"]
        codes = torch.stack([blocks & 7, blocks >> 4 & 7]).amax((0, -1))
        full = codes >= 6
        assert full.any()
        assert (back[name + "_blocks"][full] == blocks[full]).all()
        assert (back[name + "_scales"][full] == scales[full]).all()
    shardwright("convert", tmp_path / "back", tmp_path / "numbers", "--to", "hf", "--dtype",
                "bfloat16")  # fmt: skip
    shardwright("convert", source, tmp_path / "truth", "--to", "hf", "--dtype", "bfloat16")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "numbers"), checkpoints.load_hf(tmp_path / "truth")
    )


def test_deepseek_v4_as_it_is_released(shardwright, tmp_path):
    """Values of e4m3 and experts of fp4 with `.scale` beside them, in the family that has them."""
    sizes = {**hf_sizes.FAMILY_SIZES["deepseek_v4"], "hidden_size": 96, "moe_intermediate_size": 64}
    hf_models.create(tmp_path / "hf", "deepseek_v4", dtype=torch.bfloat16, **sizes)
    maker = packed.DeepSeekV4()
    tensors, plain = {}, {}
    for name, tensor in checkpoints.load_hf(tmp_path / "hf").items():
        is_attention = ".attn.w" in name and name.endswith(".weight")
        if not is_attention and ".experts." not in name and ".shared_experts." not in name:
            tensors[name] = plain[name] = tensor
            continue
        parts, plain[name] = maker.store(name, tensor)
        for ending, part in parts.items():
            tensors[name.removesuffix("weight") + ending] = part.contiguous()
    assert any(t.dtype == torch.int8 for t in tensors.values())
    assert any(t.dtype == quantised.F8 for t in tensors.values())
    config = config_of(tmp_path / "hf")
    for folder, content in (("release", tensors), ("plain", plain)):
        (tmp_path / folder).mkdir()
        save_file(content, tmp_path / folder / "model.safetensors", metadata={"format": "pt"})
        (tmp_path / folder / "config.json").write_text(json.dumps(config))
    config["quantization_config"] = maker.method
    (tmp_path / "release" / "config.json").write_text(json.dumps({**config, "expert_dtype": "fp4"}))

    for folder in ("release", "plain"):
        shardwright("convert", tmp_path / folder, tmp_path / ("m_" + folder), "--to", "torch_dist",
                    "--tp", 2, "--ep", 2, "--make-vocab-size-divisible-by", 1)  # fmt: skip
    checkpoints.assert_same(
        checkpoints.load_dcp(tmp_path / "m_release"), checkpoints.load_dcp(tmp_path / "m_plain")
    )
    shardwright("convert", tmp_path / "m_release", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), plain)

    # Back as the base release: e4m3 for all, float32 scales by the name that the family has.
    shardwright("convert", tmp_path / "m_release", tmp_path / "fp8", "--to", "hf", "--quantise",
                "fp8-block")  # fmt: skip
    said = config_of(tmp_path / "fp8")
    assert said["quantization_config"] == maker.method and said["expert_dtype"] == "fp8"
    back = checkpoints.load_hf(tmp_path / "fp8")
    assert quantised_names(back, ".scale") == quantised_names(tensors, ".scale")
    for name in quantised_names(back, ".scale"):
        values, scales = fp8(plain[name + ".weight"], ue8m0=True)
        assert checkpoints.same_bits(back[name + ".weight"], values), name
        assert checkpoints.same_bits(back[name + ".scale"], scales), name
    shardwright("verify", tmp_path / "fp8")


def test_what_has_no_such_form_is_refused(shardwright, deepseek, tmp_path):
    out = tmp_path / "out"

    def refusal(*arguments):
        done = shardwright("convert", *arguments, expect=2)
        assert not out.exists()
        return done.stderr

    said = refusal(deepseek, out, "--to", "torch_dist", "--quantise", "fp8-block")
    assert "--quantise does not apply to --to torch_dist" in said
    said = refusal(deepseek, out, "--to", "hf", "--quantise", "mxfp4")
    assert "expected 'gpt_oss'" in said and "fp8-block is for other models" in said
    said = refusal(deepseek, out, "--to", "hf", "--quantise", "fp8-block", "--include", "*norm*")
    assert "found no linear of a layer to quantise" in said
    tensors = checkpoints.load_hf(deepseek)
    name = "model.layers.1.self_attn.o_proj.weight"
    tensors[name][3, 5] = float("inf")
    (tmp_path / "bad").mkdir()
    save_file(tensors, tmp_path / "bad" / "model.safetensors", metadata={"format": "pt"})
    (tmp_path / "bad" / "config.json").write_bytes((deepseek / "config.json").read_bytes())
    said = refusal(tmp_path / "bad", out, "--to", "hf", "--quantise", "fp8-block")
    assert "SW0410" in said and f"tensor {name}" in said
