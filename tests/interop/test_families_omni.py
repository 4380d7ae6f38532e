# SPDX-License-Identifier: Apache-2.0
"""Models that hear and see (Qwen's thinkers, ERNIE 4.5 VL, Step 3.7), and models whose layers differ
in their sizes (Step 3.5, Llama-Nemotron): there and back, by every kind of checkpoint."""
import copy
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models
import hf_sizes
from hf_sizes import MOE_SIZES, SIZES
from test_families_hybrid import chunks
from test_families_towers import nemotron_vl

AUDIO = dict(hf_sizes.AUDIO_ENCODER, output_dim=72)
NARROW_AUDIO = dict(AUDIO, downsample_hidden_size=12)
VISION = dict(
    depth=2, hidden_size=36, intermediate_size=52, num_heads=3, patch_size=4, out_hidden_size=72
)
SPEECH = dict(
    vocab_size=64,
    hidden_size=24,
    intermediate_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=1,
    head_dim=12,
)
SPEECH_EXPERTS = dict(
    SPEECH,
    num_local_experts=3,
    moe_intermediate_size=10,
    num_experts_per_tok=2,
    shared_expert_intermediate_size=14,
)
WAVE = dict(
    codebook_size=16,
    hidden_size=12,
    intermediate_size=20,
    num_hidden_layers=1,
    num_attention_heads=2,
    num_key_value_heads=2,
    decoder_dim=32,
    num_quantizers=2,
    head_dim=6,
)
UNROTATED = {key: SIZES[key] for key in SIZES if key not in ("head_dim", "rope_parameters")}
STEP_ROPE = {
    kind: {"rope_type": "default", "rope_theta": theta, "partial_rotary_factor": part}
    for kind, theta, part in (("full_attention", 70000.0, 0.5), ("sliding_attention", 5000.0, 1.0))
}

# name: model type, class, configuration
CASES = {
    "qwen2_5_omni": (
        "qwen2_5_omni",
        "Qwen2_5OmniForConditionalGeneration",
        dict(
            thinker_config=dict(
                text_config=dict(SIZES, head_dim=12, vocab_size=510),
                audio_config=AUDIO,
                vision_config=VISION,
            ),
            talker_config=dict(SPEECH, embedding_size=72),
            token2wav_config=dict(
                dit_config=dict(
                    hidden_size=24,
                    num_hidden_layers=1,
                    num_attention_heads=2,
                    head_dim=12,
                    emb_dim=8,
                    enc_emb_dim=12,
                    enc_dim=8,
                    enc_channels=[8, 8, 8, 8, 24],
                    enc_attention_channels=4,
                    enc_se_channels=4,
                    repeats=2,
                    num_embeds=20,
                    ff_mult=2,
                    mel_dim=8,
                ),
                bigvgan_config=dict(mel_dim=8, upsample_initial_channel=64),
            ),
        ),
    ),
    "qwen3_omni_moe": (
        "qwen3_omni_moe",
        "Qwen3OmniMoeForConditionalGeneration",
        dict(
            thinker_config=dict(
                text_config=dict(MOE_SIZES, num_experts=6, vocab_size=510),
                audio_config=NARROW_AUDIO,
                vision_config=dict(
                    VISION, num_position_embeddings=16, deepstack_visual_indexes=[0]
                ),
            ),
            talker_config=dict(
                code_predictor_config=SPEECH,
                text_config=SPEECH_EXPERTS,
                num_code_groups=3,
                thinker_hidden_size=72,
                spatial_merge_size=2,
                shared_expert_intermediate_size=14,
            ),
            code2wav_config=WAVE,
        ),
    ),
    "qwen3_asr_hf": (
        "qwen3_asr",
        "Qwen3ASRForConditionalGeneration",
        dict(
            text_config=dict(SIZES, model_type="qwen3", vocab_size=510),
            audio_config=NARROW_AUDIO,
            tie_word_embeddings=True,
        ),
    ),
    "ernie4_5_vl_moe": (
        "ernie4_5_vl_moe",
        "Ernie4_5_VLMoeForConditionalGeneration",
        dict(
            text_config=dict(
                UNROTATED,
                vocab_size=510,
                moe_intermediate_size=[40, 28],
                moe_k=2,
                moe_num_experts=6,
                mlp_layer_types=["dense", "sparse", "sparse"],
                rope_parameters={
                    "rope_type": "default", "rope_theta": 5000.0, "mrope_section": [2, 2, 2]
                },
            ),
            vision_config={key: VISION[key] for key in VISION if key != "out_hidden_size"},
        ),
    ),
    "step3p7": (
        "step3p7",
        "Step3p7ForConditionalGeneration",
        dict(
            text_config=dict(
                SIZES,
                vocab_size=510,
                n_routed_experts=6,
                num_experts_per_tok=2,
                moe_intermediate_size=40,
                share_expert_dim=44,
                mlp_layer_types=["dense", "sparse", "sparse"],
                layer_types=["full_attention", "sliding_attention", "sliding_attention"],
                sliding_window=7,
                num_sliding_attention_heads=9,
                rope_parameters=STEP_ROPE,
            ),
            vision_config=dict(
                hidden_size=36,
                mlp_ratio=2.0,
                num_hidden_layers=2,
                num_attention_heads=3,
                image_size=28,
                patch_size=14,
            ),
        ),
    ),
}


