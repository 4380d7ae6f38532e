# SPDX-License-Identifier: Apache-2.0
"""`--dtype` leaves alone what transformers holds in float32, and what scales stand beside."""
import shutil

import hf_models
import pytest
import torch
import torch.distributed.checkpoint as dcp
import transformers
from checkpoints import GOLDEN, assert_same, iteration_folder, load_dcp, load_hf
from safetensors.torch import save_file
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

LLAMA = GOLDEN / "hf" / "llama3" / "hf"
FAMILIES = ("ernie4_5_moe", "beam", "hunyuan_v1_moe", "flint", "bailing_hybrid", "deepseek_v4")


def loaded(folder):
    cls = hf_models.auto_class(transformers.AutoConfig.from_pretrained(folder))
    return cls.from_pretrained(folder, dtype=torch.bfloat16).state_dict()


@pytest.mark.parametrize("name", FAMILIES)
def test_the_model_computes_with_the_same_values(shardwright, tmp_path, name):
    hf_models.create(tmp_path / "hf", name, dtype=torch.float32)
    narrow = ("--dtype", "bfloat16")
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "hf", *narrow)
    assert "the model computes with them in float32" in done.stderr
    source = loaded(tmp_path / "hf")
    assert any(tensor.dtype == torch.float32 for tensor in source.values())
    assert_same(loaded(tmp_path / "out"), source)
    # Targets that keep names keep the same of them.
    for to, load in (("safetensors", load_hf), ("dcp", load_dcp)):
        shardwright("convert", tmp_path / "hf", tmp_path / to, "--to", to, *narrow)
        assert_same(load(tmp_path / to), load_hf(tmp_path / "out"))


@pytest.mark.parametrize("to", ["safetensors", "dcp"])
def test_scales_are_not_rounded(shardwright, tmp_path, to):
    hf_models.create(tmp_path / "hf", "deepseek_v3", dtype=torch.bfloat16)
    shardwright("convert", tmp_path / "hf", tmp_path / "fp8", "--to", "hf", "--quantise", "fp8-block")
    done = shardwright("convert", tmp_path / "fp8", tmp_path / "out", "--to", to, "--dtype", "float16", expect=2)
    assert "SW0409" in done.stderr and "would round the scales" in done.stderr
    assert not (tmp_path / "out").exists()
    shardwright("convert", tmp_path / "fp8", tmp_path / "out", "--to", to)
    load = load_hf if to == "safetensors" else load_dcp
    assert_same(load(tmp_path / "out"), load_hf(tmp_path / "fp8"))


def test_what_is_said_of_the_model_is_there(shardwright, tmp_path):
    shardwright("convert", LLAMA, tmp_path / "run", "--to", "torch_dist")
    for flags, text in (
        (("--hf-config", tmp_path / "none"), "/none: "),
        (("--family", "nonsense"), "no family is called 'nonsense'"),
        (("--map", tmp_path / "none.json"), "none.json"),
    ):
        for source, to in ((LLAMA, "hf"), (LLAMA, "dcp"), (tmp_path / "run", "torch_dist")):
            done = shardwright("convert", source, tmp_path / "out", "--to", to, *flags, expect=2)
            assert text in done.stderr, done.stderr
            assert not (tmp_path / "out").exists()


def test_a_config_that_computes_otherwise_is_told(shardwright, tmp_path):
    """By what the family has fixed, and by what the run says is None."""
    hf_models.create(tmp_path / "hf", "mixtral", dtype=torch.bfloat16)
    shardwright("convert", tmp_path / "hf", tmp_path / "run", "--to", "torch_dist")
    config = (tmp_path / "hf" / "config.json").read_text()
    for before, after, told in (
        ('"hidden_act": "silu"', '"hidden_act": "relu"', "hidden_act = 'relu', where Megatron has 'silu' fixed"),
        ('"sliding_window": null', '"sliding_window": 8', "window_size = None (config.json: "),
    ):
        assert before in config
        (tmp_path / "hf" / "config.json").write_text(config.replace(before, after))
        flags = ("--to", "hf", "--hf-config", tmp_path / "hf", "--overwrite")
        done = shardwright("convert", tmp_path / "run", tmp_path / "back", *flags)
        assert told in done.stderr, done.stderr
    (tmp_path / "hf" / "config.json").write_text(config)
    done = shardwright("convert", tmp_path / "run", tmp_path / "back", *flags)
    assert "fixed" not in done.stderr and "None" not in done.stderr


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn, torch.bool, torch.int32, torch.complex64], ids=str)
def test_a_weight_that_no_master_weight_rounds_to(shardwright, tmp_path, dtype):
    run = GOLDEN / "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full"
    weight = "decoder.layers.mlp.linear_fc2.weight"
    source = iteration_folder(run)
    shutil.copytree(run, tmp_path / "run")
    folder = iteration_folder(tmp_path / "run")
    tensors = load_dcp(run)
    reader = dcp.FileSystemReader(str(source))
    objects = {
        name: None for name, entry in reader.read_metadata().state_dict_metadata.items()
        if not isinstance(entry, TensorStorageMetadata)
    }  # fmt: skip
    dcp.load(objects, storage_reader=reader, no_dist=True)
    for file in [*folder.glob("*.distcp"), folder / ".metadata"]:
        file.unlink()
    tensors[weight] = tensors[weight].to(dtype)
    dcp.save({**tensors, **objects}, checkpoint_id=str(folder), no_dist=True)
    is_odd = dtype.is_floating_point or dtype.is_complex  # which some hardware trains in
    done = shardwright("verify", tmp_path / "run", expect=0 if is_odd else 1)
    assert f"tensor {weight}: found a weight of" in done.stdout, done.stdout
    assert "every master weight" not in done.stdout
    assert "one of another save among them would not be noticed" in done.stdout
    refused = ("fsdp_dtensor",) if is_odd else ("fsdp_dtensor", "legacy", "torch_dist")
    for to in refused:
        done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", to, expect=2)
        assert "SW0318" in done.stderr and weight in done.stderr and not (tmp_path / "out").exists()


def test_a_layer_that_megatron_has_no_place_for(shardwright, tmp_path):
    """What stops a conversion is found by `verify` too."""
    shutil.copytree(LLAMA, tmp_path / "hf")
    shardwright("verify", tmp_path / "hf")
    [file] = (tmp_path / "hf").glob("*.safetensors")
    tensors = load_hf(tmp_path / "hf")
    name = "model.layers.1.mlp.down_proj.weight"
    save_file({**tensors, name: tensors[name].half()}, file, metadata={"format": "pt"})
    done = shardwright("verify", tmp_path / "hf")
    assert "warning[SW0409]" in done.stdout and "found dtype float16" in done.stdout, done.stdout
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "SW0409" in done.stderr and not (tmp_path / "out").exists()
