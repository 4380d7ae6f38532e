# SPDX-License-Identifier: Apache-2.0
"""Models that PEFT wrapped for training and that were saved with their adapters, as trainers do."""
import shutil

import peft
import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch._dynamo.eval_frame import DisableContext, OptimizedModule

import hf_models
from hf_models import tensors_of
from peft_adapters import LINEARS, LLAMA, by_peft, difference, load, train

CASES = {
    "lora": {},
    "whole modules": dict(modules_to_save=["lm_head"]),
    "rows": dict(trainable_token_indices=[300, 3, 7]),
    "dora": dict(use_dora=True, target_modules=["q_proj", "embed_tokens"]),
}


@pytest.mark.parametrize("form", ["pt", "dcp"])
@pytest.mark.parametrize("case", CASES)
def test_base_and_adapter_saved_together(shardwright, tmp_path, case, form):
    hf_models.create(tmp_path / "base", "llama", **LLAMA)
    config = peft.LoraConfig(**{"r": 4, "lora_alpha": 6, "target_modules": LINEARS, **CASES[case]})
    wrapped = train(peft.get_peft_model(load(tmp_path / "base"), config))
    run = tmp_path / "run"
    run.mkdir()
    wrapped.save_pretrained(run / "lora_adapter")
    if form == "pt":
        torch.save(wrapped.state_dict(), run / "pytorch_model.bin")
    else:
        dcp.save({"model": wrapped.state_dict()}, checkpoint_id=run, no_dist=True)
    shutil.copy(tmp_path / "base/config.json", run)

    refused = shardwright("convert", run, tmp_path / "none", "--to", "hf", expect=2).stderr
    assert "beside the base model that it was trained with" in refused
    assert not (tmp_path / "none").exists()
    told = shardwright("verify", run).stdout
    assert "PROVEN" in told and "the tensors are those of a llama model" in told
    flags = refused.split("of both, ")[1].split(" converts the base alone")[0].replace("'", "").split()
    shardwright("convert", run, tmp_path / "alone", "--to", "hf", *flags)
    assert difference(tensors_of(tmp_path / "alone"), tensors_of(tmp_path / "base")) == 0.0
    command = refused.split("; 'shardwright ")[1].split(" OUT'")[0].split()
    assert command == ["merge-adapter", str(run), str(run / "lora_adapter")]
    shardwright(*command, tmp_path / "merged")
    assert difference(tensors_of(tmp_path / "merged"), by_peft(tmp_path / "base", run / "lora_adapter")) < 1e-5
    assert "only on the left" in shardwright("diff", run, tmp_path / "alone", expect=1).stdout


def compiled(module):
    """What torch.compile makes of a module where it is not switched off, as it is in these tests."""
    return OptimizedModule(module, DisableContext())


def compile_layers(model):
    for place, layer in enumerate(model.model.layers):
        model.model.layers[place] = compiled(layer)
    return model


WRAPPERS = {
    "compiled": compiled,
    "layers": compile_layers,
    "parallel": torch.nn.DataParallel,
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_safetensors_of_a_wrapped_model(shardwright, tmp_path, wrapper):
    """convert, diff, hash and verify take them for the model's."""
    hf_models.create(tmp_path / "base", "llama", **LLAMA)
    state = WRAPPERS[wrapper](load(tmp_path / "base")).state_dict()
    assert state.keys() != tensors_of(tmp_path / "base").keys()
    (tmp_path / "run").mkdir()
    save_file({name: tensor.clone() for name, tensor in state.items()}, tmp_path / "run/model.safetensors")
    shutil.copy(tmp_path / "base/config.json", tmp_path / "run")
    shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf")
    assert difference(tensors_of(tmp_path / "out"), tensors_of(tmp_path / "base")) == 0.0
    for one, other in (("run", "base"), ("base", "run"), ("run", "run")):
        assert "EQUAL" in shardwright("diff", tmp_path / one, tmp_path / other).stdout.splitlines()[-1]
        assert "PROVEN" in shardwright("verify", tmp_path / one, "--against", tmp_path / other).stdout
    name = next(name for name in state if name.endswith("down_proj.weight"))
    state[name] += 1
    save_file({name: tensor.clone() for name, tensor in state.items()}, tmp_path / "run/model.safetensors")
    assert "DIFFERENT" in shardwright("diff", tmp_path / "run", tmp_path / "base", expect=1).stdout
    told = shardwright("verify", tmp_path / "run", "--against", tmp_path / "base", expect=1).stdout
    assert "its elements differ" in told and told.count("SW0315") == 1
