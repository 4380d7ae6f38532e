# SPDX-License-Identifier: Apache-2.0
"""What merge puts together and split takes apart, transformers loads: a whole computes what its
parts compute, and a part what it computed in the whole."""
import copy

import pytest
import torch
import transformers
from safetensors.torch import save_file
from torch.testing import assert_close

import hf_models
from test_families_hybrid import CASES
from test_vision_towers import saved

PARTS = {"clip": "llava_next", "siglip": "llava_onevision"}


def loaded(folder, auto):
    """The model of a folder, nothing missing and nothing left over."""
    weights, report = auto.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    assert not any(report[key] for key in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    # A second one, for the same reason as in hf_models.load.
    kind = type(weights)
    model = kind._from_config(weights.config, dtype=torch.float32, **hf_models.EAGER)
    model.load_state_dict(weights.state_dict())
    return model.eval()


def created(folder, kind, config, seed):
    """A model of its own, with values that no other one here has."""
    model = kind._from_config(copy.deepcopy(config), dtype=torch.float32, **hf_models.EAGER)
    hf_models.fill(model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1 + seed / 16)
    model.eval().save_pretrained(folder)
    return model


def ids():
    return torch.randint(8, 500, (2, 40), generator=torch.Generator().manual_seed(2))


def image():
    return torch.randn(2, 3, 28, 28, generator=torch.Generator().manual_seed(3))


@pytest.mark.parametrize("tower", PARTS)
def test_a_merged_model_computes_what_its_parts_compute(shardwright, tmp_path, tower):
    model_type, architecture, settings = copy.deepcopy(CASES[PARTS[tower]])
    config = transformers.AutoConfig.for_model(model_type, **settings)
    whole = getattr(transformers, architecture)
    whole._from_config(config, dtype=torch.float32).save_pretrained(tmp_path / "config")
    text = {"clip": transformers.MistralForCausalLM, "siglip": transformers.Qwen2ForCausalLM}
    eyes = {"clip": transformers.CLIPVisionModel, "siglip": transformers.SiglipVisionModel}
    language = created(tmp_path / "language", text[tower], config.text_config, 1)
    vision = created(tmp_path / "vision", eyes[tower], config.vision_config, 2)
    generator = torch.Generator().manual_seed(5)
    adapter = {
        f"multi_modal_projector.linear_{i}.{kind}": torch.randn(shape, generator=generator)
        for i, width in ((1, 36), (2, 72))
        for kind, shape in (("weight", (72, width)), ("bias", (72,)))
    }
    adapter["image_newline"] = torch.randn(72, generator=generator)
    (tmp_path / "adapter").mkdir()
    save_file(adapter, tmp_path / "adapter" / "model.safetensors", metadata={"format": "pt"})
    folders = {"language": "language", "images": "vision", "adapter": "adapter"}
    flags = [f"--component={name}={tmp_path / folder}" for name, folder in folders.items()]
    shardwright("merge", tmp_path / "whole", *flags, "--config", tmp_path / "config" / "config.json")

    merged = loaded(tmp_path / "whole", whole)
    features = torch.randn(5, 36, generator=generator)
    with torch.no_grad():
        assert_close(merged(input_ids=ids()).logits, language(ids()).logits, rtol=0, atol=0)
        ours = merged.model.vision_tower(image()).last_hidden_state
        assert_close(ours, vision(image()).last_hidden_state, rtol=0, atol=0)
        names = [f"multi_modal_projector.linear_{i}" for i in (1, 2)]
        first, second = ((adapter[f"{n}.weight"], adapter[f"{n}.bias"]) for n in names)
        inner = torch.nn.functional.gelu(torch.nn.functional.linear(features, *first))
        expected = torch.nn.functional.linear(inner, *second)
        assert_close(merged.model.multi_modal_projector(features), expected)
    assert torch.equal(merged.model.image_newline, adapter["image_newline"])


@pytest.mark.parametrize("name", ["llava", "llava_onevision", "internvl_norms", "internvl_moe"])
def test_parts_compute_what_they_did_in_the_whole(shardwright, tmp_path, name):
    hf = saved(tmp_path / "hf", name)
    shardwright("split", tmp_path / "hf", tmp_path / "parts")
    language = loaded(tmp_path / "parts" / "language", transformers.AutoModelForCausalLM)
    vision = loaded(tmp_path / "parts" / "images", transformers.AutoModel)
    with torch.no_grad():
        expected = hf(input_ids=ids()).logits
        assert expected.std() > 1
        assert_close(language(ids()).logits, expected, rtol=0, atol=0)
        tower = hf.model.vision_tower(image()).last_hidden_state
        assert_close(vision(image()).last_hidden_state, tower, rtol=0, atol=0)
