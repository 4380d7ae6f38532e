# SPDX-License-Identifier: Apache-2.0
"""Towers that Megatron-Core builds itself compute what those of transformers compute."""
import pytest
import torch
import transformers

import checkpoints
import hf_models
from test_families_hybrid import CASES

# Measured: what is right differs by at most 5e-6; of the mistakes below the least makes 0.12.
TOLERANCE = 5e-5
NOTICED = 0.05


def megatron_tower(kind, vision, activation):
    """Megatron-Core's CLIPViTModel of one of its kinds."""
    from megatron.core.models.vision.clip_vit_model import CLIPViTModel
    from megatron.core.models.vision.vit_layer_specs import get_vit_layer_with_local_spec
    from megatron.core.transformer.enums import AttnMaskType
    from megatron.core.transformer.torch_norm import WrappedTorchNorm
    from megatron.core.transformer.transformer_config import TransformerConfig

    config = TransformerConfig(
        num_layers=vision["num_hidden_layers"],
        hidden_size=vision["hidden_size"],
        ffn_hidden_size=vision["intermediate_size"],
        num_attention_heads=vision["num_attention_heads"],
        normalization="LayerNorm",
        layernorm_epsilon=1e-5 if kind == "clip" else 1e-6,
        activation_func=lambda x: activation(x),  # no module, which Megatron would save
        add_bias_linear=True,
        add_qkv_bias=True,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=True,
        params_dtype=torch.float32,
    )
    layers = get_vit_layer_with_local_spec()
    layers.submodules.self_attention.params["attn_mask_type"] = AttnMaskType.no_mask
    names = {
        "input_layernorm.": "self_attention.linear_qkv.layer_norm_",
        "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_",
    }
    layers.submodules.sharded_state_dict_keys_map = names
    options = dict(class_token_len=0, add_class_token=False) if kind == "siglip" else {}
    side = vision["image_size"]
    return CLIPViTModel(
        config,
        layers,
        ln_pre_impl=WrappedTorchNorm,
        ln_post_impl=WrappedTorchNorm,
        patch_dim=vision["patch_size"],
        img_h=side,
        img_w=side,
        model_subtype=kind,
        **options,
    )


@pytest.mark.parametrize("name, kind", [("llava", "clip"), ("llava_onevision", "siglip")])
def test_towers_compute_the_same(shardwright, megatron, tmp_path, name, kind):
    model_type, architecture, settings = CASES[name]
    config = transformers.AutoConfig.for_model(model_type, **settings)
    hf = getattr(transformers, architecture)._from_config(config, dtype=torch.float32)
    hf_models.fill(hf)
    hf.eval().save_pretrained(tmp_path / "hf")
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    tensors = checkpoints.load_dcp(tmp_path / "out")
    prefix = "vision_model."
    tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    activation = transformers.activations.ACT2FN[hf.config.vision_config.hidden_act]
    tower = megatron_tower(kind, settings["vision_config"], activation).eval()
    megatron.fill(tower, tensors)
    assert megatron.assert_holds(tower, tensors) == tensors.keys()

    side = settings["vision_config"]["image_size"]
    image = torch.randn(2, 3, side, side, generator=torch.Generator().manual_seed(3))

    def difference():
        with torch.no_grad():
            theirs = hf.model.vision_tower(image, output_hidden_states=True)
            expected = theirs.hidden_states[-1] if kind == "clip" else theirs.last_hidden_state
            return (tower(image) - expected).abs().max().item()

    assert difference() < TOLERANCE
    for changed in (
        "position_embeddings.weight",
        "conv1.weight",
        "decoder.layers.0.self_attention.linear_qkv.weight",
        "decoder.layers.2.mlp.linear_fc1.bias",
        "ln_pre.bias" if kind == "clip" else "ln_post.bias",
    ):
        tensor = tower.state_dict()[changed]
        original = tensor.clone()
        tensor.copy_(original.roll(1, dims=0))
        assert difference() > NOTICED, changed
        tensor.copy_(original)
