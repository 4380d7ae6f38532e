# SPDX-License-Identifier: Apache-2.0
"""Averages of checkpoints against the same arithmetic in torch, whatever format and layout each is in."""
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import save_file

import hf_models
from hf_models import tensors_of

SIZES = dict(tie_word_embeddings=False, vocab_size=512, intermediate_size=128)
WEIGHTS = (0.5, 0.3, 0.2)
SEEDS = {"a": 1, "b": 2, "c": 3}


def put(folder, tensors):
    """These tensors in one file, instead of all that are there."""
    for file in folder.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def make(folder, family, seed, dtype="bfloat16", **sizes):
    """A model of its own values."""
    hf_models.create(folder, family, **{**SIZES, **sizes})
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        name: (tensor.float() + 0.1 * torch.randn(tensor.shape, generator=generator)).to(
            getattr(torch, dtype)
        )
        for name, tensor in sorted(tensors_of(folder).items())
    }
    put(folder, tensors)
    config = json.loads((folder / "config.json").read_text())
    config["dtype"] = dtype
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    return folder


def average(models, weights, dtype=None):
    """Products and sums rounded to float32 in this order, the last sum to the model's type."""
    result = {}
    for name, first in models[0].items():
        total = torch.tensor(weights[0], dtype=torch.float32) * first.float()
        for model, weight in zip(models[1:], weights[1:]):
            total = total + torch.tensor(weight, dtype=torch.float32) * model[name].float()
        result[name] = total.to(dtype or first.dtype)
    return result


def assert_same(got, expected):
    assert set(got) == set(expected), set(got) ^ set(expected)
    for name, tensor in expected.items():
        assert got[name].dtype == tensor.dtype, name
        assert torch.equal(got[name], tensor), name


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    place = tmp_path_factory.mktemp("three")
    return [make(place / name, "llama", seed) for name, seed in SEEDS.items()]


@pytest.mark.parametrize("weights", [WEIGHTS, (1.0, 1.0, -1.0), None])
def test_the_bits_are_those_of_torch(weights, three, tmp_path, shardwright):
    flags = [] if weights is None else ["--weights", ",".join(map(str, weights))]
    shardwright("average", *three, tmp_path / "mean", *flags)
    expected = average([tensors_of(model) for model in three], weights or [1 / 3] * 3)
    assert_same(tensors_of(tmp_path / "mean"), expected)
    transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "mean")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_of_other_types(dtype, tmp_path, shardwright):
    models = [make(tmp_path / name, "llama", seed, dtype) for name, seed in SEEDS.items()]
    shardwright("average", *models, tmp_path / "mean", "--weights", "0.5,0.3,0.2")
    assert_same(
        tensors_of(tmp_path / "mean"), average([tensors_of(model) for model in models], WEIGHTS)
    )


@pytest.mark.parametrize("weights", [(2.0, -1.0), (-1.0, 2.0)])
def test_finite_numbers_whose_sum_is_not(weights, tmp_path, shardwright):
    models = [make(tmp_path / name, "llama", seed, "float32") for name, seed in (("a", 1), ("b", 2))]
    name = "model.layers.1.mlp.down_proj.weight"
    for model in models:
        tensors = tensors_of(model)
        tensors[name][3, 4] = 3e38
        put(model, tensors)
    flags = ["--weights", ",".join(map(str, weights))]
    done = shardwright("average", *models, tmp_path / "mean", *flags, expect=2)
    assert "SW0410" in done.stderr and name in done.stderr and "model.safetensors" in done.stderr
    assert not (tmp_path / "mean").exists()
    shardwright("average", *models, tmp_path / "mean")
    assert tensors_of(tmp_path / "mean")[name].isfinite().all()


def test_types_that_differ_need_dtype(three, tmp_path, shardwright):
    wide = make(tmp_path / "wide", "llama", 4, "float32")
    done = shardwright("average", three[0], wide, tmp_path / "mean", expect=2)
    assert "error[SW0409]" in done.stderr and f"{wide}: tensor lm_head.weight" in done.stderr
    assert "found float32, expected bfloat16" in done.stderr and "--dtype" in done.stderr
    assert not (tmp_path / "mean").exists()
    shardwright("average", three[0], wide, tmp_path / "mean", "--dtype", "float32")
    models = [tensors_of(three[0]), tensors_of(wide)]
    assert_same(tensors_of(tmp_path / "mean"), average(models, (0.5, 0.5), torch.float32))


