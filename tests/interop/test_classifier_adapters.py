# SPDX-License-Identifier: Apache-2.0
"""Adapters of rewards and classifiers, merged into the model that they were trained on: one that
gives tokens, and has no such head."""
import json

import pytest
import torch
import transformers

import hf_models
from checkpoints import assert_same, load_hf
from peft_adapters import adapt
from test_heads import MODELS, SEQUENCE, create, read_config

TARGETS = {"gpt2": ["c_attn", "c_fc"], "bloom": ["query_key_value"], "gpt_neox": ["query_key_value"]}


def base_of(folder, name):
    model_type, _, _, settings = MODELS[name]
    model = create(folder, model_type, transformers.AutoModelForCausalLM, 2, settings)
    return model.config


def trained(base, adapter, name, labels):
    model_type, auto, _, _ = MODELS[name]
    model = auto.from_pretrained(base, num_labels=labels, dtype=torch.float32, **hf_models.EAGER)
    task = "SEQ_CLS" if auto is SEQUENCE else "TOKEN_CLS"
    targets = TARGETS.get(model_type, ["q_proj", "v_proj"])
    return adapt(model, adapter, task_type=task, target_modules=targets)


@pytest.mark.parametrize("name", MODELS)
def test_the_head_comes_in_the_output_layers_place(shardwright, tmp_path, name):
    base, adapter, made, want = (tmp_path / part for part in ("base", "adapter", "made", "want"))
    base_of(base, name)
    labels = MODELS[name][2]
    trained(base, adapter, name, labels).merge_and_unload().save_pretrained(want)
    told = shardwright("merge-adapter", base, adapter, made, "--to", "hf").stderr
    assert "in the output layer's place" in told
    assert_same(load_hf(made), load_hf(want))
    got, expected = read_config(made), read_config(want)
    for key in ("architectures", "id2label", "label2id"):
        assert got.get(key) == expected.get(key), key
    loaded, info = MODELS[name][1].from_pretrained(made, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"], info
    assert loaded.config.num_labels == labels
    # As Megatron's, and back.
    there, back = tmp_path / "there", tmp_path / "back"
    shardwright("merge-adapter", base, adapter, there, "--to", "torch_dist", "--tp", 2)
    shardwright("convert", there, back, "--to", "hf")
    assert_same(load_hf(back), load_hf(want))
    assert read_config(back) == got


def test_a_head_that_is_not_the_bases(shardwright, tmp_path):
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    base_of(base, "llama")
    trained(base, adapter, "llama", 3)
    config = json.loads((adapter / "adapter_config.json").read_text())
    for task in ("CAUSAL_LM", None):
        (adapter / "adapter_config.json").write_text(json.dumps({**config, "task_type": task}))
        told = shardwright("merge-adapter", base, adapter, tmp_path / "made", "--to", "hf", expect=2).stderr
        assert "score.weight" in told and "SW0403" in told
    assert not (tmp_path / "made").exists()
