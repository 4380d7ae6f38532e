# SPDX-License-Identifier: Apache-2.0
"""Hugging Face models as FSDP, FSDP2 and verl save them."""
import json
import pickle
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, load_hf
from same_model import is_the_model

LLAMA = GOLDEN / "hf" / "llama3" / "hf"


@pytest.fixture(scope="module")
def fsdp2(ranks, tmp_path_factory):
    out = tmp_path_factory.mktemp("fsdp2")
    ranks("fsdp_model_jobs", "save_fsdp2", 2, folder=LLAMA, out=out)
    documents = out / "verl" / "global_step_5" / "actor" / "huggingface"
    documents.mkdir()
    shutil.copy(LLAMA / "config.json", documents)
    (documents / "tokenizer.json").write_text("{}")
    return out


@pytest.fixture(scope="module")
def fsdp1(ranks, tmp_path_factory):
    out = tmp_path_factory.mktemp("fsdp1")
    ranks("fsdp_model_jobs", "save_fsdp1", 2, folder=LLAMA, out=out)
    return out


@pytest.mark.parametrize("form", ["bare", "model", "app", "flat", "wrapped"])
def test_fsdp2_under_any_prefix(shardwright, fsdp2, tmp_path, form):
    is_the_model(shardwright, fsdp2 / form, tmp_path, LLAMA, "--hf-config", LLAMA)
    shown = json.loads(shardwright("diagnose", fsdp2 / form, "--json").stdout)
    assert shown["format"] == "hf_dcp"


def test_the_config_is_found_above(shardwright, fsdp2, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(fsdp2 / "model", run / "checkpoint-7" / "pytorch_model_fsdp_0")
    shutil.copy(LLAMA / "config.json", run)
    (run / "tokenizer.json").write_text("{}")
    out = shardwright("convert", run / "checkpoint-7", tmp_path / "out", "--to", "hf")
    assert f"describes the model are those of {run}" in out.stdout + out.stderr
    assert_same(load_hf(tmp_path / "out"), load_hf(LLAMA))
    assert (tmp_path / "out" / "tokenizer.json").exists()
    assert json.loads((tmp_path / "out" / "config.json").read_text())["num_hidden_layers"] == 3


def test_without_a_config_it_is_asked_for(shardwright, fsdp2, tmp_path):
    done = shardwright("convert", fsdp2 / "model", tmp_path / "out", "--to", "hf", expect=2)
    assert "--hf-config" in done.stderr
    assert not (tmp_path / "out").exists()
    shardwright("convert", fsdp2 / "model", tmp_path / "st", "--to", "safetensors")
    assert all(name.startswith(("model.", "optimizer.")) for name in load_hf(tmp_path / "st"))


def test_of_two_models_one_must_be_named(shardwright, fsdp2, tmp_path):
    flags = ("--to", "hf", "--hf-config", LLAMA)
    done = shardwright("convert", fsdp2 / "two", tmp_path / "out", *flags, expect=2)
    assert "SW0323" in done.stderr and "'ema.'" in done.stderr and "--include" in done.stderr
    whole = shardwright("verify", fsdp2 / "two", "--hf-config", LLAMA)
    assert "lies under each of 'ema.'" in whole.stdout
    shardwright("convert", fsdp2 / "two", tmp_path / "out", *flags, "--include", "ema.*")
    assert_same(load_hf(tmp_path / "out"), load_hf(LLAMA))


def test_an_embedding_that_is_missing_is_named(shardwright, tmp_path):
    state = {f"model.{name}": tensor for name, tensor in load_hf(LLAMA).items()}
    del state["model.model.embed_tokens.weight"]
    dcp.save(state, checkpoint_id=tmp_path / "in", no_dist=True)
    config = ("--hf-config", LLAMA)
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "hf", *config, expect=2)
    assert "SW0404" in done.stderr and "embed_tokens.weight" in done.stderr
    done = shardwright("verify", tmp_path / "in", *config, expect=1)
    assert "embed_tokens.weight" in done.stdout


def test_a_tensor_that_is_missing_is_named(shardwright, fsdp2, tmp_path):
    for target in ("hf", "torch_dist"):
        done = shardwright("convert", fsdp2 / "lacking", tmp_path / "out", "--to", target,
                           "--hf-config", LLAMA, expect=2)  # fmt: skip
        assert "SW0404" in done.stderr and "model.norm.weight" in done.stderr
        assert not (tmp_path / "out").exists()
    done = shardwright("verify", fsdp2 / "lacking", "--hf-config", LLAMA, expect=1)
    assert "model.norm.weight" in done.stdout
    shardwright("convert", fsdp2 / "lacking", tmp_path / "part", "--to", "hf", "--hf-config", LLAMA,
                "--include", "*norm*", expect=2)  # fmt: skip
    shardwright("convert", fsdp2 / "model", tmp_path / "part", "--to", "hf", "--hf-config", LLAMA,
                "--include", "*layers.1.*", "--exclude", "optimizer.*")  # fmt: skip
    expected = {k: v for k, v in load_hf(LLAMA).items() if ".layers.1." in k}
    assert_same(load_hf(tmp_path / "part"), expected)


