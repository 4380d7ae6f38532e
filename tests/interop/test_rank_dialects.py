# SPDX-License-Identifier: Apache-2.0
"""Files of ranks as MindSpeed-LLM, FlagScale, mcore_adapter and newer Megatron-LM write them: put together here, of
what `--to legacy` writes, by the rules of their converters."""
import pytest
import torch

import checkpoints
import test_legacy_optimizer

GOLDEN_HF = checkpoints.GOLDEN / "hf"
FILE = "model_optim_rng.pt"


def ranks_of(shardwright, source, place, *layout):
    """By the name of the folder, what its file holds."""
    shardwright("convert", source, place, "--to", "legacy", *layout)
    folders = sorted(checkpoints.iteration_folder(place).glob("mp_rank_*"))
    return {folder.name: torch.load(folder / FILE, weights_only=False) for folder in folders}


def save(root, files, **arguments):
    for folder, state in files.items():
        place = root / "iter_0000001" / folder
        place.mkdir(parents=True)
        state["iteration"] = 1
        for name, value in arguments.items():
            setattr(state["args"], name, value)
        torch.save(state, place / FILE)
    (root / "latest_checkpointed_iteration.txt").write_text("1")


def arguments_of(root):
    folder = next(iter(sorted(checkpoints.iteration_folder(root).glob("mp_rank_*"))))
    return torch.load(folder / FILE, weights_only=False)["args"]


def assert_is(shardwright, run, place, family):
    """That `run` is the family's model, to hf, torch_dist and ordinary files of ranks."""
    source = GOLDEN_HF / family / "hf"
    shardwright("verify", run)
    shardwright("convert", run, place / "hf", "--to", "hf", "--hf-config", source)
    checkpoints.assert_same(checkpoints.load_hf(place / "hf"), checkpoints.load_hf(source))
    for form in ("torch_dist", "legacy"):
        shardwright("convert", run, place / form, "--to", form, "--tp", 2)
        shardwright("diff", run, place / form)
        shardwright("convert", place / form, place / f"hf-{form}", "--to", "hf", "--hf-config", source)
        checkpoints.assert_same(checkpoints.load_hf(place / f"hf-{form}"), checkpoints.load_hf(source))


def folded(first, second):
    """One stage's file of two stages' files: the second becomes the second virtual stage, its parameters the later
    ones of the optimizer."""
    state = {key: value for key, value in first.items() if key != "model"}
    state["model0"], state["model1"] = first["model"], second["model"]
    if "optimizer" not in first:
        return state
    one, other = first["optimizer"], second["optimizer"]
    count = sum(len(group["params"]) for group in one["optimizer"]["param_groups"])
    states = dict(one["optimizer"]["state"])
    states |= {number + count: each for number, each in other["optimizer"]["state"].items()}
    groups = []
    for left, right in zip(one["optimizer"]["param_groups"], other["optimizer"]["param_groups"]):
        groups.append(left | {"params": left["params"] + [number + count for number in right["params"]]})
    # torch numbers parameters group by group.
    order = [number for group in groups for number in group["params"]]
    renumbered = {old: new for new, old in enumerate(order)}
    for group in groups:
        group["params"] = [renumbered[number] for number in group["params"]]
    masters = [a + b for a, b in zip(one["fp32_from_fp16_params"], other["fp32_from_fp16_params"])]
    inner = {"state": {renumbered[old]: each for old, each in states.items()}, "param_groups": groups}
    state["optimizer"] = one | {"optimizer": inner, "fp32_from_fp16_params": masters}
    return state


def fold(files):
    """DualPipeV's two stages of four ordinary ones."""
    names = sorted(files)
    return {names[0]: folded(files[names[0]], files[names[3]]), names[1]: folded(files[names[1]], files[names[2]])}


@pytest.mark.parametrize("said", [{"schedules_method": "dualpipev"}, {"use_dualpipev": True}, {}])
def test_folded_stages(shardwright, tmp_path, said):
    files = ranks_of(shardwright, GOLDEN_HF / "llama3_4l" / "hf", tmp_path / "ranks", "--pp", 4)
    run = tmp_path / "run"
    save(run, fold(files), pipeline_model_parallel_size=2, num_layers_per_virtual_pipeline_stage=1, **said)
    assert "DualPipeV" in shardwright("diagnose", run).stdout
    assert_is(shardwright, run, tmp_path, "llama3_4l")
    shardwright("convert", run, tmp_path / "pp2", "--to", "legacy", "--pp", 2)
    assert "DualPipeV" not in shardwright("diagnose", tmp_path / "pp2").stdout
    arguments = arguments_of(tmp_path / "pp2")
    assert getattr(arguments, "schedules_method", None) is None
    assert not getattr(arguments, "use_dualpipev", False)
    assert said == {} or arguments.num_layers_per_virtual_pipeline_stage is None


def test_optimizer_of_folded_stages(shardwright, megatron, tmp_path):
    test_legacy_optimizer.trained(megatron, "llama3_4l", "te", tmp_path / "in")
    keep = ("--optimizer", "keep")
    files = ranks_of(shardwright, tmp_path / "in", tmp_path / "ranks", "--pp", 4, *keep)
    run = tmp_path / "run"
    save(run, fold(files), pipeline_model_parallel_size=2, schedules_method="dualpipev")
    shardwright("convert", tmp_path / "in", tmp_path / "expected", "--to", "torch_dist", *keep)
    shardwright("convert", run, tmp_path / "out", "--to", "torch_dist", *keep)
    expected = checkpoints.load_dcp(tmp_path / "expected")
    assert any(name.startswith("optimizer.state.exp_avg_sq.") for name in expected)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), expected)


