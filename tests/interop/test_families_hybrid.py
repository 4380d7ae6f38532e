# SPDX-License-Identifier: Apache-2.0
"""Hybrid and vision-language families: models of the real transformers library, there and back."""
import argparse
import copy
import dataclasses
import json
import shutil
import sys
import unittest.mock

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import checkpoints
import family_rounds
import hf_models
import hf_sizes

# As in hf_models, nothing is a power of two or what another size is; two ranks can share all of it.
TEXT = dict(hf_sizes.SIZES, vocab_size=510, num_hidden_layers=4, num_key_value_heads=2)
MOE = dict(num_experts_per_tok=2, moe_intermediate_size=40)
# Rotated by time, height and width: shares of half of what is rotated of a head.
MROPE = dict(rope_type="default", rope_theta=5000.0, mrope_section=[2, 2, 2])
KINDS = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
DELTA = dict(hf_sizes.LINEAR_ATTENTION, layer_types=KINDS)
SHARED = dict(num_experts=6, shared_expert_intermediate_size=28, **MOE)
TOWER = dict(
    depth=3,
    hidden_size=48,  # heads whose halves have halves, as their rotation needs
    intermediate_size=52,
    num_heads=6,
    out_hidden_size=72,
    patch_size=4,
)
QWEN3_TOWER = dict(TOWER, num_position_embeddings=49)
DEEPSTACK_TOWER = dict(QWEN3_TOWER, deepstack_visual_indexes=[0, 2])
NEMOTRON = dict(
    TEXT,
    layers_block_type=["mamba", "moe", "attention", "mlp"],
    ssm_state_size=12,
    mamba_num_heads=6,
    mamba_head_dim=10,
    n_groups=2,
    conv_kernel=4,  # as Megatron has it, which has no argument for it
    n_routed_experts=6,
    moe_shared_expert_intermediate_size=28,
    **MOE,
)
VIT = hf_sizes.VIT
CLIP = dict(VIT, model_type="clip_vision_model")
SIGLIP = dict(VIT, model_type="siglip_vision_model")
INTERN = dict(VIT, image_size=[28, 28], patch_size=[14, 14])
FALCON = dict(
    TEXT,
    mamba_n_heads=6,
    mamba_d_head=10,
    mamba_d_ssm=60,
    mamba_d_state=12,
    mamba_n_groups=2,
    mamba_d_conv=4,
    ssm_multipliers=[0.5, 1.0, 0.25, 2.0, 0.75],
    mlp_multipliers=[0.9, 1.5],
)

