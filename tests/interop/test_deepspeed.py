# SPDX-License-Identifier: Apache-2.0
"""DeepSpeed's checkpoints as sources of every command, against what DeepSpeed itself reads."""
import argparse
import collections
import json
import shutil

import pytest
import torch
from checkpoints import GOLDEN, assert_same, llama_shards, load_dcp, load_hf

CASES = {
    "zero1": dict(world=2, stage=1, precision="fp16", frozen=True, buffer=True, universal=True),
    "zero2": dict(world=3, stage=2, tied=True, frozen=True, universal=True),
    "zero2_aligned": dict(world=2, stage=2, zero={"parameter_alignment": True}),
    "zero2_round_robin": dict(world=2, stage=2, zero={"round_robin_gradients": True}),
    "zero3": dict(world=3, stage=3, tied=True, frozen=True, buffer=True, universal=True),
    "zero3_fp16": dict(world=2, stage=3, precision="fp16"),
}


@pytest.fixture(scope="session")
def saved(ranks, tmp_path_factory):
    """The folder of a case, saved once: `run` and `expected.pt`."""
    folders = {}

    def folder_of(case):
        if case not in folders:
            folders[case] = tmp_path_factory.mktemp(case)
            options = dict(CASES[case])
            world = options.pop("world")
            ranks("deepspeed_jobs", "save", world, folder=folders[case], **options)
        return folders[case]

    return folder_of


@pytest.fixture
def copied(saved, tmp_path):
    """A copy of a case's run that a test may break, and the folder with its files."""

    def copy(case):
        shutil.copytree(saved(case) / "run", tmp_path / "run")
        return tmp_path / "run", tmp_path / "run" / (tmp_path / "run" / "latest").read_text()

    return copy


def expected_of(folder):
    expected = torch.load(folder / "expected.pt")
    return expected["weights"], expected["states"]


def refused(shardwright, run, tmp_path, *words, code="SW0330", to="hf", more=()):
    """Each of the words is in the message, and nothing is written."""
    done = shardwright("convert", run, tmp_path / "out", "--to", to, *more, expect=2)
    assert code in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def as_zero_to_fp32(case, converted):
    if case != "zero1":
        return converted
    # It leaves frozen parameters out of such a save.
    frozen = {n: t for n, t in converted.items() if "layers.0." in n}
    assert frozen and all(t.dtype == torch.float16 for t in frozen.values())
    converted = {n: t for n, t in converted.items() if n not in frozen}
    # It makes float32 of buffers too, which here keep what is stored.
    return {**converted, "steps_seen": converted["steps_seen"].float()}


def test_a_model_without_its_config(shardwright, saved, tmp_path):
    shutil.copytree(saved("zero2") / "run", tmp_path / "run", ignore=shutil.ignore_patterns("*.json"))
    told = shardwright("convert", tmp_path / "run", tmp_path / "hf", "--to", "hf").stderr
    assert "the model is written without one" in told and not (tmp_path / "hf/config.json").exists()
    told = shardwright("convert", saved("zero2") / "run", tmp_path / "whole", "--to", "hf").stderr
    assert "the model is written without one" not in told


@pytest.mark.parametrize("case", CASES)
def test_weights_are_those_of_zero_to_fp32(shardwright, saved, tmp_path, case):
    run = saved(case) / "run"
    weights, _ = expected_of(saved(case))
    shardwright("convert", run, tmp_path / "hf", "--to", "hf")
    converted = as_zero_to_fp32(case, load_hf(tmp_path / "hf"))
    assert_same(converted, {n: t.contiguous() for n, t in weights.items()})
    assert json.loads((tmp_path / "hf" / "config.json").read_text())["num_hidden_layers"] == 2


@pytest.mark.parametrize("case", ["zero1", "zero2", "zero2_aligned", "zero3", "zero3_fp16"])
def test_states_are_those_of_the_optimizer(shardwright, saved, tmp_path, case):
    weights, states = expected_of(saved(case))
    shardwright("convert", saved(case) / "run", tmp_path / "dcp", "--to", "dcp")
    found = load_dcp(tmp_path / "dcp")
    assert_same({n: t for n, t in found.items() if n.startswith("optimizer.")},
                {n: t for n, t in states.items()})  # fmt: skip
    assert weights.keys() <= found.keys()


@pytest.mark.parametrize("case", ["zero1", "zero2", "zero3"])
def test_a_universal_checkpoint_is_the_same(shardwright, saved, tmp_path, case):
    universal = next((saved(case) / "universal").iterdir())
    shutil.copy(saved(case) / "run" / "config.json", universal)
    assert json.loads(shardwright("diagnose", universal, "--json").stdout)["format"] == (
        "deepspeed_universal"
    )
    weights, states = expected_of(saved(case))
    shardwright("convert", universal, tmp_path / "hf", "--to", "hf")
    converted = as_zero_to_fp32(case, load_hf(tmp_path / "hf"))
    assert_same(converted, {n: t.contiguous() for n, t in weights.items()})
    shardwright("convert", universal, tmp_path / "dcp", "--to", "dcp")
    found = load_dcp(tmp_path / "dcp")
    assert_same({n: t for n, t in found.items() if n.startswith("optimizer.")}, states)


def test_the_step_of_states_that_go_along_is_told(shardwright, saved, tmp_path):
    universal = next((saved("zero2") / "universal").iterdir())
    for source in (saved("zero2") / "run", saved("zero3") / "run", universal):
        for target in ("dcp", "safetensors"):
            done = shardwright("plan", source, tmp_path / "out", "--to", target, "--optimizer", "keep")
            assert "the optimizer's step (2), its parameter groups" in done.stdout, done.stdout


def test_a_run_without_zero(shardwright, ranks, tmp_path):
    """Its optimizer's states are numbered as only the run knows."""
    ranks("deepspeed_jobs", "save_without_zero", 2, folder=tmp_path)
    done = shardwright("convert", tmp_path / "run", tmp_path / "dcp", "--to", "dcp")
    assert "those under optimizer are left out" in done.stderr
    refused(shardwright, tmp_path / "run", tmp_path, "mp_rank_00_model_states.pt", to="dcp",
            more=["--optimizer", "keep"], code="SW0311")  # fmt: skip


def muon_run(ranks, folder, world):
    ranks("deepspeed_jobs", "save_with_muon", world, folder=folder)
    return folder / "run", {n: t.contiguous() for n, t in torch.load(folder / "expected.pt").items()}


