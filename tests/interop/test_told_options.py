# SPDX-License-Identifier: Apache-2.0
"""What the type of a language model and its config ask for must be there, and what they deny is not written."""
import json

import pytest
from safetensors.torch import load_file, save_file

from test_vision_towers import saved

# Of a case the end of what its language model has in each layer, and a type that has none of it.
CASES = {"llava_siglip": ("self_attn.q_norm.weight", "llama"), "internvl": ("self_attn.q_proj.bias", "mistral")}


@pytest.mark.parametrize("name", CASES)
def test_a_language_model_is_of_its_type(name, shardwright, tmp_path):
    end, other = CASES[name]
    hf = tmp_path / "hf"
    saved(hf, name)
    shardwright("convert", hf, tmp_path / "run", "--to", "torch_dist")
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf", "--hf-config", hf)
    tensors = load_file(hf / "model.safetensors")
    kinds = [end, end.replace("q_", "k_"), *([end.replace("q_", "v_")] if end.endswith("bias") else [])]
    left = {n: t for n, t in tensors.items() if "language_model" not in n or not n.endswith(tuple(kinds))}
    assert len(left) < len(tensors)
    save_file(left, hf / "model.safetensors", metadata={"format": "pt"})
    done = shardwright("convert", hf, tmp_path / "none", "--to", "torch_dist", expect=2)
    assert "SW0404" in done.stderr and end in done.stderr, done.stderr
    config = json.loads((hf / "config.json").read_text())
    config["text_config"]["model_type"] = other
    config["text_config"].pop("attention_bias", None)
    (hf / "config.json").write_text(json.dumps(config))
    done = shardwright("convert", tmp_path / "run", tmp_path / "none", "--to", "hf", "--hf-config", hf, expect=2)
    assert "SW0403" in done.stderr and "language_model.decoder.layers" in done.stderr, done.stderr
    assert not (tmp_path / "none").exists()
