# SPDX-License-Identifier: Apache-2.0
"""Adapters have the names of transformers' modules, where files of a family have those of its trainer."""
import json
import warnings

import peft
import pytest
import torch
import transformers
from safetensors.torch import save_file

import hf_models
from checkpoints import load_dcp
from hf_models import tensors_of
from peft_adapters import difference, load, train
from test_families_towers import CASES as TOWERS

# Of linears and, where PEFT takes them for what 'all-linear' means, of experts and routers.
MODELS = ("mixtral", "minimax_m2", "granitemoe", "phimoe", "lfm2_moe", "hy_v3", "laguna", "kimi_linear",
          "bailing_hybrid", "deepseek_v4")
# Without Laguna, whose shared experts PEFT does not find in what it saved itself.
RUNS = ("hy_v3", "kimi_linear", "bailing_hybrid", "deepseek_v4", "lfm2", "gemma4_text", "gemma3n_text")
# Megatron has a linear of its own for groups, and compressors that no rule gives a shape.
LINEARS_OF = {"gemma3n_text": r".*(self_attn|mlp)\.\w+_proj", "deepseek_v4": r".*(self_attn\.(q_a_proj|q_b_proj|kv_proj|o_b_proj)|shared_experts\.(gate|up|down)_proj)"}
ROUTERS = ("deepseek_v3", "qwen3_moe")


def adapt(base, folder, **settings):
    config = peft.LoraConfig(**{"r": 4, "lora_alpha": 6, "target_modules": "all-linear", **settings})
    model = train(peft.get_peft_model(load(base), config))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("name", MODELS)
def test_files_have_what_modules_are_called(shardwright, tmp_path, name):
    base = tmp_path / "base"
    hf_models.create(base, name)
    before = tensors_of(base)
    trained = adapt(base, tmp_path / "adapter")
    trained.merge_and_unload().save_pretrained(tmp_path / "expected")
    shardwright("merge-adapter", base, tmp_path / "adapter", tmp_path / "merged")
    got, expected = tensors_of(tmp_path / "merged"), tensors_of(tmp_path / "expected")
    assert set(got) == set(expected) == set(before)
    assert difference(got, expected) < 1e-5
    changed = {key for key in got if not torch.equal(got[key], before[key])}
    assert changed == {key for key in got if not torch.equal(expected[key], before[key])}


@pytest.mark.parametrize("name", RUNS)
def test_what_a_run_trained_is_found_by_peft(shardwright, tmp_path, name):
    base = tmp_path / "base"
    hf_models.create(base, name)
    trained = adapt(base, tmp_path / "adapter", target_modules=LINEARS_OF.get(name, "all-linear"))
    shardwright("convert", tmp_path / "adapter", tmp_path / "run", "--to", "torch_dist", "--tp", 2, "--hf-config", base)
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "peft"), tensors_of(tmp_path / "adapter")) == 0.0
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = peft.PeftModel.from_pretrained(load(base), tmp_path / "peft").state_dict()
    loaded, expected = ({key: state[key] for key in state if "lora_" in key} for state in (loaded, trained.state_dict()))
    assert difference({key: loaded[key] for key in expected}, expected) == 0.0
    if name in LINEARS_OF:  # other modules end in the same words; they have an adapter that adds nothing
        assert not any(loaded[key].any() for key in set(loaded) - set(expected) if "lora_B" in key)
    else:
        assert set(loaded) == set(expected)
        assert not [text for text in map(str, told) if "adapter keys" in text]


@pytest.mark.parametrize("name", ["gemma3n_text", "lfm2"])
def test_modules_with_one_input_matrix(shardwright, tmp_path, name):
    """Megatron's fused linears have one for all; layers without keys and values of their own have none of theirs."""
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, name)
    adapt(base, adapter)
    tensors = tensors_of(adapter)
    for key in tensors:
        for module, first in (("k_proj", "q_proj"), ("v_proj", "q_proj"), ("up_proj", "gate_proj"), ("w3", "w1")):
            if f".{module}.lora_A" in key:
                tensors[key] = tensors[key.replace(module, first)].clone()
    (file,) = adapter.glob("*.safetensors")
    save_file(tensors, file)
    shardwright("convert", adapter, tmp_path / "run", "--to", "torch_dist", "--hf-config", base)
    names = load_dcp(tmp_path / "run")
    assert [key for key in names if "linear_qkv.adapter.linear_in" in key], "they are not fused"
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "peft"), tensors) == 0.0
    shardwright("merge-adapter", base, tmp_path / "peft", tmp_path / "merged")


def test_values_that_are_keys(shardwright, tmp_path):
    """Their adapter is the keys' in Megatron too, under a name of its own."""
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    hf_models.create_form(base, TOWERS["gemma4_vl_moe"], "published")
    config = json.loads((base / "config.json").read_text())
    assert config["text_config"]["attention_k_eq_v"]
    load = getattr(transformers, config["architectures"][0]).from_pretrained(base, dtype=torch.float32)
    settings = peft.LoraConfig(r=4, lora_alpha=6, target_modules=r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj)")
    train(peft.get_peft_model(load, settings)).save_pretrained(adapter)
    shardwright("convert", adapter, tmp_path / "run", "--to", "torch_dist", "--hf-config", base)
    stored = load_dcp(tmp_path / "run")
    own, keys = (
        {key.replace(part, "X"): tensor for key, tensor in stored.items() if part in key and "global" in key}
        for part in ("adapter_v", "adapter_k")
    )
    assert own and difference(own, keys) == 0.0
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "peft"), tensors_of(adapter)) == 0.0


@pytest.mark.parametrize("name", ROUTERS)
def test_a_router_of_a_run(shardwright, tmp_path, name):
    base = tmp_path / "base"
    hf_models.create(base, name, tie_word_embeddings=False)
    trained = adapt(base, tmp_path / "adapter", target_modules=["o_proj"], target_parameters=["mlp.gate.weight"])
    shardwright("convert", tmp_path / "adapter", tmp_path / "run", "--to", "torch_dist", "--hf-config", base)
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    config = json.loads((tmp_path / "peft" / "adapter_config.json").read_text())
    assert (config["target_modules"], config["target_parameters"]) == (["o_proj"], ["mlp.gate.weight"])
    loaded = peft.PeftModel.from_pretrained(load(base), tmp_path / "peft")
    assert difference(dict(loaded.state_dict()), dict(trained.state_dict())) == 0.0