def without_entries(source, target, is_lost):
    """A copy as if those entries had not been saved."""
    shutil.copytree(source, target)
    metadata = dcp.FileSystemReader(target).read_metadata()
    gone = [name for name in metadata.state_dict_metadata if is_lost(name)]
    assert gone
    for name in gone:
        del metadata.state_dict_metadata[name]
    metadata.storage_data = {
        index: place for index, place in metadata.storage_data.items() if index.fqn not in gone
    }
    (target / ".metadata").write_bytes(pickle.dumps(metadata))
    return target


@pytest.mark.parametrize("form", ["model", "app", "flat"])
@pytest.mark.parametrize("kind", ["exp_avg", "exp_avg_sq"])
def test_moments_that_are_missing(shardwright, fsdp2, tmp_path, form, kind):
    shardwright("convert", fsdp2 / form, tmp_path / "whole", "--to", "dcp")
    name = "model.layers.1.mlp.up_proj.weight"
    all_of_them = without_entries(fsdp2 / form, tmp_path / "all", lambda n: n.endswith(f".{kind}"))
    one = without_entries(fsdp2 / form, tmp_path / "one", lambda n: n.endswith(f"{name}.{kind}"))
    for run, words in ((all_of_them, "by the optimizer's betas and eps"), (one, f"tensor {name}: ")):
        done = shardwright("convert", run, tmp_path / "out", "--to", "dcp", expect=2)
        assert "SW0311" in done.stderr and words in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()
        assert words in shardwright("verify", run, "--hf-config", LLAMA, expect=1).stdout
        shardwright("convert", run, tmp_path / "hf", "--to", "hf", "--hf-config", LLAMA, "--overwrite")
    # No settings say what the optimizer keeps of one parameter, but the others do.
    bare = without_entries(one, tmp_path / "bare", lambda n: ".param_groups." in n)
    done = shardwright("convert", bare, tmp_path / "out", "--to", "dcp", expect=2)
    assert f"tensor {name}: " in done.stderr and " as of " in done.stderr


def test_fsdp1_sharded(shardwright, fsdp1, tmp_path):
    for form in ("dcp", "SHARDED_STATE_DICT"):
        is_the_model(shardwright, fsdp1 / form, tmp_path / form, LLAMA, "--hf-config", LLAMA)


def test_fsdp1_local_pieces_are_refused(shardwright, fsdp1, tmp_path):
    for folder in ("LOCAL_STATE_DICT", "flat"):
        done = shardwright("convert", fsdp1 / folder, tmp_path / "out", "--to", "hf", "--hf-config", LLAMA, expect=2)
        assert "tensor _flat_param: this is FSDP1's local state dict" in done.stderr, done.stderr
        assert "SHARDED_STATE_DICT" in done.stderr


def test_verl(shardwright, fsdp2, tmp_path):
    is_the_model(shardwright, fsdp2 / "verl", tmp_path, LLAMA)
    assert (tmp_path / "hf" / "tokenizer.json").exists()
    shown = shardwright("inspect", fsdp2 / "verl", "--json").stdout
    assert json.loads(shown)["format"] == "fsdp_ranks"
    assert "optim_world_size_2_rank_0.pt" in shown


@pytest.mark.parametrize("shape", [[1], [3], [2, 2]], ids=str)
def test_verl_meshes(shardwright, ranks, tmp_path, shape):
    world = shape[0] * shape[-1] if len(shape) > 1 else shape[0]
    ranks("fsdp_model_jobs", "save_ranks", world, folder=LLAMA, out=tmp_path / "run", shape=shape)
    is_the_model(shardwright, tmp_path / "run", tmp_path, LLAMA, "--hf-config", LLAMA)


