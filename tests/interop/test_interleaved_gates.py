# SPDX-License-Identifier: Apache-2.0
"""Experts whose gate and linear part lie in alternating blocks, as Megatron's fused kernels want them."""
import argparse
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp

import checkpoints

ROWS = 8  # of a block
SHARED_ROWS = 4
TRAINED = checkpoints.GOLDEN / "mcore/moe_te_grouped/v0.16.1/tp1pp2ep2dp2-torch_dist-full"


def megatrons_order(rows, size):
    """What Megatron-Core makes of an fc1's output before it looks for the gate in its first half."""
    shape = rows.shape
    rows = rows.reshape(-1, shape[-1] // (2 * size), 2, size)
    return rows.transpose(1, 2).contiguous().view(shape)


def interleaved(weight, size):
    """The rows (the last axis but one) in the order that `megatrons_order` undoes."""
    numbers = megatrons_order(torch.arange(weight.shape[-2]), size)
    stored = torch.empty_like(weight)
    stored[..., numbers, :] = weight
    return stored


def by_rank(weight, size, ranks):
    """The same of each rank's rows, put together by halves as torch_dist does."""
    halves = weight.unflatten(-2, (2, ranks, -1))
    stored = torch.empty_like(halves)
    for rank in range(ranks):
        own = interleaved(halves[..., :, rank, :, :].flatten(-3, -2), size)
        stored[..., :, rank, :, :] = own.unflatten(-2, (2, -1))
    return stored.flatten(-4, -2)


def save_as_run(root, tensors, **arguments):
    """The checkpoint in `root` with these tensors and arguments."""
    folder = checkpoints.iteration_folder(root)
    for file in [folder / ".metadata", *folder.glob("*.distcp")]:
        file.unlink()
    common = torch.load(folder / "common.pt", weights_only=False)
    common["args"] = argparse.Namespace(**{**vars(common["args"]), **arguments})
    torch.save(common, folder / "common.pt")
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(folder)), no_dist=True)


def moved(tensors, ranks):
    """The tensors with each fc1 of experts, and its states, in blocks on so many ranks."""
    stored = {}
    for name, tensor in tensors.items():
        for module, size in (("experts.experts", ROWS), ("shared_experts", SHARED_ROWS)):
            if f".{module}.linear_fc1.weight" in name:
                tensor = by_rank(tensor, size, ranks)
        stored[name] = tensor
    return stored


def arguments_of(ranks):
    return {
        "moe_mlp_glu_interleave_size": ROWS,
        "use_grouped_gemm_for_shared_expert": True,
        "moe_shared_expert_glu_interleave_size": SHARED_ROWS,
        "tensor_model_parallel_size": ranks,
        "expert_tensor_parallel_size": ranks,
    }


def on_ranks(count):
    return ["--tp", count, "--etp", count]


def bridge_config(ranks):
    """What Megatron-Bridge's run_config.yaml says of such a run."""
    said = {"gated_linear_unit": True, "moe_grouped_gemm": True, **arguments_of(ranks)}
    return "model:\n" + "".join(f"  {name}: {str(value).lower()}\n" for name, value in said.items())


def save_as_bridge(root, tensors, ranks):
    """The checkpoint in `root` as Megatron-Bridge would save these tensors: without arguments."""
    save_as_run(root, tensors)
    folder = checkpoints.iteration_folder(root)
    common = torch.load(folder / "common.pt", weights_only=False)
    del common["args"]
    torch.save(common, folder / "common.pt")
    (folder / "run_config.yaml").write_text(bridge_config(ranks))


@pytest.fixture
def source():
    return checkpoints.GOLDEN / "hf" / "qwen3_moe" / "hf"


@pytest.fixture
def trained(tmp_path):
    """A run that Megatron-Core saved, and its tensors and optimizer states."""
    shutil.copytree(TRAINED, tmp_path / "run")
    return tmp_path / "run", checkpoints.load_dcp(TRAINED)