def build(folder, name):
    """Saves a random model of a case in `folder` and returns its tensors."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model_class = getattr(transformers, architecture)
    model = model_class._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    model.save_pretrained(folder)
    return checkpoints.load_hf(folder)


def write(folder, tensors, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors


PUBLISHED_ASR = (
    ("model.language_model.", "thinker.model."),
    ("model.audio_tower.", "thinker.audio_tower."),
    ("model.multi_modal_projector.linear_", "thinker.audio_tower.proj"),
)


def qwen3_asr(folder):
    """As it is published, from what transformers writes."""
    tensors = {}
    for name, tensor in build(folder / "made", "qwen3_asr_hf").items():
        for ours, published in PUBLISHED_ASR:
            name = name.replace(ours, published)
        tensors[name] = tensor
    config = json.loads((folder / "made" / "config.json").read_text())
    # Published files have the head beside the embeddings that it repeats.
    tensors["thinker.lm_head.weight"] = tensors["thinker.model.embed_tokens.weight"].clone()
    thinker = dict(
        audio_config=config["audio_config"],
        text_config=config["text_config"],
        model_type="qwen3_asr_thinker",
        tie_word_embeddings=True,
        dtype="bfloat16",
    )
    published = dict(
        architectures=config["architectures"], model_type="qwen3_asr", thinker_config=thinker
    )
    return write(folder / "hf", tensors, published)


def step3p5(folder):
    """The text of Step 3.7 by the words of Step 3.5's files, with a layer of prediction."""
    text = {
        name: tensor
        for name, tensor in build(folder / "made", "step3p7").items()
        if not name.startswith(("vision_model.", "vit_large_projector."))
    }
    generator = torch.Generator().manual_seed(5)
    layer = {
        name.replace(".1.", ".3."): torch.randn(tensor.shape, generator=generator).bfloat16()
        for name, tensor in text.items()
        if name.startswith("model.layers.1.") and "expert" not in name and ".moe." not in name
    }
    for part in ("gate_proj", "up_proj", "down_proj"):
        dense = text[f"model.layers.0.mlp.{part}.weight"]
        layer[f"model.layers.3.mlp.{part}.weight"] = torch.randn_like(dense)
    for name, shape in {
        "enorm": (72,),
        "hnorm": (72,),
        "eh_proj": (72, 144),
        "transformer.shared_head.norm": (72,),
        "transformer.shared_head.output": (510, 72),
    }.items():
        layer[f"model.layers.3.{name}.weight"] = torch.randn(shape, generator=generator).bfloat16()
    was = json.loads((folder / "made" / "config.json").read_text())["text_config"]
    config = {key: was[key] for key in ("hidden_size", "intermediate_size", "num_hidden_layers")}
    config.update({key: was[key] for key in ("head_dim", "vocab_size", "rms_norm_eps")})
    config.update(
        architectures=["Step3p5ForCausalLM"],
        model_type="step3p5",
        torch_dtype="bfloat16",
        num_attention_heads=6,
        num_attention_groups=3,
        attention_other_setting=dict(
            attention_type="sliding_attention",
            num_attention_heads=9,
            num_attention_groups=3,
            head_dim=20,
        ),
        layer_types=["full_attention", *["sliding_attention"] * 3],
        moe_layers_enum="1,2",
        moe_num_experts=6,
        moe_top_k=2,
        moe_intermediate_size=40,
        moe_router_scaling_factor=1.7,
        share_expert_dim=44,
        num_nextn_predict_layers=1,
        partial_rotary_factors=[0.5, 1.0, 1.0, 1.0],
        rope_theta=[70000.0, 5000.0, 5000.0, 5000.0],
        sliding_window=7,
        use_head_wise_attn_gate=True,
        tie_word_embeddings=False,
    )
    return write(folder / "hf", {**text, **layer}, config)


