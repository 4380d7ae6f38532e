# SPDX-License-Identifier: Apache-2.0
"""Releases with packed weights, against what compressed-tensors makes of them, and against the
formats' definitions where the software needs a GPU."""
import hashlib
import json

import pytest
import torch

import checkpoints
import hf_models
import hf_sizes
import packed
from peft_adapters import adapt, load
from packed import (
    Awq,
    CompressedTensors,
    DeepSeekV4,
    Gptq,
    ModelOptNvfp4,
    ModelOptNvfp4Experts,
    Packed,
    holds_experts,
)

# Multiples of the groups of 32 and of the words' eight values.
SIZES = dict(hidden_size=192, intermediate_size=320, num_attention_heads=4, num_key_value_heads=2,
             head_dim=48, num_hidden_layers=2, vocab_size=510)
MOE = dict(SIZES, moe_intermediate_size=96, num_experts=4)


def integers(bits, **more):
    return CompressedTensors("pack-quantized", num_bits=bits, type="int", **more)


SCHEMES = {
    "int4": lambda: integers(4, strategy="group", group_size=32),
    "int4_asymmetric": lambda: integers(4, strategy="group", group_size=32, symmetric=False),
    "int4_rows": lambda: integers(4, strategy="channel", symmetric=False),
    "int8": lambda: integers(8, strategy="channel"),
    "int8_groups": lambda: integers(8, strategy="group", group_size=32, symmetric=False),
    "int2": lambda: integers(2, strategy="group", group_size=32),
    "nvfp4": lambda: CompressedTensors(
        "nvfp4-pack-quantized", num_bits=4, type="float", strategy="tensor_group", group_size=16
    ),
    "mxfp4": lambda: CompressedTensors(
        "mxfp4-pack-quantized", num_bits=4, type="float", strategy="group", group_size=32
    ),
    "fp8_rows": lambda: CompressedTensors(
        "float-quantized", num_bits=8, type="float", strategy="channel"
    ),
    "gptq": lambda: Gptq(4, 32),
    "gptq_ordered": lambda: Gptq(4, 32, is_ordered=True),
    "gptq_v2_8": lambda: Gptq(8, -1, version=2, dtype=torch.bfloat16),
    "gptq_2": lambda: Gptq(2, 64, has_order=False),
    "awq": lambda: Awq(32),
    "awq_rows": lambda: Awq(-1),
    "auto_gptq": lambda: packed.of_auto_round(Gptq(4, 32, has_order=False), "auto_round:auto_gptq"),
    "auto_gptqmodel": lambda: packed.of_auto_round(Gptq(8, 32, version=2), "auto_round:gptqmodel"),
    "auto_awq": lambda: packed.of_auto_round(Awq(32), "auto_round:auto_awq"),
    "modelopt": ModelOptNvfp4,
    "deepseek_v4": DeepSeekV4,
}


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    hf_models.create(folder / "qwen3", "qwen3", dtype=torch.bfloat16,
                     **{**hf_sizes.SIZES, **SIZES})
    hf_models.create(folder / "qwen3_moe", "qwen3_moe", dtype=torch.bfloat16,
                     **{**hf_sizes.FAMILY_SIZES["qwen3_moe"], **MOE})
    hf_models.create(folder / "llama", "llama", dtype=torch.bfloat16, **{**hf_sizes.SIZES, **SIZES})
    return folder


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equals_the_model_multiplied_out(shardwright, models, tmp_path, scheme):
    maker = SCHEMES[scheme]()
    twins = Packed(models / "qwen3_moe", tmp_path, maker.method, maker.store)
    layout = ("--tp", 2, "--pp", 2, "--ep", 2, "--etp", 1)
    done = shardwright("convert", twins.quantised, tmp_path / "one", "--to", "torch_dist", *layout)
    assert "to bfloat16" in done.stderr and "dequantised" in done.stderr
    shardwright("convert", twins.plain, tmp_path / "other", "--to", "torch_dist", *layout)
    checkpoints.assert_same(
        checkpoints.load_dcp(tmp_path / "one"), checkpoints.load_dcp(tmp_path / "other")
    )
    # Without Megatron in between, and with another number of threads.
    done = shardwright("convert", twins.quantised, tmp_path / "hf", "--to", "hf", "--dtype",
                       "bfloat16", "--threads", 1)
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "hf"), checkpoints.load_hf(twins.plain)
    )
    assert "quantization_config is removed" in done.stderr
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert "quantization_config" not in config