# name: model type, class, configuration
CASES = {
    "qwen3_vl": (
        "qwen3_vl",
        "Qwen3VLForConditionalGeneration",
        dict(text_config=TEXT, vision_config=DEEPSTACK_TOWER),
    ),
    "qwen3_vl_moe": (
        "qwen3_vl_moe",
        "Qwen3VLMoeForConditionalGeneration",
        dict(text_config=dict(TEXT, num_experts=6, **MOE), vision_config=DEEPSTACK_TOWER),
    ),
    "qwen2_5_vl": (
        "qwen2_5_vl",
        "Qwen2_5_VLForConditionalGeneration",
        dict(text_config=dict(TEXT, head_dim=12, rope_parameters=MROPE), vision_config=TOWER),
    ),
    "exaone4_5": (  # with a tower whose queries share keys and values
        "exaone4_5",
        "Exaone4_5_ForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT,
                model_type="exaone4",
                eos_token_id=2,
                sliding_window=7,
                layer_types=["sliding_attention"] * 3 + ["full_attention"],
            ),
            vision_config=dict(TOWER, num_key_value_heads=2),
        ),
    ),
    "qwen2_vl": (
        "qwen2_vl",
        "Qwen2VLForConditionalGeneration",
        dict(
            text_config=dict(TEXT, head_dim=12, rope_parameters=MROPE),
            vision_config=dict(
                depth=3, embed_dim=48, hidden_size=72, mlp_ratio=3, num_heads=6, patch_size=4
            ),
        ),
    ),
    "qwen3_5": ("qwen3_5_text", "Qwen3_5ForCausalLM", dict(TEXT, **DELTA)),
    "qwen3_5_moe": ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM", dict(TEXT, **DELTA, **SHARED)),
    "qwen3_5_vl": (
        "qwen3_5",
        "Qwen3_5ForConditionalGeneration",
        dict(text_config=dict(TEXT, **DELTA), vision_config=QWEN3_TOWER),
    ),
    "qwen3_5_vl_moe": (
        "qwen3_5_moe",
        "Qwen3_5MoeForConditionalGeneration",
        dict(text_config=dict(TEXT, **DELTA, **SHARED), vision_config=QWEN3_TOWER),
    ),
    "qwen3_next": ("qwen3_next", "Qwen3NextForCausalLM", dict(TEXT, **DELTA, **SHARED)),
    "nemotron_h": ("nemotron_h", "NemotronHForCausalLM", NEMOTRON),
    "gemma3_vl": (
        "gemma3",
        "Gemma3ForConditionalGeneration",
        dict(
            text_config=TEXT,
            vision_config=VIT,
            mm_tokens_per_image=4,
        ),
    ),
    "glm4_5v": (
        "glm4v_moe",
        "Glm4vMoeForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT,
                n_routed_experts=6,
                n_shared_experts=1,
                first_k_dense_replace=1,
                rope_parameters=dict(MROPE, mrope_section=[1, 2, 2], partial_rotary_factor=0.5),
                **MOE,
            ),
            vision_config=dict(TOWER, image_size=16),
        ),
    ),
    "llava": (
        "llava",
        "LlavaForConditionalGeneration",
        dict(text_config=dict(TEXT, model_type="llama"), vision_config=CLIP),
    ),
    "llava_siglip": (  # with the head that no LLaVA computes, and a projection of two layers' features
        "llava",
        "LlavaForConditionalGeneration",
        dict(
            text_config=dict(TEXT, model_type="qwen3", tie_word_embeddings=True),
            vision_config=SIGLIP,
            vision_feature_layer=[-2, -1],
            multimodal_projector_bias=False,
        ),
    ),
    "llava_next": (
        "llava_next",
        "LlavaNextForConditionalGeneration",
        dict(text_config=dict(TEXT, model_type="mistral"), vision_config=CLIP),
    ),
    "llava_onevision": (
        "llava_onevision",
        "LlavaOnevisionForConditionalGeneration",
        dict(
            text_config=dict(TEXT, head_dim=12, model_type="qwen2", tie_word_embeddings=True),
            vision_config=dict(SIGLIP, vision_use_head=False),
        ),
    ),
    "internvl": (
        "internvl",
        "InternVLForConditionalGeneration",
        dict(text_config=dict(TEXT, head_dim=12, model_type="qwen2"), vision_config=INTERN),
    ),
    "internvl_norms": (  # as its largest tower
        "internvl",
        "InternVLForConditionalGeneration",
        dict(
            text_config=dict(TEXT, model_type="qwen3"),
            vision_config=dict(INTERN, norm_type="rms_norm", use_qk_norm=True, attention_bias=True),
            tie_word_embeddings=False,
        ),
    ),
    "internvl_moe": (
        "internvl",
        "InternVLForConditionalGeneration",
        dict(
            text_config=dict(TEXT, model_type="qwen3_moe", num_experts=6, **MOE),
            vision_config=INTERN,
            tie_word_embeddings=False,
        ),
    ),
    "falcon_h1": ("falcon_h1", "FalconH1ForCausalLM", FALCON),
    "falcon_h1_normed": ("falcon_h1", "FalconH1ForCausalLM", dict(FALCON, mamba_rms_norm=True)),
}
OTHERS_WITH_EXPERTS = ("qwen3_next", "nemotron_h", "glm4_5v")
HAVE_EXPERTS = [name for name in CASES if "moe" in name or name in OTHERS_WITH_EXPERTS]

# Megatron's arguments and tensors are the same: only HF has two names for what they are.
SAME_IN_MEGATRON = ("qwen3_5_moe", "qwen3_next")


