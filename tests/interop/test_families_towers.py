# SPDX-License-Identifier: Apache-2.0
"""Models with parts that Megatron takes over as they are, and models that transformers lacks: there
and back, by every kind of checkpoint."""
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
import test_families_hybrid
from test_families_hybrid import chunks

VISION = dict(
    hidden_size=36,
    intermediate_size=52,
    num_hidden_layers=2,
    num_attention_heads=3,
    head_dim=12,
)
GEMMA_TOWER = dict(
    VISION,
    num_key_value_heads=3,
    patch_size=4,
    position_embedding_size=50,
    pooling_kernel_size=2,
    use_clipped_linears=True,
)
PIXTRAL = dict(VISION, image_size=28, patch_size=14, model_type="pixtral")
GROWING = {**hf_sizes.YARN, "llama_4_scaling_beta": 0.3}


def gemma4(**text):
    sizes = hf_sizes.FAMILY_SIZES["gemma4_text"]
    return dict(text_config={**sizes, **text}, vision_config=GEMMA_TOWER, audio_config=None)


def mistral3(**text):
    return dict(text_config=dict(hf_sizes.SIZES, **text), vision_config=PIXTRAL)


# name: model type, class, configuration
CASES = {
    "gemma4_vl": ("gemma4", "Gemma4ForConditionalGeneration", gemma4()),
    "gemma4_vl_moe": ("gemma4", "Gemma4ForConditionalGeneration", gemma4(**hf_sizes.GEMMA4_EXPERTS)),
    "mistral3": (
        "mistral3",
        "Mistral3ForConditionalGeneration",
        mistral3(model_type="ministral3", rope_parameters=GROWING),
    ),
    "llama4_vl": (
        "llama4",
        "Llama4ForConditionalGeneration",
        dict(
            text_config=hf_sizes.FAMILY_SIZES["llama4_text"],
            vision_config=dict(
                hidden_size=36,
                intermediate_size=144,
                num_hidden_layers=2,
                num_attention_heads=3,
                image_size=28,
                patch_size=14,
                vision_output_dim=32,
                projector_input_dim=32,
                projector_output_dim=32,
            ),
        ),
    ),
    "minimax_m3": (
        "minimax_m3_vl",
        "MiniMaxM3SparseForConditionalGeneration",
        dict(
            text_config=dict(
                hf_sizes.PACKED_EXPERT_SIZES,
                intermediate_size=40,
                dense_intermediate_size=104,
                shared_intermediate_size=48,
                rotary_dim=10,
                index_n_heads=3,
                index_head_dim=18,
                index_block_size=8,
                index_topk_blocks=3,
                layer_types=["full_attention", "minimax_m3_sparse", "minimax_m3_sparse"],
                mlp_layer_types=["dense", "sparse", "sparse"],
                pad_token_id=None,
                bos_token_id=1,
                eos_token_id=2,
            ),
            vision_config={key: VISION[key] for key in VISION if key != "head_dim"}
            | dict(image_size=28, patch_size=14),
            projector_hidden_size=44,
        ),
    ),
    "qwen2_audio": (
        "qwen2_audio",
        "Qwen2AudioForConditionalGeneration",
        dict(
            text_config=dict(hf_sizes.SIZES, head_dim=12, model_type="qwen2"),
            audio_config=dict(hf_sizes.AUDIO_ENCODER, model_type="qwen2_audio_encoder"),
        ),
    ),
    "mistral3_tied": (
        "mistral3",
        "Mistral3ForConditionalGeneration",
        dict(mistral3(model_type="mistral"), tie_word_embeddings=True),
    ),
}