@pytest.mark.parametrize("ranks", (1, 2))
@pytest.mark.parametrize("family", ("qwen3_moe", "gpt_oss"))
def test_gates_are_put_in_order(shardwright, tmp_path, family, ranks):
    source = checkpoints.GOLDEN / "hf" / family / "hf"
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    tensors = checkpoints.load_dcp(tmp_path / "run")
    moved = 0
    for name, tensor in tensors.items():
        if "experts.experts.linear_fc1" not in name:
            continue
        is_bias = name.endswith("bias")
        rows = tensor.unsqueeze(-1) if is_bias else tensor
        stored = by_rank(rows, ROWS, ranks)
        assert not checkpoints.same_bits(stored, rows)
        tensors[name] = stored.squeeze(-1) if is_bias else stored
        moved += 1
    assert moved
    sizes = {"tensor_model_parallel_size": ranks, "expert_tensor_parallel_size": ranks}
    save_as_run(tmp_path / "run", tensors, moe_mlp_glu_interleave_size=ROWS, **sizes)
    (tmp_path / "said").mkdir()
    shutil.copy(source / "config.json", tmp_path / "said")
    options = ["--hf-config", tmp_path / "said"] if ranks == 1 else []
    shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf", *options)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))


def test_what_is_no_multiple_of_blocks_is_refused(shardwright, tmp_path):
    source = checkpoints.GOLDEN / "hf" / "qwen3_moe" / "hf"
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    tensors = checkpoints.load_dcp(tmp_path / "run")
    save_as_run(tmp_path / "run", tensors, moe_mlp_glu_interleave_size=7)
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf", expect=2)
    assert "SW0407" in done.stderr and "blocks of 7 rows" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("before, after", ((1, 2), (2, 1), (2, 2)))
def test_states_and_weights_go_where_the_targets_ranks_have_them(
    shardwright, tmp_path, trained, before, after
):
    run, plain = trained
    save_as_run(run, moved(plain, before), **arguments_of(before))
    done = shardwright("convert", run, tmp_path / "out", "--to", "torch_dist", *on_ranks(after))
    assert f"loads with TP {after} and ETP {after} only" in done.stdout + done.stderr
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), moved(plain, after))


def test_each_ranks_file_has_the_order_that_megatron_undoes(shardwright, tmp_path, trained):
    run, plain = trained
    save_as_run(run, moved(plain, 1), **arguments_of(1))
    options = ["--to", "legacy", "--optimizer", "drop", *on_ranks(2)]
    shardwright("convert", run, tmp_path / "out", *options)
    whole = plain["decoder.layers.mlp.experts.experts.linear_fc1.weight"]
    seen = 0
    for rank in range(2):
        (file,) = (tmp_path / "out").glob(f"iter_*/mp_rank_{rank:02}/model_optim_rng.pt")
        for name, tensor in torch.load(file, weights_only=False)["model"].items():
            if "mlp.experts.linear_fc1.weight" not in name:
                continue
            layer, expert = int(name.split(".")[2]), int(name.rsplit("weight", 1)[1])
            halves = [half.chunk(2)[rank] for half in whole[layer, expert].chunk(2)]
            order = megatrons_order(torch.arange(tensor.shape[0]), ROWS)
            assert checkpoints.same_bits(tensor[order], torch.cat(halves)), name
            seen += 1
    assert seen == whole.shape[0] * whole.shape[1] * 2


def test_the_model_is_the_same_wherever_rows_lie(shardwright, tmp_path, trained):
    run, plain = trained
    save_as_run(run, moved(plain, 1), **arguments_of(1))
    for name, options in (
        ("torch_dist", on_ranks(2)),
        ("legacy", ["--optimizer", "drop", *on_ranks(2)]),
        ("fsdp_dtensor", ["--optimizer", "drop", "--dtype", "bfloat16", *on_ranks(2)]),
    ):
        shardwright("convert", run, tmp_path / name, "--to", name, *options)
        shardwright("convert", tmp_path / name, tmp_path / f"{name}.one", "--to", "torch_dist")
        weights = {k: v for k, v in plain.items() if not k.startswith("optimizer.")}
        stored = checkpoints.load_dcp(tmp_path / f"{name}.one")
        checkpoints.assert_same({k: stored[k].to(v.dtype) for k, v in weights.items()}, moved(weights, 1))
    assert "EQUAL" in shardwright("diff", run, tmp_path / "torch_dist").stdout


