# SPDX-License-Identifier: Apache-2.0
"""slime trains transformers' own gated delta nets inside Megatron's layers, and saves them under both names."""
import json

import pytest
import torch
import torch.distributed.checkpoint as dcp

from checkpoints import assert_same, iteration_folder, load_dcp, load_hf
from test_families_hybrid import build


def save_as_slime(shardwright, folder, source):
    """Megatron-Core's torch_dist of the model, with slime's attention in the layers that are linear."""
    shardwright("convert", source, folder, "--to", "torch_dist")
    model = load_hf(source)
    linear = {name.split(".")[2] for name in model if ".linear_attn." in name}
    tensors = {
        name: tensor
        for name, tensor in load_dcp(folder).items()
        if not name.startswith("hf_extra.")
        and not any(name.startswith(f"decoder.layers.{layer}.self_attention.") for layer in linear)
    }
    for name, tensor in model.items():
        layer, _, module = name.removeprefix("model.layers.").partition(".")
        if layer in linear and module.startswith(("linear_attn.", "input_layernorm.")):
            tensors[f"decoder.layers.{layer}.self_attention.{module}"] = tensor
    iteration = iteration_folder(folder)
    for file in [*iteration.glob("*.distcp"), iteration / ".metadata"]:
        file.unlink()
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(iteration)), no_dist=True)
    (folder / "rollout").mkdir()
    return tensors


@pytest.mark.parametrize("name", ["qwen3_next", "qwen3_5"])
def test_transformers_delta_nets_in_megatrons_layers(shardwright, tmp_path, name):
    source, run = tmp_path / "hf", tmp_path / "run"
    model = build(source, name)
    tensors = save_as_slime(shardwright, run, source)
    assert sum(".self_attention.linear_attn." in key for key in tensors) == 2 * (7 if name == "qwen3_next" else 9)
    told = json.loads(shardwright("diagnose", run, "--json").stdout)
    assert told["complete"] and " --to hf" in told["next"]
    shardwright("verify", run)
    shardwright("convert", run, tmp_path / "out", "--to", "hf")
    assert_same(load_hf(tmp_path / "out"), model)
    # Other sizes of the run change nothing of it: every rank has the whole.
    shardwright("convert", run, tmp_path / "ranks", "--to", "torch_dist", "--tp", 2)
    assert_same(load_dcp(tmp_path / "ranks"), tensors)
    states = dcp.FileSystemReader(str(iteration_folder(tmp_path / "ranks"))).read_metadata().state_dict_metadata
    assert not [key for key in states if ".self_attention.linear_attn." in key and "_extra_state" in key]
    assert not [key for key in states if ".self_attention.input_layernorm._extra_state" in key]
    for to in (["legacy", "--tp", 2, "--pp", 2], ["fsdp_dtensor"]):
        again = tmp_path / to[0]
        shardwright("convert", run, again, "--to", *to)
        shardwright("convert", again, tmp_path / f"{to[0]}.hf", "--to", "hf", "--hf-config", source)
        made = load_hf(tmp_path / f"{to[0]}.hf")  # in float32 from Megatron-FSDP, which trains in it
        assert_same({key: tensor.bfloat16() for key, tensor in made.items()}, model)
    for file in (tmp_path / "legacy").rglob("model_optim_rng.pt"):
        stored = torch.load(file, weights_only=False)["model"]
        foreign = [key for key in stored if ".linear_attn" in key or ".self_attention.input_layernorm" in key]
        assert foreign and not [key for key in foreign if "_extra_state" in key]


def test_a_part_of_transformers_delta_net_that_is_missing(shardwright, tmp_path):
    source, run = tmp_path / "hf", tmp_path / "run"
    build(source, "qwen3_next")
    tensors = save_as_slime(shardwright, run, source)
    iteration = iteration_folder(run)
    for file in [*iteration.glob("*.distcp"), iteration / ".metadata"]:
        file.unlink()
    lost = "decoder.layers.2.self_attention.linear_attn.dt_bias"
    del tensors[lost]
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(iteration)), no_dist=True)
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert lost in done.stderr
    tensors[lost] = torch.zeros(7, dtype=torch.bfloat16)
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(iteration)), no_dist=True)
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert lost in done.stderr and "found shape (7,), expected (6,)" in done.stderr