# Of each layer: groups of keys and values, and the width of its MLP; none where it lacks that part.
BLOCKS = ((3, 256), (6, 512), (None, 256), (2, None))


def decilm(folder):
    """A Llama whose layers a search has shaped, of tensors of the published names."""
    generator = torch.Generator().manual_seed(5)
    shapes = {
        "model.embed_tokens.weight": (510, 72),
        "model.norm.weight": (72,),
        "lm_head.weight": (510, 72),
    }
    configs = []
    for number, (groups, width) in enumerate(BLOCKS):
        layer = f"model.layers.{number}."
        if groups is not None:
            shapes[layer + "input_layernorm.weight"] = (72,)
            for part, rows in (("q", 72), ("k", 12 * groups), ("v", 12 * groups), ("o", 72)):
                shapes[f"{layer}self_attn.{part}_proj.weight"] = (rows, 72)
        if width is not None:
            shapes[layer + "post_attention_layernorm.weight"] = (72,)
            shapes[layer + "mlp.gate_proj.weight"] = (width, 72)
            shapes[layer + "mlp.up_proj.weight"] = (width, 72)
            shapes[layer + "mlp.down_proj.weight"] = (72, width)
        configs.append(
            {
                "attention": {
                    "n_heads_in_group": groups and 6 // groups,
                    "no_op": groups is None,
                    "replace_with_linear": False,
                },
                # Widths are multiples of 256, by a rule that Megatron has too.
                "ffn": {
                    "ffn_mult": width and width * 3 / 2 / 72,
                    "no_op": width is None,
                    "replace_with_linear": False,
                },
            }
        )
    tensors = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator)
        values = 1 + 0.25 * values if "norm" in name else values * 1.5 * shape[-1] ** -0.5
        tensors[name] = values.bfloat16()
    config = dict(
        architectures=["DeciLMForCausalLM"],
        model_type="nemotron-nas",
        block_configs=configs,
        hidden_size=72,
        num_attention_heads=6,
        num_hidden_layers=len(BLOCKS),
        num_key_value_heads=None,
        intermediate_size=None,
        rms_norm_eps=1e-3,
        rope_theta=5000.0,
        vocab_size=510,
        tie_word_embeddings=False,
        max_position_embeddings=256,
        torch_dtype="bfloat16",
    )
    return write(folder / "hf", tensors, config)


def nemotron_omni(folder):
    """Nemotron Nano V2 VL under another name, with frames of films and a tower for sound."""
    tensors, config = nemotron_vl(folder / "made")
    generator = torch.Generator().manual_seed(6)
    shapes = {
        "vision_model.radio_model.model.patch_generator.video_embedder.weight": (36, 96),
        "sound_projection.norm.weight": (36,),
        "sound_projection.linear1.weight": (44, 36),
        "sound_projection.linear2.weight": (72, 44),
        "sound_encoder.feature_extractor.featurizer.window": (40,),
        "sound_encoder.encoder.subsampling.linear.weight": (36, 40),
        "sound_encoder.encoder.layers.0.self_attn.o_proj.weight": (36, 36),
        "sound_encoder.encoder.layers.0.feed_forward1.linear1.weight": (52, 36),
        "sound_encoder.encoder.layers.0.conv.norm.running_mean": (36,),
    }
    for name, shape in shapes.items():
        tensors[name] = torch.randn(shape, generator=generator).bfloat16()
    kind = "NemotronH_Nano_Omni_Reasoning_V3"
    config.update(architectures=[kind], model_type=kind, sound_config=dict(hidden_size=36))
    return write(folder / "hf", tensors, config)


