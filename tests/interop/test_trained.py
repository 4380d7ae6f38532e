# SPDX-License-Identifier: Apache-2.0
"""Training goes on from a checkpoint as if it had never stopped, and the checkpoint is the model."""
import pytest
from checkpoints import assert_same, load_hf
from safetensors.torch import load_file

import shardwright

WORLD = 4
LAYOUTS = {
    "ep2": {"ep": 2},
    "ep4": {"ep": 4},
    "pp2": {"ep": 2, "pp": 2},
    "tp2": {"tp": 2},
    "tp2_ep2": {"tp": 2, "ep": 2},
    "etp2": {"etp": 2},
    "tp2_ep2_etp2": {"tp": 2, "ep": 2, "etp": 2},
}


@pytest.fixture(scope="module", params=LAYOUTS)
def trained(request, ranks, tmp_path_factory):
    """A run's folder and sizes: checkpoints after two of four steps."""
    folder = tmp_path_factory.mktemp(request.param)
    sizes = LAYOUTS[request.param]
    ranks("trained_jobs", "train", WORLD, folder=folder, **sizes)
    return folder, sizes


def deltas(folder, name):
    return [float((folder / f"{name}.{rank}.delta").read_text()) for rank in range(WORLD)]


def gathered(folder, name):
    """What the ranks had whole; where several had a tensor, the same."""
    tensors = {}
    for file in sorted(folder.glob(f"{name}.*.safetensors")):
        for key, tensor in load_file(file).items():
            assert_same({key: tensors.setdefault(key, tensor)}, {key: tensor})
    return tensors


def model_of(tensors):
    return {name: tensor for name, tensor in tensors.items() if name.startswith("model.")}


def all_of(path):
    with shardwright.open(path, framework="pt") as checkpoint:
        return {name: checkpoint.get_tensor(name) for name in checkpoint.keys()}


def test_goes_on_as_if_it_had_not_stopped(trained, ranks):
    folder, sizes = trained
    ranks("trained_jobs", "resume", WORLD, folder=folder, name="merged", merged=True, **sizes)
    assert deltas(folder, "merged") == [0.0] * WORLD


def test_goes_on_with_the_files_of_its_ranks(trained, ranks, shardwright):
    folder, sizes = trained
    flags = ("--to", "dcp", "--shards", WORLD)
    told = shardwright("convert", folder / "mlite", folder / "taken", *flags)
    assert "go along as they are" in told.stdout + told.stderr
    for file in (folder / "mlite").glob("*_rank_*.pt"):
        assert (folder / "taken" / file.name).read_bytes() == file.read_bytes()
    ranks("trained_jobs", "resume_with_rank_files", WORLD, folder=folder, name="taken", **sizes)
    assert deltas(folder, "taken") == [0.0] * WORLD


def test_goes_on_elsewhere_without_the_rule(trained, ranks):
    folder, sizes = trained
    ranks("trained_jobs", "resume", WORLD, folder=folder, name="unmerged", merged=False, **sizes)
    assert all(delta > 0.01 for delta in deltas(folder, "unmerged"))


def test_loads_with_fewer_ranks_to_an_expert(trained, ranks):
    folder, sizes = trained
    dense, experts = (sizes.get(name, 1) for name in ("tp", "ep"))
    fewer = max(dense, experts * sizes.get("etp", 1)) * sizes.get("pp", 1)
    ranks("trained_jobs", "load_elsewhere", fewer, folder=folder, name="merged", **sizes)
    assert_same(gathered(folder, "elsewhere"), gathered(folder, "truth"))


def test_loads_at_other_expert_sizes(trained, ranks, shardwright):
    folder, _ = trained
    shardwright("convert", folder / "merged", folder / "global", "--to", "dcp")
    shardwright("convert", folder / "global", folder / "st", "--to", "safetensors")
    truth = model_of(gathered(folder, "truth"))
    assert len(truth) > 20
    assert_same(model_of(all_of(folder / "global")), truth)
    assert_same(model_of(load_hf(folder / "st")), truth)
    for ep in (1, 4):
        ranks("trained_jobs", "load_global", WORLD, folder=folder, name="global", ep=ep)
        assert_same(gathered(folder, "global"), truth)