def states_by_kind(tensors):
    found = {}
    for name in tensors:
        if name.startswith("optimizer.state."):
            kind, weight = name.removeprefix("optimizer.state.").split(".", 1)
            found.setdefault(kind, set()).add(weight)
    return found


def test_muon_with_a_parameter_that_ranks_share(shardwright, ranks, tmp_path):
    """It keeps the momentum of whole parameters, which is no buffer like the weights."""
    run, weights = muon_run(ranks, tmp_path, 3)
    assert "are left out: momentum_buffer" in shardwright("verify", run).stdout
    for to, load in (("hf", load_hf), ("dcp", load_dcp)):
        told = shardwright("convert", run, tmp_path / to, "--to", to).stderr
        assert "are left out: momentum_buffer" in told
        found = load(tmp_path / to)
        assert_same({n: t for n, t in found.items() if not n.startswith("optimizer.")}, weights)
    adams = {n for n in weights if "proj" not in n}
    assert states_by_kind(found) == {"exp_avg": adams, "exp_avg_sq": adams}


def test_muon_of_whole_parameters_on_each_rank(shardwright, ranks, tmp_path):
    run, weights = muon_run(ranks, tmp_path, 2)
    assert "left out" not in shardwright("convert", run, tmp_path / "dcp", "--to", "dcp").stderr
    found = load_dcp(tmp_path / "dcp")
    assert_same({n: t for n, t in found.items() if not n.startswith("optimizer.")}, weights)
    muons = {n for n in weights if "proj" in n}
    assert states_by_kind(found)["momentum_buffer"] == muons
    momentum = [
        torch.load(file, weights_only=False)["optimizer_state_dict"]["base_optimizer_state"]["state"][0]["momentum_buffer"]
        for file in sorted(run.glob("*/*_optim_states.pt"))
    ]
    stored = torch.cat(momentum)
    assert stored.count_nonzero() > 0.9 * stored.numel()
    kept = [found[f"optimizer.state.momentum_buffer.{n}"] for n in weights if n in muons]
    assert torch.equal(stored.sort().values, torch.cat([t.reshape(-1) for t in kept]).sort().values)
    for file in run.glob("*/*_optim_states.pt"):
        change(file, drop_states_of_muon)
    refused(shardwright, run, tmp_path, "has no exp_avg")


def drop_states_of_muon(state):
    for group in state["optimizer_state_dict"]["base_optimizer_state"]["state"].values():
        group.pop("momentum_buffer", None)


@pytest.mark.parametrize("case", ["zero1", "zero2"])
def test_a_trained_parameter_that_the_model_lacks(shardwright, copied, tmp_path, case):
    """DeepSpeed loads the optimizer's weights into a model that its `module` has first."""
    name = "model.layers.1.mlp.up_proj.weight"
    run, data = copied(case)
    change(data / "mp_rank_00_model_states.pt", lambda state: state["module"].pop(name))
    refused(shardwright, run, tmp_path, "mp_rank_00_model_states.pt", name)
    found = shardwright("verify", run, expect=1).stdout
    assert "SW0330" in found and name in found


def test_every_command(shardwright, saved, tmp_path):
    run = saved("zero3_fp16") / "run"
    shardwright("convert", run, tmp_path / "hf", "--to", "hf")
    shardwright("convert", run, tmp_path / "mcore", "--to", "torch_dist", "--tp", 2)
    shardwright("diff", run, tmp_path / "hf")
    shardwright("diff", run, tmp_path / "mcore")
    assert "PROVEN" in shardwright("verify", run, "--against", tmp_path / "hf").stdout
    digests = {
        json.loads(shardwright("hash", path, "--json").stdout)["digest"]
        for path in (run, tmp_path / "hf", tmp_path / "mcore")
    }
    assert len(digests) == 1
    assert "float32" in shardwright("show", run, "model.norm.weight").stdout
    assert "optimizer.state.exp_avg.lm_head.weight" in shardwright("inspect", run, "--json").stdout
    diagnosis = json.loads(shardwright("diagnose", run, "--json").stdout)
    assert diagnosis["format"] == "deepspeed_zero"
    done = shardwright("convert", run, tmp_path / "kept", "--to", "torch_dist", "--optimizer",
                       "keep", expect=2)  # fmt: skip
    assert "SW0311" in done.stderr and not (tmp_path / "kept").exists()


def test_a_rank_that_is_missing(shardwright, copied, tmp_path):
    run, data = copied("zero2")
    name = "bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt"
    last = (data / name.format(2)).read_bytes()
    (data / name.format(2)).unlink()
    refused(shardwright, run, tmp_path, name.format(0), "saved by 3 ranks", "rank 2")
    (data / name.format(2)).write_bytes(last)
    (data / name.format(1)).unlink()
    refused(shardwright, run, tmp_path, name.format(2), "rank 1")


def test_a_model_file_that_is_missing(shardwright, copied, tmp_path):
    run, data = copied("zero2")
    (data / "mp_rank_00_model_states.pt").unlink()
    refused(shardwright, run, tmp_path, "mp_rank_00_model_states.pt")


def test_zero3_needs_the_model_file_of_each_rank(shardwright, copied, tmp_path):
    run, data = copied("zero3")
    (data / "zero_pp_rank_2_mp_rank_00_model_states.pt").unlink()
    refused(shardwright, run, tmp_path, "2 *_model_states.pt files, expected 3")


def test_files_of_another_world_size(shardwright, saved, copied, tmp_path):
    run, data = copied("zero3")
    other = saved("zero3_fp16") / "run"
    for file in (other / (other / "latest").read_text()).glob("*rank_1_*optim*"):
        shutil.copy(file, data / f"bf16_{file.name}".replace("bf16_bf16_", "bf16_"))
    refused(shardwright, run, tmp_path, "keep the files of one save")


@pytest.mark.parametrize("copied_rank, over", [(0, 1), (1, 2)])
def test_a_file_that_was_copied_over_another_rank(shardwright, copied, tmp_path, copied_rank, over):
    """Nothing in ZeRO 3's files says whose they are, where torch did not put their names there."""
    run, data = copied("zero3")
    name = "bf16_zero_pp_rank_{}_mp_rank_00_optim_states.pt"
    value = torch.load(data / name.format(copied_rank), weights_only=False)
    with open(data / name.format(over), "wb") as file:
        torch.save(value, file)
    refused(shardwright, run, tmp_path, name.format(over), name.format(copied_rank),
            "model.embed_tokens.weight", code="SW0319")  # fmt: skip
    assert "SW0319" in shardwright("verify", run, expect=1).stdout