WRITTEN = {"nemotron_omni": nemotron_omni, "qwen3_asr": qwen3_asr, "step3p5": step3p5, "decilm": decilm}
HAVE_EXPERTS = ("qwen3_omni_moe", "ernie4_5_vl_moe", "step3p7", "step3p5")
# What speaks, of which Megatron has nothing.
UNPLACED = ("talker.", "token2wav.", "code2wav.", "sound_encoder.feature_extractor.")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of a case, with the model in hf/, and its tensors."""
    made = {}

    def make(name):
        if name not in made:
            root = tmp_path_factory.mktemp(name)
            tensors = build(root / "hf", name) if name in CASES else WRITTEN[name](root)
            made[name] = root / "hf", tensors
        return made[name]

    return make


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_there_and_back(shardwright, tmp_path, models, name):
    hf, source = models(name)
    experts = ("--ep", 2) if name in HAVE_EXPERTS else ()
    flags = ("--to", "torch_dist", "--tp", 2, "--pp", 2, *experts)
    pad = ("--make-vocab-size-divisible-by", 1, "--mtp", "keep")
    shardwright("convert", hf, tmp_path / "out", *flags, *pad)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    family_rounds.of_local_modules(shardwright, hf, tmp_path, "--mtp", "keep")


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_through_legacy_with_a_config_alone(shardwright, tmp_path, models, name):
    hf, source = models(name)
    flags = ("--to", "legacy", "--tp", 2, "--make-vocab-size-divisible-by", 1, "--mtp", "keep")
    done = shardwright("convert", hf, tmp_path / "legacy", *flags)
    (tmp_path / "config").mkdir()
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", source)
    shutil.copy(hf / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    kept = {key: value for key, value in source.items() if not key.startswith(UNPLACED)}
    if len(kept) < len(source):
        more = len(source) - len(kept) - 1
        assert f"and {more} more are left out" in done.stderr or more == 0
    if name == "step3p5":  # a legacy file has no place for it, and the way back writes its original
        kept["model.layers.3.transformer.shared_head.output.weight"] = source["lm_head.weight"]
    if name == "qwen3_asr":
        del kept["thinker.lm_head.weight"]
    # Megatron holds it as float32 always, and so do published files.
    expected = {
        key: value.float() if key.endswith("router_bias") else value for key, value in kept.items()
    }
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)


# case: the same language model by itself, what its names begin with in HF and in Megatron
TWINS = {
    "qwen2_5_omni": ("qwen2", "Qwen2ForCausalLM", "thinker."),
    "qwen3_omni_moe": ("qwen3_moe", "Qwen3MoeForCausalLM", "thinker."),
    "qwen3_asr": ("qwen3", "Qwen3ForCausalLM", "thinker."),
}


@pytest.mark.parametrize("name", TWINS)
def test_language_models_are_those_of_the_text_family(shardwright, tmp_path, models, name):
    hf, source = models(name)
    model_type, architecture, prefix = TWINS[name]
    settings = json.loads((hf / "config.json").read_text())["thinker_config"]
    text = dict(settings["text_config"], model_type=model_type, architectures=[architecture])
    text.update(torch_dtype="bfloat16", tie_word_embeddings=settings["tie_word_embeddings"])
    kept = ("thinker.model.", "thinker.lm_head.")
    tensors = {key.removeprefix(prefix): source[key] for key in source if key.startswith(kept)}
    write(tmp_path / "text", tensors, text)
    made = []
    for folder in (hf, tmp_path / "text"):
        out = tmp_path / f"{folder.name}_out"
        shardwright("convert", folder, out, "--to", "torch_dist")
        made.append(checkpoints.load_dcp(out))
    prefix += "language_model."
    language = {k.removeprefix(prefix): v for k, v in made[0].items() if k.startswith(prefix)}
    assert len(language) > 7
    checkpoints.assert_same(language, made[1])
    # Towers are whole under their own names, and no rank has a part of one.
    names = {"thinker.audio_tower.": "thinker.audio_model.", "thinker.visual.": "thinker.visual."}
    towers = {
        ours + key.removeprefix(theirs): value
        for key, value in source.items()
        for theirs, ours in names.items()
        if key.startswith(theirs)
    }
    assert len(towers) > 30
    prefixes = tuple(names.values())
    checkpoints.assert_same({k: made[0][k] for k in made[0] if k.startswith(prefixes)}, towers)


def test_one_model_by_both_names(shardwright, tmp_path, models):
    """Qwen3-ASR's published files and those of transformers."""
    models("qwen3_asr")
    published, _ = models("qwen3_asr")
    transformed = published.parent / "made"
    for folder, out in ((published, "one"), (transformed, "other")):
        shardwright("convert", folder, tmp_path / out, "--to", "torch_dist")
    one, other = (checkpoints.load_dcp(tmp_path / out) for out in ("one", "other"))
    checkpoints.assert_same(one, other)
    assert "thinker.audio_model.proj2.weight" in one