def build(folder, name):
    """Saves a random model of a case in `folder` and returns its tensors."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = getattr(transformers, architecture)._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    model.save_pretrained(folder, max_shard_size="300KB")
    return checkpoints.load_hf(folder)


TOWER = ("vision_tower.", "model.vision_tower.", "vision_model.", "model.vision_model.")
TOWER += ("audio_tower.", "model.audio_tower.")


def kimi_k25(folder):
    """By the published names: the text of Kimi K2 beside a tower."""
    hf_models.create(
        folder, "deepseek_v3", dtype=torch.bfloat16, vocab_size=510, tie_word_embeddings=False
    )
    generator = torch.Generator().manual_seed(5)
    tensors = {
        "language_model." + key: value.float() if key.endswith("correction_bias") else value
        for key, value in checkpoints.load_hf(folder).items()
    }
    for name, shape in {
        "vision_tower.patch_embed.proj.weight": (36, 3, 14, 14),
        "vision_tower.patch_embed.proj.bias": (36,),
        "vision_tower.patch_embed.pos_emb.weight": (8, 8, 36),
        "vision_tower.encoder.blocks.0.wqkv.weight": (108, 36),
        "vision_tower.encoder.blocks.1.wqkv.weight": (108, 36),
        "vision_tower.encoder.final_layernorm.weight": (36,),
        "vision_tower.encoder.final_layernorm.bias": (36,),
        "mm_projector.pre_norm.weight": (36,),
        "mm_projector.pre_norm.bias": (36,),
        "mm_projector.proj.0.weight": (72, 144),
    }.items():
        tensors[name] = torch.randn(shape, generator=generator).bfloat16()
    text = json.loads((folder / "config.json").read_text())
    config = dict(
        architectures=["KimiK25ForConditionalGeneration"],
        model_type="kimi_k25",
        text_config={**text, "model_type": "kimi_k2"},
        vision_config=dict(hidden_size=36),
        tie_word_embeddings=False,
        dtype="bfloat16",
    )
    return tensors, config


LING_NAMES = (
    ("model.embed_tokens.", "model.word_embeddings."),
    ("self_attn.o_proj.", "attention.dense."),
    ("self_attn.q_norm.", "attention.query_layernorm."),
    ("self_attn.k_norm.", "attention.key_layernorm."),
    ("gate.e_score_correction_bias", "gate.expert_bias"),
)


def bailing(folder):
    """dots.llm1, whose layers have the same parts, by the names of Ling 2."""
    hf_models.create(folder, "dots1", dtype=torch.bfloat16, sliding_window=None, layer_types=None)
    made = checkpoints.load_hf(folder)
    tensors = {}
    for name, tensor in made.items():
        if ".q_proj." in name:
            parts = [made[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            name = name.replace("self_attn.q_proj", "attention.query_key_value")
            tensor = torch.cat(parts)
        elif ".k_proj." in name or ".v_proj." in name:
            continue
        for old, new in LING_NAMES:
            name = name.replace(old, new)
        tensors[name] = tensor.float() if name.endswith("expert_bias") else tensor
    config = json.loads((folder / "config.json").read_text())
    config.update(
        architectures=["BailingMoeV2ForCausalLM"],
        model_type="bailing_moe_v2",
        num_experts=config.pop("n_routed_experts"),
        num_shared_experts=config.pop("n_shared_experts"),
    )
    for key in ("sliding_window", "layer_types", "max_window_layers"):
        del config[key]
    return tensors, config


def sarvam_moe(folder):
    tensors, config = bailing(folder)
    config.update(architectures=["SarvamMoEForCausalLM"], model_type="sarvam_moe")
    return tensors, config


def sarvam_mla(folder):
    """DeepSeek-V3 without compressed queries, by the words that Sarvam's files have."""
    rope = dict(
        rope_type="deepseek_yarn",
        factor=40.0,
        original_max_position_embeddings=64,
        beta_fast=32.0,
        beta_slow=1.0,
        mscale=1.0,
        mscale_all_dim=1.0,
    )
    hf_models.create(
        folder, "deepseek_v3", dtype=torch.bfloat16, q_lora_rank=None, n_group=1, topk_group=1
    )
    config = json.loads((folder / "config.json").read_text())
    config.update(
        architectures=["SarvamMLAForCausalLM"],
        model_type="sarvam_mla",
        num_experts=config.pop("n_routed_experts"),
        num_shared_experts=config.pop("n_shared_experts"),
        rope_theta=config.pop("rope_parameters")["rope_theta"],
        rope_scaling=rope,
    )
    tensors = {
        name: tensor.float() if name.endswith("correction_bias") else tensor
        for name, tensor in checkpoints.load_hf(folder).items()
    }
    return tensors, config