def test_files_in_each_others_place(shardwright, copied, tmp_path):
    """Their states would be those of other rows, and nothing but the names that torch saved shows it."""
    run, data = copied("zero3")
    first, other = (data / f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt" for rank in (0, 1))
    exchange(first, other)
    refused(shardwright, run, tmp_path, f"was saved as {other.name}", code="SW0319")
    assert "SW0319" in shardwright("verify", run, expect=1).stdout


@pytest.mark.parametrize("tag", ["global_step9", "epoch_3", "../elsewhere"])
def test_a_tracker_that_names_no_save(shardwright, copied, tmp_path, tag):
    run, _ = copied("zero2")
    (run / "latest").write_text(tag)
    refused(shardwright, run, tmp_path, f"latest: names {tag}", code="SW0305")
    assert "L14" in shardwright("diagnose", run, expect=1).stdout
    assert "SW0305" in shardwright("verify", run, expect=1).stdout


def test_several_saves_that_no_tracker_names(shardwright, copied, tmp_path):
    run, data = copied("zero2")
    (run / "latest").unlink()
    assert "saves is meant" not in shardwright("convert", run, tmp_path / "one", "--to", "hf").stderr
    shutil.copytree(data, data.with_name("global_step1"))
    told = shardwright("convert", run, tmp_path / "out", "--to", "hf").stderr
    assert "which of 2 saves is meant: global_step2 is taken" in told
    assert "global_step2 is taken" in shardwright("verify", run).stdout


def change(path, edit):
    """Saves a file of DeepSpeed's anew after an edit of what it holds."""
    value = torch.load(path, weights_only=False)
    edit(value)
    torch.save(value, path)


def test_files_of_another_step(shardwright, copied, tmp_path):
    run, data = copied("zero2")

    def later(value):
        for state in value["optimizer_state_dict"]["base_optimizer_state"]["state"].values():
            state["step"] += 1

    change(data / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", later)
    refused(shardwright, run, tmp_path, "rank_1", "found step 3, expected 2")


def test_files_of_another_world(shardwright, copied, tmp_path):
    """The model's file is of a run that shared the optimizer out otherwise."""
    run, data = copied("zero2")
    model = "mp_rank_00_model_states.pt"
    change(data / model, lambda state: state.update(dp_world_size=4))
    refused(shardwright, run, tmp_path, model, "bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
            "a world size of 4, expected 3")  # fmt: skip
    assert "a world size of 4" in shardwright("verify", run, expect=1).stdout


def flat_states(value):
    """Of each group, in a rank's file."""
    optimizer = value["optimizer_state_dict"]
    return optimizer.get("base_optimizer_state", optimizer.get("optimizer_state_dict"))["state"]


@pytest.mark.parametrize("case", ["zero1", "zero2", "zero3"])
@pytest.mark.parametrize("kinds", [("exp_avg",), ("exp_avg_sq",), ("exp_avg", "exp_avg_sq")])
def test_moments_that_all_groups_lack(shardwright, copied, tmp_path, case, kinds):
    run, data = copied(case)

    def lose(value):
        for state in flat_states(value).values():
            for kind in kinds:
                del state[kind]

    for file in data.glob("*_optim_states.pt"):
        change(file, lose)
    moments_are_missed(shardwright, run, tmp_path, kinds)
    # Before its first step an optimizer has none.
    if len(kinds) == 2:
        for file in data.glob("*_model_states.pt"):
            change(file, lambda state: state.update(skipped_steps=state["global_steps"]))
        shardwright("convert", run, tmp_path / "dcp", "--to", "dcp")


@pytest.mark.parametrize("case", ["zero1", "zero3"])
def test_a_folder_that_no_list_of_parameters_names(shardwright, saved, tmp_path, case):
    """DeepSpeed loads the checkpoint without it."""
    run = tmp_path / "universal"
    shutil.copytree(saved(case) / "universal", run)
    folders = next(run.glob("*/zero"))
    shutil.copytree(folders / "model.norm.weight", folders / "model.extra.weight")
    refused(shardwright, run, tmp_path, "zero/model.extra.weight: no 'param_shapes' lists")
    assert "zero/model.extra.weight" in shardwright("verify", run, expect=1).stdout


@pytest.mark.parametrize("kinds", [("exp_avg",), ("exp_avg_sq",), ("exp_avg", "exp_avg_sq")])
def test_moments_that_a_universal_checkpoint_lacks(shardwright, saved, tmp_path, kinds):
    shutil.copytree(next((saved("zero2") / "universal").iterdir()), tmp_path / "run")
    for kind in kinds:
        for file in (tmp_path / "run" / "zero").glob(f"*/{kind}.pt"):
            file.unlink()
    moments_are_missed(shardwright, tmp_path / "run", tmp_path, kinds)


def moments_are_missed(shardwright, run, tmp_path, kinds):
    words = ["optimizer: found no states"] if len(kinds) == 2 else [
        "tensor model.embed_tokens.weight", "expected exp_avg, exp_avg_sq", "tensors more lack them too"
    ]
    refused(shardwright, run, tmp_path, *words, code="SW0311", to="dcp")
    told = shardwright("verify", run, expect=1).stdout
    assert words[0] in told and "SW0311" in told
    assert words[0] in shardwright("hash", run).stderr
    shardwright("convert", run, tmp_path / "lossy", "--to", "dcp", "--accept-loss")
    shardwright("convert", run, tmp_path / "dropped", "--to", "dcp", "--optimizer", "drop")
    shardwright("convert", run, tmp_path / "hf", "--to", "hf")


def test_a_parameter_more(shardwright, copied, tmp_path):
    run, data = copied("zero2")

    def add(value):
        value["param_shapes"][0]["model.layers.2.more.weight"] = torch.Size([40, 40])

    change(data / "mp_rank_00_model_states.pt", add)
    refused(shardwright, run, tmp_path, "param_alignment_paddings", "rank_0")
    for file in data.glob("*_optim_states.pt"):
        change(file, lambda value: value["optimizer_state_dict"].pop("param_alignment_paddings"))
    refused(shardwright, run, tmp_path, "model.layers.2.more.weight")


def test_parameters_in_another_order(shardwright, copied, tmp_path):
    run, data = copied("zero2")

    def swap(value):
        shapes = value["param_shapes"][0]
        first = next(iter(shapes))
        shapes.move_to_end(first)

    change(data / "mp_rank_00_model_states.pt", swap)
    refused(shardwright, run, tmp_path, "param_shapes")


@pytest.mark.parametrize("case", ["zero1", "zero2"])
def test_a_model_file_of_another_run(shardwright, copied, tmp_path, case):
    """It holds the weights too, as the model computed with them."""
    run, data = copied(case)
    name = "model.layers.1.mlp.up_proj.weight"
    change(data / "mp_rank_00_model_states.pt", lambda value: value["module"][name][3, 4].add_(1))
    refused(shardwright, run, tmp_path, "mp_rank_00_model_states.pt: 1 of its ", f"tensor {name}")
    assert name in shardwright("verify", run, expect=1).stdout
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--check-replicas", "none")


def test_a_rank_whose_model_has_another_tensor(shardwright, copied, tmp_path):
    run, data = copied("zero3")
    file = "zero_pp_rank_1_mp_rank_00_model_states.pt"
    change(data / file, lambda value: value["module"].update({"model.what": torch.ones(3)}))
    refused(shardwright, run, tmp_path, file, "tensor model.what is in this file")
    change(data / file, lambda value: value["module"].pop("model.what"))
    change(data / file, lambda value: value["module"].pop("model.norm.weight"))
    refused(shardwright, run, tmp_path, file, "tensor model.norm.weight is in this file")


def test_a_buffer_that_is_cut_off(shardwright, copied, tmp_path):
    run, data = copied("zero3")

    def cut(value):
        groups = value["optimizer_state_dict"]["fp32_flat_groups"]
        groups[-1] = groups[-1][:-1].clone()

    change(data / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", cut)
    refused(shardwright, run, tmp_path, "rank_1")


def test_zero3s_buffers_of_every_rank(shardwright, copied, tmp_path):
    """Each rank's file has all buffers: they must be there and alike, or one would be a guess."""
    run, data = copied("zero3")
    file = data / "zero_pp_rank_1_mp_rank_00_model_states.pt"
    whole = file.read_bytes()
    names = torch.load(file, weights_only=False)["buffer_names"]
    assert names

    def other(value):
        value["module"][names[0]] += 1

    change(file, other)
    refused(shardwright, run, tmp_path, names[0], code="SW0411")
    file.write_bytes(whole)
    change(file, lambda value: value["module"].pop(names[0]))
    refused(shardwright, run, tmp_path, "zero_pp_rank_1", names[0], "buffer")


def test_layers_that_were_not_trained_lie_in_files_of_their_own(shardwright, copied, tmp_path):
    """As a PipelineModule of one stage saves them; ZeRO's buffers have what was trained."""
    run, data = copied("zero1")
    moved = {}

    def tied(names, first):
        return type(names)(("tied_modules.embed.weight" if name == first else name, value) for name, value in names.items())

    def take_module(state):
        moved.update({name: state["module"][name] for name in state["buffer_names"]})
        moved["first"], moved["shape"] = next(iter(state["param_shapes"][0].items()))
        state["module"], state["buffer_names"] = None, [f"7.{name}" for name in state["buffer_names"]]
        state["param_shapes"] = [tied(shapes, moved["first"]) for shapes in state["param_shapes"]]

    def rename(value):
        state = value["optimizer_state_dict"]
        state["param_slice_mappings"] = [tied(names, first) for names in state["param_slice_mappings"]]

    change(data / "mp_rank_00_model_states.pt", take_module)
    first = moved.pop("first")
    for file in data.glob("*_optim_states.pt"):
        change(file, rename)
    frozen = torch.arange(6.0).reshape(2, 3)
    assert len(moved) > 1, "the run has buffers"
    buffers = {name: value for name, value in moved.items() if name != "shape"}
    layer = collections.OrderedDict({"linear.weight": frozen, **buffers})  # as a module's state dict is
    torch.save(layer, data / "layer_07-model_states.pt")
    # The tied one once more, and a layer of another shape that calls its own so too.
    torch.save({"weight": torch.ones(moved.pop("shape"))}, data / "layer_00-model_states.pt")
    torch.save({"weight": frozen}, data / "layer_05-model_states.pt")
    told = shardwright("convert", run, tmp_path / "out", "--to", "safetensors").stderr
    assert "0.weight repeat what tied_modules holds" in told
    made = load_hf(tmp_path / "out")
    assert torch.equal(made["7.linear.weight"], frozen) and torch.equal(made["5.weight"], frozen)
    assert "tied_modules.embed.weight" in made and "0.weight" not in made
    assert all(torch.equal(made[f"7.{name}"], value) for name, value in buffers.items())


@pytest.fixture(scope="session")
def pipelines(ranks, tmp_path_factory):
    """Folders of pipelines without tensor parallelism, by what they are, saved once."""
    folders = {}

    def folder_of(world, **options):
        case = (world, *options.values())
        if case not in folders:
            folders[case] = tmp_path_factory.mktemp("pipeline")
            ranks("deepspeed_jobs", "save_pipeline", world, folder=folders[case], **options)
        return folders[case]

    return folder_of


def held_by_ranks(folder):
    held = {}
    for file in sorted(folder.glob("own*.pt")):
        held |= torch.load(file)
    return held


@pytest.mark.parametrize("world, stages, tied", [(2, 2, True), (2, 1, False)])
def test_stages_without_tensor_parallelism(shardwright, pipelines, tmp_path, world, stages, tied):
    folder = pipelines(world, stages=stages, zero=1, tied=tied)
    told = shardwright("convert", folder / "run", tmp_path / "dcp", "--to", "dcp").stderr
    found, held = load_dcp(tmp_path / "dcp"), held_by_ranks(folder)
    weights = {name: tensor for name, tensor in found.items() if not name.startswith("optimizer.")}
    trained = {name[len("optimizer.state.exp_avg.") :] for name in found if ".exp_avg." in name}
    assert {name for name, tensor in held.items() if name not in trained} == {
        *(f"1.{part}.{kind}" for part in ("norm", "linear") for kind in ("weight", "bias")),
        *(f"{layer}.seen" for layer in range(1, 5)),
    }
    assert_same({n: t.to(held[n].dtype) for n, t in weights.items()}, held)
    assert all(weights[name].dtype == torch.float32 for name in trained)
    assert ("the first one's is taken" in told) == tied
    # DeepSpeed's own tool puts the same together, of what was trained.
    universal = next((folder / "universal").iterdir())
    told = shardwright("convert", universal, tmp_path / "universal", "--to", "dcp").stderr
    assert "the run was a pipeline" in told
    assert_same(load_dcp(tmp_path / "universal"),
                {n: t for n, t in found.items() if n in trained or n.startswith("optimizer.")})  # fmt: skip


def test_stages_without_zero_have_their_weights_in_layers(shardwright, pipelines, tmp_path):
    folder = pipelines(2, stages=2, zero=0, tied=True)
    told = shardwright("convert", folder / "run", tmp_path / "weights", "--to", "safetensors").stderr
    assert "those under optimizer are left out" in told
    found, held = load_hf(tmp_path / "weights"), held_by_ranks(folder)
    held["0.weight"] = held.pop("tied_modules.embed.weight")
    assert_same(found, held)
    refused(shardwright, folder / "run", tmp_path, "mp_rank_00_model_states.pt", to="dcp",
            more=["--optimizer", "keep"], code="SW0311")  # fmt: skip
    run = tmp_path / "run"
    shutil.copytree(folder / "run", run)
    next(run.glob("*/layer_03-model_states.pt")).unlink()
    for file in run.glob("*/mp_rank_*_model_states.pt"):
        change(file, lambda state: state.update(buffer_names=[]))
    refused(shardwright, run, tmp_path, "parameter 3.", "layer_NN-model_states.pt", to="safetensors")


def test_a_stage_that_is_not_there(shardwright, pipelines, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=1, tied=True) / "run", run)
    data = run / (run / "latest").read_text()
    (data / "bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt").unlink()
    refused(shardwright, run, tmp_path, "*_optim_states.pt", "mp_rank_01", to="dcp")
    (data / "mp_rank_01_model_states.pt").unlink()
    refused(shardwright, run, tmp_path, "2 pipeline stages", "files of 1 are here", to="dcp")


@pytest.mark.parametrize("layer, word", [(1, "1.seen"), (2, "2.")])
def test_a_layer_that_is_not_there(shardwright, pipelines, tmp_path, layer, word):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=1, tied=True) / "run", run)
    next(run.glob(f"*/layer_{layer:02}-model_states.pt")).unlink()
    refused(shardwright, run, tmp_path, f"found no layer_{layer:02}-model_states.pt", word, to="dcp")