def build(folder, name, packed=False):
    """Saves a random model of a case in `folder` and returns its tensors."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = getattr(transformers, architecture)._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    model.save_pretrained(folder, max_shard_size="300KB", save_original_format=not packed)
    if name in ("nemotron_h", "glm4_5v"):  # a float32 buffer in every published file
        retype(folder, "e_score_correction_bias")
    return checkpoints.load_hf(folder)


def retype(folder, ending):
    for file in folder.glob("*.safetensors"):
        tensors = {
            key: value.float() if key.endswith(ending) else value
            for key, value in load_file(file).items()
        }
        save_file(tensors, file, metadata={"format": "pt"})


def layouts(name):
    yield ()
    yield ("--tp", 2, "--pp", 2, *(("--ep", 2) if name in HAVE_EXPERTS else ()))


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(shardwright, tmp_path, name):
    source = build(tmp_path / "hf", name)
    made = []
    for i, layout in enumerate(layouts(name)):
        out = tmp_path / f"out{i}"
        shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist", *layout)
        made.append(checkpoints.load_dcp(out))
        shardwright("convert", out, tmp_path / f"back{i}", "--to", "hf")
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / f"back{i}"), source)
    checkpoints.assert_same(made[1], made[0])  # layouts differ in chunks, not in tensors
    family_rounds.of_local_modules(shardwright, tmp_path / "hf", tmp_path)


def as_transformers_5_names(tensors):
    """Published CLIP and SigLIP towers have a segment more, and nothing says that these had not."""
    return {key.replace("vision_tower.vision_model.", "vision_tower."): tensors[key] for key in tensors}


@pytest.mark.parametrize("name", CASES)
def test_back_without_what_import_carried(shardwright, tmp_path, name):
    """By the arguments alone, and by nothing but a config.json."""
    source = build(tmp_path / "hf", name)
    out, bare = tmp_path / "out", tmp_path / "bare"
    shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist", "--tp", 2)
    shutil.rmtree(checkpoints.iteration_folder(out) / "hf")
    bare.mkdir()
    shutil.copy(tmp_path / "hf" / "config.json", bare)
    shardwright("convert", out, tmp_path / "by_config", "--to", "hf", "--hf-config", bare)
    by_config = as_transformers_5_names(checkpoints.load_hf(tmp_path / "by_config"))
    if name == "qwen3_vl_moe":  # nothing says that this file was not the published form
        for key in by_config:
            if key.endswith(("experts.gate_up_proj", "experts.down_proj")):
                by_config[key] = by_config[key].transpose(1, 2).contiguous()
    checkpoints.assert_same(by_config, source)
    if name in SAME_IN_MEGATRON:
        done = shardwright("convert", out, tmp_path / "no", "--to", "hf", expect=2)
        assert "2 families fit (qwen3_5_moe, qwen3_next)" in done.stderr
    named = ("--family", name) if name in SAME_IN_MEGATRON else ()
    shardwright("convert", out, tmp_path / "by_arguments", "--to", "hf", *named)
    ours = transformers.AutoConfig.from_pretrained(tmp_path / "by_arguments")
    was = transformers.AutoConfig.from_pretrained(tmp_path / "hf")
    assert ours.architectures == was.architectures
    for factors in ("ssm_multipliers", "mlp_multipliers"):
        assert getattr(ours, factors, None) == getattr(was, factors, None)
    assert type(ours) is type(was)
    made = as_transformers_5_names(checkpoints.load_hf(tmp_path / "by_arguments"))
    assert made.keys() == source.keys()


@pytest.mark.parametrize("name", CASES)
def test_resharded(shardwright, tmp_path, name):
    build(tmp_path / "hf", name)
    one, two, three = (tmp_path / n for n in ("one", "two", "three"))
    shardwright("convert", tmp_path / "hf", one, "--to", "torch_dist", "--tp", 2, "--pp", 2)
    shardwright("convert", one, two, "--to", "torch_dist", "--pp", 4)
    shardwright("convert", two, three, "--to", "torch_dist", "--tp", 2, "--pp", 2)
    checkpoints.assert_same(checkpoints.load_dcp(two), checkpoints.load_dcp(one))
    assert chunks(three) == chunks(one)


def chunks(root):
    reader = checkpoints.dcp.FileSystemReader(str(checkpoints.iteration_folder(root)))
    return {
        name: sorted((tuple(c.offsets), tuple(c.sizes)) for c in entry.chunks)
        for name, entry in reader.read_metadata().state_dict_metadata.items()
        if isinstance(entry, checkpoints.TensorStorageMetadata)
    }


@pytest.mark.parametrize("name", ["qwen3_5_moe", "qwen3_5_vl_moe", "qwen3_next", "nemotron_h"])
def test_packed_and_listed_experts_are_the_same(shardwright, tmp_path, name):
    made = []
    for packed in (False, True):
        source, out = tmp_path / f"hf{packed}", tmp_path / f"out{packed}"
        tensors = build(source, name, packed)
        assert any(key.endswith(("experts.down_proj")) for key in tensors) == packed
        shardwright("convert", source, out, "--to", "torch_dist", "--ep", 2)
        shardwright("convert", out, tmp_path / f"back{packed}", "--to", "hf")
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / f"back{packed}"), tensors)
        made.append(checkpoints.load_dcp(out))
    checkpoints.assert_same(made[1], made[0])


def test_transposed_experts(shardwright, tmp_path):
    """Published files have them one way round, transformers 5 writes them the other way."""
    build(tmp_path / "new", "qwen3_vl_moe")
    shutil.copytree(tmp_path / "new", tmp_path / "old")
    for file in (tmp_path / "old").glob("*.safetensors"):
        tensors = {
            key: value.transpose(1, 2).contiguous() if ".experts." in key else value
            for key, value in load_file(file).items()
        }
        save_file(tensors, file, metadata={"format": "pt"})
    made = []
    for form in ("new", "old"):
        out, back = tmp_path / f"{form}_out", tmp_path / f"{form}_back"
        shardwright("convert", tmp_path / form, out, "--to", "torch_dist")
        shardwright("convert", out, back, "--to", "hf")
        source = checkpoints.load_hf(tmp_path / form)
        checkpoints.assert_same(checkpoints.load_hf(back), source)
        made.append(checkpoints.load_dcp(out))
    checkpoints.assert_same(made[1], made[0])
    fc1 = made[0]["language_model.decoder.layers.mlp.experts.experts.linear_fc1.weight"]
    assert fc1.shape == (4, 6, 80, 72)


def test_key_heads_of_a_delta_net(shardwright, tmp_path):
    """Qwen3-Next files group the rows by key head, Megatron keeps each part on its own."""
    hf = build(tmp_path / "hf", "qwen3_next")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    for layer in (0, 2):
        source = f"model.layers.{layer}.linear_attn."
        target = f"decoder.layers.{layer}.self_attention.in_proj.weight."
        heads = hf[source + "in_proj_qkvz.weight"].view(2, -1, 72)
        parts = dict(zip(("query", "key", "value", "z"), heads.split([10, 10, 42, 42], dim=1)))
        gates = hf[source + "in_proj_ba.weight"].view(2, -1, 72)
        parts |= dict(zip(("beta", "alpha"), gates.split([3, 3], dim=1)))
        for name, part in parts.items():
            assert torch.equal(made[target + name], part.reshape(-1, 72)), name


def test_rows_of_a_tower_with_fewer_keys(shardwright, tmp_path):
    """Megatron has three heads of queries, their keys and their values group by group."""
    hf = build(tmp_path / "hf", "exaone4_5")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    for parameter, columns in (("weight", (48,)), ("bias", ())):
        ours = made[f"vision_model.decoder.layers.self_attention.linear_qkv.{parameter}"]
        for layer in range(3):
            source = hf[f"model.visual.blocks.{layer}.attn.qkv.{parameter}"]
            parts = [part.view(2, -1, *columns) for part in source.split([48, 16, 16])]
            assert torch.equal(ours[layer], torch.cat(parts, dim=1).view(80, *columns))
            block = f"model.visual.blocks.{layer}.mlp."
            gate_and_up = [hf[f"{block}{part}_proj.{parameter}"] for part in ("gate", "up")]
            fc1 = made[f"vision_model.decoder.layers.mlp.linear_fc1.{parameter}"][layer]
            assert torch.equal(fc1, torch.cat(gate_and_up))


def test_prediction_layers_beside_a_tower(shardwright, tmp_path):
    """transformers reads none of EXAONE 4.5's; they are a layer of the language model and what
    joins it, the embedding before the hidden state."""
    tensors = build(tmp_path / "hf", "exaone4_5")
    generator = torch.Generator().manual_seed(3)
    prefix = "model.language_model.layers.0."
    more = {
        key.replace(prefix, "mtp.layers.0."): value.flip(0).contiguous()
        for key, value in tensors.items()
        if key.startswith(prefix)
    }
    for part in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        more[f"mtp.{part}.weight"] = torch.randn(72, generator=generator).bfloat16()
    more["mtp.fc.weight"] = torch.randn((72, 144), generator=generator).bfloat16()
    save_file(more, tmp_path / "hf" / "more.safetensors")
    (tmp_path / "hf" / "model.safetensors.index.json").unlink()  # it does not know the new file
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    config["text_config"]["num_nextn_predict_layers"] = 1
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--pp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    mtp = "language_model.mtp.layers.0."
    assert torch.equal(made[mtp + "enorm.weight"], more["mtp.pre_fc_norm_embedding.weight"])
    assert torch.equal(made[mtp + "hnorm.weight"], more["mtp.pre_fc_norm_hidden.weight"])
    assert torch.equal(made[mtp + "eh_proj.weight"], more["mtp.fc.weight"])
    behind = made[mtp + "transformer_layer.mlp.linear_fc2.post_layernorm.weight"]
    assert torch.equal(behind, more["mtp.layers.0.post_feedforward_layernorm.weight"])
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), {**tensors, **more})


def test_parts_of_a_mixer(shardwright, tmp_path):
    hf = build(tmp_path / "hf", "falcon_h1")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    target = "decoder.layers.3.mamba_mixer."
    whole = hf["model.layers.3.mamba.in_proj.weight"]
    parts = zip(("z", "x", "B", "C", "dt"), whole.split([60, 60, 24, 24, 6]))
    for name, part in parts:
        assert torch.equal(made[f"{target}in_proj.weight.{name}"], part), name
    for parameter in ("weight", "bias"):
        whole = hf[f"model.layers.3.mamba.conv1d.{parameter}"]
        for name, part in zip("xBC", whole.split([60, 24, 24])):
            assert torch.equal(made[f"{target}conv1d.{parameter}.{name}"], part), name


@pytest.mark.parametrize(
    "name, tower",
    [
        ("qwen2_vl", "visual."),
        ("qwen2_5_vl", "visual."),
        ("gemma3_vl", "vision_tower."),
        ("glm4_5v", "visual."),
    ],
)
def test_towers_that_megatron_takes_as_they_are(shardwright, tmp_path, name, tower):
    hf = build(tmp_path / "hf", name)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    made = checkpoints.load_dcp(tmp_path / "out")
    kept = {key.removeprefix("model."): value for key, value in hf.items() if tower in key}
    assert len(kept) > 30
    checkpoints.assert_same({key: made[key] for key in made if key.startswith(tower)}, kept)
    whole = chunks(tmp_path / "out")
    assert all(len(whole[key]) == 1 for key in kept)  # every rank has all of it
    if name == "gemma3_vl":
        projection = hf["multi_modal_projector.mm_input_projection_weight"]
        assert torch.equal(made["multi_modal_projector.proj.weight"], projection.T)
        assert len(whole["multi_modal_projector.proj.weight"]) == 2


@pytest.mark.parametrize("name", ["gemma3_vl", "glm4_5v", "qwen2_vl"])
def test_language_models_are_those_of_the_text_family(shardwright, tmp_path, name):
    """The same tensors as the family without eyes makes of the same weights."""
    text = {"gemma3_vl": "gemma3_text", "glm4_5v": "glm4_moe", "qwen2_vl": "qwen2"}[name]
    architecture = {
        "gemma3_vl": "Gemma3ForCausalLM",
        "glm4_5v": "Glm4MoeForCausalLM",
        "qwen2_vl": "Qwen2ForCausalLM",
    }[name]
    hf = build(tmp_path / "hf", name)
    settings = copy.deepcopy(CASES[name][2]["text_config"])
    if name == "glm4_5v":
        settings.update(attention_bias=True, num_nextn_predict_layers=0)
    config = transformers.AutoConfig.for_model(text, **settings)
    config.architectures = [architecture]
    config.dtype = torch.bfloat16
    config.save_pretrained(tmp_path / "text")
    tensors = {}
    for key, value in hf.items():
        if "vis" in key or "projector" in key:
            continue
        for prefix in ("model.language_model.", "language_model.model.", "model."):
            if key.startswith(prefix):
                key = "model." + key.removeprefix(prefix)
                break
        tensors[key] = value
    save_file(tensors, tmp_path / "text" / "model.safetensors", metadata={"format": "pt"})
    made = []
    for source in ("hf", "text"):
        shardwright("convert", tmp_path / source, tmp_path / f"{source}_out", "--to", "torch_dist")
        made.append(checkpoints.load_dcp(tmp_path / f"{source}_out"))
    prefix = "language_model."
    language = {k.removeprefix(prefix): v for k, v in made[0].items() if k.startswith(prefix)}
    checkpoints.assert_same(language, made[1])


def with_norm_that_rounds(folder, name, value):
    source = build(folder, "qwen3_5")
    for file in folder.glob("*.safetensors"):
        tensors = load_file(file)
        if name in tensors:
            tensors[name][0] = value
            save_file(tensors, file, metadata={"format": "pt"})
            source[name][0] = value
    return source


def test_norms_that_round(shardwright, tmp_path):
    """Megatron keeps w - 1. What that loses in bfloat16 is kept beside it, until it is trained."""
    name = "model.layers.0.linear_attn.norm.weight"
    source = with_norm_that_rounds(tmp_path / "hf", name, 0.458984375)
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    assert f"{name}: Megatron keeps it -1, which rounds in bfloat16" in done.stderr
    made = checkpoints.load_dcp(tmp_path / "out")
    stored = "decoder.layers.0.self_attention.out_norm.weight"
    assert torch.equal(made[stored], source[name] - 1)
    assert torch.equal(made[f"hf_extra.{name}"], source[name])
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)

    made[stored] += 0.25  # a step of training: what was kept is not what Megatron has any more
    folder = checkpoints.iteration_folder(tmp_path / "out")
    writer = checkpoints.dcp.FileSystemWriter(folder)
    checkpoints.dcp.save(made, storage_writer=writer, no_dist=True)
    done = shardwright("convert", tmp_path / "out", tmp_path / "trained", "--to", "hf")
    assert "are those of before it was trained" in done.stderr
    trained = checkpoints.load_hf(tmp_path / "trained")
    assert torch.equal(trained[name], made[stored] + 1)
    assert not torch.equal(trained[name], source[name])


def test_norms_that_round_survive_casts(shardwright, tmp_path):
    """The kept values are those of what is cast, in whatever order; the sum may have been rounded
    before or after."""
    name = "model.layers.0.linear_attn.norm.weight"
    source = with_norm_that_rounds(tmp_path / "hf", name, 2.0**-20 * 1.0078125)
    wanted = {key: tensor.float() for key, tensor in source.items()}
    for way in (["bfloat16", "float32"], ["float32"], ["bfloat16", "float32", "float32"]):
        at = tmp_path / "hf"
        for step, dtype in enumerate(way):
            out = tmp_path / f"{'_'.join(way)}_{step}"
            shardwright("convert", at, out, "--to", "torch_dist", "--dtype", dtype)
            at = out
        done = shardwright("convert", at, tmp_path / "_".join([*way, "back"]), "--to", "hf")
        assert "is rounded to" not in done.stderr
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / "_".join([*way, "back"])), wanted)
    done = shardwright(
        "convert", tmp_path / "bfloat16_float32_0", tmp_path / "cast", "--to", "hf", "--dtype", "float32"
    )
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "cast"), wanted)


def delta_net_specs(config, block):
    """Megatron-Core's block with its own gated delta nets where the arguments say so. There is no
    spec of them for local modules, so their parts are put together here."""
    from megatron.core.ssm import gated_delta_net
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer.spec_utils import ModuleSpec
    from megatron.core.models.gpt.experimental_attention_variant_module_specs import (
        get_linear_attention_pattern,
    )

    # What a library for GPUs has: the same arithmetic.
    gated_delta_net.HAVE_FLA = True
    gated_delta_net.l2norm = lambda x: x * (x.square().sum(-1, keepdim=True) + 1e-6).rsqrt()
    layers = []
    for layer, is_linear in zip(block.layer_specs, get_linear_attention_pattern(config)):
        layer = copy.deepcopy(layer)
        if is_linear:
            layer.submodules.self_attention = ModuleSpec(
                module=gated_delta_net.GatedDeltaNet,
                submodules=gated_delta_net.GatedDeltaNetSubmodules(
                    in_proj=ColumnParallelLinear,
                    out_norm=layer.submodules.input_layernorm,
                    out_proj=RowParallelLinear,
                ),
            )
            names = {"input_layernorm.": "self_attention.in_proj.layer_norm_"}
            layer.submodules.sharded_state_dict_keys_map = {
                **layer.submodules.sharded_state_dict_keys_map,
                **names,
            }
        layers.append(layer)
    block.layer_specs = layers
    return block


@pytest.fixture
def delta_net_model(megatron, monkeypatch):
    """Builds the Megatron model of a checkpoint's arguments and gives it the tensors."""
    import megatron_from_args

    plain = megatron_from_args.layer_specs
    monkeypatch.setattr(
        megatron_from_args,
        "layer_specs",
        lambda config, args: delta_net_specs(config, plain(config, args)),
    )
    monkeypatch.setitem(megatron_from_args.WHOLE_ON_CPU, "deterministic_mode", True)

    def build(folder, **changes):
        args = megatron_from_args.read_arguments(folder)
        model = megatron_from_args.build(argparse.Namespace(**{**vars(args), **changes}))
        tensors = checkpoints.load_dcp(folder)
        megatron.fill(model, tensors)
        assert megatron.assert_holds(model, tensors) == tensors.keys()
        return model

    return build


