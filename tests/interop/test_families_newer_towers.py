# SPDX-License-Identifier: Apache-2.0
"""Models that see and hear, of families that came after the others, in each form in which
transformers saves them: as they were published, and as its modules are."""
import shutil

import pytest
import transformers

import checkpoints
import family_rounds
import hf_sizes
from hf_newer_sizes import NEWER_SIZES
from hf_sizes import MOE_SIZES, SIZES

GLM_VISION = dict(
    depth=2, hidden_size=36, num_heads=3, image_size=28, patch_size=14, out_hidden_size=72,
    intermediate_size=52,
)
GLM_TEXT = dict(SIZES, head_dim=12, vocab_size=510, pad_token_id=None)
GLM_TEXT["rope_parameters"] = {
    "rope_type": "default",
    "rope_theta": 5000.0,
    "mrope_section": [1, 1, 1],
    "partial_rotary_factor": 0.5,
}
QWEN_VISION = dict(
    depth=2, hidden_size=36, intermediate_size=52, num_heads=3, patch_size=4, out_hidden_size=72
)
AUDIO = dict(hf_sizes.AUDIO_ENCODER, output_dim=72)
MISTRAL4 = dict(NEWER_SIZES["mistral4"], model_type="mistral4", vocab_size=510)
UNIFIED = dict(NEWER_SIZES["gemma4_unified_text"], use_bidirectional_attention="vision")

# name: model type, class, configuration
CASES = {
    "glm4v": (
        "glm4v",
        "Glm4vForConditionalGeneration",
        dict(text_config=GLM_TEXT, vision_config=GLM_VISION),
    ),
    "glm46v": (
        "glm46v",
        "Glm46VForConditionalGeneration",
        dict(
            text_config=dict(GLM_TEXT, model_type="glm4v_text"),
            vision_config=dict(GLM_VISION, model_type="glm4v_vision"),
            tie_word_embeddings=True,
        ),
    ),
    "mistral4_vl": (
        "mistral3",
        "Mistral3ForConditionalGeneration",
        dict(
            text_config=MISTRAL4,
            vision_config=dict(hf_sizes.VIT, model_type="pixtral", head_dim=6),
            spatial_merge_size=2,
        ),
    ),
    "qwen2_5_omni_thinker": (
        "qwen2_5_omni_thinker",
        "Qwen2_5OmniThinkerForConditionalGeneration",
        dict(
            text_config=dict(SIZES, head_dim=12, vocab_size=510),
            audio_config=AUDIO,
            vision_config=QWEN_VISION,
        ),
    ),
    "qwen3_omni_moe_thinker": (
        "qwen3_omni_moe_thinker",
        "Qwen3OmniMoeThinkerForConditionalGeneration",
        dict(
            text_config=dict(MOE_SIZES, num_experts=6, vocab_size=510),
            audio_config=dict(AUDIO, downsample_hidden_size=12),
            vision_config=dict(
                QWEN_VISION, num_position_embeddings=16, deepstack_visual_indexes=[0]
            ),
        ),
    ),
    "gemma4_unified": (
        "gemma4_unified",
        "Gemma4UnifiedForConditionalGeneration",
        dict(
            text_config=dict(UNIFIED, vocab_size=510),
            vision_config=dict(
                patch_size=4, mm_embed_dim=36, mm_posemb_size=12, output_proj_dims=36
            ),
            audio_config=dict(output_proj_dims=28),
        ),
    ),
}
HAVE_EXPERTS = ("mistral4_vl", "qwen3_omni_moe_thinker")
FORMS = [(name, form) for name in CASES for form in ("published", "modules")]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return family_rounds.in_forms(tmp_path_factory, CASES)


@pytest.mark.parametrize("name, form", FORMS)
def test_there_and_back(shardwright, tmp_path, models, name, form):
    hf, source = models(name, form)
    experts = ("--ep", 2) if name in HAVE_EXPERTS else ()
    layout = ("--tp", 2, "--pp", 2, *experts, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *layout)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    family_rounds.of_local_modules(shardwright, hf, tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_both_forms_are_one_model(shardwright, tmp_path, models, name):
    family_rounds.both_forms(shardwright, models, tmp_path, name)


@pytest.mark.parametrize("name", CASES)
def test_transformers_reads_what_a_config_alone_gives(shardwright, tmp_path, models, name):
    """Through legacy; each parameter is found, and nothing else is there."""
    hf, source = models(name, "published")
    flags = ("--to", "legacy", "--tp", 2, "--pp", 2, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "legacy", *flags)
    (tmp_path / "config").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    model_class = getattr(transformers, CASES[name][1])
    was, now = (
        model_class.from_pretrained(folder, output_loading_info=True)
        for folder in (hf, tmp_path / "back")
    )
    assert not any(now[1].values()), now[1]
    checkpoints.assert_same(now[0].state_dict(), was[0].state_dict())


@pytest.mark.parametrize("name", CASES)
def test_from_arguments_alone(shardwright, tmp_path, models, name):
    hf, source = models(name, "published")
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist")
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    named = {"gemma4_unified": "gemma4_unified_vl", "glm46v": "glm4v"}.get(name, name)
    flags = ("--to", "hf", "--family", named)
    shardwright("convert", tmp_path / "out", tmp_path / "back", *flags)
    back = checkpoints.load_hf(tmp_path / "back")
    assert {key: value.shape for key, value in back.items()} == {
        key: value.shape for key, value in source.items()
    }