LLADA_NAMES = (
    ("model.embed_tokens.", "model.transformer.wte."),
    ("model.norm.", "model.transformer.ln_f."),
    ("lm_head.", "model.transformer.ff_out."),
    ("model.layers.", "model.transformer.blocks."),
    ("input_layernorm.", "attn_norm."),
    ("post_attention_layernorm.", "ff_norm."),
    ("self_attn.o_proj.", "attn_out."),
    ("self_attn.", ""),
    ("mlp.gate_proj.", "ff_proj."),
    ("mlp.up_proj.", "up_proj."),
    ("mlp.down_proj.", "ff_out."),
)


def llada(folder):
    """A Llama by the names and words of LLaDA."""
    hf_models.create(folder, "llama", dtype=torch.bfloat16, head_dim=12)
    tensors = {}
    for name, tensor in checkpoints.load_hf(folder).items():
        for old, new in LLADA_NAMES:
            name = name.replace(old, new)
        tensors[name] = tensor
    was = json.loads((folder / "config.json").read_text())
    config = dict(
        architectures=["LLaDAModelLM"],
        model_type="llada",
        block_type="llama",
        layer_norm_type="rms",
        activation_type="silu",
        d_model=was["hidden_size"],
        embedding_size=was["vocab_size"],
        include_bias=False,
        include_qkv_bias=False,
        attention_layer_norm=False,
        max_sequence_length=was["max_position_embeddings"],
        mlp_hidden_size=was["intermediate_size"],
        n_heads=was["num_attention_heads"],
        n_kv_heads=was["num_key_value_heads"],
        n_layers=was["num_hidden_layers"],
        rms_norm_eps=was["rms_norm_eps"],
        rope_theta=5000.0,
        rope=True,
        vocab_size=was["vocab_size"],
        weight_tying=False,
    )
    return tensors, config


RADIO = "vision_model.radio_model."


def nemotron_vl(folder):
    """By the published names: a Nemotron-H behind a RADIO tower, inside one wrapper in Megatron."""
    text = test_families_hybrid.build(folder, "nemotron_h")
    tensors = {
        "language_model." + key.replace("backbone.embedding.", "backbone.embeddings."): value
        for key, value in text.items()
    }
    shapes = {
        RADIO + "model.patch_generator.cls_token.token": (5, 36),
        RADIO + "model.patch_generator.pos_embed": (1, 9, 36),
        RADIO + "model.patch_generator.embedder.weight": (36, 48),
        "mlp1.0.weight": (144,),
        "mlp1.1.weight": (44, 144),
        "mlp1.3.weight": (72, 44),
    }
    rows = {"norm1": (), "norm2": (), "attn.qkv": (108,), "attn.proj": (36,), "mlp.fc1": (52,)}
    for layer in range(3):
        for part, height in rows.items():
            shapes[f"{RADIO}model.blocks.{layer}.{part}.weight"] = (*height, 36)
            shapes[f"{RADIO}model.blocks.{layer}.{part}.bias"] = height or (36,)
        shapes[f"{RADIO}model.blocks.{layer}.mlp.fc2.weight"] = (36, 52)
        shapes[f"{RADIO}model.blocks.{layer}.mlp.fc2.bias"] = (36,)
    generator = torch.Generator().manual_seed(5)
    for name, shape in shapes.items():
        tensors[name] = torch.randn(shape, generator=generator).bfloat16()
    config = dict(
        architectures=["NemotronH_Nano_VL_V2"],
        model_type="NemotronH_Nano_VL_V2",
        llm_config=json.loads((folder / "config.json").read_text()),
        vision_config=dict(num_hidden_layers=3, num_attention_heads=6, intermediate_size=52),
        vit_hidden_size=36,
        patch_size=4,
        projector_hidden_size=44,
        tie_word_embeddings=False,
        torch_dtype="bfloat16",
    )
    return tensors, config