def components(name):
    """Which component has which ranks, and what else there is beside the language model."""
    parts = ["audio"] if name.startswith("qwen3_asr") else ["images"]
    if "_omni" in name:
        parts = ["images", "audio"]
    experts = ",dp=2,ep=2,etp=1" if name in HAVE_EXPERTS else ""
    yield ["language=tp=2", *(f"{part}=tp=1" for part in parts)]
    yield [*(f"{part}=tp=1" for part in parts), f"language=tp=1,pp=2{experts}"]


MIMO = [name for name in (*CASES, *WRITTEN, "nemotron_vl")]
MIMO = [name for name in MIMO if name not in ("qwen3_asr_hf", "step3p5", "decilm")]


@pytest.mark.parametrize("name", MIMO)
def test_parts_with_ranks_of_their_own(shardwright, tmp_path, models, name):
    if name == "nemotron_vl":
        tensors, config = nemotron_vl(tmp_path / "made")
        hf, source = tmp_path / "hf", write(tmp_path / "hf", tensors, config)
    else:
        hf, source = models(name)
    pad = ("--make-vocab-size-divisible-by", 1)
    made = hf
    for number, specs in enumerate(components(name)):
        flags = [word for spec in specs for word in ("--component", spec)]
        out = tmp_path / str(number)
        shardwright("convert", made, out, "--to", "mimo", *pad, *flags)
        made = out
    held = checkpoints.load_dcp(made)
    checkpoints.assert_same(held, checkpoints.load_dcp(tmp_path / "0"))
    parts = {key.split(".")[1] for key in held if key.startswith("modality_submodules.")}
    assert parts == {spec.split("=")[0] for spec in specs} - {"language"}
    roots = ("language_model.", "modality_submodules.", "hf_extra.")
    assert all(key.startswith(roots) for key in held)
    shardwright("convert", made, tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


@pytest.mark.parametrize("name", ["qwen2_5_omni", "qwen3_asr", "step3p7", "nemotron_omni"])
def test_split_and_merged(shardwright, tmp_path, models, name):
    hf, source = models(name)
    shardwright("split", hf, tmp_path / "parts")
    parts = {part.name for part in (tmp_path / "parts").iterdir()} - {"model"}
    settings = json.loads((tmp_path / "parts/language/config.json").read_text())
    assert settings["hidden_size"] == 72 and "text_config" not in settings
    flags = [word for part in parts for word in ("--component", f"{part}={tmp_path}/parts/{part}")]
    config = ("--config", tmp_path / "parts" / "model")
    shardwright("merge", *flags, *config, tmp_path / "merged")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "merged"), source)


def test_experts_for_text_and_for_pictures(shardwright, tmp_path, models):
    """ERNIE 4.5 VL's routers are transposed, and the second half of the experts is Megatron's other
    layer of experts."""
    hf, source = models("ernie4_5_vl_moe")
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist")
    made = checkpoints.load_dcp(tmp_path / "out")
    for layer in (1, 2):
        theirs = f"model.layers.{layer}.mlp."
        ours = f"language_model.decoder.layers.{layer}.mlp."
        for pool, kind in enumerate(("text_moe_layer.", "vision_moe_layer.")):
            router = source[f"{theirs}gate.weight{'_1' * pool}"]
            assert torch.equal(made[ours + kind + "router.weight"], router.T)
            bias = source[theirs + "moe_statics.e_score_correction_bias"][pool]
            assert torch.equal(made[ours + kind + "router.expert_bias"], bias)
            for expert, rows in enumerate(made[ours + kind + "experts.experts.linear_fc1.weight"]):
                at = f"{theirs}experts.{6 * pool + expert}."
                gate, up = (source[f"{at}{part}_proj.weight"] for part in ("gate", "up"))
                assert torch.equal(rows, torch.cat([gate, up]))
    fc1 = "resampler_model.spatial_linear.fc1.weight"
    assert torch.equal(made[fc1], source["model.resampler_model.spatial_linear.0.weight"])
    whole = chunks(tmp_path / "out")
    assert len(whole[fc1]) == 1