@pytest.mark.parametrize("scheme", ["int4_asymmetric", "gptq_ordered", "awq", "nvfp4"])
@pytest.mark.parametrize("family", ["llama", "qwen3"])
def test_dense_models_and_files_of_ranks(shardwright, models, tmp_path, family, scheme):
    maker = SCHEMES[scheme]()
    twins = Packed(models / family, tmp_path, maker.method, maker.store)
    for name, source in (("one", twins.quantised), ("other", twins.plain)):
        shardwright("convert", source, tmp_path / name, "--to", "legacy", "--tp", 2, "--pp", 2)
    files = sorted(path.relative_to(tmp_path / "one") for path in (tmp_path / "one").rglob("*.pt"))
    assert len(files) == 4
    for file in files:
        digests = [hashlib.sha256((tmp_path / name / file).read_bytes()).digest()
                   for name in ("one", "other")]
        assert digests[0] == digests[1], file


@pytest.mark.parametrize("scheme", ["int4", "modelopt"])
def test_every_command_sees_the_model(shardwright, models, tmp_path, scheme):
    maker = SCHEMES[scheme]()
    twins = Packed(models / "qwen3_moe", tmp_path, maker.method, maker.store)
    shardwright("verify", twins.quantised)
    digests = [shardwright("hash", folder, "--json").stdout
               for folder in (twins.quantised, twins.plain)]
    assert json.loads(digests[0])["digest"] == json.loads(digests[1])["digest"]
    shardwright("convert", twins.quantised, tmp_path / "mcore", "--to", "torch_dist")
    shardwright("diff", tmp_path / "mcore", twins.quantised)
    shardwright("diff", tmp_path / "mcore", twins.plain)
    proof = shardwright("verify", tmp_path / "mcore", "--against", twins.quantised)
    assert "PROVEN" in proof.stdout
    # As they are, nothing has to be understood.
    shardwright("convert", twins.quantised, tmp_path / "copy", "--to", "safetensors")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "copy"), checkpoints.load_hf(twins.quantised)
    )


@pytest.mark.parametrize("kind", ["llama4_text", "gpt_oss"])
def test_parameters_of_experts(shardwright, tmp_path, kind):
    """Whose bytes hold neighbours along an axis that is not the last one."""
    sizes = {**hf_sizes.FAMILY_SIZES[kind], "hidden_size": 64, "vocab_size": 510}
    for key in ("intermediate_size", "intermediate_size_mlp"):
        if key in sizes:
            sizes[key] = 96
    hf_models.create(tmp_path / "hf", kind, dtype=torch.bfloat16, **sizes)
    maker = ModelOptNvfp4Experts()
    twins = Packed(tmp_path / "hf", tmp_path, maker.method, maker.store, holds_experts)
    layouts = {"torch_dist": ("--tp", 2, "--ep", 2, "--etp", 1), "legacy": ("--tp", 2, "--ep", 1)}
    for format, layout in layouts.items():
        for name, source in (("one", twins.quantised), ("other", twins.plain)):
            folder = tmp_path / f"{name}-{format}"
            done = shardwright("convert", source, folder, "--to", format, *layout)
            assert name == "other" or f"dequantised {twins.count} tensors: nvfp4" in done.stderr
        shardwright("diff", tmp_path / f"one-{format}", tmp_path / f"other-{format}")
    checkpoints.assert_same(
        checkpoints.load_dcp(tmp_path / "one-torch_dist"),
        checkpoints.load_dcp(tmp_path / "other-torch_dist"),
    )
    shardwright("convert", twins.quantised, tmp_path / "back", "--to", "hf", "--dtype", "bfloat16")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "back"), checkpoints.load_hf(twins.plain)
    )
    shardwright("verify", twins.quantised)