WRITTEN = dict([("kimi_k25", kimi_k25), ("bailing_moe_v2", bailing), ("sarvam_moe", sarvam_moe)])
WRITTEN.update([("sarvam_mla", sarvam_mla), ("llada", llada), ("nemotron_vl", nemotron_vl)])
# Of their words these are not said by any argument, or are said otherwise.
UNTOLD = {"transformers_version", "pad_token_id", "bos_token_id", "eos_token_id", "dtype"}
UNTOLD |= {"pretraining_tp", "head_dim", "qk_head_dim", "rope_interleave", "layer_types"}


@pytest.fixture(params=[*CASES, *WRITTEN])
def model(request, tmp_path):
    """Its name and tensors; the model is in hf/."""
    if request.param in CASES:
        return request.param, build(tmp_path / "hf", request.param)
    tensors, config = WRITTEN[request.param](tmp_path / "made")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
    return request.param, tensors


def has_experts(name):
    return name.endswith("_moe") or name in ("llama4_vl", "minimax_m3") or (name in WRITTEN and name != "llada")


def test_there_and_back(shardwright, tmp_path, model):
    name, source = model
    experts = ("--ep", 2) if has_experts(name) else ()
    flags = ("--to", "torch_dist", "--tp", 2, "--pp", 2, *experts)
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", *flags, *pad)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    family_rounds.of_local_modules(shardwright, tmp_path / "hf", tmp_path)


def test_through_legacy_with_a_config_alone(shardwright, tmp_path, model):
    _, source = model
    shardwright("convert", tmp_path / "hf", tmp_path / "legacy", "--to", "legacy", "--pp", 3)
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", source)
    (tmp_path / "config").mkdir()
    shutil.copy(tmp_path / "hf" / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    # Megatron holds it as float32 always, and so do published files.
    expected = {
        key: value.float() if key.endswith("correction_bias") else value
        for key, value in source.items()
    }
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)


@pytest.mark.parametrize("name", [name for name in WRITTEN if name not in ("kimi_k25", "nemotron_vl")])
def test_by_arguments_alone(shardwright, tmp_path, name):
    """They lead to the words of the published config.json."""
    tensors, config = WRITTEN[name](tmp_path / "made")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", *pad)
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    family = ("--family", name)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", *family)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), tensors)
    made = json.loads((tmp_path / "back" / "config.json").read_text())
    told = {key: value for key, value in config.items() if key in made and key not in UNTOLD}
    assert {key: made[key] for key in told} == told
    assert len(told) > 12
    assert made.get("rope_scaling") == config.get("rope_scaling")


@pytest.mark.parametrize("name, twin", [("llada", "llama"), ("sarvam_mla", "deepseek_v3")])
def test_other_words_for_the_same_model(shardwright, tmp_path, name, twin):
    """Megatron has the tensors that it has of the model which this one was made of."""
    tensors, config = WRITTEN[name](tmp_path / twin)
    (tmp_path / name).mkdir()
    (tmp_path / name / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / name / "model.safetensors", metadata={"format": "pt"})
    for form in (name, twin):
        shardwright("convert", tmp_path / form, tmp_path / f"{form}_out", "--to", "torch_dist")
    made, expected = (checkpoints.load_dcp(tmp_path / f"{form}_out") for form in (name, twin))
    checkpoints.assert_same(made, expected)


