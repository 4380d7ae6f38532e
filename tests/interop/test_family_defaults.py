# SPDX-License-Identifier: Apache-2.0
"""What a config.json leaves out has the default of the model's own class in transformers.

save_pretrained() may leave out what equals it. Each key that transformers reads alike with and
without is taken out of a small model's config.json: Megatron's arguments stay the same, or the
model is refused, or a note names the key.
"""
import copy
import json
import re
import shutil

import pytest
import torch
import transformers

import checkpoints
import hf_models

# What keeps a model small; of everything else the class's default is taken.
SIZE = re.compile(
    r"vocab|hidden_size|intermediate|d_model|d_ff|d_kv|ffn|heads|head_dim|n_embd|n_inner|n_head|n_layer"
    r"|max_position|num_local_experts$|num_experts$|n_routed_experts|shared_expert|lora_rank|rope_head_dim"
    r"|_size|_dim$|_token|num_hidden_layers|num_layers|nextn|use_cache"
)
# The cases' own: their values decide which tensors a model has, or no model is made without them.
KEPT = {"layer_types", "tie_word_embeddings", "block_types", "mlp_layer_types"}
NOT_READ = {"architectures", "model_type", "transformers_version", "dtype", "torch_dtype", "_name_or_path"}


def known_sizes():
    return {**hf_models.NEWER_SIZES, **hf_models.FURTHER_SIZES, **hf_models.FAMILY_SIZES}


def candidates(model_type):
    """Settings to try in turn, those with the most defaults first."""
    sizes = copy.deepcopy(known_sizes().get(model_type, hf_models.SIZES))
    few = {key: value for key, value in sizes.items() if SIZE.search(key)}
    few.pop("num_experts_per_tok", None)
    with_kept = {key: value for key, value in sizes.items() if key in few or key in KEPT}
    # Enough layers for every pattern of layers to be seen.
    more = {"num_hidden_layers": 6} if "num_hidden_layers" in few else {}
    return [{**few, **more}, few, with_kept, sizes]


def make(folder, model_type):
    """A model with a configuration that leaves nothing out."""
    failures = []
    for settings in candidates(model_type):
        try:
            settings.setdefault("pad_token_id", None)
            config = transformers.AutoConfig.for_model(model_type, **copy.deepcopy(settings))
            model = hf_models.auto_class(config).from_config(config, dtype=torch.bfloat16)
        except Exception as failure:  # what its own class refuses is no case
            failures.append(f"{type(failure).__name__}: {str(failure)[:150]}")
            continue
        model.save_pretrained(folder)
        written = json.loads((folder / "config.json").read_text())
        full = json.loads(config.to_json_string(use_diff=False))
        full = {key: value for key, value in full.items() if value is not None}
        full.update({key: value for key, value in written.items() if key not in full})
        yield type(config), full
    if failures:
        print(model_type, failures)


def read(cls, config):
    made = cls.from_dict(copy.deepcopy(config)).to_dict()
    return json.dumps(made, sort_keys=True, default=str)


def paths(config, prefix=()):
    for key, value in config.items():
        if key in NOT_READ:
            continue
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


def without(config, path):
    config = copy.deepcopy(config)
    inner = config
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return config


def arguments(folder):
    common = torch.load(checkpoints.iteration_folder(folder) / "common.pt", weights_only=False)
    return vars(common["args"])


def differences(one, other):
    return {
        key: (one.get(key, "absent"), other.get(key, "absent"))
        for key in sorted(one.keys() | other.keys())
        if one.get(key, "absent") != other.get(key, "absent")
    }


# Families that the test holds now, and what is known to be otherwise: to be shortened.
HELD = (
    "axk1", "cohere", "cohere2", "deepseek_v32", "exaone4", "gemma2", "glm4", "glm4_moe", "glm_moe_dsa",
    "gpt_oss", "minimax_m2", "mixtral", "olmo3", "olmoe", "phi3", "qwen2_moe", "qwen3_moe", "smollm3",
    "dots1", "gemma3_text", "lfm2_moe", "mistral", "nanochat",
)
LEFT = {"gpt_oss": {"rope_parameters"}}


@pytest.mark.parametrize("model_type", HELD)
def test_what_is_left_out_is_the_default_of_the_class(shardwright, tmp_path, model_type):
    hf = tmp_path / "hf"
    flags = ("--to", "torch_dist")
    cls, full = next(make(hf, model_type))
    (hf / "config.json").write_text(json.dumps(full))
    shardwright("convert", hf, tmp_path / "full", *flags)
    expected, meaning = arguments(tmp_path / "full"), read(cls, full)
    wrong, tried = {}, 0
    for number, path in enumerate(paths(full)):
        less = without(full, path)
        try:
            if read(cls, less) != meaning:
                continue
        except Exception:  # transformers itself refuses what lacks this key
            continue
        tried += 1
        (hf / "config.json").write_text(json.dumps(less))
        target = tmp_path / f"without_{number}"
        try:
            done = shardwright("convert", hf, target, *flags)
        except AssertionError as refusal:
            assert "SW0" in str(refusal), "refused in words, no crash"
            continue
        told = any(path[-1] in line for line in (done.stdout + done.stderr).splitlines() if "note" in line)
        differs = differences(expected, arguments(target))
        if differs and not told and path[-1] not in LEFT.get(model_type, ()):
            wrong[".".join(path)] = differs
    assert tried > 5
    assert not wrong


# What a run says by None, and the class has otherwise where config.json does not say it.
NONE = {
    "deepseek_v3": {"moe_router_num_groups": ("n_group", 1), "moe_router_group_topk": ("topk_group", 1)},
    "gemma2": {
        "attn_logit_softcapping": ("attn_logit_softcapping", None),
        "final_logit_softcapping": ("final_logit_softcapping", None),
    },
}


@pytest.mark.parametrize("model_type", NONE)
def test_none_is_not_the_default_of_the_class(shardwright, tmp_path, model_type):
    cls, full = next(make(tmp_path / "hf", model_type))
    (tmp_path / "hf" / "config.json").write_text(json.dumps(full))
    shardwright("convert", tmp_path / "hf", tmp_path / "run", "--to", "torch_dist")
    folder = checkpoints.iteration_folder(tmp_path / "run")
    shutil.rmtree(folder / "hf")
    common = torch.load(folder / "common.pt", weights_only=False)
    for argument in NONE[model_type]:
        assert getattr(common["args"], argument) is not None
        setattr(common["args"], argument, None)
    torch.save(common, folder / "common.pt")
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf")
    written = json.loads((tmp_path / "back" / "config.json").read_text())
    meant = cls.from_dict(written).to_dict()
    for key, value in NONE[model_type].values():
        assert meant[key] == value, key


def test_a_run_that_rotates_all_layers_is_told_where_config_json_has_no_words_for_it(shardwright, tmp_path):
    _, full = next(make(tmp_path / "hf", "cohere2"))
    (tmp_path / "hf" / "config.json").write_text(json.dumps(full))
    shardwright("convert", tmp_path / "hf", tmp_path / "run", "--to", "torch_dist")
    folder = checkpoints.iteration_folder(tmp_path / "run")
    shutil.rmtree(folder / "hf")
    common = torch.load(folder / "common.pt", weights_only=False)
    common["args"].no_rope_freq = None
    torch.save(common, folder / "common.pt")
    done = shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf")
    assert "no_rope_freq = None (config.json: " in done.stderr
