# SPDX-License-Identifier: Apache-2.0
"""BERT and T5 whose optimizer states are buckets of ranks: whose each is follows from the order of
Megatron-Core's modules, two of which T5 has under two names."""
import pytest

import checkpoints
from newer_truth import STATES, weight_of

TWICE = {  # a T5's: a name, and the one that its states have
    "embedding.position_embeddings.weight": "position_embeddings.weight",
    "lm_head.output_layer.bias": "output_layer.bias",
}


@pytest.mark.parametrize("kind, sizes", [("bert", dict(tp=2)), ("bert", dict(pp=2)), ("t5", dict(tp=2))])
@pytest.mark.parametrize("layout", [("torch_dist",), ("legacy", "--tp", 2)], ids=["torch_dist", "legacy"])
def test_to_another_layout(shardwright, ranks, tmp_path, kind, sizes, layout):
    ranks("encoder_jobs", "save", 2, folder=str(tmp_path / "run"), kind=kind, **sizes)
    shardwright("verify", tmp_path / "run")
    told = shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", *layout).stderr
    assert "frozen" not in told, "of two names one has the states"
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "torch_dist")
    told = shardwright("verify", tmp_path / "back").stdout
    assert "PROVEN" in told and "frozen" not in told

    tensors = checkpoints.load_dcp(tmp_path / "back")
    weights = {name for name in tensors if not name.startswith("optimizer.")}
    named = {TWICE.get(name, name) if kind == "t5" else name for name in weights}
    assert tensors.keys() - weights == {f"optimizer.state.{state}.{name}" for state in STATES for name in named}
    for name in weights:
        expected = weight_of(TWICE.get(name, name) if kind == "t5" else name, tensors[name].shape)
        assert checkpoints.same_bits(tensors[name], expected), name
    for state, function in STATES.items():
        for name in named:
            state_name = f"optimizer.state.{state}.{name}"
            assert checkpoints.same_bits(tensors[state_name], function(tensors[name])), state_name
