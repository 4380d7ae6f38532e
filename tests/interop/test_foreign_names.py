# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models as torchtitan, torchtune and Meta call them and lay them out."""
import json
import shutil

import foreign_names
import pytest
import torch
from checkpoints import GOLDEN, assert_same, load_hf
from safetensors.torch import save_file
from same_model import is_the_model

LLAMA = GOLDEN / "hf" / "llama3" / "hf"


@pytest.mark.parametrize("family", ["llama3", "qwen3", "qwen3_moe", "deepseek_v3"])
@pytest.mark.parametrize("newer", [False, True], ids=["older", "newer"])
def test_torchtitan(shardwright, ranks, tmp_path, family, newer):
    """Three ranks cut within heads and experts."""
    model = GOLDEN / "hf" / family / "hf"
    ranks("foreign_name_jobs", "save_named", 3, folder=model, out=tmp_path / "titan",
          names="titan", newer=newer)  # fmt: skip
    is_the_model(shardwright, tmp_path / "titan", tmp_path, model, "--hf-config", model)


@pytest.mark.parametrize("family", ["llama3", "mistral", "qwen2", "qwen3"])
def test_torchtune(shardwright, ranks, tmp_path, family):
    model = GOLDEN / "hf" / family / "hf"
    ranks("foreign_name_jobs", "save_named", 2, folder=model, out=tmp_path / "tune",
          names="tune", before="model.")  # fmt: skip
    is_the_model(shardwright, tmp_path / "tune", tmp_path, model, "--hf-config", model)


@pytest.mark.parametrize("family", ["qwen3_moe", "deepseek_v3"])
def test_prime_rl(shardwright, ranks, tmp_path, family):
    """Its trainer's checkpoints, found from the run's folder."""
    model, run = GOLDEN / "hf" / family / "hf", tmp_path / "run"
    ranks("foreign_name_jobs", "save_named", 2, folder=model, out=run / "checkpoints/step_5/trainer",
          names="prime", before="app.model.")  # fmt: skip
    is_the_model(shardwright, run, tmp_path, model, "--hf-config", model)
    assert "SW0323" not in shardwright("diagnose", run).stdout


def save_parts(folder, axis, count=2):
    config = json.loads((LLAMA / "config.json").read_text())
    folder.mkdir(parents=True)
    parts = foreign_names.consolidated(load_hf(LLAMA), config, count, axis)
    for rank, part in enumerate(parts):
        torch.save(part, folder / f"consolidated.{rank:02d}.pth")
    return config


@pytest.mark.parametrize("axis", [0, 1], ids=["llama3", "llama2"])
def test_consolidated(shardwright, tmp_path, axis):
    config = save_parts(tmp_path / "model" / "original", axis)
    shutil.copy(LLAMA / "config.json", tmp_path / "model")
    is_the_model(shardwright, tmp_path / "model" / "original", tmp_path, LLAMA)
    (tmp_path / "model" / "config.json").unlink()
    params = {"dim": 64, "n_layers": 3, "n_heads": 4, "n_kv_heads": 2, "norm_eps": 1e-6}
    (tmp_path / "model" / "original" / "params.json").write_text(json.dumps(params))
    shardwright("convert", tmp_path / "model" / "original", tmp_path / "own", "--to", "hf")
    assert_same(load_hf(tmp_path / "own"), load_hf(LLAMA))
    written = json.loads((tmp_path / "own" / "config.json").read_text())
    for key in ("hidden_size", "intermediate_size", "num_key_value_heads", "vocab_size"):
        assert written[key] == config[key], key
    assert written["rope_theta"] == 10000.0


def test_consolidated_safetensors(shardwright, tmp_path):
    """Mistral's own form of its models: Meta's names and rows, in one file."""
    model, own = GOLDEN / "hf" / "mistral" / "hf", tmp_path / "model"
    own.mkdir()
    config = json.loads((model / "config.json").read_text())
    (whole,) = foreign_names.consolidated(load_hf(model), config, 1, 0)
    whole = {name: tensor.contiguous() for name, tensor in whole.items()}
    save_file(whole, own / "consolidated.safetensors")
    is_the_model(shardwright, own, tmp_path, model, "--hf-config", model)
    missing = shardwright("convert", own, tmp_path / "no", "--to", "torch_dist", expect=2)
    assert "SW0406" in missing.stderr and "--hf-config" in missing.stderr


