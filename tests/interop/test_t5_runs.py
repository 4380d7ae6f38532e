# SPDX-License-Identifier: Apache-2.0
"""T5 runs of Megatron-Core, whose encoder and decoder are as deep as they like."""
import pytest

from checkpoints import assert_same, load_hf

DEPTHS = {"4_2": (4, 2), "2_4": (2, 4), "4_4": (4, 4)}


@pytest.fixture(scope="module")
def whole(ranks, shardwright, tmp_path_factory):
    """The model of one rank as a Hugging Face one."""
    made = {}

    def hf_of(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            ranks("t5_jobs", "save", 1, folder=str(folder / "run"), depths=DEPTHS[name], spec="te", sizes=dict(tp=1))
            shardwright("convert", folder / "run", folder / "hf", "--to", "hf")
            made[name] = folder / "hf"
        return made[name]

    return hf_of


@pytest.mark.parametrize("name", DEPTHS)
def test_stages_that_a_run_saved(shardwright, ranks, whole, tmp_path, name):
    sizes = dict(tp=2, pp=2)
    ranks("t5_jobs", "save", 4, folder=str(tmp_path / "run"), depths=DEPTHS[name], spec="te", sizes=sizes)
    assert "PROVEN" in shardwright("verify", tmp_path / "run").stdout
    shardwright("convert", tmp_path / "run", tmp_path / "hf", "--to", "hf")
    assert_same(load_hf(tmp_path / "hf"), load_hf(whole(name)))


@pytest.mark.parametrize("name", DEPTHS)
@pytest.mark.parametrize("spec", ["te", "local"])
def test_ranks_that_megatron_loads(shardwright, ranks, whole, tmp_path, name, spec):
    sizes = dict(tp=2, pp=2)
    shardwright("convert", whole(name), tmp_path / "run", "--to", "legacy", "--tp", 2, "--pp", 2, "--spec", spec)
    ranks("t5_jobs", "load", 4, folder=str(tmp_path / "run/iter_0000000"), depths=DEPTHS[name], spec=spec, sizes=sizes)


@pytest.mark.parametrize("tied", [False, True])
def test_states_of_a_head_with_two_names(shardwright, ranks, tmp_path, tied):
    """They are called as Megatron asks for them; a tied one has a bias of its own."""
    ranks("t5_jobs", "save", 1, folder=str(tmp_path / "run"), depths=(4, 2), spec="te", sizes=dict(tp=1),
          optimizer=True, tied=tied)  # fmt: skip
    told = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    shown = shardwright("inspect", tmp_path / "out").stdout
    assert f"optimizer.state.exp_avg.output_layer.{'bias' if tied else 'weight'}" in shown, told.stderr
    assert "optimizer.state.exp_avg.lm_head" not in shown
    assert "taken to be frozen" not in shardwright("verify", tmp_path / "out").stdout
