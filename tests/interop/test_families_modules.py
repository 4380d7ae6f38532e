# SPDX-License-Identifier: Apache-2.0
"""Models as transformers' modules are, which `save_pretrained(save_original_format=False)` writes, of
families whose published names differ by more than packed experts: they are the same model, and come
back as they were. Step 3.7's tower is not among them: its modules have the rows of queries and keys
in another order, by halves of each head instead of by pairs."""
import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models
import test_families
import test_families_omni
import test_families_towers

TEXT = ("deepseek_v4", "longcat_flash", "kimi_linear", "bailing_hybrid")
CASES = {
    "ernie4_5_vl_moe": test_families_omni.CASES["ernie4_5_vl_moe"],
    "minimax_m3": test_families_towers.CASES["minimax_m3"],
}
# What only the modules have: experts that do nothing.
MORE = {"longcat_flash": ".zero_experts."}
# What Megatron has under a name, of the modules' tensors.
PARTS = {
    "bailing_hybrid": (
        "decoder.layers.0.self_attention.k_conv1d.weight",
        lambda hf: hf["model.layers.0.self_attn.conv1d.weight"][60:120],
    ),
    "deepseek_v4": (
        "decoder.layers.3.self_attention.core_attention.indexer.compressor.linear_wgate.weight",
        lambda hf: hf["model.layers.3.self_attn.compressor.indexer.gate_proj.weight"],
    ),
    "ernie4_5_vl_moe": (
        "language_model.decoder.layers.1.mlp.vision_moe_layer.router.expert_bias",
        lambda hf: hf[
            "model.language_model.layers.1.mlp.vision_moe.gate.moe_statics.e_score_correction_bias"
        ][0],
    ),
    "kimi_linear": (
        "decoder.layers.2.self_attention.q_conv1d.weight",
        lambda hf: hf["model.layers.2.self_attn.conv1d.weight"][:40],
    ),
    "longcat_flash": (
        "decoder.layers.mlp.experts.experts.linear_fc1.weight",
        lambda hf: torch.stack(
            [hf[f"model.layers.{layer}.mlp.experts.gate_up_proj"][:6] for layer in range(3)]
        ),
    ),
    "minimax_m3": (
        "patch_merge_mlp.linear_1.weight",
        lambda hf: hf["model.multi_modal_projector.merge_linear_1.weight"],
    ),
}


def write(folder, name, form):
    if name in TEXT:
        hf_models.create(folder, name, dtype=torch.bfloat16, packed=form == "modules")
    else:
        hf_models.create_form(folder, CASES[name], form)
    if (name, form) == ("longcat_flash", "published"):
        test_families.finish_longcat_flash(folder)


@pytest.mark.parametrize("name", [*TEXT, *CASES])
def test_modules_are_the_published_model(shardwright, tmp_path, name):
    made = {}
    layout = ("--tp", 2, "--pp", 2, "--ep", 2, "--make-vocab-size-divisible-by", 1)
    for form in ("published", "modules"):
        write(tmp_path / form, name, form)
        out = tmp_path / f"{form}_out"
        shardwright("convert", tmp_path / form, out, "--to", "torch_dist", *layout)
        made[form] = checkpoints.load_dcp(out)
    family_rounds.of_local_modules(shardwright, tmp_path / "modules", tmp_path)
    source = checkpoints.load_hf(tmp_path / "modules")
    published = checkpoints.load_hf(tmp_path / "published")
    assert len(source.keys() - published.keys()) >= 6
    shardwright("convert", tmp_path / "modules_out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    target, part = PARTS[name]
    assert torch.equal(made["modules"][target], part(source))
    more = {key for key in made["modules"] if MORE.get(name, "no such part") in key}
    assert bool(more) == (name in MORE)
    kept = ("published_mtp.",)  # which no module reads
    checkpoints.assert_same(
        {key: value for key, value in made["modules"].items() if key not in more},
        {key: value for key, value in made["published"].items() if not key.startswith(kept)},
    )


@pytest.mark.parametrize("form", ["published", "modules"])
@pytest.mark.parametrize(
    "name, parts",
    [("minimax_m3", ("patch_merge_mlp", ".merge_linear_")), ("ernie4_5_vl_moe", (".temporal_linear.",))],
)
def test_parts_of_a_projection_that_are_lost_are_told(shardwright, tmp_path, name, parts, form):
    """Each of its linear modules has a bias."""
    write(tmp_path / "in", name, form)
    (file,) = (tmp_path / "in").glob("*.safetensors")
    tensors = checkpoints.load_hf(tmp_path / "in")
    lost = [key for key in tensors if any(part in key for part in parts)]
    assert len(lost) == (4 if name == "minimax_m3" else 6)
    for key in lost:
        save_file({k: v for k, v in tensors.items() if k != key}, file, {"format": "pt"})
        done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", expect=2)
        assert f"SW0404]: family {name}: 1 tensor missing that it needs: {key};" in done.stderr
        assert "SW0404" in shardwright("verify", tmp_path / "in", expect=1).stdout
    assert not (tmp_path / "out").exists()


def test_idle_experts_are_kept(shardwright, tmp_path):
    """Through legacy and back with a config.json alone."""
    write(tmp_path / "modules", "longcat_flash", "modules")
    flags = ("--to", "legacy", "--tp", 2, "--pp", 3, "--ep", 3, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", tmp_path / "modules", tmp_path / "legacy", *flags)
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", checkpoints.load_hf(tmp_path / "modules"))
    config = ("--hf-config", tmp_path / "modules")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    source = checkpoints.load_hf(tmp_path / "modules")
    expected = {k: v.float() if k.endswith("correction_bias") else v for k, v in source.items()}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)