# Where Megatron keeps norms less one, the terms have constants of their own.
@pytest.mark.parametrize("family", ["llama", "gemma2", "qwen3_moe"])
def test_formats_and_layouts_may_differ(family, tmp_path, shardwright):
    models = []
    for name, seed in SEEDS.items():
        sizes = {} if family == "llama" else dict(tie_word_embeddings=family == "gemma2")
        models.append(make(tmp_path / name, family, seed, **sizes))
    a, b, c = models
    shardwright("convert", b, tmp_path / "b td", "--to", "torch_dist", "--tp", 2)
    shardwright("convert", c, tmp_path / "c mp", "--to", "legacy", "--tp", 2, "--pp", 2)
    mixed = [a, tmp_path / "b td", tmp_path / "c mp"]
    shardwright("average", *models, tmp_path / "plain", "--weights", "0.5,0.3,0.2")
    plain = tensors_of(tmp_path / "plain")
    assert_same(plain, average([tensors_of(model) for model in models], WEIGHTS))
    shardwright("average", *mixed, tmp_path / "mixed", "--weights", "0.5,0.3,0.2")
    assert set(tensors_of(tmp_path / "mixed")) == set(plain)
    for name, tensor in tensors_of(tmp_path / "mixed").items():
        if family == "gemma2" and "norm" in name:  # rounded when they were converted
            assert (tensor.float() - plain[name].float()).abs().max() < 0.02, name
        else:
            assert torch.equal(tensor, plain[name]), name
    targets = {"torch_dist": ["--tp", 2, "--pp", 2], "legacy": ["--tp", 2], "fsdp_dtensor": []}
    shardwright("average", *models, tmp_path / "wide", "--weights", "0.5,0.3,0.2", "--dtype",
                "float32")  # fmt: skip
    for target, flags in targets.items():
        out = tmp_path / target
        shardwright("average", *mixed, out, "--to", target, *flags, "--weights", "0.5,0.3,0.2")
        if family == "gemma2":
            continue
        # Megatron-FSDP keeps parameters in float32: nothing is rounded to bfloat16 there.
        plain = tmp_path / ("wide" if target == "fsdp_dtensor" else "plain")
        assert "EQUAL" in shardwright("diff", out, plain).stdout


def test_padded_vocabularies_of_other_heights(three, tmp_path, shardwright):
    for model, multiple, name in ((three[0], 96, "a"), (three[1], 160, "b")):
        shardwright("convert", model, tmp_path / name, "--to", "torch_dist",
                    "--make-vocab-size-divisible-by", multiple)
    shardwright("average", tmp_path / "a", tmp_path / "b", tmp_path / "mean", "--to", "torch_dist")
    shardwright("convert", tmp_path / "mean", tmp_path / "hf", "--to", "hf")
    models = [tensors_of(model) for model in three[:2]]
    assert_same(tensors_of(tmp_path / "hf"), average(models, (0.5, 0.5)))


def test_threads_resume_and_memory_change_nothing(three, tmp_path, shardwright):
    shardwright("average", *three, tmp_path / "one", "--threads", 1)
    shardwright("average", *three, tmp_path / "four", "--threads", 4, "--max-memory", "60MB")
    for name in ("model.safetensors", "config.json"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "four" / name).read_bytes()


def refused(case, three, place):
    """Another model in the place of the second."""
    other = place / "other"
    shutil.copytree(three[1], other)
    tensors = tensors_of(other)
    norm = "model.layers.1.input_layernorm.weight"
    if case == "missing":
        del tensors[norm]
    elif case == "more":
        tensors["model.layers.1.self_attn.q_proj.bias"] = torch.zeros(64, dtype=torch.bfloat16)
    elif case == "shape":
        tensors["lm_head.weight"] = tensors["lm_head.weight"][:-8].contiguous()
    put(other, tensors)
    return other


REFUSALS = {
    "missing": "other: tensor model.layers.1.input_layernorm.weight is missing, which",
    "more": "a: tensor model.layers.1.self_attn.q_proj.bias is missing, which",
    "shape": "other: tensor lm_head.weight: found shape (504, ",
}


@pytest.mark.parametrize("case", REFUSALS)
def test_another_model_is_refused(case, three, tmp_path, shardwright):
    other = refused(case, three, tmp_path)
    done = shardwright("average", three[0], other, tmp_path / "mean", expect=2)
    assert REFUSALS[case] in done.stderr
    assert not (tmp_path / "mean").exists()


