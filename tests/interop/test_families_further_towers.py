# SPDX-License-Identifier: Apache-2.0
"""Models that see, of families that came last, in each form in which transformers saves them: there
and back by torch_dist, legacy and MIMO, with a config.json alone and from arguments."""
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models
from hf_further_sizes import FURTHER_SIZES, HEADS_OF_12

TEXT = dict(HEADS_OF_12, vocab_size=510, bos_token_id=1, eos_token_id=2)
TOWER = dict(
    hidden_size=48,
    intermediate_size=52,
    num_hidden_layers=2,
    num_attention_heads=6,
    image_size=28,
    patch_size=14,
)
SIGLIP = dict(TOWER, model_type="siglip_vision_model", vision_use_head=False)
GEMMA = dict(TEXT, head_dim=20)
COHERE = {
    {"rms_norm_eps": "layer_norm_eps"}.get(key, key): TEXT[key] for key in TEXT
}
COHERE.update(
    model_type="cohere2",
    sliding_window=7,
    layer_types=["sliding_attention", "full_attention", "sliding_attention"],
)
MLLAMA_TOWER = dict(
    {key: TOWER[key] for key in TOWER if key != "num_attention_heads"},
    attention_heads=6,
    num_global_layers=1,
    vision_output_dim=96,
    intermediate_layers_indices=[1],
    max_num_tiles=2,
    supported_aspect_ratios=[[1, 1], [1, 2]],
)

# name: model type, class, configuration
CASES = {
    "idefics3": (
        "idefics3",
        "Idefics3ForConditionalGeneration",
        dict(text_config=dict(TEXT, model_type="llama"), vision_config=TOWER, scale_factor=2),
    ),
    "smolvlm": (
        "smolvlm",
        "SmolVLMForConditionalGeneration",
        dict(
            text_config=dict(TEXT, model_type="llama"),
            vision_config=TOWER,
            scale_factor=2,
            tie_word_embeddings=True,
        ),
    ),
    "paligemma": (
        "paligemma",
        "PaliGemmaForConditionalGeneration",
        dict(text_config=dict(GEMMA, model_type="gemma"), vision_config=SIGLIP, projection_dim=72),
    ),
    "paligemma2": (
        "paligemma",
        "PaliGemmaForConditionalGeneration",
        dict(
            text_config=dict(GEMMA, model_type="gemma2", sliding_window=7),
            vision_config=SIGLIP,
            projection_dim=72,
        ),
    ),
    "aya_vision": (
        "aya_vision",
        "AyaVisionForConditionalGeneration",
        dict(text_config=COHERE, vision_config=SIGLIP),
    ),
    "aya_vision_cohere": (
        "aya_vision",
        "AyaVisionForConditionalGeneration",
        dict(
            text_config=dict(
                {key: COHERE[key] for key in COHERE if key not in ("sliding_window", "layer_types")},
                model_type="cohere",
                use_qk_norm=True,
            ),
            vision_config=SIGLIP,
        ),
    ),
    "cohere2_vision": (
        "cohere2_vision",
        "Cohere2VisionForConditionalGeneration",
        dict(text_config=COHERE, vision_config=SIGLIP, alignment_intermediate_size=88),
    ),
    "lfm2_vl": (
        "lfm2_vl",
        "Lfm2VlForConditionalGeneration",
        dict(
            text_config=dict(FURTHER_SIZES["lfm2"], model_type="lfm2", vocab_size=510),
            vision_config=dict(
                {key: TOWER[key] for key in TOWER if key != "image_size"},
                model_type="siglip2_vision_model",
                num_patches=9,
                vision_use_head=False,
            ),
            projector_hidden_size=44,
        ),
    ),
    "mllama": (
        "mllama",
        "MllamaForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT, num_hidden_layers=4, cross_attention_layers=[1, 3], pad_token_id=1
            ),
            vision_config=MLLAMA_TOWER,
        ),
    ),
}
# The tower of transformers' Gemma 3n is another library's.
WRITTEN = ("gemma3n_vl",)
FORMS = [(name, form) for name in CASES for form in ("published", "modules")]
FORMS += [(name, "published") for name in WRITTEN]


