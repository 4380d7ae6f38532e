# SPDX-License-Identifier: Apache-2.0
"""Rank files of Megatron-Core's layer-wise optimizer (`dist_muon`): each data-parallel rank has the
states of whole parameters in a `layer_wise_optimizer_N.pt` of its own."""
import shutil

import pytest
import torch

from test_precision_aware import rewritten

# Family, layer spec, processes, sizes.
CASES = {
    "dp1": ("qwen3_moe", "te", 1, {}),
    "dp2": ("llama3", "te", 2, {}),
    "dp3": ("qwen2", "local", 3, {}),
    "tp2_dp2": ("llama3", "te", 4, {"tp": 2}),
    "pp2_dp2": ("llama3_4l", "te", 4, {"pp": 2}),
    "ep2_dp2": ("qwen3_moe", "te", 2, {"ep": 2}),
    "ep2_dp4": ("qwen3_moe", "local", 4, {"ep": 2}),
    "tp2_ep2": ("qwen3_moe", "te", 4, {"tp": 2, "ep": 2}),
}
KEEP = ("--to", "torch_dist", "--optimizer", "keep")


def save(ranks, folder, name, **options):
    return save_by("layer_wise_jobs", ranks, folder, name, **options)


def save_by(jobs, ranks, folder, name, **options):
    """Returns what compares `folder`/out with it."""
    family, spec, world, sizes = CASES[name]
    case = dict(family=family, folder=folder, spec=spec, sizes=sizes)
    ranks(jobs, "save", world, **case, **options)
    return lambda **checked: ranks(jobs, "check", world, **case, **checked)


@pytest.mark.parametrize("name", CASES)
def test_states_are_those_of_their_parameters(shardwright, ranks, tmp_path, name):
    check = save(ranks, tmp_path, name)
    shardwright("verify", tmp_path / "in")
    shardwright("convert", tmp_path / "in", tmp_path / "out", *KEEP)
    check()
    assert not shardwright("diff", tmp_path / "in", tmp_path / "out").stderr


def test_weights_of_float32_are_the_master_weights(shardwright, ranks, tmp_path):
    """They stand in the model's file, the momentum in the others."""
    check = save(ranks, tmp_path, "dp2", has_masters=False)
    shardwright("convert", tmp_path / "in", tmp_path / "bare", *KEEP)
    # As Megatron itself saves such a run: none beside the weights.
    check(made="bare", has_masters=False)
    assert "EQUAL" in shardwright("diff", tmp_path / "in", tmp_path / "bare").stdout
    assert "EQUAL" in shardwright("diff", tmp_path / "bare", tmp_path / "in").stdout

    def add(state):
        name = "decoder.final_layernorm.weight"
        state[f"optimizer.state.fp32_param.{name}"] = state[name].clone()

    rewritten(tmp_path / "bare", tmp_path / "more", add)
    done = shardwright("diff", tmp_path / "more", tmp_path / "bare", expect=1)
    assert "missing right" in done.stdout, "those are tensors of their own"


def test_other_layouts_come_back(shardwright, ranks, tmp_path):
    check = save(ranks, tmp_path, "tp2_ep2")
    legacy = ("--to", "legacy", "--tp", 1, "--ep", 4, "--etp", 1, "--spec", "te", "--optimizer", "keep")
    done = shardwright("convert", tmp_path / "in", tmp_path / "ranks", *legacy)
    assert "start the job with --no-load-rng" in done.stderr
    assert not list((tmp_path / "ranks").rglob("layer_wise*"))
    shardwright("convert", tmp_path / "ranks", tmp_path / "out", *KEEP)
    check()


@pytest.fixture(scope="module")
def sound(ranks, tmp_path_factory):
    folder = tmp_path_factory.mktemp("sound")
    save(ranks, folder, "ep2_dp4")
    return folder / "in"


def file_of(root, number):
    (file,) = root.rglob(f"layer_wise_optimizer_{number}.pt")
    return file


def edit(file, change):
    state = torch.load(file, weights_only=False)
    change(state)
    torch.save(state, file)


def lacks_one(root):
    file_of(root, 1).unlink()


def lacks_the_last(root):
    """Which the run's arguments count."""
    file_of(root, 3).unlink()
    for file in root.rglob("model_optim_rng.pt"):
        edit(file, lambda state: vars(state["args"]).update(data_parallel_size=4))


def has_one_twice(root):
    shutil.copy(file_of(root, 0), file_of(root, 1).parent)


def has_them_in_each_others_place(root):
    """Rank 0's and 2's, which are of one folder."""
    first, second = file_of(root, 0), file_of(root, 2)
    kept = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(kept)


def is_of_context_ranks(root):
    for file in root.rglob("model_optim_rng.pt"):
        edit(file, lambda state: vars(state["args"]).update(context_parallel_size=2))


def is_beside_buffers(root):
    shutil.copy(file_of(root, 0), file_of(root, 0).parent / "distrib_optim.pt")


def lacks_a_group(root):
    edit(file_of(root, 2), lambda parts: parts[1]["optimizer"]["param_groups"].pop())


def lacks_masters(root):
    edit(file_of(root, 2), lambda parts: parts[0].update(fp32_from_fp16_params=[]))


def is_a_step_ahead(root):
    def change(parts):
        for state in parts[1]["optimizer"]["state"].values():
            state["step"] += 1

    edit(file_of(root, 3), change)


@pytest.mark.parametrize(
    "damage, said",
    [
        (lacks_one, "found no layer_wise_optimizer_1.pt, but one of data-parallel rank 2"),
        (lacks_the_last, "of 3 data-parallel ranks, expected 4"),
        (has_one_twice, "found the states of data-parallel rank 0 in "),
        (has_them_in_each_others_place, "0.pt: optimizer: found 3 parameters in group 0, expected 2 as of data-parallel rank 0 of 4"),
        (is_of_context_ranks, "context parallel size is 2"),
        (is_beside_buffers, "found distrib_optim.pt beside layer_wise_optimizer_N.pt"),
        (lacks_a_group, "found master weights of "),
        (lacks_masters, "found master weights of 0 groups"),
        (is_a_step_ahead, "found step 3, expected 2"),
    ],
)
def test_files_that_are_not_right_are_refused(shardwright, sound, tmp_path, damage, said):
    shutil.copytree(sound, tmp_path / "in")
    damage(tmp_path / "in")
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", *KEEP, expect=2)
    assert "error[SW0311]" in done.stderr and said in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()
    done = shardwright("verify", tmp_path / "in", expect=1)
    assert said in done.stdout + done.stderr
    # Without it nothing of it is looked at.
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", "--optimizer", "drop")


def test_a_later_megatron_deals_them_out_alike(shardwright, newer_ranks, tmp_path):
    check = save_by("newer_layer_wise_jobs", newer_ranks, tmp_path, "ep2_dp4")
    shardwright("convert", tmp_path / "in", tmp_path / "out", *KEEP)
    check()
