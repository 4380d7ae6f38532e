# SPDX-License-Identifier: Apache-2.0
"""Legacy checkpoints of LLaVA whose encoder has ranks of its own, as Megatron-Core 0.9 to 0.11 train
it: its pipeline stage comes before the decoder's, which alone the arguments count."""
import json
import pathlib
import shutil

import pytest
import torch

import checkpoints
from test_vision_towers import saved


def recut(source, target, encoder_tp, language_stages):
    """The files of ranks at `source`, whose first stage holds tower and projection, as a run writes
    them that has these on a stage of `encoder_tp` ranks (from files whose towers have as many)."""
    folder = checkpoints.iteration_folder(source)
    out = pathlib.Path(target) / folder.name
    for path in sorted(folder.glob("mp_rank_*")):
        numbers = [int(number) for number in path.name.removeprefix("mp_rank_").split("_")]
        tensor, stage = numbers[0], numbers[1] if len(numbers) > 1 else 0
        state = torch.load(path / "model_optim_rng.pt", weights_only=False)
        state["args"].encoder_pipeline_model_parallel_size = 1
        state["args"].encoder_tensor_model_parallel_size = encoder_tp
        parts = {True: {}, False: {}}
        for name, value in state["model"].items():
            parts[name.startswith("language_model.")][name] = value
        files = [(stage + 1, parts[True])]
        if parts[False] and tensor < encoder_tp:
            files.append((0, parts[False]))
        for number, model in files:
            file = out / f"mp_rank_{tensor:02d}_{number:03d}" / "model_optim_rng.pt"
            file.parent.mkdir(parents=True)
            torch.save(dict(state, model=model), file)
    (target / "latest_checkpointed_iteration.txt").write_text("0")
    shutil.copytree(folder / "hf", out / "hf")
    assert len(list(out.glob("mp_rank_*"))) == encoder_tp + 2 * language_stages


@pytest.fixture(params=[(1, 1), (2, 1), (1, 2), (2, 2)], ids=lambda sizes: f"e{sizes[0]}pp{sizes[1]}")
def run(request, shardwright, tmp_path):
    encoder_tp, stages = request.param
    saved(tmp_path / "hf", "llava")
    sizes = ["--tp", 2, "--pp", stages, "--encoder-tp", encoder_tp, "--make-vocab-size-divisible-by", 1]
    shardwright("convert", tmp_path / "hf", tmp_path / "even", "--to", "legacy", *sizes)
    recut(tmp_path / "even", tmp_path / "run", encoder_tp, stages)
    to_hf = "--to", "hf", "--hf-config", tmp_path / "hf"
    shardwright("convert", tmp_path / "even", tmp_path / "expected", *to_hf)
    return tmp_path


def codes(shardwright, folder, expect=0):
    diagnosis = json.loads(shardwright("diagnose", folder, "--json", expect=expect).stdout)
    return {f["code"] for f in diagnosis["findings"] if f["severity"] != "info"}, diagnosis


def test_it_is_one_checkpoint(shardwright, run):
    found, diagnosis = codes(shardwright, run / "run")
    assert not found and diagnosis["complete"] is True
    shardwright("verify", run / "run")
    shardwright("convert", run / "run", run / "back", "--to", "hf", "--hf-config", run / "hf")
    checkpoints.assert_same(checkpoints.load_hf(run / "back"), checkpoints.load_hf(run / "expected"))


def test_what_is_made_of_it_has_no_such_ranks(shardwright, run):
    """Legacy files at other sizes, whose arguments count all stages that there are."""
    shardwright("convert", run / "run", run / "ranks", "--to", "legacy", "--tp", 1, "--pp", 2)
    found, diagnosis = codes(shardwright, run / "ranks")
    assert not found and diagnosis["complete"] is True
    rank = checkpoints.iteration_folder(run / "ranks") / "mp_rank_00_000/model_optim_rng.pt"
    assert torch.load(rank, weights_only=False)["args"].encoder_pipeline_model_parallel_size == 0
    shardwright("convert", run / "ranks", run / "back", "--to", "hf", "--hf-config", run / "hf")
    checkpoints.assert_same(checkpoints.load_hf(run / "back"), checkpoints.load_hf(run / "expected"))


def test_a_rank_that_is_lost_is_missed(shardwright, run):
    folder = checkpoints.iteration_folder(run / "run")
    ranks = sorted(folder.glob("mp_rank_*"))
    for rank in ranks:
        rank.rename(run / "away")
        refused = shardwright("convert", run / "run", run / "lost", "--to", "hf", "--hf-config", run / "hf", expect=2)
        assert f"missing {rank.name}" in refused.stderr
        found, diagnosis = codes(shardwright, run / "run", expect=1)
        assert found & {"L07", "L09"} and diagnosis["missing"] == [rank.name] and diagnosis["complete"] is False
        (run / "away").rename(rank)
