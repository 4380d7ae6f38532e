# SPDX-License-Identifier: Apache-2.0
"""Files that are laid out for the job that loads them: each rank of an unmodified Megatron-Core
finds in its own file what it is told to read."""
import json
import os
import pathlib

import pytest

import checkpoints

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = checkpoints.GOLDEN / "hf/llama3_4l/hf"


def path_of(version):
    """Where Python finds a Megatron-Core, and the stand-ins that it needs on a CPU."""
    newer = [os.environ.get("SHARDWRIGHT_NEWER_MEGATRON", "")] if version == "newer" else []
    if newer:
        assert pathlib.Path(newer[0], "megatron/core").is_dir(), (
            f"found no Megatron-Core in '{newer[0]}'; './dev test' puts it there"
        )
    return os.pathsep.join([*newer, str(HERE / "tools"), os.environ.get("PYTHONPATH", "")])


def counted(root, world):
    """The sums over all ranks, by folder."""
    ranks = [json.loads((root / f"counts.{rank}").read_text()) for rank in range(world)]
    return {
        name: {key: sum(rank[name][key] for rank in ranks) for key in ranks[0][name]}
        for name in ranks[0]
    }


@pytest.mark.parametrize("version", ("installed", "newer"))
@pytest.mark.parametrize("tp,pp,dp", ((2, 1, 2), (2, 2, 2)))
def test_ranks_read_their_own_files(
    shardwright, ranks, tmp_path, monkeypatch, version, tp, pp, dp
):
    to = ("--to", "torch_dist", "--tp", tp, "--pp", pp)
    shardwright("convert", SOURCE, tmp_path / "plain", *to, "--spec", "local")
    # What all tensor ranks hold comes out of a checkpoint that has it once for each of them.
    expanded = ("--dp", dp, "--for", "replicas", "--spec", "local")
    shardwright("convert", SOURCE, tmp_path / "expanded", *to, *expanded)
    stock = ("--dp", dp, "--for", "stock")
    shardwright("convert", tmp_path / "expanded", tmp_path / "ours", *to, *stock)
    monkeypatch.setenv("PYTHONPATH", path_of(version))
    world = tp * pp * dp
    arguments = dict(root=tmp_path, tp=tp, pp=pp, folders=["plain", "ours"])
    ranks("own_files_jobs", "measure", world, **arguments)
    counts = counted(tmp_path, world)
    own, plain, ours = counts["own"], counts["plain"], counts["ours"]
    assert own["bytes"] > 0 and own["foreign_bytes"] > 0, "norms lie in one tensor rank's file"
    assert ours["foreign_opens"] <= own["foreign_opens"], counts
    assert ours["foreign_bytes"] <= own["foreign_bytes"], counts
    assert ours["opens"] <= own["opens"], counts
    # Files of a job without data parallelism are half foreign.
    assert plain["foreign_opens"] > own["foreign_opens"], counts
    assert plain["foreign_bytes"] > plain["bytes"] / 3 > 2 * own["foreign_bytes"], counts