def embedder(name, width):
    """What makes tokens of pictures or sound."""
    return {
        f"{name}.embedding.weight": (28, width),
        f"{name}.hard_embedding_norm.weight": (width,),
        f"{name}.soft_embedding_norm.weight": (width,),
        f"{name}.embedding_projection.weight": (72, width),
    }


def gemma3n(folder):
    """The text model behind another prefix, and some tensors of towers."""
    config = transformers.AutoConfig.for_model("gemma3n_text", **FURTHER_SIZES["gemma3n_text"])
    model = transformers.Gemma3nForCausalLM._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    tensors = {
        name.replace("model.", "model.language_model.", 1): tensor.contiguous()
        for name, tensor in model.state_dict().items()
        if name != "lm_head.weight"
    }
    generator = torch.Generator().manual_seed(6)
    for name, shape in {
        "vision_tower.timm_model.blocks.0.0.conv_exp.weight": (24, 12, 3, 3),
        "vision_tower.timm_model.blocks.3.1.attn.value.proj.weight": (24, 36, 1, 1),
        **embedder("embed_vision", 48),
        "audio_tower.conformer.0.attention.attn.q_proj.weight": (36, 36),
        "audio_tower.conformer.0.attention.post.out_proj.weight": (36, 36),
        **embedder("embed_audio", 36),
    }.items():
        tensors["model." + name] = torch.randn(shape, generator=generator).bfloat16()
    written = dict(
        architectures=["Gemma3nForConditionalGeneration"],
        model_type="gemma3n",
        text_config=json.loads(config.to_json_string(use_diff=False)),
        vision_config=dict(model_type="gemma3n_vision", hidden_size=48),
        audio_config=dict(model_type="gemma3n_audio", hidden_size=36),
        tie_word_embeddings=True,
        torch_dtype="bfloat16",
    )
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(written))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def by_modules(tensors):
    """Published towers of SigLIP have a segment more, which transformers 5 does not write."""
    return {key.replace("vision_tower.vision_model.", "vision_tower."): tensors[key] for key in tensors}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return family_rounds.in_forms(tmp_path_factory, CASES, {"gemma3n_vl": gemma3n})


