# SPDX-License-Identifier: Apache-2.0
"""Adapters of the real PEFT, merged without it, against what `merge_and_unload` makes of them."""
import json
import math
import shutil

import pytest
import peft
import torch
import transformers
from safetensors.torch import load_file, save_file

import hf_models
from hf_models import tensors_of
from peft_adapters import LLAMA, adapt, by_peft, difference, load, one_by_one, steps_apart


@pytest.fixture
def llama(tmp_path):
    hf_models.create(tmp_path / "base", "llama", **LLAMA)
    return tmp_path / "base"


# PEFT's products are summed by a library that takes ranks in order with fused multiply-adds where
# the processor has them, and so do we.
EQUAL = {
    "lora": {},
    "rslora": dict(use_rslora=True, r=9),
    "patterns": dict(
        rank_pattern={"layers.1.self_attn.q_proj": 2, "down_proj": 8},
        alpha_pattern={"k_proj": 1, "^model.layers.0.mlp.up_proj": 32},
    ),
    "some layers": dict(target_modules=["q_proj"], layers_to_transform=[1]),
    "whole modules": dict(modules_to_save=["lm_head", "embed_tokens", "norm"]),
    "rows of the embedding": dict(trainable_token_indices=[300, 3, 7]),
    "rows of both": dict(trainable_token_indices={"embed_tokens": [1, 2], "lm_head": [2, 509, 5]}),
    "embedding and head": dict(target_modules=["embed_tokens", "lm_head", "v_proj"]),
}


@pytest.mark.parametrize("case", EQUAL)
def test_float32_is_what_peft_makes_bit_by_bit(case, llama, tmp_path, shardwright):
    adapt(load(llama), tmp_path / "adapter", **EQUAL[case])
    shardwright("merge-adapter", llama, tmp_path / "adapter", tmp_path / "merged")
    got, expected = tensors_of(tmp_path / "merged"), by_peft(llama, tmp_path / "adapter")
    changed = [name for name, tensor in tensors_of(llama).items() if not tensor.equal(got[name])]
    assert changed
    if torch.backends.cpu.get_cpu_capability() in ("AVX2", "AVX512"):
        assert difference(got, expected) == 0.0
    else:
        assert difference(got, expected) < 1e-5