# Their tensors look the same; smollm3 has layers without rotary embedding.
def test_another_family_is_refused(three, tmp_path, shardwright):
    other = tmp_path / "other"
    shutil.copytree(three[1], other)
    config = json.loads((other / "config.json").read_text())
    config.update(model_type="smollm3", architectures=["SmolLM3ForCausalLM"])
    (other / "config.json").write_text(json.dumps(config))
    done = shardwright("average", three[0], other, tmp_path / "mean", expect=2)
    assert "found model_type = smollm3, expected llama" in done.stderr
    shardwright("average", three[0], other, tmp_path / "mean", "--hf-config", three[0])


def test_factors_of_adapters_are_refused(tmp_path, shardwright):
    for name in ("one", "two"):
        tensors = {
            "base_model.model.q_proj.lora_A.weight": torch.randn(2, 8),
            "base_model.model.q_proj.lora_B.weight": torch.randn(6, 2),
        }
        (tmp_path / name).mkdir()
        save_file(tensors, tmp_path / name / "adapter_model.safetensors", metadata={"format": "pt"})
        config = {"peft_type": "LORA", "r": 2, "lora_alpha": 8, "target_modules": ["q_proj"]}
        (tmp_path / name / "adapter_config.json").write_text(json.dumps(config))
    flags = ("--to", "safetensors")
    done = shardwright("average", tmp_path / "one", tmp_path / "two", tmp_path / "mean", *flags, expect=2)
    assert "low-rank adapter" in done.stderr and "merge-adapter" in done.stderr


def test_one_checkpoint_twice_is_refused(three, tmp_path, shardwright):
    (tmp_path / "again").symlink_to(three[0])
    for again in (three[0], tmp_path / "again"):
        done = shardwright("average", three[0], three[1], again, tmp_path / "mean", expect=2)
        assert "error[SW0900]" in done.stderr and "given twice" in done.stderr


def test_quantised_models_are_multiplied_out_first(tmp_path, shardwright):
    models = []
    for name, seed in SEEDS.items():
        model = make(tmp_path / name, "llama", seed)
        tensors = tensors_of(model)
        weight = "model.layers.0.mlp.up_proj.weight"
        tensors[weight] = tensors[weight].to(torch.float8_e4m3fn)
        tensors[weight + "_scale_inv"] = torch.full((1, 1), 1.0 + seed)
        put(model, tensors)
        config = json.loads((model / "config.json").read_text())
        config["quantization_config"] = {
            "quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"
        }  # fmt: skip
        (model / "config.json").write_text(json.dumps(config))
        models.append(model)
    done = shardwright("average", *models, tmp_path / "no", expect=2)
    assert "error[SW0409]" in done.stderr and "--dtype" in done.stderr
    shardwright("average", *models, tmp_path / "mean", "--dtype", "bfloat16")
    plain = []
    for model in models:
        tensors = tensors_of(model)
        weight = "model.layers.0.mlp.up_proj.weight"
        tensors[weight] = tensors[weight].float() * tensors.pop(weight + "_scale_inv").item()
        plain.append(tensors)
    assert_same(tensors_of(tmp_path / "mean"), average(plain, [1 / 3] * 3, torch.bfloat16))


def test_from_python(three, tmp_path):
    import shardwright as package

    done = package.average(three, tmp_path / "mean", weights=WEIGHTS)
    assert done.inputs == [str(model) for model in three] and done.weights == list(WEIGHTS)
    assert_same(
        tensors_of(tmp_path / "mean"), average([tensors_of(model) for model in three], WEIGHTS)
    )
    plan = package.average(three, tmp_path / "dry", to="torch_dist", tp=2, dry_run=True)
    assert plan.target["format"] == "torch_dist" and not (tmp_path / "dry").exists()


def test_what_one_lacks_can_be_left_out_of_the_other(three, tmp_path, shardwright):
    shutil.copytree(three[1], tmp_path / "more")
    put(tmp_path / "more", {**tensors_of(three[1]), "model.rotary.inv_freq": torch.ones(4)})
    pair = ("average", three[0], tmp_path / "more", tmp_path / "mean")
    done = shardwright(*pair, expect=2)
    assert "tensor model.rotary.inv_freq is missing" in done.stderr and "--exclude" in done.stderr
    assert not (tmp_path / "mean").exists()
    alike = ("average", *three[:2], tmp_path / "mean")
    done = shardwright(*alike, "--exclude", "model.rotary.*", expect=2)
    assert "'model.rotary.*': matches no tensor" in done.stderr
    shardwright(*pair, "--exclude", "model.rotary.*")
    expected = average([tensors_of(model) for model in three[:2]], [0.5, 0.5])
    assert_same(tensors_of(tmp_path / "mean"), expected)
