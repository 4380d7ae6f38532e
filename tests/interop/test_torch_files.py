# SPDX-License-Identifier: Apache-2.0
"""Models in torch.save files (`pytorch_model*.bin`, `.pt`, `.pth`) as sources of every command."""
import json
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, load_hf

LLAMA = GOLDEN / "hf" / "llama3" / "hf"


@pytest.fixture
def model(tmp_path):
    """A folder with everything of the model but its weights, and the weights."""
    folder = tmp_path / "model"
    shutil.copytree(LLAMA, folder, ignore=shutil.ignore_patterns("*.safetensors*"))
    for file in folder.rglob("*"):
        file.chmod(0o644)
    return folder, load_hf(LLAMA)


def same_for_every_command(shardwright, source, tmp_path):
    shardwright("convert", source, tmp_path / "mcore", "--to", "torch_dist", "--tp", 2)
    shardwright("diff", source, LLAMA)
    shardwright("diff", tmp_path / "mcore", LLAMA)
    assert "PROVEN" in shardwright("verify", source, "--against", LLAMA).stdout
    hashes = [shardwright("hash", path, "--json").stdout for path in (source, LLAMA)]
    assert len({json.loads(text)["digest"] for text in hashes}) == 1
    assert "bfloat16" in shardwright("show", source, "model.norm.weight").stdout
    assert json.loads(shardwright("diagnose", source, "--json").stdout)["format"] == "torch_files"


def test_one_file(shardwright, model, tmp_path):
    folder, tensors = model
    torch.save(tensors, folder / "pytorch_model.bin")
    same_for_every_command(shardwright, folder, tmp_path)
    shardwright("convert", folder, tmp_path / "back", "--to", "hf")
    assert_same(load_hf(tmp_path / "back"), tensors)


def test_shards_with_an_index(shardwright, model, tmp_path):
    folder, tensors = model
    weight_map = {}
    for number in (1, 2):
        part = {name: t for i, (name, t) in enumerate(tensors.items()) if i % 2 == number % 2}
        file = f"pytorch_model-{number:05d}-of-00002.bin"
        torch.save(part, folder / file)
        weight_map.update(dict.fromkeys(part, file))
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    same_for_every_command(shardwright, folder, tmp_path)


def test_the_state_of_a_run(shardwright, model, tmp_path):
    """Composer's, beside the states of its optimizers and of the random numbers."""
    folder, tensors = model
    state = {"model": tensors, "optimizers": {"AdamW": {"state": {"a": {"exp_avg": torch.ones(2)}}}}}
    torch.save({"state": state, "rng": [{"cuda": torch.zeros(4)}]}, folder / "latest-rank0.pt")
    shardwright("diff", folder / "latest-rank0.pt", LLAMA)
    done = shardwright("convert", folder / "latest-rank0.pt", tmp_path / "out", "--to", "torch_dist")
    assert "optimizers" in done.stdout + done.stderr
    shardwright("diff", tmp_path / "out", LLAMA)


def composers(run, tensors):
    """The whole state in a file, and a link that names the last of them."""
    torch.save({"state": {"model": tensors, "optimizers": {}}, "rng": []}, run / "ep1-ba20-rank0.pt")
    torch.save({"state": {"model": {}, "optimizers": {}}, "rng": []}, run / "ep0-ba10-rank0.pt")
    (run / "latest-rank0.pt").symlink_to("ep1-ba20-rank0.pt")
    return "latest-rank0.pt"


def rlinfs(run, tensors):
    """Shards, and the whole weights once more."""
    actor = run / "global_step_5" / "actor"
    state = {"model": tensors, "optimizers": {"state": {"w": {"exp_avg": torch.ones(2)}}}}
    dcp.save({"fsdp_checkpoint": state}, checkpoint_id=str(actor / "dcp_checkpoint"), no_dist=True)
    (actor / "model_state_dict").mkdir()
    torch.save(tensors, actor / "model_state_dict" / "full_weights.pt")
    return "global_step_5/actor/dcp_checkpoint"


def olmo_cores(run, tensors):
    for number in (100, 50):
        step = run / f"step{number}"
        state = {"model": tensors, "optim": {"w": {"exp_avg": torch.ones(2)}}}
        dcp.save(state, checkpoint_id=str(step / "model_and_optim"), no_dist=True)
        (step / "train").mkdir()
        torch.save({"global_step": number}, step / "train" / "rank0.pt")
        (step / ".metadata.json").write_text("{}")
        (step / "config.json").write_text("{}")
    return "step100/model_and_optim"