def test_a_part_of_a_consolidated_model_is_refused(shardwright, tmp_path):
    save_parts(tmp_path / "model", 0)
    flags = ("--to", "hf", "--hf-config", LLAMA)
    (tmp_path / "model" / "consolidated.00.pth").rename(tmp_path / "first")
    done = shardwright("convert", tmp_path / "model", tmp_path / "out", *flags, expect=2)
    assert "SW0101" in done.stderr and "consolidated.00.pth is missing" in done.stderr
    (tmp_path / "first").rename(tmp_path / "model" / "consolidated.00.pth")
    state = torch.load(tmp_path / "model" / "consolidated.01.pth")
    del state["layers.1.attention.wo.weight"]
    torch.save(state, tmp_path / "model" / "consolidated.01.pth")
    done = shardwright("convert", tmp_path / "model", tmp_path / "out", *flags, expect=2)
    assert "SW0307" in done.stderr and "layers.1.attention.wo.weight" in done.stderr
    assert "consolidated.01.pth" in done.stderr
    (tmp_path / "model" / "consolidated.01.pth").unlink()
    done = shardwright("convert", tmp_path / "model", tmp_path / "out", *flags, expect=2)
    assert "SW0101" in done.stderr and "found 1 of 2 files" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("axis", [0, 1], ids=["llama3", "llama2"])
def test_a_file_that_was_copied_over_another_is_refused(shardwright, tmp_path, axis):
    save_parts(tmp_path / "model", axis, 4)
    flags = ("--hf-config", LLAMA)
    assert "SW0319" not in shardwright("verify", tmp_path / "model", *flags).stdout
    shutil.copy(tmp_path / "model/consolidated.01.pth", tmp_path / "model/consolidated.03.pth")
    done = shardwright("convert", tmp_path / "model", tmp_path / "out", "--to", "hf", *flags, expect=2)
    assert "SW0319" in done.stderr and "consolidated.03.pth" in done.stderr
    assert "consolidated.01.pth" in done.stderr and not (tmp_path / "out").exists()
    assert "SW0319" in shardwright("verify", tmp_path / "model", *flags, expect=1).stdout


def test_a_shard_of_torchtitan_that_was_copied_over_another_is_refused(shardwright, ranks, tmp_path):
    """Rows of q and k lie in another order there, so that a part is many strided pieces."""
    ranks("foreign_name_jobs", "save_named", 4, folder=LLAMA, out=tmp_path / "titan", names="titan",
          newer=True)  # fmt: skip
    shutil.copy(tmp_path / "titan/__1_0.distcp", tmp_path / "titan/__2_0.distcp")
    for target in ("hf", "torch_dist"):
        done = shardwright("convert", tmp_path / "titan", tmp_path / "out", "--to", target,
                           "--hf-config", LLAMA, expect=2)  # fmt: skip
        assert "SW0319" in done.stderr and "__2_0.distcp" in done.stderr
        assert not (tmp_path / "out").exists()


def test_one_file_under_prefixes_and_own_names(shardwright, tmp_path):
    tensors = load_hf(LLAMA)
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(LLAMA / "config.json", folder)
    wrapped = {"module._fsdp_wrapped_module." + k: v for k, v in tensors.items()}
    torch.save({"model": wrapped}, folder / "wrapped.pt")
    config = json.loads((LLAMA / "config.json").read_text())
    torch.save(foreign_names.titan(tensors, config), folder / "own.pth")
    for file in ("wrapped.pt", "own.pth"):
        is_the_model(shardwright, folder / file, tmp_path / file, LLAMA)


def test_a_trainers_names_in_safetensors(shardwright, tmp_path):
    config = json.loads((LLAMA / "config.json").read_text())
    folder = tmp_path / "model"
    folder.mkdir()
    shutil.copy(LLAMA / "config.json", folder)
    tensors = {k: v.contiguous() for k, v in foreign_names.titan(load_hf(LLAMA), config).items()}
    save_file(tensors, folder / "model.safetensors")
    is_the_model(shardwright, folder, tmp_path, LLAMA)
    del tensors["layers.1.attention.wk.weight"]
    save_file(tensors, folder / "model.safetensors")
    torch.save(tensors, folder / "own.pt")
    needs = "family llama: 1 tensor missing that it needs: model.layers.1.self_attn.k_proj.weight;"
    for path in (folder, folder / "own.pt"):
        done = shardwright("convert", path, tmp_path / "out", "--to", "torch_dist", expect=2)
        assert needs in done.stderr and "names are taken for those of torchtitan" in done.stderr
        done = shardwright("verify", path, expect=1)
        assert needs in done.stdout, done.stdout
        shardwright("convert", path, tmp_path / f"as {path.name}", "--to", "safetensors")  # names stay