@pytest.mark.parametrize("name, form", FORMS)
def test_there_and_back(shardwright, tmp_path, models, name, form):
    hf, source = models(name, form)
    layout = ("--tp", 2, "--pp", 2, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *layout)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    family_rounds.of_local_modules(shardwright, hf, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_both_forms_are_one_model(shardwright, tmp_path, models, name):
    family_rounds.both_forms(shardwright, models, tmp_path, name)


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_through_legacy_with_a_config_alone(shardwright, tmp_path, models, name):
    hf, source = models(name, "published")
    flags = ("--to", "legacy", "--tp", 2, "--pp", 2, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "legacy", *flags)
    (tmp_path / "config").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    checkpoints.assert_same(by_modules(checkpoints.load_hf(tmp_path / "back")), by_modules(source))


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_from_arguments_alone(shardwright, tmp_path, models, name):
    hf, source = models(name, "published")
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *pad)
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    flags = ("--to", "hf", "--family", name)
    shardwright("convert", tmp_path / "out", tmp_path / "back", *flags)
    checkpoints.assert_same(by_modules(checkpoints.load_hf(tmp_path / "back")), by_modules(source))
    made, was = (
        json.loads((folder / "config.json").read_text()) for folder in (tmp_path / "back", hf)
    )
    assert made["architectures"] == was["architectures"]
    assert made["text_config"]["model_type"] == was["text_config"]["model_type"]
    if name not in WRITTEN:
        assert made["vision_config"]["model_type"] == was["vision_config"]["model_type"]
    for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"):
        assert made["text_config"][key] == was["text_config"][key]


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_through_mimo(shardwright, tmp_path, models, name):
    hf, source = models(name, "published")
    parts = ("images", "audio") if name == "gemma3n_vl" else ("images",)
    flags = [word for part in parts for word in ("--component", f"{part}=tp=1")]
    flags += ["--component", "language=tp=2", "--make-vocab-size-divisible-by", 1]
    shardwright("convert", hf, tmp_path / "mimo", "--to", "mimo", *flags)
    held = checkpoints.load_dcp(tmp_path / "mimo")
    assert any(key.startswith("modality_submodules.images.encoders.") for key in held)
    shardwright("convert", tmp_path / "mimo", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


ARGUMENTS = {
    "lfm2_vl": {"ffn_hidden_size": 80, "conv_L_cache": 3},
    "mllama": {"cross_attention_layers": [1, 3], "rotary_base": 5000},
    "paligemma2": {"window_attn_skip_freq": 2, "kv_channels": 20, "hidden_size": 72},
    "aya_vision_cohere": {"qk_layernorm": True, "window_size": None},
    "aya_vision": {"logit_scale": 0.0625, "no_rope_freq": [0, 1, 0]},
    "gemma3n_vl": {"altup_num_inputs": 3, "per_layer_embed_vocab_size": 400},
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_and_parts(shardwright, tmp_path, models, name):
    hf, _ = models(name, "published")
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *pad)
    shown = json.loads(shardwright("inspect", tmp_path / "out", "--json").stdout)
    expected = ARGUMENTS[name]
    assert {key: shown["arguments"].get(key) for key in expected} == expected
    parts = {key.split(".")[0] for key in checkpoints.load_dcp(tmp_path / "out")}
    if name == "gemma3n_vl":
        assert parts == {"language_model", *(f"{part}_tower" for part in ("vision", "audio")),
                         "embed_vision", "embed_audio"}  # fmt: skip
    else:
        assert parts == {"language_model", "vision_tower", "multi_modal_projector"}


def test_keys_and_values_of_cross_attention_lie_by_group(shardwright, tmp_path, models):
    hf, source = models("mllama", "published")
    pad = ("--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *pad)
    made = checkpoints.load_dcp(tmp_path / "out")
    theirs = "language_model.model.layers.1.cross_attn."
    keys, values = (source[f"{theirs}{part}_proj.weight"].view(3, 12, 72) for part in "kv")
    ours = made["language_model.decoder.layers.1.cross_attention.linear_kv.weight"]
    assert torch.equal(ours.view(3, 2, 12, 72), torch.stack([keys, values], dim=1))
    assert made["language_model.embedding.word_embeddings.weight"].shape[0] == 518
    assert made["language_model.output_layer.weight"].shape[0] == 510


def test_unused_keys_and_values_of_gemma3n(shardwright, tmp_path, models):
    """Published files have them for the layers that share those of earlier ones, too."""
    hf, source = models("gemma3n_vl", "published")
    shutil.copytree(hf, tmp_path / "hf")
    more = {
        name.replace(".layers.2.", f".layers.{layer}."): tensor.flip(0).contiguous()
        for name, tensor in source.items()
        for layer in (3, 4)
        if ".layers.2.self_attn.k_" in name or ".layers.2.self_attn.v_" in name
    }
    assert len(more) == 6
    save_file(more, tmp_path / "hf" / "more.safetensors")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), {**source, **more})


@pytest.mark.parametrize("name", ["paligemma", "aya_vision"])
def test_files_that_do_not_say_what_is_tied(shardwright, tmp_path, models, name):
    """As published: their language models' embeddings are."""
    hf, source = models(name, "published")
    shutil.copytree(hf, tmp_path / "hf")
    config = json.loads((hf / "config.json").read_text())
    assert config.pop("tie_word_embeddings") and config["text_config"].pop("tie_word_embeddings")
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    shown = json.loads(shardwright("inspect", tmp_path / "out", "--json").stdout)
    assert not shown["arguments"]["untie_embeddings_and_output_weights"]
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