def test_two_copies_of_a_model_are_refused(shardwright, tmp_path):
    files = ranks_of(shardwright, GOLDEN_HF / "llama3_4l" / "hf", tmp_path / "ranks", "--pp", 2)
    first, second = (files[name] for name in sorted(files))
    copies = {"mp_rank_00_000": folded(first, second), "mp_rank_00_001": folded(second, first)}
    save(tmp_path / "run", copies, use_dualpipe=True)
    for command in ("verify", "inspect", "hash"):
        assert "DualPipe (use_dualpipe)" in shardwright(command, tmp_path / "run", expect=2).stderr
    assert "use_dualpipe" in shardwright("diagnose", tmp_path / "run").stdout


def test_whole_experts_on_tensor_ranks(shardwright, tmp_path):
    """moe_tp_extend_ep: expert rank ep times TP plus tp."""
    source = GOLDEN_HF / "qwen3_moe" / "hf"
    dense = ranks_of(shardwright, source, tmp_path / "dense", "--tp", 2, "--ep", 2, "--etp", 2)
    whole = ranks_of(shardwright, source, tmp_path / "whole", "--ep", 4)
    for folder, state in dense.items():
        tp, ep = (int(number) for number in folder.split("_")[2:])
        experts = whole[f"mp_rank_00_{ep * 2 + tp:03d}"]["model"]
        model = {name: value for name, value in state["model"].items() if ".mlp.experts." not in name}
        state["model"] = model | {name: value for name, value in experts.items() if ".mlp.experts." in name}
    run = tmp_path / "run"
    save(run, dense, moe_tp_extend_ep=True, expert_tensor_parallel_size=None)
    assert "moe_tp_extend_ep" in shardwright("diagnose", run).stdout
    assert_is(shardwright, run, tmp_path, "qwen3_moe")
    assert arguments_of(tmp_path / "legacy").moe_tp_extend_ep is False


@pytest.mark.parametrize("layout", [("--ep", 2), ("--tp", 2, "--ep", 2, "--etp", 2), ("--ep", 2, "--pp", 2)])
def test_experts_in_one_parameter(shardwright, tmp_path, layout):
    files = ranks_of(shardwright, GOLDEN_HF / "qwen3_moe" / "hf", tmp_path / "ranks", *layout)
    for state in files.values():
        model = state["model"]
        for name in [name for name in model if name.endswith(".weight0")]:
            stem = name[:-1]
            numbered = [other for other in model if other.startswith(stem) and other != stem]
            model[stem] = torch.stack([model.pop(f"{stem}{i}") for i in range(len(numbered))])
    run = tmp_path / "run"
    save(run, files, moe_single_grouped_weight=True)
    assert_is(shardwright, run, tmp_path, "qwen3_moe")
    assert arguments_of(tmp_path / "legacy").moe_single_grouped_weight is False


def test_experts_under_unknown_names_are_never_left_out(shardwright, tmp_path):
    files = ranks_of(shardwright, GOLDEN_HF / "qwen3_moe" / "hf", tmp_path / "ranks", "--ep", 2)
    for state in files.values():
        model = state["model"]
        for name in [name for name in model if name.endswith(".mlp.experts.linear_fc2.weight0")]:
            model[name.replace("linear_fc2.weight0", "shared_scale")] = model[name]
    save(tmp_path / "run", files)
    stderr = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert "SW0411" in stderr and "experts of their own" in stderr
    assert "none" not in stderr.replace("none may be left out", "")


@pytest.mark.parametrize("lacks", ["args", "untie_embeddings_and_output_weights"])
@pytest.mark.parametrize("layout", [("--pp", 2), ("--pp", 2, "--tp", 2)])
def test_tied_heads_without_a_word_of_them(shardwright, tmp_path, lacks, layout):
    family = "gemma2"
    files = ranks_of(shardwright, GOLDEN_HF / family / "hf", tmp_path / "ranks", *layout)
    assert any("output_layer.weight" in state["model"] for state in files.values())
    for state in files.values():
        if lacks == "args":
            del state["args"]
        else:
            delattr(state["args"], lacks)
    run = tmp_path / "run"
    save(run, files)
    assert "tied to the word embeddings" in shardwright("inspect", run).stdout
    assert_is(shardwright, run, tmp_path, family)
    assert "output_layer.weight" not in checkpoints.load_dcp(tmp_path / "torch_dist")


def shift(state, numbers):
    """A stage's layers with other numbers."""
    model = {}
    for name, value in state["model"].items():
        parts = name.split(".")
        if name.startswith("decoder.layers."):
            parts[2] = str(numbers[int(parts[2])])
        model[".".join(parts)] = value
    state["model"] = model


@pytest.mark.parametrize("kind", [str, set, list])
def test_layers_without_weights(shardwright, tmp_path, kind):
    files = ranks_of(shardwright, GOLDEN_HF / "llama3_4l" / "hf", tmp_path / "ranks", "--pp", 2)
    shift(files["mp_rank_00_000"], {0: 0, 1: 2})
    noop = "1,5" if kind is str else kind([1, 5])
    run = tmp_path / "run"
    save(run, files, num_layers=6, noop_layers=noop)
    assert "nothing to report" in shardwright("diagnose", run).stdout
    assert_is(shardwright, run, tmp_path, "llama3_4l")
    arguments = arguments_of(tmp_path / "legacy")
    assert (arguments.num_layers, arguments.noop_layers) == (4, None)

    for name in [name for name in files["mp_rank_00_000"]["model"] if name.startswith("decoder.layers.2.")]:
        del files["mp_rank_00_000"]["model"][name]
    save(tmp_path / "lost", files)
    assert "noop_layers" in shardwright("verify", tmp_path / "lost", expect=1).stdout
