# SPDX-License-Identifier: Apache-2.0
"""Models whose modules are called, or put together, otherwise than torch_dist has them, as Megatron-FSDP saves and
loads them."""
import checkpoints
import pytest
import torch
from newer_cases import FREEZE, FUSED, GATED, HYBRID, MOE, PREDICTION, TP
from newer_truth import STATES, weight_of

FSDP = (
    " --use-megatron-fsdp --ckpt-format fsdp_dtensor --use-distributed-optimizer"
    " --data-parallel-sharding-strategy optim_grads_params"
)
CASES = {
    "local": " --transformer-impl local",
    "sequential": MOE.replace(" --moe-grouped-gemm", ""),
    "prediction": PREDICTION,
    "mamba": HYBRID.replace("G", "-"),
    "mamba_tp2": TP + HYBRID.replace("G", "-"),
    "delta": GATED,
    "delta_tp2": TP + GATED,
    "fused": FUSED + " --rope-type rope",
    "fused_tp2": TP + FUSED + " --rope-type rope",
}


@pytest.fixture(scope="module")
def saved(newer_ranks, tmp_path_factory):
    """The folder of a case, saved once."""
    root = tmp_path_factory.mktemp("saved")

    def folder_of(name):
        if not (root / name).exists():
            newer_ranks("megatron_fsdp_jobs", "save", 2, words=FSDP + CASES[name], folder=str(root / name))
        return root / name

    return folder_of


def assert_true(tensors):
    """Every tensor has the values that its name in torch_dist asks for, and its states."""
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith("optimizer.")}
    wrong = []
    for name, tensor in weights.items():
        weight = weight_of(name, tensor.shape)
        for kind, function in STATES.items():
            expected = function(weight)
            states = tensors[f"optimizer.state.{kind}.{name}"]
            wrong += [] if checkpoints.same_bits(states, expected) else [f"{kind} of {name}"]
        wrong += [] if checkpoints.same_bits(tensor, STATES["param"](weight)) else [name]
    assert not wrong and len(weights) * 4 == len(tensors), wrong


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(shardwright, newer_ranks, saved, tmp_path, name):
    shardwright("verify", saved(name))
    shardwright("convert", saved(name), tmp_path / "dist", "--to", "torch_dist", "--tp", 2)
    shardwright("verify", tmp_path / "dist")
    assert_true(checkpoints.load_dcp(tmp_path / "dist"))
    assert "EQUAL" in shardwright("diff", saved(name), tmp_path / "dist").stdout
    shardwright("convert", tmp_path / "dist", tmp_path / "ranks", "--to", "legacy", "--tp", 2)
    sizes = ("--tp", 2 if TP in CASES[name] else 1, "--shards", 2)
    for source in ("dist", "ranks"):
        back = tmp_path / f"from_{source}"
        done = shardwright("convert", tmp_path / source, back, "--to", "fsdp_dtensor", *sizes)
        said = "tensor-parallel ranks have them" in done.stdout + done.stderr
        assert said == name.startswith(("mamba", "delta", "fused"))
        assert "EQUAL" in shardwright("diff", saved(name), back).stdout
        newer_ranks("megatron_fsdp_jobs", "load", 2, words=FSDP + CASES[name], folder=str(back))


@pytest.mark.parametrize("name", ["prediction", "mamba_tp2", "fused"])
def test_from_one_to_another(shardwright, newer_ranks, saved, tmp_path, name):
    """With the settings of each parameter."""
    sizes = ("--tp", 2 if TP in CASES[name] else 1, "--shards", 1)
    shardwright("convert", saved(name), tmp_path / "out", "--to", "fsdp_dtensor", *sizes)
    before, after = (checkpoints.load_dcp(folder) for folder in (saved(name), tmp_path / "out"))
    assert {name for name in before if not name.startswith("rng_state.")} == after.keys()
    newer_ranks("megatron_fsdp_jobs", "load", 2, words=FSDP + CASES[name], folder=str(tmp_path / "out"))


def test_the_type_of_main_weights_stays(shardwright, newer_ranks, tmp_path):
    """That of frozen weights too, which have none."""
    words = FSDP + " --megatron-fsdp-main-params-dtype bf16" + FREEZE
    newer_ranks("megatron_fsdp_jobs", "save", 2, words=words, folder=str(tmp_path / "run"))
    shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "fsdp_dtensor", "--shards", 1)
    before, after = (checkpoints.load_dcp(tmp_path / folder) for folder in ("run", "out"))
    assert before["model.module.output_layer.weight"].dtype == torch.bfloat16
    assert {name: before[name].dtype for name in after} == {name: after[name].dtype for name in after}
    assert "EQUAL" in shardwright("diff", tmp_path / "run", tmp_path / "out").stdout
    done = shardwright("convert", tmp_path / "run", tmp_path / "dist", "--to", "torch_dist")
    assert "weights stay bfloat16, the main weights" in done.stdout + done.stderr