def error(model, hf_model, vocab_size):
    ids = torch.randint(0, vocab_size, (2, 70), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        ours = model(ids, torch.arange(70).expand_as(ids), None)
        expected = hf_model(ids).logits
    assert expected.std() > 1
    return (ours - expected).abs().max().item()


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_next"])
def test_delta_nets_compute_the_same(shardwright, delta_net_model, tmp_path, name):
    """Row orders, w - 1, the gates of the queries and the arguments, all at once."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    hf_model = getattr(transformers, architecture)._from_config(
        config, dtype=torch.float32, **hf_models.EAGER
    )
    hf_models.fill(hf_model)
    hf_model.eval().save_pretrained(tmp_path / "hf", max_shard_size="300KB")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    folder = checkpoints.iteration_folder(tmp_path / "out")
    model = delta_net_model(folder)
    assert error(model, hf_model, 510) < 2e-4
    for changed in (
        "decoder.layers.0.self_attention.in_proj.weight",
        "decoder.layers.2.self_attention.conv1d.weight",
        "decoder.layers.0.self_attention.out_norm.weight",
        "decoder.layers.1.self_attention.linear_qkv.weight",
        "decoder.layers.2.self_attention.A_log",
    ):
        tensor = model.state_dict()[changed]
        original = tensor.clone()
        tensor.copy_(original.roll(1, dims=0))
        assert error(model, hf_model, 510) > 0.02, changed
        tensor.copy_(original)
    assert error(delta_net_model(folder, rotary_percent=0.5), hf_model, 510) > 0.02


class GatedNorm(torch.nn.Module):
    """Stands for the norm of a library for GPUs: it has the parameter and no arithmetic."""

    def __init__(self, width, **_):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.empty(width))


@pytest.fixture
def mamba_model(megatron, monkeypatch):
    """Builds Megatron-Core's own MambaModel. Its mixers compute on GPUs only, but say what they
    hold, and load it."""
    for name in (
        "megatron.core.inference.contexts.attention_context.triton.tensor_ops",
        "mamba_ssm.ops.triton.layernorm_gated",
        "mamba_ssm.ops.triton.ssd_combined",
        "mamba_ssm.ops.triton.selective_state_update",
    ):
        for i in range(name.count(".") + 1):
            part = name.rsplit(".", i)[0]
            if part == name or part.startswith("mamba_ssm"):
                monkeypatch.setitem(sys.modules, part, unittest.mock.MagicMock())
    norms = sys.modules["mamba_ssm.ops.triton.layernorm_gated"]
    norms.RMSNorm = GatedNorm
    from megatron.core.models.mamba import MambaModel
    from megatron.core.models.mamba.mamba_layer_specs import mamba_stack_spec
    from megatron.core.transformer.transformer_config import TransformerConfig

    import megatron_from_args

    def build(folder):
        args = megatron_from_args.read_arguments(folder)
        fields = {field.name for field in dataclasses.fields(TransformerConfig)}
        values = {name: value for name, value in vars(args).items() if name in fields}
        values |= megatron_from_args.WHOLE_ON_CPU
        values |= dict(
            num_moe_experts=args.num_experts,
            moe_grouped_gemm=True,
            params_dtype=torch.bfloat16,
            pipeline_dtype=torch.bfloat16,
        )
        model = MambaModel(
            TransformerConfig(**values),
            mamba_stack_spec,
            vocab_size=args.padded_vocab_size,
            max_sequence_length=args.max_position_embeddings,
            hybrid_override_pattern=args.hybrid_override_pattern,
            position_embedding_type=args.position_embedding_type,
            share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        )
        model.bfloat16()
        for name, buffer in model.named_buffers():
            if name.endswith("expert_bias"):
                buffer.data = buffer.data.float()
        return model

    return build


@pytest.fixture
def delta_net_te_model(megatron, monkeypatch):
    """Builds Megatron-Core's GPTModel with gated delta nets, of its own modules for them."""
    import megatron_from_args
    from megatron.core.models.gpt import experimental_attention_variant_module_specs as specs
    from megatron.core.ssm import gated_delta_net

    monkeypatch.setattr(gated_delta_net, "HAVE_FLA", True)
    monkeypatch.setattr(
        megatron_from_args,
        "layer_specs",
        lambda config, args: specs.get_transformer_block_with_experimental_attention_variant_spec(
            config
        ),
    )
    whole = dict(params_dtype=torch.bfloat16, pipeline_dtype=torch.bfloat16, moe_grouped_gemm=True)
    for name, value in whole.items():
        monkeypatch.setitem(megatron_from_args.WHOLE_ON_CPU, name, value)

    def build(folder):
        return megatron_from_args.build(megatron_from_args.read_arguments(folder)).bfloat16()

    return build


@pytest.mark.parametrize(
    "name, models",
    [
        ("nemotron_h", "mamba_model"),
        ("qwen3_5", "delta_net_te_model"),
        ("qwen3_next", "delta_net_te_model"),
    ],
)
def test_megatrons_own_model_loads(shardwright, megatron, tmp_path, request, name, models):
    """Nothing is missing or too much, for the strictest of Megatron's checks; legacy files are the
    model's own state dict; and all of it comes back."""
    source = build(tmp_path / "hf", name)
    out = tmp_path / "out"
    shardwright("convert", tmp_path / "hf", out, "--to", "torch_dist", "--tp", 2, "--pp", 2)
    folder = checkpoints.iteration_folder(out)
    tensors = checkpoints.load_dcp(out)
    model = request.getfixturevalue(models)(folder)
    extras = [key for key in tensors if key.startswith("hf_extra.")]
    megatron.load(model, folder, "assume_ok_unexpected" if extras else "raise_all")
    in_model = {key: value for key, value in tensors.items() if key not in extras}
    assert megatron.assert_holds(model, in_model) == in_model.keys()

    shardwright("convert", tmp_path / "hf", tmp_path / "legacy", "--to", "legacy")
    file = checkpoints.iteration_folder(tmp_path / "legacy") / "mp_rank_00" / "model_optim_rng.pt"
    state = torch.load(file, weights_only=False)["model"]  # our own file
    own = model.state_dict()
    assert state.keys() == own.keys()
    for key, value in own.items():
        if isinstance(value, torch.Tensor):
            assert checkpoints.same_bits(state[key], value), key
    shardwright("convert", tmp_path / "legacy", tmp_path / "again", "--to", "torch_dist")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "again"), in_model)
    bare = ("--hf-config", tmp_path / "hf")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *bare)
    back = checkpoints.load_hf(tmp_path / "back")
    for key in extras:  # a legacy file has no place for them
        name = key.removeprefix("hf_extra.")
        assert (back[name] - source[name]).abs().max() <= 2**-9
        back[name] = source[name]
    checkpoints.assert_same(back, source)


