# SPDX-License-Identifier: Apache-2.0
"""What must hold of a Hugging Face model in other files."""
import json

from checkpoints import assert_same, load_hf


def is_the_model(shardwright, source, tmp_path, model, *flags):
    """In each target, and for each command that compares."""
    shardwright("convert", source, tmp_path / "hf", "--to", "hf", *flags)
    assert_same(load_hf(tmp_path / "hf"), load_hf(model))
    assert (tmp_path / "hf" / "config.json").exists()
    shardwright("convert", source, tmp_path / "mcore", "--to", "torch_dist", "--tp", 2, *flags)
    shardwright("diff", tmp_path / "mcore", model)
    shardwright("diff", source, model, *flags)
    assert "PROVEN" in shardwright("verify", source, "--against", model, *flags).stdout
    own = shardwright("hash", source, "--json", *flags).stdout
    expected = shardwright("hash", model, "--json").stdout
    assert json.loads(own)["digest"] == json.loads(expected)["digest"]
