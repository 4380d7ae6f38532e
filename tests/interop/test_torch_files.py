# SPDX-License-Identifier: Apache-2.0
"""Models in torch.save files (`pytorch_model*.bin`, `.pt`, `.pth`) as sources of every command."""
import json
import shutil

import pytest
import torch
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