def test_digests_and_differences_are_those_of_the_gates_order(shardwright, trained):
    run, plain = trained
    save_as_run(run, moved(plain, 2), **arguments_of(2))
    digests = [shardwright("hash", path).stdout for path in (run, TRAINED)]
    assert digests[0] == digests[1]
    assert "EQUAL" in shardwright("diff", run, TRAINED).stdout
    shardwright("verify", run, "--against", TRAINED)


def test_models_of_other_blocks_are_averaged_at_hugging_face_only(shardwright, tmp_path, source):
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    tensors = moved(checkpoints.load_dcp(tmp_path / "run"), 1)
    save_as_run(tmp_path / "run", tensors, moe_mlp_glu_interleave_size=ROWS)
    models = ["average", tmp_path / "run", source, tmp_path / "out"]
    done = shardwright(*models, "--to", "torch_dist", expect=2)
    assert "moe_mlp_glu_interleave_size" in done.stderr and "--to hf" in done.stderr
    shardwright(*models, "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))


def test_no_run_config_says_otherwise_than_arguments(shardwright, tmp_path, trained):
    run, plain = trained
    save_as_run(run, moved(plain, 1), **arguments_of(1))
    (checkpoints.iteration_folder(run) / "run_config.yaml").write_text(bridge_config(1))
    shardwright("convert", run, tmp_path / "out", "--to", "torch_dist", *on_ranks(1))
    assert not list((tmp_path / "out").glob("*/run_config.yaml"))
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), moved(plain, 1))


def test_megatron_bridge_stores_the_gate_first(shardwright, tmp_path, source):
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist")
    plain = checkpoints.load_dcp(tmp_path / "run")
    config = checkpoints.iteration_folder(tmp_path / "run") / "run_config.yaml"
    said = config.read_text()
    save_as_bridge(tmp_path / "run", plain, 1)
    config.write_text(said.replace("model:\n", f"model:\n  moe_mlp_glu_interleave_size: {ROWS}\n", 1))
    done = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf")
    assert "moe_mlp_glu_interleave_size" in done.stdout + done.stderr
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "out"), checkpoints.load_hf(source))
    shardwright("verify", tmp_path / "run", "--against", source)
    options = ["--to", "torch_dist", *on_ranks(2)]
    done = shardwright("convert", tmp_path / "run", tmp_path / "two", *options)
    assert "loads with TP" not in done.stdout + done.stderr
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "two"), plain)
    kept = checkpoints.iteration_folder(tmp_path / "two") / "run_config.yaml"
    assert f"moe_mlp_glu_interleave_size: {ROWS}" in kept.read_text()


def test_states_of_megatron_bridge_stay_on_their_ranks(shardwright, tmp_path, trained):
    run, plain = trained
    weights = {k: v for k, v in plain.items() if not k.startswith("optimizer.")}
    stored = {**moved(plain, 2), **weights}
    save_as_bridge(run, stored, 2)
    out = tmp_path / "out"
    for options in (
        ["--to", "torch_dist", *on_ranks(1)],
        ["--to", "legacy", "--optimizer", "keep", *on_ranks(2)],
    ):
        done = shardwright("convert", run, out, *options, expect=2)
        assert "run_config.yaml" in done.stderr and "--optimizer drop" in done.stderr
        assert not out.exists()
    drop = ["--optimizer", "drop"]
    shardwright("convert", run, tmp_path / "one", "--to", "torch_dist", *on_ranks(1), *drop)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "one"), weights)
    shardwright("convert", run, out, "--to", "torch_dist", *on_ranks(2))
    checkpoints.assert_same(checkpoints.load_dcp(out), stored)
    assert "EQUAL" in shardwright("diff", out, TRAINED).stdout
    # What was written is such a run again.
    done = shardwright("convert", out, tmp_path / "again", "--to", "torch_dist", expect=2)
    assert "run_config.yaml" in done.stderr