def test_without_its_tower(shardwright, tmp_path, model):
    name, source = model
    kept = {key: value for key, value in source.items() if not key.startswith(TOWER)}
    if len(kept) == len(source):
        assert name in WRITTEN and name not in ("kimi_k25", "nemotron_vl")
        return
    (tmp_path / "bare").mkdir()
    shutil.copy(tmp_path / "hf" / "config.json", tmp_path / "bare")
    save_file(kept, tmp_path / "bare" / "model.safetensors", metadata={"format": "pt"})
    flags = ("--to", "torch_dist")
    done = shardwright("convert", tmp_path / "bare", tmp_path / "out", *flags, expect=2)
    towers = ("vision_tower.*", "audio_tower.*", "vision_model.*", RADIO + "model.")
    assert any(tower in done.stderr for tower in towers)
    assert not (tmp_path / "out").exists()


def test_gates_and_indexers_of_minimax_m3(shardwright, tmp_path):
    """Megatron's order of the two, and the indexers beside the model: mistakes in either look
    alike in a round trip."""
    hf = build(tmp_path / "hf", "minimax_m3")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    made = checkpoints.load_dcp(tmp_path / "out")
    for layer in (1, 2):
        source = f"language_model.model.layers.{layer}."
        target = f"language_model.decoder.layers.{layer}.mlp."
        experts = source + "block_sparse_moe."
        for expert, ours in enumerate(made[target + "experts.experts.linear_fc1.weight"]):
            gate, up = (hf[f"{experts}experts.{expert}.{part}.weight"] for part in ("w1", "w3"))
            assert torch.equal(ours, torch.cat([gate, up]))
        gate, up = (hf[f"{experts}shared_experts.{part}_proj.weight"] for part in ("gate", "up"))
        assert torch.equal(made[target + "shared_experts.linear_fc1.weight"], torch.cat([gate, up]))
        for part in ("q_proj", "k_proj", "q_norm", "k_norm"):
            ours = made[f"lightning_indexers.{layer}.{part}.weight"]
            assert torch.equal(ours, hf[f"{source}self_attn.index_{part}.weight"])


def test_stages_of_a_wrapped_model(shardwright, tmp_path):
    """Megatron-Bridge's Nemotron VL has the model inside another: its layers are shared out all the
    same, and rows of the tower's attention lie head by head."""
    tensors, config = nemotron_vl(tmp_path / "made")
    (tmp_path / "hf").mkdir()
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    save_file(tensors, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "legacy", "--pp", 2)
    own = []
    for stage in range(2):
        folder = checkpoints.iteration_folder(tmp_path / "out") / f"mp_rank_00_{stage:03d}"
        own.append(torch.load(folder / "model_optim_rng.pt", weights_only=False)["model"])  # ours
    layers = "llava_model.language_model.decoder.layers."
    numbers = [{key.removeprefix(layers)[0] for key in stage if key.startswith(layers)} for stage in own]
    assert numbers == [{"0", "1"}, {"0", "1"}]
    tower = "llava_model.vision_model."
    assert not any(key.startswith(tower) for key in own[1])
    assert own[0][tower + "embedder._extra_state"] is None
    source = tensors[RADIO + "model.blocks.1.attn.qkv.weight"].view(3, 6, 6, 36)
    ours = own[0][tower + "decoder.layers.1.self_attention.linear_qkv.weight"]
    assert torch.equal(ours, source.transpose(0, 1).reshape(108, 36))