def test_ranks_of_two_runs_or_of_half_a_run_are_refused(shardwright, fsdp2, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(fsdp2 / "verl" / "global_step_5" / "actor", run)
    second = run / "model_world_size_2_rank_1.pt"
    shutil.copy(second, run / "model_world_size_4_rank_1.pt")
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0323" in done.stderr and "model_world_size_4_rank_1.pt" in done.stderr
    (run / "model_world_size_4_rank_1.pt").unlink()
    second.unlink()
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0101" in done.stderr and "model_world_size_2_rank_1.pt is missing" in done.stderr


def test_ranks_that_disagree_are_refused(shardwright, fsdp2, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(fsdp2 / "verl" / "global_step_5" / "actor", run)
    second = run / "model_world_size_2_rank_1.pt"
    state = torch.load(run / "model_world_size_2_rank_0.pt", weights_only=False)
    torch.save(state, second)  # rank 0's pieces again: rank 1's are not there
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0319" in done.stderr and "model.embed_tokens.weight" in done.stderr
    assert "model_world_size_2_rank_1.pt: its parts of all tensors are those" in done.stderr
    state.pop("model.layers.1.mlp.up_proj.weight")
    torch.save(state, run / "model_world_size_2_rank_0.pt")
    shutil.copy(fsdp2 / "verl/global_step_5/actor" / second.name, second)
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "model_world_size_2_rank_0.pt: found no tensor model.layers.1.mlp.up_proj.weight" in done.stderr
    shutil.copy(fsdp2 / "verl/global_step_5/actor/model_world_size_2_rank_0.pt", run)
    torch.save({**state, "model.norm.weight": torch.zeros(64, dtype=torch.float16)}, second)
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "model_world_size_2_rank_1.pt" in done.stderr and "model.norm.weight" in done.stderr
    assert not (tmp_path / "out").exists()


def test_ranks_that_a_mesh_lacks_hold_nothing(shardwright, ranks, tmp_path):
    ranks("fsdp_model_jobs", "save_on_some", 3, out=tmp_path / "run", ranks=2)
    shardwright("convert", tmp_path / "run", tmp_path / "made", "--to", "safetensors")
    assert_same(load_hf(tmp_path / "made"), {"sharded": torch.arange(10.0), "plain": torch.ones(2)})
    shardwright("verify", tmp_path / "run")
    shutil.copy(tmp_path / "run/model_world_size_3_rank_2.pt", tmp_path / "run/model_world_size_3_rank_1.pt")
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "safetensors", expect=2)
    assert "SW0319" in done.stderr and "rank_1.pt: was saved as model_world_size_3_rank_2.pt" in done.stderr
    assert not (tmp_path / "out").exists()


def test_ranks_in_each_others_place_are_noticed(shardwright, fsdp2, tmp_path):
    """Each rank of verl loads the file of its name into its own pieces: with the wrong weights."""
    run = tmp_path / "run"
    shutil.copytree(fsdp2 / "verl" / "global_step_5" / "actor", run)
    assert "one of another save among them would not be noticed" in shardwright("verify", run).stdout
    first, second = (run / f"model_world_size_2_rank_{rank}.pt" for rank in (0, 1))
    first.rename(run / "other")
    second.rename(first)
    (run / "other").rename(second)
    for command in (("verify", run), ("diff", run, fsdp2 / "verl/global_step_5/actor")):
        done = shardwright(*command, expect=1 if command[0] == "verify" else 2)
        told = done.stdout + done.stderr
        assert "SW0319" in told and "rank_0.pt: was saved as model_world_size_2_rank_1.pt" in told
    done = shardwright("convert", run, tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0319" in done.stderr and not (tmp_path / "out").exists()


def test_an_optimizers_folder_has_no_weights(shardwright, tmp_path):
    """As accelerate saves it: optimizer_0."""
    states = {"exp_avg": torch.ones(4), "exp_avg_sq": torch.ones(4), "step": torch.tensor(2.0)}
    folder = tmp_path / "optimizer_0"
    dcp.save({"optimizer": {"state": {"lm_head.weight": states}}}, checkpoint_id=folder, no_dist=True)
    for to in ("hf", "torch_dist", "legacy"):
        for more in ((), ("--optimizer", "drop"), ("--optimizer", "keep")):
            done = shardwright("convert", folder, tmp_path / "out", "--to", to, *more, expect=2)
            assert "SW0320" in done.stderr and "the weights are elsewhere" in done.stderr
            assert "--optimizer drop" not in done.stderr
    shardwright("convert", folder, tmp_path / "made", "--to", "dcp")


def test_a_local_state_dict_of_accelerates(shardwright, fsdp1, tmp_path):
    for rank in range(2):
        shutil.copy(fsdp1 / f"flat/model_world_size_2_rank_{rank}.pt", tmp_path / f"pytorch_model_fsdp_rank{rank}.bin")
    shutil.copytree(fsdp1 / "dcp", tmp_path / "optimizer_0")
    for command in (("convert", tmp_path, tmp_path / "out", "--to", "hf"), ("verify", tmp_path)):
        done = shardwright(*command, expect=2)
        assert "pytorch_model_fsdp_rank0.bin shows FSDP1's local state dict" in done.stderr
        assert "SHARDED_STATE_DICT" in done.stderr