def test_a_pipelines_layers_in_each_others_place(shardwright, pipelines, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=0, tied=True) / "run", run)
    first, other = (next(run.glob(f"*/layer_{layer:02}-model_states.pt")) for layer in (2, 3))
    exchange(first, other)
    refused(shardwright, run, tmp_path, f"{other.name}: was saved as {first.name}", code="SW0319")


def test_gaps_between_layers_are_told(shardwright, pipelines, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=0, tied=True) / "run", run)
    file = next(run.glob("*/layer_04-model_states.pt"))
    for name in run.glob("*/*optim_states.pt"):
        name.unlink()
    for name in run.glob("*/mp_rank_*_model_states.pt"):
        change(name, lambda state: state.update(buffer_names=[]))
    file.rename(file.with_name("layer_07-model_states.pt"))
    told = shardwright("convert", run, tmp_path / "made", "--to", "safetensors").stderr
    assert "NN = 4-6: these layers are taken for functions" in told
    shutil.copy(file.with_name("layer_07-model_states.pt"), file.with_name("layer_9223372036854775807-model_states.pt"))
    told = shardwright("convert", run, tmp_path / "far", "--to", "safetensors").stderr
    assert "NN = 4-6, 8-9223372036854775806: these" in told
    shutil.copy(file.with_name("layer_07-model_states.pt"), file.with_name("layer_7-model_states.pt"))
    refused(shardwright, run, tmp_path, "layer_7-model_states.pt", "of one layer", to="safetensors")


