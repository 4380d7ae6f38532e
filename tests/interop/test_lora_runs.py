# SPDX-License-Identifier: Apache-2.0
"""Adapters in the files of the runs that trained them (verl's ranks, DeepSpeed), against PEFT's own save."""
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

import hf_models
from hf_models import tensors_of
from peft_adapters import LINEARS, LLAMA, by_peft, difference

META = {"r": 4, "lora_alpha": 6, "task_type": "CAUSAL_LM"}
CASES = {
    "lora": dict(target_modules=LINEARS),
    "whole modules": dict(target_modules=["q_proj", "down_proj"], modules_to_save=["lm_head"]),
    "some layers": dict(target_modules=["q_proj", "v_proj"], layers_to_transform=[1]),
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama") / "base"
    hf_models.create(folder, "llama", **LLAMA)
    return folder


@pytest.fixture
def run_of(ranks, llama, tmp_path):
    def save(case, meta=META):
        settings = {"r": 4, "lora_alpha": 6, "task_type": "CAUSAL_LM", **CASES[case]}
        ranks("lora_jobs", "save_verl", 2, base=llama, out=tmp_path, settings=settings, meta=meta)
        (tmp_path / "actor" / "huggingface").mkdir()
        shutil.copy(llama / "config.json", tmp_path / "actor" / "huggingface")
        return tmp_path / "actor"

    return save


def flags_in(told):
    """What the refusal says makes PEFT's files."""
    return told.split("converts the base alone, ")[1].split(" --to hf makes PEFT's files")[0].replace("'", "").split()


def is_the_adapter(made, expected):
    assert difference(load_file(made / "adapter_model.safetensors"), load_file(expected / "adapter_model.safetensors")) == 0
    ours, theirs = (json.loads((folder / "adapter_config.json").read_text()) for folder in (made, expected))
    for key in ("peft_type", "task_type", "r", "lora_alpha", "use_dora", "bias"):
        assert ours[key] == theirs[key], key


@pytest.mark.parametrize("case", CASES)
def test_a_run_of_verl(case, run_of, llama, tmp_path, shardwright):
    run = run_of(case)
    told = shardwright("convert", run, tmp_path / "none", "--to", "hf", expect=2).stderr
    assert not (tmp_path / "none").exists()
    made = tmp_path / "made"
    done = shardwright("convert", run, made, "--to", "hf", *flags_in(told))
    assert "lora_train_meta.json" in done.stderr
    is_the_adapter(made, tmp_path / "peft")
    config = json.loads((made / "adapter_config.json").read_text())
    words = sorted(CASES[case]["target_modules"])
    if case == "some layers":  # others have modules of the same names
        words = [f"model.layers.1.self_attn.{word}" for word in words]
    assert config["target_modules"] == words
    assert config.get("modules_to_save") == CASES[case].get("modules_to_save")
    # PEFT reads what was written, and merging is what PEFT does.
    shardwright("merge-adapter", run, made, tmp_path / "merged")
    assert difference(tensors_of(tmp_path / "merged"), by_peft(llama, made)) == 0.0
    assert difference(by_peft(llama, made), by_peft(llama, tmp_path / "peft")) == 0.0
    for command in ("inspect", "verify", "diagnose"):
        assert "--to hf PEFT's files of the adapter" in shardwright(command, run).stdout, command
    told = shardwright("convert", run, tmp_path / "none", "--to", "torch_dist", *flags_in(told), expect=2).stderr
    assert "--to hf makes PEFT's files of it first" in told and not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    "meta, code, message",
    [
        ({**META, "lora_alpha": 0}, "SW0301", "lora_train_meta.json: lora_alpha is 0"),
        ({"r": 4, "task_type": "CAUSAL_LM"}, "SW0406", "lora_train_meta.json: lora_alpha is missing"),
        ({"lora_alpha": 6}, "SW0406", "lora_train_meta.json: r is missing"),
        ({**META, "r": 8}, "SW0405", "lora_train_meta.json: r is 8, and tensor base_model.model.model.layers.0."),
        ({**META, "r": "4"}, "SW0240", 'r: found "4", expected a whole number'),
        ({**META, "lora_alpha": [6]}, "SW0240", "lora_alpha: found [6], expected a number"),
        ([], "SW0240", "found array, expected an object"),
    ],
)
def test_settings_of_verl_that_are_refused(meta, code, message, run_of, tmp_path, shardwright):
    run = run_of("lora", meta)
    done = shardwright("convert", run, tmp_path / "none", "--to", "hf", "--include", "*.lora_*", expect=2)
    assert code in done.stderr and message in done.stderr, done.stderr
    assert not (tmp_path / "none").exists()
    (run / "lora_train_meta.json").unlink()
    done = shardwright("convert", run, tmp_path / "none", "--to", "hf", "--include", "*.lora_*", expect=2)
    assert "SW0406" in done.stderr and "nothing that tells its lora_alpha" in done.stderr
    # What PEFT wrote of it, where verl has it, tells it too.
    shutil.copytree(tmp_path / "peft", run / "lora_adapter")
    made = tmp_path / "made"
    shardwright("convert", run, made, "--to", "hf", "--include", "*.lora_*")
    is_the_adapter(made, tmp_path / "peft")


def test_what_changes_nothing_of_an_adapter(run_of, tmp_path, shardwright):
    run = run_of("lora")
    done = shardwright("convert", run, tmp_path / "none", "--to", "hf", "--include", "*.lora_*", "--quantise", "fp8",
                       expect=2)  # fmt: skip
    assert not (tmp_path / "none").exists()
    assert "change nothing of" in done.stderr or "--quantise" in done.stderr


@pytest.mark.parametrize("stage", [2, 3])
def test_deepspeed_saved_the_adapter_alone(stage, ranks, tmp_path, shardwright):
    ranks("deepspeed_jobs", "save_lora", 2, folder=tmp_path, stage=stage)
    run = tmp_path / "run"
    for command in ("inspect", "verify", "diagnose"):
        done = shardwright(command, run)
        assert "an adapter's that a run has saved without its base model" in done.stdout, command
    assert f"next: shardwright convert {run}/global_step2 ADAPTER --to hf" in done.stdout
    done = shardwright("convert", run, tmp_path / "none", "--to", "hf", expect=2)
    assert "SW0406" in done.stderr and "nothing that tells its lora_alpha" in done.stderr
    assert not (tmp_path / "none").exists()
    shutil.copy(tmp_path / "peft" / "adapter_config.json", run)
    made = tmp_path / "made"
    shardwright("convert", run, made, "--to", "hf")
    ours, theirs = (load_file(folder / "adapter_model.safetensors") for folder in (made, tmp_path / "peft"))
    assert set(ours) == set(theirs)
    assert all(ours[name].to(torch.bfloat16).equal(theirs[name].to(torch.bfloat16)) for name in ours)
    shardwright("merge-adapter", tmp_path / "base", made, tmp_path / "merged")
