# SPDX-License-Identifier: Apache-2.0
"""Adapters have the names of transformers' modules; files of models that see have often older ones."""
import json
import warnings

import peft
import pytest
import torch
import transformers

import hf_models
from hf_models import tensors_of
from peft_adapters import difference, train
from test_families_hybrid import CASES
from test_families_towers import CASES as TOWERS

MODELS = {name: CASES[name] for name in ("qwen2_5_vl", "llava", "gemma3_vl", "internvl", "qwen3_vl_moe")}
MODELS |= {name: TOWERS[name] for name in ("llama4_vl", "minimax_m3")}
TEXT = r".*language_model.*\.(q_proj|k_proj|v_proj|o_proj)"


def load(name, folder):
    return getattr(transformers, MODELS[name][1]).from_pretrained(folder, dtype=torch.float32)


def adapt(name, base, folder, modules):
    config = peft.LoraConfig(r=4, lora_alpha=6, target_modules=modules)
    model = train(peft.get_peft_model(load(name, base), config))
    model.save_pretrained(folder)
    return model


@pytest.mark.parametrize("form", ["published", "modules"])
@pytest.mark.parametrize("name", MODELS)
def test_adapters_find_what_files_call_otherwise(shardwright, tmp_path, name, form):
    base = tmp_path / "base"
    hf_models.create_form(base, MODELS[name], form)
    shardwright("convert", base, tmp_path / "float32", "--to", "hf", "--dtype", "float32")
    base = tmp_path / "float32"
    trained = adapt(name, base, tmp_path / "adapter", ["q_proj", "qkv", "o_proj"])
    merged = trained.merge_and_unload()
    merged.save_pretrained(tmp_path / "expected", save_original_format=form == "published")
    shardwright("merge-adapter", base, tmp_path / "adapter", tmp_path / "merged")
    got, expected, before = (tensors_of(tmp_path / x) for x in ("merged", "expected", "float32"))
    assert set(got) == set(before)
    assert difference(got, {key: expected[key] for key in got}) == 0.0
    changed = {"vis" in key for key in got if not got[key].equal(before[key])}
    assert changed == {True, False}  # of the tower and of the language model


@pytest.mark.parametrize("name", MODELS)
def test_what_a_run_trained_is_found_by_peft(shardwright, tmp_path, name):
    base = tmp_path / "base"
    hf_models.create_form(base, MODELS[name], "published")
    trained = adapt(name, base, tmp_path / "adapter", TEXT)
    told = shardwright("convert", tmp_path / "adapter", tmp_path / "run", "--to", "torch_dist", "--hf-config", base)
    assert "run_config.yaml is left out" not in told.stderr
    assert "peft:" in (tmp_path / "run" / "iter_0000000" / "run_config.yaml").read_text()
    shardwright("convert", tmp_path / "run", tmp_path / "peft", "--to", "hf", "--hf-config", base)
    assert difference(tensors_of(tmp_path / "peft"), tensors_of(tmp_path / "adapter")) == 0.0
    # No tensor is left over and none is missing, also of the tower's modules of the same names.
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = peft.PeftModel.from_pretrained(load(name, base), tmp_path / "peft")
    assert not [text for text in map(str, told) if "adapter keys" in text]
    assert difference(dict(loaded.state_dict()), dict(trained.state_dict())) == 0.0
    config = json.loads((tmp_path / "peft" / "adapter_config.json").read_text())
    assert all("language_model" in module for module in config["target_modules"])