def colossals(run, tensors):
    save = run / "epoch-0_step-5"
    for folder in ("modeling", "optimizer"):
        (save / folder).mkdir(parents=True)
    torch.save(tensors, save / "modeling" / "pytorch_model-00001.bin")
    index = {"metadata": {}, "weight_map": dict.fromkeys(tensors, "pytorch_model-00001.bin")}
    (save / "modeling" / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    torch.save({0: {"exp_avg": torch.ones(2)}}, save / "optimizer" / "pytorch_optim-00001.bin")
    (save / "running_states.json").write_text("{}")
    return "epoch-0_step-5/modeling"


@pytest.mark.parametrize("lay_out", [composers, rlinfs, olmo_cores, colossals])
def test_what_lies_further_down_is_named_and_not_taken(shardwright, tmp_path, lay_out):
    run = tmp_path / "run"
    run.mkdir()
    further_down = lay_out(run, load_hf(LLAMA))
    told = json.loads(shardwright("diagnose", run, "--json", expect=1).stdout)
    assert [finding["code"] for finding in told["findings"]] == ["L41"]
    assert told["next"] == f"shardwright diagnose {run}/{further_down}"
    writer = {composers: "Composer", rlinfs: "RLinf", olmo_cores: "OLMo-core", colossals: "ColossalAI"}
    assert writer[lay_out] in " ".join(told["evidence"])
    refused = shardwright("convert", run, tmp_path / "out", "--to", "safetensors", expect=2)
    assert "SW0300" in refused.stderr and further_down in refused.stderr
    assert not (tmp_path / "out").exists()
    shardwright("diagnose", run / further_down)
    shardwright("convert", run / further_down, tmp_path / "out", "--to", "hf", "--hf-config", LLAMA)
    shardwright("diff", tmp_path / "out", LLAMA)


def test_what_is_kept_for_a_restart(shardwright, tmp_path):
    """Megatron's global non-persistent saves are checkpoints, one folder further down; local ones, a
    file for each rank, only their run reads."""
    run = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"
    shutil.copytree(run / "iter_0000010", tmp_path / "global/non_persistent/iter_0000010")
    told = json.loads(shardwright("diagnose", tmp_path / "global", "--json").stdout)
    assert told["next"] == f"shardwright diagnose {tmp_path}/global/non_persistent"
    told = json.loads(shardwright("diagnose", tmp_path / "global/non_persistent", "--json").stdout)
    assert told["format"] == "torch_dist"

    for rank in range(2):
        folder = tmp_path / "local" / str(rank)
        folder.mkdir(parents=True)
        torch.save({"w": torch.ones(2)}, folder / f"iter_0000010_{rank}_local.pt")
    told = json.loads(shardwright("diagnose", tmp_path / "local", "--json").stdout)
    assert told["format"] == "local" and [each["code"] for each in told["findings"]] == ["L34"]
    refused = shardwright("verify", tmp_path / "local", expect=2)
    assert "SW0301" in refused.stderr and "--save" in refused.stderr


@pytest.mark.parametrize("key", [None, "state_dict", "model", "module"])
@pytest.mark.parametrize("name", ["epoch7.pt", "weights.pth"])
def test_a_file_by_itself(shardwright, model, tmp_path, key, name):
    folder, tensors = model
    torch.save({key: tensors, "epoch": 7} if key else tensors, folder / name)
    shardwright("diff", folder / name, LLAMA)
    shardwright("convert", folder / name, tmp_path / "out", "--to", "torch_dist")
    shardwright("diff", tmp_path / "out", LLAMA)


def test_several_state_dicts(shardwright, model, tmp_path):
    folder, tensors = model
    others = {name: tensor + 1 for name, tensor in tensors.items()}
    torch.save({"model": tensors, "ema": others}, folder / "run.pt")
    done = shardwright("convert", folder / "run.pt", tmp_path / "out", "--to", "hf")
    assert "of 2 state dicts in it (model, ema) the model's is read" in done.stdout + done.stderr
    assert_same(load_hf(tmp_path / "out"), tensors)
    torch.save({"model": tensors, "state_dict": others}, folder / "run.pt")
    done = shardwright("convert", folder / "run.pt", tmp_path / "two", "--to", "hf", expect=2)
    assert "SW0323" in done.stderr and "run.pt" in done.stderr
    assert "under 'state_dict' and under 'model'" in done.stderr
    assert not (tmp_path / "two").exists()


def test_files_of_before_torch_1_6(shardwright, model, tmp_path):
    folder, tensors = model
    torch.save(tensors, folder / "pytorch_model.bin", _use_new_zipfile_serialization=False)
    shardwright("diff", folder, LLAMA)


def test_views_parameters_and_shared_storages(shardwright, model, tmp_path):
    folder, tensors = model
    odd = {}
    for i, (name, tensor) in enumerate(tensors.items()):
        if tensor.dim() == 2 and i % 3 == 0:
            tensor = tensor.t().contiguous().t()
        elif i % 3 == 1:
            tensor = torch.cat([tensor.flatten(), tensor.flatten()])[tensor.numel() :].view(tensor.shape)
        else:
            tensor = torch.nn.Parameter(tensor, requires_grad=False)
        odd[name] = tensor
    torch.save(odd, folder / "pytorch_model.bin")
    shardwright("diff", folder, LLAMA)
    shardwright("convert", folder, tmp_path / "out", "--to", "legacy", "--tp", 2)
    shardwright("diff", tmp_path / "out", LLAMA)


def test_damage_is_found(shardwright, model):
    folder, tensors = model
    file = folder / "pytorch_model.bin"
    torch.save(tensors, file)
    whole = bytearray(file.read_bytes())
    payload = tensors["model.norm.weight"].view(torch.uint8).numpy().tobytes()
    whole[whole.index(payload)] ^= 1
    file.write_bytes(whole)
    assert "SW0314" in shardwright("verify", folder, expect=1).stdout


class Hostile:
    def __reduce__(self):
        return eval, ("open('/tmp/never-made', 'w')",)


def test_a_pickle_that_would_run_code_is_named(shardwright, model, tmp_path):
    folder, tensors = model
    torch.save({**tensors, "extra": Hostile()}, folder / "pytorch_model.bin")
    assert "SW0224" in shardwright("verify", folder, expect=1).stdout
    done = shardwright("convert", folder, tmp_path / "out", "--to", "torch_dist")
    assert "eval" in done.stdout + done.stderr and "extra" in done.stdout + done.stderr
    shardwright("diff", tmp_path / "out", LLAMA)