def test_biases_of_an_adapter(tmp_path, shardwright):
    hf_models.create(tmp_path / "base", "qwen2", tie_word_embeddings=False)
    adapter = tmp_path / "adapter"
    adapt(load(tmp_path / "base"), adapter, target_modules=["q_proj", "k_proj"], lora_bias=True)
    shardwright("merge-adapter", tmp_path / "base", adapter, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")
    assert difference(got, by_peft(tmp_path / "base", adapter)) == 0.0
    name = "model.layers.0.self_attn.q_proj.bias"
    assert not got[name].equal(tensors_of(tmp_path / "base")[name])


def test_biases_that_were_trained(tmp_path, shardwright):
    hf_models.create(tmp_path / "base", "qwen2", tie_word_embeddings=False)
    adapter = tmp_path / "adapter"
    adapt(load(tmp_path / "base"), adapter, target_modules=["q_proj"], bias="all")
    shardwright("merge-adapter", tmp_path / "base", adapter, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")
    assert difference(got, by_peft(tmp_path / "base", adapter)) == 0.0


# Lengths of rows are sums in another order: a few steps of float32 apart.
@pytest.mark.parametrize("more", [{}, {"use_rslora": True}, {"target_modules": ["embed_tokens"]}])
def test_dora_is_a_rounding_apart(more, llama, tmp_path, shardwright):
    adapt(load(llama), tmp_path / "adapter", use_dora=True, **more)
    shardwright("merge-adapter", llama, tmp_path / "adapter", tmp_path / "merged")
    got, expected = tensors_of(tmp_path / "merged"), by_peft(llama, tmp_path / "adapter")
    steps = max(steps_apart(got[name], expected[name]) for name in expected)
    print(f"dora: {steps} steps of float32, {difference(got, expected):.3g}")
    assert 0 < steps <= 16
    assert difference(got, expected) < 1e-6


def exact(base, adapter):
    """What the bfloat16 model would be, rounded once, computed in float64."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    lora = load_file(adapter / "adapter_model.safetensors")
    made = dict(tensors_of(base))
    for name, tensor in lora.items():
        if not name.endswith("lora_A.weight"):
            continue
        target = name.removeprefix("base_model.model.").replace(".lora_A", "")
        other = lora[name.replace("lora_A", "lora_B")].double()
        product = other @ tensor.double() * (config["lora_alpha"] / config["r"])
        made[target] = (made[target].double() + product).to(torch.bfloat16)
    return made


def test_bfloat16_is_rounded_once(tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "llama", dtype=torch.bfloat16, tie_word_embeddings=False)
    adapt(load(base, torch.bfloat16), adapter)
    assert {t.dtype for t in load_file(adapter / "adapter_model.safetensors").values()} == {
        torch.float32
    }
    shardwright("merge-adapter", base, adapter, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")
    # With the adapter in float32, which is how it loads it, PEFT does the same.
    assert difference(got, by_peft(base, adapter, torch.bfloat16)) == 0.0
    # With the adapter in bfloat16 it rounds the product first, and then the sum.
    twice = by_peft(base, adapter, torch.bfloat16, autocast_adapter_dtype=False)
    true = exact(base, adapter)
    off, off_twice = difference(got, true), difference(twice, true)
    print(f"bfloat16: {off:.3g} from the exact sum rounded once, PEFT in bfloat16 {off_twice:.3g}")
    wrong = sum((got[name] != true[name]).sum().item() for name in true)
    wrong_twice = sum((twice[name] != true[name]).sum().item() for name in true)
    assert wrong < 20 and wrong_twice > 1000


def test_gpt2_stores_its_weights_transposed(tmp_path, shardwright):
    config = transformers.GPT2Config(vocab_size=97, n_positions=32, n_embd=24, n_layer=2, n_head=3)
    base = tmp_path / "base"
    model = transformers.GPT2LMHeadModel(config)
    hf_models.fill(model)
    model.save_pretrained(base)
    for name, more in {"lora": {}, "dora": {"use_dora": True}}.items():
        trained = adapt(load(base), tmp_path / name, fan_in_fan_out=True,
                        target_modules=["c_attn", "c_proj", "c_fc"], **more)  # fmt: skip
        shardwright("merge-adapter", base, tmp_path / name, tmp_path / f"merged {name}")
        expected = by_peft(base, tmp_path / name)
        got = tensors_of(tmp_path / f"merged {name}")
        del expected["lm_head.weight"]  # the embedding
        expected = {name: tensor for name, tensor in expected.items() if name in got}
        assert difference(got, expected) <= (1e-6 if more else 0.0)
        assert trained is not None


# What PEFT's merging makes of a tied model is another model than the one that was trained: it adds
# to both what was added to one. Here both are written.
@pytest.mark.parametrize(
    "settings",
    [
        dict(target_modules=["embed_tokens", "q_proj"]),
        dict(target_modules=["lm_head", "q_proj"]),
        dict(target_modules=["lm_head", "embed_tokens"]),
        dict(target_modules=["q_proj"], modules_to_save=["embed_tokens"]),
        dict(target_modules=["q_proj"], modules_to_save=["lm_head"]),
        dict(target_modules=["embed_tokens"], ensure_weight_tying=True),
        dict(target_modules=["q_proj"], modules_to_save=["lm_head"], ensure_weight_tying=True),
    ],
    ids=lambda settings: "-".join(str(value) for value in settings.values()),
)
def test_tied_models_give_the_logits_that_were_trained(settings, tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "llama", tie_word_embeddings=True)
    trained = adapt(hf_models.load(base), adapter, **settings).eval()
    said = shardwright("merge-adapter", base, adapter, tmp_path / "merged").stderr
    assert "tie_word_embeddings false" in said
    tokens = torch.arange(3, 43)[None]
    merged = hf_models.load(tmp_path / "merged")
    with torch.no_grad():
        expected, got = trained(tokens).logits, merged(tokens).logits
        before = hf_models.load(base)(tokens).logits
    assert (expected - before).abs().max() > 0.1
    assert (expected - got).abs().max() < 2e-4
    # And as Megatron's, whose head is then a tensor of its own.
    shardwright("merge-adapter", base, adapter, tmp_path / "td", "--to", "torch_dist", "--tp", 1)
    shardwright("convert", tmp_path / "td", tmp_path / "back", "--to", "hf")
    assert difference(tensors_of(tmp_path / "back"), tensors_of(tmp_path / "merged")) == 0.0


@pytest.mark.parametrize("target", ["torch_dist", "legacy", "dcp"])
def test_every_target_holds_the_same_bits(target, llama, tmp_path, shardwright):
    adapter = tmp_path / "adapter"
    adapt(load(llama), adapter, use_dora=True, modules_to_save=["lm_head"])
    shardwright("merge-adapter", llama, adapter, tmp_path / "merged")
    sizes = () if target == "dcp" else ("--tp", 3, "--pp", 3)
    shardwright("merge-adapter", llama, adapter, tmp_path / "ckpt", "--to", target, *sizes)
    shardwright("convert", tmp_path / "ckpt", tmp_path / "back", "--to", "hf", "--hf-config", llama)
    assert difference(tensors_of(tmp_path / "back"), tensors_of(tmp_path / "merged")) == 0.0
    shardwright("diff", tmp_path / "merged", tmp_path / "ckpt")


def test_bytes_do_not_depend_on_threads_and_memory(llama, tmp_path, shardwright):
    adapter = tmp_path / "adapter"
    adapt(load(llama), adapter)
    shardwright("merge-adapter", llama, adapter, tmp_path / "one", "--threads", 1)
    shardwright("merge-adapter", llama, adapter, tmp_path / "four", "--threads", 4,
                "--max-memory", "48MiB")  # fmt: skip
    for file in sorted((tmp_path / "one").iterdir()):
        assert file.read_bytes() == (tmp_path / "four" / file.name).read_bytes(), file.name


class Tree(torch.nn.Module):
    """A module for each matrix of a model's files, whatever transformers makes of them."""

    def __init__(self, tensors):
        super().__init__()
        for name, tensor in tensors.items():
            *path, last = name.split(".")
            if last != "weight" or tensor.dim() != 2:
                continue
            at = self
            for part in path[:-1]:
                if not hasattr(at, part):
                    at.add_module(part, torch.nn.Module())
                at = getattr(at, part)
            linear = torch.nn.Linear(tensor.shape[1], tensor.shape[0], bias=False)
            linear.weight.data = tensor.clone()
            at.add_module(path[-1], linear)


def resized(folder, **settings):
    """A model with a longer vocabulary, which PEFT sees by the base that it was; it is in resized/."""
    hf_models.create(folder / "base", "llama", **{**LLAMA, **settings})
    model = load(folder / "base")
    model.resize_token_embeddings(520)
    model.save_pretrained(folder / "resized")
    return model


@pytest.mark.parametrize("both", [False, True])
def test_trained_tokens_of_tied_models(both, tmp_path, shardwright):
    base, adapter, tokens = tmp_path / "base", tmp_path / "adapter", [5, 200, 6]
    hf_models.create(base, "llama", tie_word_embeddings=True)
    listed = {"embed_tokens": tokens, "lm_head": tokens} if both else tokens
    adapt(load(base), adapter, target_modules=["q_proj"], trainable_token_indices=listed)
    merged = tmp_path / "merged"
    told = shardwright("merge-adapter", base, adapter, merged).stderr
    assert "3 rows of model.embed_tokens.weight" in told
    expected = by_peft(base, adapter)
    assert expected.pop("lm_head.weight").equal(expected["model.embed_tokens.weight"])
    assert difference(tensors_of(merged), expected) < 1e-6
    rows = load_file(adapter / "adapter_model.safetensors")
    rows = rows["base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"]
    assert torch.equal(tensors_of(merged)["model.embed_tokens.weight"][tokens], rows)
    # A stored head that loaders pass over for the embedding.
    stored = tensors_of(base)
    stored["lm_head.weight"] = stored["model.embed_tokens.weight"].clone()
    both_stored = tmp_path / "both"
    both_stored.mkdir()
    shutil.copy(base / "config.json", both_stored)
    save_file(stored, both_stored / "model.safetensors", metadata={"format": "pt"})
    done = shardwright("convert", adapter, tmp_path / "run", "--to", "torch_dist", "--hf-config", base, expect=2)
    assert "trained rows of tokens, of model.embed_tokens" in done.stderr
    shardwright("merge-adapter", both_stored, adapter, tmp_path / "stored")
    assert torch.equal(tensors_of(tmp_path / "stored")["lm_head.weight"][tokens], rows)


def test_trained_tokens_are_rounded_once(llama, tmp_path, shardwright):
    adapter, tokens = tmp_path / "adapter", [509, 0, 170, 171]
    base = tmp_path / "half"
    load(llama, torch.bfloat16).save_pretrained(base)
    adapt(load(base, torch.bfloat16), adapter, target_modules=["q_proj"], trainable_token_indices=tokens)
    name = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    assert load_file(adapter / "adapter_model.safetensors")[name].dtype == torch.float32
    shardwright("merge-adapter", base, adapter, tmp_path / "merged")
    table = "model.embed_tokens.weight"
    expected = by_peft(base, adapter, torch.bfloat16)[table]
    assert torch.equal(tensors_of(tmp_path / "merged")[table], expected)
    shardwright("merge-adapter", base, adapter, tmp_path / "ckpt", "--to", "legacy", "--tp", 3)
    shardwright("convert", tmp_path / "ckpt", tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert torch.equal(tensors_of(tmp_path / "back")[table], expected)


@pytest.mark.parametrize("tied", [False, True])
def test_trained_tokens_of_a_resized_vocabulary(tied, tmp_path, shardwright):
    """PEFT saves what the rows are put into too, and of tied models all of it twice."""
    model = resized(tmp_path, tie_word_embeddings=tied)
    adapt(model, tmp_path / "adapter", target_modules=["q_proj"], trainable_token_indices=[515, 3])
    stored = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert "base_model.model.model.embed_tokens.token_adapter.base_layer.weight" in stored
    assert ("base_model.model.lm_head.token_adapter.base_layer.weight" in stored) == tied
    told = shardwright("merge-adapter", tmp_path / "resized", tmp_path / "adapter", tmp_path / "out").stderr
    assert "tie_word_embeddings" not in told
    expected = by_peft(tmp_path / "resized", tmp_path / "adapter")
    if tied:
        assert expected.pop("lm_head.weight").equal(expected["model.embed_tokens.weight"])
    assert difference(tensors_of(tmp_path / "out"), expected) < 1e-6


def test_a_tied_heads_rows_of_other_tokens(tmp_path, shardwright):
    adapter = tmp_path / "adapter"
    adapt(resized(tmp_path, tie_word_embeddings=True), adapter, target_modules=["q_proj"],
          trainable_token_indices=[515, 3])  # fmt: skip
    config = json.loads((adapter / "adapter_config.json").read_text())
    config["trainable_token_indices"] = {"embed_tokens": [515, 3], "lm_head": [515, 4]}
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    done = shardwright("merge-adapter", tmp_path / "resized", adapter, tmp_path / "out", expect=2)
    assert "token_adapter.trainable_tokens_delta" in done.stderr
    assert "the adapter changes model.embed_tokens.weight, or what is tied to it, in another way too" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("case", ["too few rows", "no row", "another way", "unlisted", "lost", "twice"])
def test_trained_tokens_that_do_not_fit(case, llama, tmp_path, shardwright):
    adapter, base = tmp_path / "adapter", llama
    more = {"modules_to_save": ["embed_tokens"]} if case == "another way" else {}
    adapt(load(llama), adapter, target_modules=["q_proj"],
          **(more or {"trainable_token_indices": [3, 4]}))  # fmt: skip
    file, words = adapter / "adapter_model.safetensors", ["embed_tokens"]
    config = json.loads((adapter / "adapter_config.json").read_text())
    tensors = load_file(file)
    name = "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta"
    if case == "too few rows":
        config["trainable_token_indices"] = [3, 4, 5]
        words += ["expected a row for each of 3 tokens"]
    elif case == "no row":
        config["trainable_token_indices"] = [3, 510]
        words += ["found token 510", "has 510 rows"]
    elif case == "another way":
        config["trainable_token_indices"] = [3]
        tensors[name] = torch.ones(1, tensors_of(llama)["model.norm.weight"].numel())
        words += ["in another way too"]
    elif case == "unlisted":
        config["trainable_token_indices"] = {"lm_head": [3, 4]}
        words += ["lists no such module in trainable_token_indices"]
    elif case == "lost":
        del tensors[name]
        words = ["found no rows of the embedding", "trainable_token_indices"]
    else:
        config["trainable_token_indices"] = [3, 3]
        words = ["trainable_token_indices: found token 3 twice"]
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    save_file(tensors, file, metadata={"format": "pt"})
    done = shardwright("merge-adapter", base, adapter, tmp_path / "out", expect=2)
    assert all(word in done.stderr for word in words), done.stderr
    assert not (tmp_path / "out").exists()


# Experts that are linears, as they were before transformers 5 and as their files still have them.
def test_a_vocabulary_that_was_resized(tmp_path, shardwright):
    """PEFT saves its embedding and head three times then, by the names in its wrapper too."""
    model = resized(tmp_path)
    adapt(model, tmp_path / "adapter", target_modules=["q_proj"], modules_to_save=["embed_tokens", "lm_head"])
    stored = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert "base_model.model.lm_head.original_module.weight" in stored
    shardwright("merge-adapter", tmp_path / "resized", tmp_path / "adapter", tmp_path / "out")
    assert difference(tensors_of(tmp_path / "out"), by_peft(tmp_path / "resized", tmp_path / "adapter")) < 1e-5
    head = stored["base_model.model.lm_head.weight"]
    assert torch.equal(tensors_of(tmp_path / "out")["lm_head.weight"], head)


def test_experts_one_by_one(tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "qwen3_moe", tie_word_embeddings=False, vocab_size=510)
    experts = ["gate_proj", "up_proj", "down_proj", "q_proj", "o_proj"]
    trained = adapt(Tree(tensors_of(base)), adapter, target_modules=experts)
    expected = trained.merge_and_unload().state_dict()
    shardwright("merge-adapter", base, adapter, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")
    assert sum(".experts." in name for name in expected) > 20
    for name, tensor in expected.items():
        assert got[name].equal(tensor), name
    sizes = ("--tp", 3, "--ep", 2, "--etp", 1)
    shardwright("merge-adapter", base, adapter, tmp_path / "td", "--to", "torch_dist", *sizes)
    shardwright("convert", tmp_path / "td", tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "back"), got) == 0.0


# As transformers 5 holds experts; PEFT makes parameters of the modules' names too.
@pytest.mark.parametrize(
    "settings",
    [
        dict(target_parameters=["mlp.experts.gate_up_proj", "mlp.experts.down_proj"], r=4),
        dict(target_parameters=["mlp.experts.down_proj"], alpha_pattern={"experts.down_proj": 3}),
        dict(target_parameters=["mlp.experts.gate_up_proj"], target_modules=["q_proj"]),
        dict(target_modules=["gate_proj", "up_proj", "down_proj", "o_proj"]),
    ],
    ids=["both", "down", "gate_up", "by_modules"],
)
def test_parameters_that_hold_all_experts(settings, tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "qwen3_moe", tie_word_embeddings=False, vocab_size=510)
    adapt(load(base), adapter, **{"target_modules": [], **settings})
    assert json.loads((adapter / "adapter_config.json").read_text())["target_parameters"]
    shardwright("merge-adapter", base, adapter, tmp_path / "merged")
    got, before = tensors_of(tmp_path / "merged"), tensors_of(base)
    expected = one_by_one(by_peft(base, adapter))
    assert difference(got, expected) < 1e-6
    assert sum(".experts." in name and not before[name].equal(got[name]) for name in got) > 10
    # Into Megatron's experts, by any number of ranks.
    shardwright("merge-adapter", base, adapter, tmp_path / "td", "--to", "torch_dist", "--tp", 1, "--ep", 2)
    shardwright("convert", tmp_path / "td", tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "back"), got) == 0.0
    # And as an adapter that a run trains on, which has one rank and one alpha.
    if "target_parameters" not in settings:
        return
    shardwright("convert", adapter, tmp_path / "run", "--to", "torch_dist", "--ep", 2, "--hf-config", base,
                expect=2 if "alpha_pattern" in settings else 0)  # fmt: skip
    if "alpha_pattern" in settings:
        return
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    shardwright("merge-adapter", base, tmp_path / "peft", tmp_path / "again")
    assert difference(tensors_of(tmp_path / "again"), got) == 0.0


# The same where the files hold them in one tensor, [experts, outputs, inputs] or [experts, inputs, outputs];
# GPT-OSS and Llama 4 come so. Square ones have the axes of the others.
@pytest.mark.parametrize("parameters", [["gate_up_proj", "down_proj"], ["down_proj"]], ids="-".join)
@pytest.mark.parametrize(
    "kind, settings",
    [
        ("qwen3_moe", {}),
        ("gpt_oss", {}),
        ("gpt_oss", dict(hidden_size=64, intermediate_size=64)),
        ("llama4_text", {}),
        ("llama4_text", dict(hidden_size=72, intermediate_size=72)),
    ],
    ids=["qwen3_moe", "gpt_oss", "gpt_oss square", "llama4", "llama4 square"],
)
def test_experts_in_one_tensor(kind, settings, parameters, tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    packed = {"packed": True} if kind == "qwen3_moe" else {}
    hf_models.create(base, kind, **packed, **settings)
    names = [f"experts.{name}" for name in parameters]
    adapt(load(base), adapter, target_modules=["q_proj"], target_parameters=names)
    if settings and parameters == ["down_proj"]:
        # GPT-OSS says that it stores [inputs, outputs] since transformers 5, Llama 4 does not.
        told = shardwright("merge-adapter", base, adapter, tmp_path / "no", expect=2).stderr
        assert "nothing tells whether lora_A is over the inputs" in told
        return
    shardwright("merge-adapter", base, adapter, tmp_path / "merged")
    got, before = tensors_of(tmp_path / "merged"), tensors_of(base)
    expected = by_peft(base, adapter)
    assert set(got) <= set(expected)
    assert difference(got, {name: expected[name] for name in got}) < 1e-6
    changed = [name for name in got if "experts." in name and not before[name].equal(got[name])]
    assert changed and all(name.endswith(tuple(parameters)) for name in changed)
    sizes = ("--tp", 1, "--pp", 1, "--ep", 2)
    shardwright("merge-adapter", base, adapter, tmp_path / "td", "--to", "torch_dist", *sizes)
    shardwright("convert", tmp_path / "td", tmp_path / "back", "--to", "hf", "--hf-config", base)
    again = tensors_of(tmp_path / "back")
    assert difference(again, got) == 0.0
    shardwright("diff", tmp_path / "merged", tmp_path / "td")


# As GPT-OSS is released: its experts are multiplied out, and what is trained is added to that.
def test_experts_that_are_quantised(tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "gpt_oss", torch.bfloat16, hidden_size=64, intermediate_size=32)
    shardwright("convert", base, tmp_path / "fp4", "--to", "hf", "--quantise", "mxfp4")
    shardwright("convert", tmp_path / "fp4", tmp_path / "plain", "--to", "hf", "--dtype", "bfloat16")
    both = ["experts.gate_up_proj", "experts.down_proj"]
    adapt(load(base, torch.bfloat16), adapter, target_modules=[], target_parameters=both)
    told = shardwright("merge-adapter", tmp_path / "fp4", adapter, tmp_path / "no", expect=2).stderr
    assert "--dtype bfloat16 multiplies it out" in told
    shardwright("merge-adapter", tmp_path / "fp4", adapter, tmp_path / "merged", "--dtype", "bfloat16")
    shardwright("merge-adapter", tmp_path / "plain", adapter, tmp_path / "expected")
    got, expected = tensors_of(tmp_path / "merged"), tensors_of(tmp_path / "expected")
    assert difference(got, expected) == 0.0
    name = "model.layers.0.mlp.experts.down_proj"
    assert not got[name].equal(tensors_of(tmp_path / "plain")[name])
    by_torch = by_peft(tmp_path / "plain", adapter, torch.bfloat16)
    assert difference(got, {name: by_torch[name] for name in got}) < 0.05


def test_parameters_that_are_not_added(tmp_path, shardwright):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "qwen3_moe", tie_word_embeddings=False)
    hf_models.create(tmp_path / "biases", "gpt_oss")
    adapt(load(tmp_path / "biases"), adapter, target_modules=[], target_parameters=["experts.down_proj_bias"])
    told = shardwright("merge-adapter", tmp_path / "biases", adapter, tmp_path / "no", expect=2).stderr
    assert "found experts.down_proj_bias in target_parameters" in told and "merge_and_unload" in told
    both = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
    adapt(load(base), tmp_path / "experts", target_modules=[], target_parameters=both)
    hf_models.create(tmp_path / "dense", "qwen3", tie_word_embeddings=False)
    told = shardwright("merge-adapter", tmp_path / "dense", tmp_path / "experts", tmp_path / "no", expect=2).stderr
    assert "has neither" in told and ".experts.0.down_proj" in told and "of another model" in told
    hf_models.create(tmp_path / "few", "qwen3_moe", tie_word_embeddings=False, num_experts=3)
    adapt(load(tmp_path / "few"), tmp_path / "three", target_modules=[], target_parameters=both)
    told = shardwright("merge-adapter", base, tmp_path / "three", tmp_path / "no", expect=2).stderr
    assert "found 3 experts" in told and ".experts.3." in told
    config = json.loads((tmp_path / "experts" / "adapter_config.json").read_text())
    (tmp_path / "experts" / "adapter_config.json").write_text(json.dumps({**config, "r": 5}))
    told = shardwright("merge-adapter", base, tmp_path / "experts", tmp_path / "no", expect=2).stderr
    assert "are not those of experts of rank 5" in told
    assert not (tmp_path / "no").exists()


def test_a_base_in_another_format(llama, tmp_path, shardwright):
    """The same model in the files of a trainer that uses Hugging Face's names."""
    adapter = tmp_path / "adapter"
    adapt(load(llama), adapter)
    shardwright("merge-adapter", llama, adapter, tmp_path / "merged")
    other = tmp_path / "bin"
    other.mkdir()
    torch.save(tensors_of(llama), other / "pytorch_model.bin")
    shutil.copy(llama / "config.json", other)
    shardwright("merge-adapter", other, adapter, tmp_path / "from bin")
    assert difference(tensors_of(tmp_path / "from bin"), tensors_of(tmp_path / "merged")) == 0.0


def test_what_does_not_fit_is_named(llama, tmp_path, shardwright):
    adapter = tmp_path / "adapter"
    adapt(load(llama), adapter)

    def refused(base=llama, folder=adapter):
        done = shardwright("merge-adapter", base, folder, tmp_path / "no", expect=2)
        assert not (tmp_path / "no").exists()
        return done.stderr

    hf_models.create(tmp_path / "wide", "llama", **{**LLAMA, "intermediate_size": 112})
    assert "does not fit the base model's model.layers.0.mlp" in refused(tmp_path / "wide")
    hf_models.create(tmp_path / "short", "llama", **LLAMA, num_hidden_layers=2)
    assert "no tensor model.layers.2." in refused(tmp_path / "short")
    others = {
        "ia3": peft.IA3Config(target_modules=["k_proj"], feedforward_modules=[]),
        "adalora": peft.AdaLoraConfig(target_modules=["q_proj"], total_step=9),
        "vera": peft.VeraConfig(target_modules=["q_proj"]),
    }
    for name, config in others.items():
        peft.get_peft_model(load(llama), config).save_pretrained(tmp_path / name)
        assert f'peft_type "{config.peft_type.value}"' in refused(folder=tmp_path / name)
    adapt(load(llama), tmp_path / "pissa", init_lora_weights="pissa")
    assert "pissa" in refused(folder=tmp_path / "pissa")
    half = tmp_path / "half"
    shutil.copytree(adapter, half)
    tensors = load_file(half / "adapter_model.safetensors")
    gone = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
    del tensors[gone]
    save_file(tensors, half / "adapter_model.safetensors")
    assert "module model.layers.0.self_attn.q_proj" in refused(folder=half)


def edited(adapter, name, change):
    """A factor that is another one, in an adapter that PEFT saved."""
    tensors = load_file(adapter / "adapter_model.safetensors")
    name = f"base_model.model.{name}"
    tensors[name] = change(tensors[name])
    save_file(tensors, adapter / "adapter_model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize("factor", ["lora_A", "lora_B"])
@pytest.mark.parametrize("dtype", [torch.int8, torch.float64])
def test_factors_of_types_that_are_not_added(dtype, factor, llama, tmp_path, shardwright):
    adapter, name = tmp_path / "adapter", f"model.layers.1.mlp.down_proj.{factor}.weight"
    adapt(load(llama), adapter)
    edited(adapter, name, lambda tensor: tensor.to(dtype))
    done = shardwright("merge-adapter", llama, adapter, tmp_path / "merged", expect=2)
    assert "SW0409" in done.stderr and "adapter_model.safetensors" in done.stderr
    assert name in done.stderr and str(dtype).removeprefix("torch.") in done.stderr
    assert not (tmp_path / "merged").exists()


@pytest.mark.parametrize("settings", [{}, {"use_dora": True}], ids=["lora", "dora"])
def test_finite_numbers_that_make_an_infinite_one(settings, llama, tmp_path, shardwright):
    adapter, module = tmp_path / "adapter", "model.layers.1.mlp.down_proj"
    adapt(load(llama), adapter, **settings)
    for factor in ("lora_A", "lora_B"):
        edited(adapter, f"{module}.{factor}.weight", lambda tensor: tensor * 1e25)
    if not settings:
        assert not by_peft(llama, adapter)[f"{module}.weight"].isfinite().all()
    done = shardwright("merge-adapter", llama, adapter, tmp_path / "merged", expect=2)
    assert "SW0410" in done.stderr and module in done.stderr, done.stderr
    assert not (tmp_path / "merged").exists()


def test_a_base_that_is_infinite_is_merged_as_it_is(llama, tmp_path, shardwright):
    adapter, name = tmp_path / "adapter", "model.layers.1.mlp.down_proj.weight"
    adapt(load(llama), adapter)
    tensors = tensors_of(llama)
    tensors[name][3, 4] = float("inf")
    for file in llama.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, llama / "model.safetensors", metadata={"format": "pt"})
    shardwright("merge-adapter", llama, adapter, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")[name]
    assert got[3, 4] == float("inf") and (~got.isfinite()).sum() == 1


def test_python(llama, tmp_path):
    import shardwright as package

    adapt(load(llama), tmp_path / "adapter")
    done = package.merge_adapter(llama, tmp_path / "adapter", tmp_path / "merged")
    assert done.adapter == str(tmp_path / "adapter") and done.base == str(llama)
    assert done.format == "hf" and any("LoRA adapter" in note for note in done.notes)
    expected = by_peft(llama, tmp_path / "adapter")
    assert math.isclose(difference(tensors_of(tmp_path / "merged"), expected), 0, abs_tol=1e-5)
    plan = package.merge_adapter(
        llama, tmp_path / "adapter", tmp_path / "td", to="torch_dist", tp=3, dry_run=True
    )
    assert plan.target and not (tmp_path / "td").exists()