LLAVA_CASES = [name for name in CASES if name.startswith("llava")]
# Language model, its head, tower, and what stands beside them, as releases of transformers name them.
LLAVA_NAMES = {
    "published": (
        "language_model.model.",
        "language_model.lm_head.",
        "vision_tower.vision_model.",
        "",
    ),
    "4": ("model.language_model.", "lm_head.", "model.vision_tower.vision_model.", "model."),
    "5": ("model.language_model.", "lm_head.", "model.vision_tower.", "model."),
}


def with_llava_names(tensors, release):
    language, head, tower, outside = LLAVA_NAMES[release]
    renamed = {}
    for key, value in tensors.items():
        for old, new in (
            ("language_model.model.", language),
            ("language_model.lm_head.", head),
            ("vision_tower.", tower),
            ("multi_modal_projector.", outside + "multi_modal_projector."),
            ("image_newline", outside + "image_newline"),
        ):
            if key.startswith(old):
                key = new + key.removeprefix(old)
                break
        renamed[key] = value
    return renamed


@pytest.mark.parametrize("name", LLAVA_CASES)
def test_names_of_every_release(shardwright, tmp_path, name):
    """They are one model in Megatron, and come back as they were, with a buffer of old files."""
    built = build(tmp_path / "built", name)
    ordinary = []
    for release in LLAVA_NAMES:
        tensors = with_llava_names(built, release)
        if release == "published":
            tensors["vision_tower.vision_model.embeddings.position_ids"] = torch.arange(5)[None]
        source, out = tmp_path / release, tmp_path / f"{release}_out"
        source.mkdir()
        shutil.copy(tmp_path / "built" / "config.json", source)
        save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
        shardwright("convert", source, out, "--to", "torch_dist", "--tp", 2, "--pp", 2)
        shardwright("convert", out, tmp_path / f"{release}_back", "--to", "hf")
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / f"{release}_back"), tensors)
        made = checkpoints.load_dcp(out)
        ordinary.append({k: v for k, v in made.items() if not k.startswith("hf_extra.")})
    checkpoints.assert_same(ordinary[1], ordinary[0])
    checkpoints.assert_same(ordinary[2], ordinary[0])
    if "siglip" not in name and name != "llava_onevision":
        token = built["vision_tower.embeddings.class_embedding"]
        assert torch.equal(ordinary[0]["vision_model.class_token"], token[None, None])


@pytest.mark.parametrize(
    "name, key, value, words",
    [
        ("llava", "vision_config", "pixtral", "'clip_vision_model' or 'siglip_vision_model'"),
        ("llava_next", "text_config", "gemma2", "'llama' or 'mistral' or 'qwen2' or 'qwen3'"),
    ],
)
def test_variants_that_are_not_known(shardwright, tmp_path, name, key, value, words):
    """Refused by name, with what is known and the family that is nearest."""
    build(tmp_path / "hf", name)
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    config[key]["model_type"] = value
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    flags = ("--to", "torch_dist")
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags, expect=2)
    found = f"found {key}.model_type = '{value}', expected {words}: family {name} knows no other"
    assert found in done.stderr
    assert f"nearest is {name}, which takes" in done.stderr
    assert not (tmp_path / "out").exists()