def test_an_optimizer_without_shapes_is_told_of(shardwright, pipelines, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=0, tied=True) / "run", run)
    for name in run.glob("*/mp_rank_*_model_states.pt"):
        change(name, lambda state: state.update(optimizer=None))
    told = shardwright("convert", run, tmp_path / "made", "--to", "safetensors").stderr
    assert "_optim_states.pt: it names parameters without their shapes" in told
    refused(shardwright, run, tmp_path, "_optim_states.pt", to="dcp", more=["--optimizer", "keep"],
            code="SW0311")  # fmt: skip


def test_stages_of_two_saves(shardwright, pipelines, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(pipelines(2, stages=2, zero=1, tied=True) / "run", run)
    data = run / (run / "latest").read_text()
    change(data / "mp_rank_01_model_states.pt", lambda state: state.update(global_steps=3))
    refused(shardwright, run, tmp_path, "mp_rank_01", "global step 3, expected 2", to="dcp")
    change(data / "mp_rank_01_model_states.pt", lambda state: state.update(global_steps=2, param_shapes=None))
    refused(shardwright, run, tmp_path, "mp_rank_01", "'param_shapes'", to="dcp")


def test_a_second_model_parallel_rank(shardwright, copied, tmp_path):
    run, data = copied("zero2")
    shutil.copy(data / "mp_rank_00_model_states.pt", data / "mp_rank_01_model_states.pt")
    refused(shardwright, run, tmp_path, "mp_rank_01_model_states.pt", code="SW0301")


@pytest.mark.parametrize("stage", [0, 1])
def test_experts_in_files_of_their_own(shardwright, ranks, tmp_path, stage):
    """They are refused by name, whether their files were copied or not."""
    ranks("deepspeed_jobs", "save_experts", 2, folder=tmp_path, stage=stage)
    run = tmp_path / "run"
    experts = list(run.glob("*/layer_0_expert_*"))
    assert len(experts) == 4
    refused(shardwright, run, tmp_path, "one file per expert", to="safetensors", code="SW0301")
    for file in [*experts, *run.glob("*/expp_rank_*")]:
        file.unlink()
    refused(shardwright, run, tmp_path, "mp_rank_00_model_states.pt", "layers of 4 experts",
            to="safetensors", code="SW0301")  # fmt: skip
    assert "layers of 4 experts" in shardwright("verify", run, expect=2).stderr


def test_damage_is_found(shardwright, copied):
    run, data = copied("zero2")
    file = data / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt"
    weights = torch.load(file, weights_only=False)["optimizer_state_dict"]
    payload = weights["single_partition_of_fp32_groups"][0].view(torch.uint8).numpy().tobytes()
    whole = bytearray(file.read_bytes())
    whole[whole.index(payload[:64])] ^= 1
    file.write_bytes(whole)
    assert "SW0314" in shardwright("verify", run, expect=1).stdout


@pytest.mark.parametrize("kind", ["run", "universal"])
def test_names_of_one_tensor_that_no_list_tells(shardwright, saved, tmp_path, kind):
    """Older versions of DeepSpeed have no `shared_params`: the model's own tensors share a storage."""
    case = saved("zero2")
    run = shutil.copytree(case / "run" if kind == "run" else next((case / "universal").iterdir()), tmp_path / "run")
    shutil.copy(case / "run" / "config.json", run)
    embedding, head = "model.embed_tokens.weight", "lm_head.weight"

    def edit(state):
        assert state.pop("shared_params") == {head: embedding}
        state["module"]["corner"] = state["module"][embedding][:2]

    change(next(run.rglob("mp_rank_00_model_states.pt")), edit)
    shardwright("convert", run, tmp_path / "hf", "--to", "safetensors")
    found, weights = load_hf(tmp_path / "hf"), expected_of(case)[0]
    corner = found.pop("corner")
    assert corner.dtype == torch.bfloat16 and corner.shape == (2, 16), "a part of a tensor is another"
    assert_same(found, {n: t.contiguous() for n, t in weights.items()})


def test_a_prefix_of_all_names_is_taken_off(shardwright, copied, saved, tmp_path):
    run, data = copied("zero2")

    def wrap(shapes):
        return type(shapes)((f"module.{name}", shape) for name, shape in shapes.items())

    def wrap_model(value):
        for key in ("module", "frozen_param_shapes", "frozen_param_fragments"):
            value[key] = wrap(value[key])
        value["param_shapes"] = [wrap(shapes) for shapes in value["param_shapes"]]
        value["shared_params"] = {
            f"module.{a}": f"module.{b}" for a, b in value["shared_params"].items()
        }

    def wrap_rank(value):
        state = value["optimizer_state_dict"]
        state["param_slice_mappings"] = [wrap(m) for m in state["param_slice_mappings"]]

    change(data / "mp_rank_00_model_states.pt", wrap_model)
    for file in data.glob("*_optim_states.pt"):
        change(file, wrap_rank)
    done = shardwright("convert", run, tmp_path / "hf", "--to", "hf")
    assert "begin with module." in done.stdout + done.stderr
    assert_same(load_hf(tmp_path / "hf"), expected_of(saved("zero2"))[0])


LLAMA = GOLDEN / "hf" / "llama3" / "hf"
IN_LAYER = {
    "self_attention.linear_qkv.layer_norm_weight": "input_layernorm.weight",
    "self_attention.linear_qkv.weight": "self_attention.query_key_value.weight",
    "self_attention.linear_proj.weight": "self_attention.dense.weight",
    "mlp.linear_fc1.layer_norm_weight": "post_attention_layernorm.weight",
    "mlp.linear_fc1.weight": "mlp.dense_h_to_4h.weight",
    "mlp.linear_fc2.weight": "mlp.dense_4h_to_h.weight",
}
# Module and name, behind two modules without weights and one more behind the layers.
BESIDE = {
    "embedding.word_embeddings.weight": (1, "word_embeddings.weight"),
    "decoder.final_layernorm.weight": (7, "weight"),
    "output_layer.weight": (8, "lm_head.weight"),
}


def save_pipe(folder, tp):
    """As Megatron-DeepSpeed's pipeline of a llama saves it: a file a layer and tensor rank."""
    config = json.loads((LLAMA / "config.json").read_text())
    folder.mkdir(parents=True)
    for rank, shards in enumerate(llama_shards(tp)):
        files = {}
        for name, tensor in shards.items():
            if name in BESIDE:
                number, key = BESIDE[name]
            else:
                _, _, number, key = name.split(".", 3)
                number, key = int(number) + 3, IN_LAYER[key]
            files.setdefault(number, {})[key] = tensor
        for number, tensors in files.items():
            torch.save(tensors, folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
        arguments = argparse.Namespace(
            num_layers=config["num_hidden_layers"], hidden_size=config["hidden_size"],
            ffn_hidden_size=config["intermediate_size"], normalization="RMSNorm", swiglu=True,
            num_attention_heads=config["num_attention_heads"], kv_channels=config["head_dim"],
            num_query_groups=config["num_key_value_heads"], group_query_attention=True,
            max_position_embeddings=config["max_position_embeddings"], add_bias_linear=False,
            position_embedding_type="rope", untie_embeddings_and_output_weights=True,
            padded_vocab_size=config["vocab_size"], tensor_model_parallel_size=tp,
        )  # fmt: skip
        state = {"args": arguments, "checkpoint_version": 3.0, "iteration": 5, "module": None}
        torch.save(state, folder / f"mp_rank_{rank:02d}_model_states.pt")
    return folder


@pytest.mark.parametrize("tp", [1, 2])
def test_layers_of_a_pipeline(shardwright, tmp_path, tp):
    source = save_pipe(tmp_path / "run" / "global_step5", tp).parent
    assert json.loads(shardwright("diagnose", source, "--json").stdout)["format"] == "deepspeed_pipe"
    shardwright("convert", source, tmp_path / "hf", "--to", "hf", "--hf-config", LLAMA)
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    shardwright("convert", source, tmp_path / "mcore", "--to", "torch_dist", "--tp", 2)
    shardwright("diff", tmp_path / "mcore", LLAMA)
    shardwright("verify", source, "--against", LLAMA)


def exchange(first, other):
    """Puts two files into each other's place."""
    aside = first.with_name("aside")
    first.rename(aside)
    other.rename(first)
    aside.rename(other)


@pytest.mark.parametrize("tp", [1, 2])
def test_layers_in_each_others_place(shardwright, tmp_path, tp):
    """They have the same shapes, and nothing but the names that torch saved shows it."""
    source = save_pipe(tmp_path / "run", tp)
    name = "layer_{:02d}-model_{:02d}-model_states.pt"
    for rank in range(tp):
        exchange(source / name.format(3, rank), source / name.format(4, rank))
    refused(shardwright, source, tmp_path, f"{name.format(4, 0)}: was saved as {name.format(3, 0)}",
            f"in front of {name.format(3, 0)}", to="torch_dist", code="SW0319")  # fmt: skip
    assert "SW0319" in shardwright("verify", source, expect=1).stdout


def test_layers_that_were_numbered_anew(shardwright, tmp_path):
    source = save_pipe(tmp_path / "run", 2)
    for file in sorted(source.glob("layer_*"), reverse=True):
        number = int(file.name[6:8])
        file.rename(file.with_name(f"layer_{number + 4:02d}{file.name[8:]}"))
    shardwright("verify", source, "--against", LLAMA)


def test_arguments_in_a_dict(shardwright, tmp_path):
    """As GPT-NeoX saves them."""
    source = save_pipe(tmp_path / "run", 2)
    for rank in range(2):
        file = source / f"mp_rank_{rank:02d}_model_states.pt"
        change(file, lambda state: state.update(args=vars(state["args"])))
    shardwright("convert", source, tmp_path / "hf", "--to", "hf", "--hf-config", LLAMA)
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    for file in source.glob("*_01*"):
        file.unlink()
    for file in source.glob("*-model_01-*"):
        file.unlink()
    shutil.rmtree(tmp_path / "hf")
    refused(shardwright, source, tmp_path, "the run had 2 tensor-parallel ranks")


@pytest.mark.parametrize("theta", [10000, 500000])
def test_arguments_in_megatron_deepspeeds_words(shardwright, tmp_path, theta):
    """As its own parser names them: they are those of Megatron-Core that a model is built from."""
    source = save_pipe(tmp_path / "run", 2)
    core = ("num_query_groups", "group_query_attention", "position_embedding_type")
    own = {"num_key_value_heads": 2, "use_rotary_position_embeddings": True, "rope_theta": theta,
           "normalization": "rmsnorm", "num_experts": [1], "topk": 1, "mlp_type": "standard",
           "add_position_embedding": False, "rotary_percent": 1.0, "vocab_size": 500}  # fmt: skip

    def rename(state):
        told = {k: v for k, v in vars(state["args"]).items() if k not in core}
        state["args"] = argparse.Namespace(**{**told, **own})

    for rank in range(2):
        change(source / f"mp_rank_{rank:02d}_model_states.pt", rename)
    shardwright("convert", source, tmp_path / "hf", "--to", "hf")
    made = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert (made["model_type"], made["rope_theta"], made["num_key_value_heads"]) == ("llama", theta, 2)
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    shardwright("convert", source, tmp_path / "mcore", "--to", "torch_dist")
    common = next((tmp_path / "mcore").glob("*/common.pt"))
    args = vars(torch.load(common, weights_only=False)["args"])
    said = {key: args[key] for key in (*core, "rotary_base", "normalization", "num_experts")}
    assert said == {
        "num_query_groups": 2, "group_query_attention": True, "position_embedding_type": "rope",
        "rotary_base": theta, "normalization": "RMSNorm", "num_experts": None,
    }  # fmt: skip


def test_the_outputs_copy_of_a_tied_embedding(shardwright, tmp_path):
    source = save_pipe(tmp_path / "run", 2)
    embeddings = torch.load(source / "layer_01-model_01-model_states.pt")
    copy = {"word_embeddings.weight": embeddings["word_embeddings.weight"].clone()}
    for rank in range(2):
        shutil.copy(source / f"layer_01-model_{rank:02d}-model_states.pt",
                    source / f"layer_09-model_{rank:02d}-model_states.pt")  # fmt: skip
    shardwright("verify", source, "--against", LLAMA)
    copy["word_embeddings.weight"][3, 4] += 1
    torch.save(copy, source / "layer_09-model_01-model_states.pt")
    refused(shardwright, source, tmp_path, "layer_01-model_01", "layer_09-model_01", code="SW0411",
            to="torch_dist")  # fmt: skip
    assert "NOT PROVEN" in shardwright("verify", source, expect=1).stdout


@pytest.mark.parametrize(
    "file, what", [(1, "the embedding"), (7, "the final norm"), (8, "the output layer")]
)
def test_modules_that_are_missing(shardwright, tmp_path, file, what):
    source = save_pipe(tmp_path / "run", 1)
    (source / f"layer_{file:02d}-model_00-model_states.pt").unlink()
    refused(shardwright, source, tmp_path, f"no layer_NN-model_TT file with {what}")


def test_layers_that_are_missing(shardwright, tmp_path):
    source = save_pipe(tmp_path / "run", 2)
    name = "layer_04-model_01-model_states.pt"
    (source / name).rename(tmp_path / name)
    refused(shardwright, source, tmp_path, "layer 4", "1 tensor-parallel ranks, expected 2")
    (source / name.replace("01-model", "00-model")).unlink()
    refused(shardwright, source, tmp_path, "no file of layer 4")
    save_pipe(tmp_path / "end", 1)
    (tmp_path / "end" / "layer_05-model_00-model_states.pt").unlink()
    refused(shardwright, tmp_path / "end", tmp_path, "2 transformer layers, expected 3")


@pytest.mark.parametrize("layer", [3, 5])
def test_a_layer_at_an_end_that_no_arguments_count(shardwright, tmp_path, layer):
    source = save_pipe(tmp_path / "run", 1)
    state = source / "mp_rank_00_model_states.pt"
    state.rename(tmp_path / state.name)
    shardwright("convert", source, tmp_path / "whole", "--to", "hf", "--hf-config", LLAMA)
    assert_same(load_hf(tmp_path / "whole"), load_hf(LLAMA))
    (source / f"layer_{layer:02d}-model_00-model_states.pt").unlink()
    refused(shardwright, source, tmp_path, "as if the first or the last layer's were missing",
            "mp_rank_00_model_states.pt", to="torch_dist")  # fmt: skip
    (tmp_path / state.name).rename(state)
    refused(shardwright, source, tmp_path, "2 transformer layers, expected 3", to="torch_dist")
    for file in {3, 4, 5} - {layer}:
        (source / f"layer_{file:02d}-model_00-model_states.pt").unlink()
    refused(shardwright, source, tmp_path, "no layer_NN-model_TT file with a transformer layer")


def widened(tensors, name):
    tensors[name] = torch.cat([tensors[name], tensors[name]], dim=-1)


@pytest.mark.parametrize(
    "file, edit, words",
    [
        ("layer_04-model_00", lambda t: t.update({"mlp.dense_4h_to_h.weight": t["mlp.dense_4h_to_h.weight"].float()}),
         ["layer_04-model_00", "mlp.dense_4h_to_h.weight", "found float32", "layer_03-model_00"]),
        ("layer_05-model_01", lambda t: widened(t, "mlp.dense_4h_to_h.weight"),
         ["layer_05-model_01", "mlp.dense_4h_to_h.weight", "layer_05-model_00"]),
        ("layer_05-model_01", lambda t: t.pop("mlp.dense_4h_to_h.weight"),
         ["layer_05-model_01", "found no tensor mlp.dense_4h_to_h.weight", "layer_05-model_00"]),
        ("layer_03-model_01", lambda t: t.update({"mlp.dense_4h_to_h.bias": torch.zeros(3)}),
         ["layer_03-model_00", "found no tensor mlp.dense_4h_to_h.bias", "layer_03-model_01"]),
        ("layer_01-model_0#", lambda t: widened(t, "word_embeddings.weight"),
         ["layer_01-model_00", "word_embeddings.weight", "layer_03-model_00"]),
        ("layer_07-model_0#", lambda t: widened(t, "weight"), ["layer_07-model_00", "weight", "layer_03-model_00"]),
        ("mp_rank_01", lambda t: t.update(iteration=6), ["mp_rank_01", "iteration 6", "mp_rank_00", "iteration 5"]),
    ],
)  # fmt: skip
def test_layers_of_two_saves(shardwright, tmp_path, file, edit, words):
    """A folder that was written again keeps files of the save before."""
    source = save_pipe(tmp_path / "run", 2)
    for path in source.glob(f"{file.replace('#', '?')}_model_states.pt" if "mp" in file else
                            f"{file.replace('#', '?')}-model_states.pt"):  # fmt: skip
        change(path, edit)
    refused(shardwright, source, tmp_path, *words)


def test_universal_checkpoints_that_are_not_whole(shardwright, saved, tmp_path):
    shutil.copytree(next((saved("zero3") / "universal").iterdir()), tmp_path / "run")
    name = "model.layers.1.mlp.up_proj.weight"
    folder = tmp_path / "run" / "zero" / name
    (folder / "fp32.pt").rename(tmp_path / "fp32.pt")
    refused(shardwright, tmp_path / "run", tmp_path, name, "fp32.pt")
    torch.save({"param": torch.zeros(2, 2)}, folder / "fp32.pt")
    refused(shardwright, tmp_path / "run", tmp_path, name, "found shape (2, 2)")
    (tmp_path / "fp32.pt").rename(folder / "fp32.pt")
    (folder / "exp_avg.pt").rename(tmp_path / "exp_avg.pt")
    refused(shardwright, tmp_path / "run", tmp_path, f"zero/{name}: found no exp_avg.pt in it")
    torch.save(torch.load(tmp_path / "exp_avg.pt").half(), folder / "exp_avg.pt")
    refused(shardwright, tmp_path / "run", tmp_path, f"{name}/exp_avg.pt: found float16, expected float32")
    shutil.rmtree(folder)
    refused(shardwright, tmp_path / "run", tmp_path, name)


def test_a_universal_checkpoint_without_a_stage(shardwright, saved, tmp_path):
    shutil.copytree(next((saved("zero2") / "universal").iterdir()), tmp_path / "run")
    change(tmp_path / "run" / "mp_rank_00_model_states.pt", lambda state: state.update(mp_world_size=2))
    refused(shardwright, tmp_path / "run", tmp_path, "saved by 2 model-parallel ranks, but files of 1 are here")


def test_a_universal_checkpoint_of_two_steps(shardwright, saved, tmp_path):
    shutil.copytree(next((saved("zero2") / "universal").iterdir()), tmp_path / "run")
    shutil.copy(saved("zero2") / "run" / "config.json", tmp_path / "run")
    file = "zero/model.layers.1.mlp.up_proj.weight/step.pt"
    torch.save(torch.load(tmp_path / "run" / file) + 1, tmp_path / "run" / file)
    refused(shardwright, tmp_path / "run", tmp_path, "step.pt: found step ", file)


def test_a_universal_checkpoint_with_the_model_of_another_run(shardwright, saved, tmp_path):
    shutil.copytree(next((saved("zero2") / "universal").iterdir()), tmp_path / "run")
    shutil.copy(saved("zero2") / "run" / "config.json", tmp_path / "run")
    shardwright("verify", tmp_path / "run")
    name = "model.layers.1.mlp.up_proj.weight"
    other = tmp_path / "run" / "zero" / name.replace("up_proj", "gate_proj") / "fp32.pt"
    shutil.copy(other, tmp_path / "run" / "zero" / name / "fp32.pt")
    refused(shardwright, tmp_path / "run", tmp_path, "mp_rank_00_model_states.pt: 1 of its ", name)


@pytest.mark.parametrize("stage, frozen", [(1, False), (2, True), (3, False)])
def test_what_tensor_parallel_ranks_do_not_train(shardwright, ranks, tmp_path, stage, frozen):
    """A universal checkpoint has folders for it too, of a frozen parameter with one rank's part."""
    ranks("deepspeed_jobs", "save_tensor_parallel", 2, folder=tmp_path, stage=stage, frozen=frozen)
    source = next((tmp_path / "universal").iterdir())
    told = shardwright("convert", source, tmp_path / "dcp", "--to", "dcp").stderr
    found, expected = load_dcp(tmp_path / "dcp"), {}
    for folder in (source / "zero").iterdir():
        if (folder / "exp_avg.pt").exists():
            value = torch.load(folder / "fp32.pt", weights_only=False)
            expected[folder.name] = value["param"] if isinstance(value, dict) else value
    assert expected
    states = torch.load(next(source.glob("*mp_rank_01_model_states.pt")), weights_only=False)
    buffers = {name: states["module"][name] for name in ("real", "whole")}
    assert_same({n: t for n, t in found.items() if not n.startswith("optimizer.")}, expected | buffers)
    names = [f"model.layers.0.{n}" for n in ("input_layernorm.weight", "mlp.down_proj.weight")]
    for name in names:
        assert told.count(name) == frozen, told
    if frozen:
        assert "9 tensors that were not trained are left out" in told
        done = shardwright("convert", source, tmp_path / "hf", "--to", "hf", expect=2)
        assert names[0] in done.stderr
    value = torch.load(next(source.glob("*mp_rank_01_model_states.pt")), weights_only=False)
    value["module"]["whole"] = value["module"]["whole"] + 1
    torch.save(value, next(source.glob("*mp_rank_01_model_states.pt")))
    refused(shardwright, source, tmp_path, "whole", code="SW0411", to="safetensors")