def test_a_tower_for_sound(shardwright, tmp_path):
    """Whole on every rank under its own names, and a part that has ranks of its own."""
    source = build(tmp_path / "hf", "qwen2_audio")
    padded = ("--make-vocab-size-divisible-by", 128)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2, *padded)
    made = checkpoints.load_dcp(tmp_path / "out")
    parts = ("audio_tower.", "multi_modal_projector.")
    kept = {key: value for key, value in source.items() if key.startswith(parts)}
    assert len(kept) == 39
    checkpoints.assert_same({key: made[key] for key in made if key.startswith(parts)}, kept)
    whole = chunks(tmp_path / "out")
    assert all(len(whole[key]) == 1 for key in kept)
    specs = ("--component", "language=tp=2", "--component", "audio=tp=1")
    shardwright("convert", tmp_path / "out", tmp_path / "mimo", "--to", "mimo", *specs)
    path = "modality_submodules.audio.encoders.qwen2_audio.conv1.weight"
    assert torch.equal(checkpoints.load_dcp(tmp_path / "mimo")[path], source["audio_tower.conv1.weight"])
    shardwright("convert", tmp_path / "mimo", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    shardwright("split", tmp_path / "hf", tmp_path / "parts")
    assert {part.name for part in (tmp_path / "parts").iterdir()} == {"adapter", "audio", "language", "model"}


@pytest.mark.parametrize("name, expected", [
    ("gemma4_vl", {
        "language_model.decoder.layers.self_attention_sliding.linear_qkv.weight": (4, 240, 72),
        "language_model.decoder.layers.self_attention_global.linear_qkv.weight": (2, 336, 72),
        "language_model.decoder.layers.self_attention_global.q_layernorm.weight": (2, 28),
        "language_model.decoder.layers.layer_scalar": (6, 1),
        "language_model.per_layer_embedding.weight": (510, 60),
        "language_model.per_layer_proj_norm.weight": (10,),
        "embed_vision.embedding_projection.weight": (72, 36),
        "vision_tower.encoder.layers.1.self_attn.q_proj.input_max": (),
    }),
    ("gemma4_vl_moe", {
        "language_model.decoder.layers.self_attention_global.linear_qkv.weight": (2, 280, 72),
        "language_model.decoder.layers.self_attention_sliding.linear_proj.post_layernorm.weight":
            (4, 72),
        "language_model.decoder.layers.mlp.experts.experts.linear_fc1.weight": (6, 6, 80, 72),
        "language_model.decoder.layers.mlp.router.per_expert_scale": (6, 6),
        "language_model.decoder.layers.post_ffn_layernorm.weight": (6, 72),
        "language_model.decoder.layers.mlp.post_moe_layernorm.weight": (6, 72),
    }),
])
def test_names_and_shapes_in_megatron(shardwright, tmp_path, name, expected):
    """Those that Megatron-Bridge registers, with the stacks that its modules make."""
    build(tmp_path / "hf", name)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    made = {key: tuple(value.shape) for key, value in checkpoints.load_dcp(tmp_path / "out").items()}
    assert {key: made.get(key) for key in expected} == expected


def test_values_that_are_keys(shardwright, tmp_path):
    """Megatron's projection has their rows twice; those of layers that share have zeros."""
    hf_models.create(
        tmp_path / "hf",
        "gemma4_text",
        dtype=torch.bfloat16,
        attention_k_eq_v=True,
        num_global_key_value_heads=2,
        num_kv_shared_layers=2,
    )
    source = checkpoints.load_hf(tmp_path / "hf")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    made = checkpoints.load_dcp(tmp_path / "out")
    own, shared = made["decoder.layers.self_attention_global.linear_qkv.weight"]
    for group, rows in enumerate(own.view(2, 5 * 28, 72)):
        keys = source["model.layers.1.self_attn.k_proj.weight"].view(2, 28, 72)[group]
        assert torch.equal(rows[3 * 28 : 4 * 28], keys) and torch.equal(rows[4 * 28 :], keys)
    queries = source["model.layers.5.self_attn.q_proj.weight"].view(2, 3 * 28, 72)
    for group, rows in enumerate(shared.view(2, 5 * 28, 72)):
        assert torch.equal(rows[: 3 * 28], queries[group]) and not rows[3 * 28 :].any()
    assert (made["decoder.layers.self_attention_global.k_layernorm.weight"][1] == 1).all()