@pytest.mark.parametrize("scheme", ["int4", "gptq", "awq", "modelopt"])
def test_adapters_are_added_to_what_is_multiplied_out(shardwright, models, tmp_path, scheme):
    maker = SCHEMES[scheme]()
    twins = Packed(models / "llama", tmp_path, maker.method, maker.store)
    adapter = tmp_path / "adapter"
    adapt(load(models / "llama", torch.bfloat16), adapter, target_modules=["down_proj", "o_proj"])
    told = shardwright("merge-adapter", twins.quantised, adapter, tmp_path / "no", expect=2).stderr
    assert "--dtype bfloat16 multiplies it out" in told and not (tmp_path / "no").exists()
    shardwright("merge-adapter", twins.quantised, adapter, tmp_path / "one", "--dtype", "bfloat16")
    shardwright("merge-adapter", twins.plain, adapter, tmp_path / "other")
    one, other, plain = (
        checkpoints.load_hf(folder) for folder in (tmp_path / "one", tmp_path / "other", twins.plain)
    )
    # Here nothing is rounded before the sum: a step of bfloat16 apart at most.
    for name, tensor in other.items():
        is_changed = name.endswith(("down_proj.weight", "o_proj.weight"))
        assert is_changed != plain[name].equal(one[name]), name
        torch.testing.assert_close(one[name].float(), tensor.float(), rtol=2**-7, atol=2**-8)
    # What is not selected is not changed, and nothing else is asked of it.
    shardwright("merge-adapter", twins.quantised, adapter, tmp_path / "some", "--include", "*norm*")


def test_python_reads_the_model(models, tmp_path):
    import shardwright

    maker = SCHEMES["int4_asymmetric"]()
    twins = Packed(models / "llama", tmp_path, maker.method, maker.store)
    plain = checkpoints.load_hf(twins.plain)
    with shardwright.open(twins.quantised, framework="pt", names="hf", dtype=torch.bfloat16) as reader:
        name = "model.layers.1.mlp.down_proj.weight"
        assert checkpoints.same_bits(reader.get_tensor(name), plain[name])


def test_half_precision_is_what_the_package_gives(shardwright, models, tmp_path):
    """With scales of float16 it gives float16: there the products are rounded as ours are."""
    maker = CompressedTensors("pack-quantized", dtype=torch.float16, num_bits=4, type="int",
                              strategy="group", group_size=32, symmetric=False)
    twins = Packed(models / "llama", tmp_path, maker.method, maker.store)
    shardwright("convert", twins.quantised, tmp_path / "hf", "--to", "hf", "--dtype", "float16")
    got = checkpoints.load_hf(tmp_path / "hf")
    for name, tensor in checkpoints.load_hf(twins.plain).items():
        assert checkpoints.same_bits(got[name], tensor.to(torch.float16)), name


def test_words_that_are_partly_filled(shardwright, models, tmp_path):
    """Rows of 330 columns end inside of a word: only weight_shape tells."""
    sizes = {**hf_sizes.SIZES, **SIZES, "intermediate_size": 330}
    hf_models.create(tmp_path / "hf", "llama", dtype=torch.bfloat16, **sizes)
    maker = integers(4, strategy="channel", symmetric=False)
    twins = Packed(tmp_path / "hf", tmp_path / "twins", maker.method, maker.store)
    shardwright("convert", twins.quantised, tmp_path / "out", "--to", "hf", "--dtype", "bfloat16")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(twins.plain)
    )


def ordered_int4(name, weight):
    """compressed-tensors wrote groups of reordered columns until 2026; now it reads them no more."""
    columns = weight.shape[1]
    order = (torch.arange(columns) // 32)[
        torch.randperm(columns, generator=torch.Generator().manual_seed(len(name)))
    ]
    maker = SCHEMES["int4"]()
    stored, _ = maker.store(name, weight)
    values = packed_integers(stored["weight_packed"], columns) - 8
    plain = values.float() * stored["weight_scale"][:, order].float()
    return {**stored, "weight_g_idx": order.to(torch.int32)}, plain.to(torch.bfloat16)