@pytest.mark.parametrize("name, prefix", [("step3p5", ""), ("step3p7", "language_model.")])
def test_gates_of_heads(shardwright, tmp_path, models, name, prefix):
    """Step 3.5 has one for each head. Megatron has it for each of the head's channels, behind the
    queries of its group; layers with a sliding window have three heads in a group, not two."""
    hf, source = models(name)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", "--mtp", "keep")
    made = checkpoints.load_dcp(tmp_path / "out")
    names = {f"{prefix}decoder.layers.{n}.": (n, 2 if n == 0 else 3) for n in range(3)}
    if name == "step3p5":
        names["mtp.layers.0.transformer_layer."] = (3, 3)
    for ours, (layer, heads) in names.items():
        theirs = f"model.layers.{layer}.self_attn."
        q, k, v, g = (source[f"{theirs}{part}_proj.weight"] for part in "qkvg")
        fused = made[ours + "self_attention.linear_qkv.weight"].view(3, -1, 72)
        assert fused.shape[1] == (2 * heads + 2) * 20
        for group, rows in enumerate(fused):
            queries, gates, key, value = rows.split([20 * heads, 20 * heads, 20, 20])
            assert torch.equal(queries, q.view(3, -1, 72)[group])
            assert torch.equal(key, k.view(3, -1, 72)[group])
            assert torch.equal(value, v.view(3, -1, 72)[group])
            for gate, channels in zip(g.view(3, heads, 72)[group], gates.view(heads, 20, 72)):
                assert torch.equal(channels, gate.expand(20, 72))
    experts = made[f"{prefix}decoder.layers.1.mlp.experts.experts.linear_fc1.weight"]
    gate, up = (source[f"model.layers.1.moe.{part}_proj.weight"] for part in ("gate", "up"))
    assert torch.equal(experts, torch.cat([gate, up], dim=1))
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", "--mtp", "keep")


@pytest.mark.parametrize("rows", [61, 60 + 3 * 20 - 1])
def test_gates_that_differ_within_a_head_are_no_gate(shardwright, tmp_path, models, rows):
    """Training may do that to what Megatron has for each channel. The first layer has 2 heads in each
    of its groups, the second 3; a row of queries may be anything."""
    hf, _ = models("step3p5")
    flags = ("--to", "legacy", "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "legacy", *flags)
    (file,) = (tmp_path / "legacy").glob("iter_*/mp_rank_00*/*.pt")
    saved = torch.load(file, weights_only=False)
    fused = saved["model"]["decoder.layers.1.self_attention.linear_qkv.weight"]
    fused[7] += 1
    torch.save(saved, file)
    (tmp_path / "config").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "config")
    back = ("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf")
    back = (*back, "--hf-config", tmp_path / "config")
    shardwright(*back)
    fused[rows] += 1
    torch.save(saved, file)
    done = shardwright(*back, "--overwrite", expect=2)
    assert "error[SW0403]" in done.stderr and "decoder.layers.1." in done.stderr
    done = shardwright(*back, "--overwrite", "--accept-loss")
    assert "the first of them are written" in done.stderr


def test_gates_of_a_quantised_model(shardwright, tmp_path, models):
    """Rows that Megatron repeats are the dequantised ones."""
    hf, source = models("step3p5")
    quantised, plain = dict(source), dict(source)
    name = "model.layers.1.self_attn.g_proj.weight"
    scale = torch.full((1, 1), 0.5)
    quantised[name] = source[name].to(torch.float8_e4m3fn)
    quantised[name + "_scale_inv"] = scale
    plain[name] = (quantised[name].float() * scale).bfloat16()
    config = json.loads((hf / "config.json").read_text())
    write(tmp_path / "plain", plain, config)
    method = dict(quant_method="fp8", fmt="e4m3", weight_block_size=[128, 128])
    write(tmp_path / "quantised", quantised, {**config, "quantization_config": method})
    for form in ("plain", "quantised"):
        shardwright("convert", tmp_path / form, tmp_path / f"{form}_out", "--to", "torch_dist")
    one, other = (checkpoints.load_dcp(tmp_path / f"{form}_out") for form in ("plain", "quantised"))
    checkpoints.assert_same(other, one)


def test_arguments_lead_back(shardwright, tmp_path, models):
    """Llama-Nemotron's layers, by the text that Megatron's arguments have of them."""
    hf, source = models("decilm")
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist")
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    was, made = (json.loads((at / "config.json").read_text()) for at in (hf, tmp_path / "back"))
    assert made["model_type"] == "nemotron-nas"
    assert made["block_configs"] == was["block_configs"]