@pytest.mark.parametrize("name", [*CASES, *WRITTEN])
def test_parts_make_the_model_again(shardwright, tmp_path, models, name):
    hf, source = models(name, "published")
    shardwright("split", hf, tmp_path / "parts")
    parts = sorted(part.name for part in (tmp_path / "parts").iterdir() if part.name != "model")
    audio = ["audio"] if name == "gemma3n_vl" else []
    assert parts == ["adapter", *audio, "images", "language"]
    flags = [word for part in parts for word in ("--component", f"{part}={tmp_path / 'parts' / part}")]
    shardwright("merge", tmp_path / "again", *flags, "--config", tmp_path / "parts" / "model")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "again"), source)


def test_rows_of_mllamas_embedding_beyond_the_vocabulary_count(shardwright, tmp_path, models):
    """Eight more than the head has: they are no padding, which comes behind them."""
    hf, source = models("mllama", "published")
    key = next(name for name in source if name.endswith("embed_tokens.weight"))
    rows = source[key].shape[0]
    shutil.copytree(hf, tmp_path / "other")
    changed = dict(source)
    changed[key] = source[key].clone()
    changed[key][-1] += 1
    for file in (tmp_path / "other").glob("*.safetensors*"):
        file.unlink()
    save_file(changed, tmp_path / "other/model.safetensors", metadata={"format": "pt"})
    pad = ("--make-vocab-size-divisible-by", 16)
    for name, folder in (("one", hf), ("two", tmp_path / "other")):
        shardwright("convert", folder, tmp_path / name, "--to", "torch_dist", *pad)
    held = checkpoints.load_dcp(tmp_path / "one")
    assert held["language_model.embedding.word_embeddings.weight"].shape[0] == 528
    assert held["language_model.output_layer.weight"].shape[0] == 512
    shardwright("diff", tmp_path / "one", hf)
    shardwright("verify", tmp_path / "one", "--against", hf)
    shardwright("diff", tmp_path / "one", tmp_path / "two", expect=1)
    shardwright("diff", tmp_path / "one", tmp_path / "other", expect=1)
    shardwright("verify", tmp_path / "two", "--against", hf, expect=1)
    digests = [shardwright("hash", tmp_path / name, "--json").stdout for name in ("one", "two")]
    hashes = [json.loads(text)["tensors"] for text in digests]
    assert hashes[0] != hashes[1]
    shardwright("hash", hf, "--manifest", tmp_path / "manifest")
    shardwright("verify", tmp_path / "one", "--against", tmp_path / "manifest")
    shardwright("verify", tmp_path / "two", "--against", tmp_path / "manifest", expect=1)
    # Of what tells nothing of its vocabulary the other side's rows count.
    shardwright("convert", tmp_path / "one", tmp_path / "bare", "--to", "torch_dist")
    folder = next((tmp_path / "bare").glob("iter_*"))
    shutil.rmtree(folder / "hf")
    (folder / "common.pt").unlink()
    shardwright("diff", tmp_path / "bare", hf)
    shardwright("diff", tmp_path / "bare", tmp_path / "other", expect=1)
    # Padded anew for two ranks, to fewer rows than the vocabulary's height would be cut to.
    shardwright("convert", tmp_path / "one", tmp_path / "more", "--to", "torch_dist", "--tp", 2,
                "--make-vocab-size-divisible-by", 1)  # fmt: skip
    held = checkpoints.load_dcp(tmp_path / "more")
    assert held["language_model.embedding.word_embeddings.weight"].shape[0] == rows
    assert held["language_model.output_layer.weight"].shape[0] == rows - 8
    shardwright("convert", tmp_path / "more", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