def packed_integers(words, columns):
    return ((words.long().unsqueeze(-1) >> (torch.arange(8) * 4)) & 15).flatten(-2)[:, :columns]


def test_columns_in_another_order(shardwright, models, tmp_path):
    method = SCHEMES["int4"]().method
    method["config_groups"]["group_0"]["weights"]["actorder"] = "group"
    twins = Packed(models / "llama", tmp_path, method, ordered_int4)
    shardwright("convert", twins.quantised, tmp_path / "out", "--to", "hf", "--dtype", "bfloat16")
    checkpoints.assert_same(
        checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(twins.plain)
    )


MODULE = "model.layers.1.mlp.up_proj."


def changed(ending, value):
    def edit(tensors):
        tensors[MODULE + ending] = value(tensors[MODULE + ending])

    return edit


def removed(ending):
    return lambda tensors: tensors.pop(MODULE + ending)


@pytest.mark.parametrize(
    "scheme, edit, told",
    [
        ("int4", removed("weight_scale"), "weight_scale"),
        ("int4", removed("weight_shape"), "weight_shape"),
        ("int4", changed("weight_shape", lambda t: t * 2**40), "weight_shape"),
        ("int4", changed("weight_shape", lambda t: -t), "weight_shape"),
        ("int4", changed("weight_scale", lambda t: t[:, 1:].contiguous()), "weight_scale"),
        ("int4_asymmetric", removed("weight_zero_point"), "weight_zero_point"),
        ("nvfp4", removed("weight_global_scale"), "weight_global_scale"),
        ("modelopt", removed("weight_scale_2"), "weight_scale_2"),
        ("gptq", removed("qzeros"), "qzeros"),
        ("gptq", changed("g_idx", lambda t: t + 1), "g_idx"),
        ("awq", removed("qweight"), "qzeros"),
    ],
)
def test_what_contradicts_is_refused(shardwright, models, tmp_path, scheme, edit, told):
    maker = SCHEMES[scheme]()
    twins = Packed(models / "llama", tmp_path, maker.method, maker.store)
    twins.change(edit)
    out = tmp_path / "out"
    done = shardwright("convert", twins.quantised, out, "--to", "torch_dist", expect=2)
    assert "model.safetensors: tensor " + MODULE in done.stderr
    assert told in done.stderr
    assert not out.exists()


def test_unknown_methods_are_named(shardwright, models, tmp_path):
    maker = SCHEMES["gptq"]()
    twins = Packed(models / "llama", tmp_path, {**maker.method, "bits": 3}, maker.store)
    done = shardwright("convert", twins.quantised, tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "gptq with 3 bits" in done.stderr


def test_biases_of_zeros_that_gptqs_writers_add(shardwright, tmp_path):
    """Llama has none, and would get some by them; of a bias that is not zero in all layers nothing is left out."""
    hf_models.create(tmp_path / "plain", "llama", dtype=torch.bfloat16, **SIZES)
    gptq = Gptq(4, 32)
    model = Packed(tmp_path / "plain", tmp_path / "model", gptq.method, gptq.store)

    def add(tensors, value=0.0):
        for name in [name for name in tensors if name.endswith(".qweight")]:
            shape = tensors[name].shape[1]
            tensors[name.replace("qweight", "bias")] = torch.full((shape,), value, dtype=torch.float16)

    model.change(add)
    done = shardwright("convert", model.quantised, tmp_path / "out", "--to", "torch_dist")
    assert "biases that writers of gptq files add" in done.stdout + done.stderr
    shardwright("convert", model.plain, tmp_path / "expected", "--to", "torch_dist")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), checkpoints.load_dcp(tmp_path / "expected"))
    shardwright("diff", model.quantised, tmp_path / "expected")
    model.change(lambda tensors: add(tensors, 0.5))
    shardwright("convert", model.quantised, tmp_path / "biased", "--to", "torch_dist")
    assert [name for name in checkpoints.load_dcp(tmp_path / "biased") if name.endswith("linear_proj.bias")]
