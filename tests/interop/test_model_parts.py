# SPDX-License-Identifier: Apache-2.0
"""What trainers save of models whose parts have roots of their own, and of those whose decoders are
not Megatron's."""
import hf_models
import pytest
import test_families_omni as omni
import test_families_towers as towers
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import assert_same, load_dcp, load_hf
from safetensors.torch import save_file

CASES = {
    **{name: towers.CASES[name] for name in ("llama4_vl", "mistral3")},
    **{name: omni.CASES[name] for name in ("qwen2_5_omni", "qwen3_omni_moe")},
}


def as_dcp(tensors, folder):
    dcp.save({"model": tensors}, checkpoint_id=str(folder), no_dist=True)


def as_rank_file(tensors, folder):
    folder.mkdir()
    torch.save(tensors, folder / "model_world_size_1_rank_0.pt")


# A tensor of a part that no list has: that it is gone only another model shows.
FURTHER = {
    "llama4_vl": "vision_model.further.weight",
    "mistral3": "vision_tower.further.weight",
    "qwen2_5_omni": "token2wav.further.weight",
    "qwen3_omni_moe": "thinker.visual.further.weight",
}


def with_further(reference, name):
    tensors = load_hf(reference)
    tensors[FURTHER[name]] = torch.arange(12.0).reshape(3, 4).bfloat16()
    for path in reference.glob("*.safetensors*"):
        path.unlink()
    save_file(tensors, reference / "model.safetensors", metadata={"format": "pt"})
    return tensors


@pytest.mark.parametrize("save", [as_dcp, as_rank_file])
@pytest.mark.parametrize("name", CASES)
def test_no_part_is_left_out(shardwright, tmp_path, name, save):
    """Towers and voices that keep their names as they are belong to the model as its layers do."""
    reference = tmp_path / "reference"
    hf_models.create_form(reference, CASES[name], "published")
    tensors = with_further(reference, name)
    save(tensors, tmp_path / "run")
    shardwright("convert", tmp_path / "run", tmp_path / "out", "--to", "hf", "--hf-config", reference)
    assert_same(load_hf(tmp_path / "out"), tensors)
    flags = ("--hf-config", reference)
    shardwright("verify", tmp_path / "run", "--against", reference, *flags)
    shardwright("diff", tmp_path / "run", reference, *flags)
    shorter = {key: value for key, value in tensors.items() if key != FURTHER[name]}
    save(shorter, tmp_path / "shorter")
    done = shardwright("diff", tmp_path / "shorter", reference, *flags, expect=1)
    assert "missing left 1" in done.stdout
    shardwright("hash", reference, "--manifest", tmp_path / "manifest")
    shardwright("verify", tmp_path / "run", "--against", tmp_path / "manifest", *flags)
    done = shardwright("verify", tmp_path / "shorter", "--against", tmp_path / "manifest", *flags, expect=1)
    assert "is not in the checkpoint" in done.stdout
    shardwright("hash", tmp_path / "shorter", "--manifest", tmp_path / "short", *flags)
    done = shardwright("verify", tmp_path / "run", "--against", tmp_path / "short", *flags, expect=1)
    assert "is in the checkpoint only" in done.stdout


@pytest.mark.parametrize("save", [as_dcp, as_rank_file])
def test_what_layers_of_a_tower_have_none_of_them_lacks(shardwright, tmp_path, save):
    reference = tmp_path / "reference"
    hf_models.create_form(reference, CASES["mistral3"], "published")
    tensors = load_hf(reference)
    gone = "vision_tower.transformer.layers.1.attention.k_proj.weight"
    del tensors[gone]
    save(tensors, tmp_path / "shorter")
    flags = ("--hf-config", reference)
    for to in ("hf", "torch_dist"):
        done = shardwright("convert", tmp_path / "shorter", tmp_path / to, "--to", to, *flags, expect=2)
        assert f"1 tensor missing that it needs: {gone}" in done.stderr
        assert not (tmp_path / to).exists()
    done = shardwright("verify", tmp_path / "shorter", *flags, expect=1)
    assert gone in done.stdout


@pytest.mark.parametrize("model_type", ["opt", "zamba2"])
def test_a_decoder_of_hugging_face_is_none_of_megatrons(shardwright, tmp_path, model_type):
    reference = tmp_path / "reference"
    hf_models.create(reference, model_type)
    as_dcp(load_hf(reference), tmp_path / "run")
    for source, out in (("reference", "expected"), ("run", "found")):
        shardwright("convert", tmp_path / source, tmp_path / out, "--to", "torch_dist",
                    "--hf-config", reference)  # fmt: skip
    assert_same(load_dcp(tmp_path / "found"), load_dcp(tmp_path / "expected"))
    done = shardwright("diagnose", tmp_path / "run", "--json", expect=0)
    assert '"hf_dcp"' in done.stdout
    done = shardwright("convert", tmp_path / "run", tmp_path / "no", "--to", "torch_dist", expect=2)
    assert "--hf-config" in done.stderr and not (tmp_path / "no").exists()
