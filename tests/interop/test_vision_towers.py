# SPDX-License-Identifier: Apache-2.0
"""Towers that Megatron-Core builds itself compute what those of transformers compute."""
import copy
import json
import shlex

import pytest
import torch
import transformers

import checkpoints
import hf_models
from test_families_hybrid import CASES

# Measured: what is right differs by at most 5e-6; of the mistakes below the least makes 0.12.
TOLERANCE = 5e-5
NOTICED = 0.05


def saved(folder, name):
    """The model of a case, in float32, as it lies in `folder`."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    hf = getattr(transformers, architecture)._from_config(
        config, dtype=torch.float32, **hf_models.EAGER
    )
    hf_models.fill(hf)
    hf.eval().save_pretrained(folder)
    return hf


def transformer_config(hf, **settings):
    """The sizes of a configuration of transformers, as Megatron names them."""
    from megatron.core.transformer.transformer_config import TransformerConfig

    return TransformerConfig(
        num_layers=hf.num_hidden_layers,
        hidden_size=hf.hidden_size,
        ffn_hidden_size=hf.intermediate_size,
        num_attention_heads=hf.num_attention_heads,
        hidden_dropout=0.0,
        attention_dropout=0.0,
        use_cpu_initialization=True,
        params_dtype=torch.float32,
        **settings,
    )


def vit_layers(spec="local"):
    """Megatron-Core's layers of a tower, which see all patches."""
    from megatron.core.models.vision import vit_layer_specs
    from megatron.core.transformer.enums import AttnMaskType

    if spec == "te":
        return vit_layer_specs.get_vit_layer_with_transformer_engine_spec()
    layers = vit_layer_specs.get_vit_layer_with_local_spec()
    layers.submodules.self_attention.params["attn_mask_type"] = AttnMaskType.no_mask
    return layers


def gpt_layers(spec):
    """Megatron-Core's layers of the language model."""
    from megatron.core.models.gpt import gpt_layer_specs

    if spec == "te":
        return gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec()
    return gpt_layer_specs.get_gpt_layer_local_spec(normalization="RMSNorm")


def megatron_tower(kind, vision, activation):
    """Megatron-Core's CLIPViTModel of one of its kinds."""
    from megatron.core.models.vision.clip_vit_model import CLIPViTModel
    from megatron.core.transformer.torch_norm import WrappedTorchNorm

    config = transformer_config(
        vision,
        normalization="LayerNorm",
        layernorm_epsilon=vision.layer_norm_eps,
        activation_func=lambda x: activation(x),  # no module, which Megatron would save
        add_qkv_bias=True,
    )
    options = dict(class_token_len=0, add_class_token=False) if kind == "siglip" else {}
    return CLIPViTModel(
        config,
        vit_layers(),
        ln_pre_impl=WrappedTorchNorm,
        ln_post_impl=WrappedTorchNorm,
        patch_dim=vision.patch_size,
        img_h=vision.image_size,
        img_w=vision.image_size,
        model_subtype=kind,
        **options,
    )


@pytest.mark.parametrize("name, kind", [("llava", "clip"), ("llava_onevision", "siglip")])
def test_towers_compute_the_same(shardwright, megatron, tmp_path, name, kind):
    hf = saved(tmp_path / "hf", name)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2, "--spec", "local")
    tensors = checkpoints.load_dcp(tmp_path / "out")
    prefix = "vision_model."
    tensors = {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}
    activation = transformers.activations.ACT2FN[hf.config.vision_config.hidden_act]
    tower = megatron_tower(kind, hf.config.vision_config, activation).eval()
    megatron.fill(tower, tensors)
    assert megatron.assert_holds(tower, tensors) == tensors.keys()

    side = hf.config.vision_config.image_size
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


def llava_configs(hf, kind):
    """Megatron's configurations of language model, tower and projection of a LLaVA."""
    text, vision = hf.config.text_config, hf.config.vision_config
    is_qwen = text.model_type == "qwen2"
    language = transformer_config(text, normalization="RMSNorm", add_bias_linear=False, add_qkv_bias=is_qwen)
    language.gated_linear_unit, language.num_query_groups = True, text.num_key_value_heads
    language.kv_channels = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    language.layernorm_epsilon = text.rms_norm_eps
    tower = transformer_config(vision, normalization="LayerNorm", add_qkv_bias=True)
    tower.vision_model_type = kind
    projection = transformer_config(text, normalization="LayerNorm")
    projection.ffn_hidden_size = text.hidden_size
    return language, tower, projection


def linears(spec):
    from megatron.core.extensions import transformer_engine
    from megatron.core.tensor_parallel.layers import ColumnParallelLinear, RowParallelLinear
    from megatron.core.transformer.mlp import MLPSubmodules

    if spec == "te":
        return MLPSubmodules(
            linear_fc1=transformer_engine.TEColumnParallelLinear,
            linear_fc2=transformer_engine.TERowParallelLinear,
        )
    return MLPSubmodules(linear_fc1=ColumnParallelLinear, linear_fc2=RowParallelLinear)


def llava_model(hf, kind, spec):
    """Megatron-Core's own LLaVAModel with the sizes of a LLaVA of transformers. The norms around
    the tower's layers are Transformer Engine's in each spec."""
    from megatron.core.models.multimodal.llava_model import LLaVAModel

    text, vision = hf.config.text_config, hf.config.vision_config
    language, tower, projection = llava_configs(hf, kind)
    return LLaVAModel(
        language,
        gpt_layers(spec),
        text.vocab_size,
        text.max_position_embeddings,
        tower,
        vit_layers(spec),
        kind == "clip",  # drop_vision_class_token
        projection,
        linears(spec),
        share_embeddings_and_output_weights=hf.config.tie_word_embeddings,
        language_position_embedding_type="rope",
        img_h=vision.image_size,
        img_w=vision.image_size,
        patch_dim=vision.patch_size,
    )


def mimo_model(hf, spec):
    """Megatron-Core's MimoModel of the same parts, under the names that its checkpoints have."""
    from megatron.core.models.gpt.gpt_model import GPTModel
    from megatron.core.models.mimo import MimoModel, MimoModelConfig
    from megatron.core.models.mimo.submodules.vision import VisionModalitySubmodules
    from megatron.core.models.vision.clip_vit_model import CLIPViTModel
    from megatron.core.models.vision.multimodal_projector import MultimodalProjector
    from megatron.core.transformer.spec_utils import ModuleSpec

    text, vision = hf.config.text_config, hf.config.vision_config
    language, tower, projection = llava_configs(hf, "clip")
    encoder = ModuleSpec(
        module=CLIPViTModel,
        params=dict(
            transformer_config=tower,
            transformer_layer_spec=vit_layers(spec),
            patch_dim=vision.patch_size,
            img_h=vision.image_size,
            img_w=vision.image_size,
            model_subtype="clip",
        ),
    )
    projector = ModuleSpec(
        module=MultimodalProjector,
        params=dict(
            config=projection,
            submodules=linears(spec),
            projector_type="mlp",
            input_size=vision.hidden_size,
        ),
    )
    parts = MimoModelConfig(
        language_model_spec=ModuleSpec(
            module=GPTModel,
            params=dict(
                config=language,
                transformer_layer_spec=gpt_layers(spec),
                vocab_size=text.vocab_size,
                max_sequence_length=text.max_position_embeddings,
                position_embedding_type="rope",
            ),
        ),
        modality_submodules_spec={
            "images": ModuleSpec(
                module=VisionModalitySubmodules,
                submodules={
                    "encoders": {"clip_encoder": encoder},
                    "input_projections": [projector],
                },
            )
        },
        special_token_ids={"images": 7},
    )
    model = MimoModel(parts)
    # Megatron-Core 0.16 takes what lies in a ModuleDict for a module that is not its own, and saves
    # it whole on each rank. Checkpoints have what the components say themselves.
    model.sharded_state_dict = lambda prefix="", *rest, **named: {
        key: value
        for path, part in components(model)
        for key, value in part.sharded_state_dict(f"{prefix}{path}.", *rest, **named).items()
    }
    return model


def components(model):
    yield "language_model", model.language_model
    for modality, submodules in model.modality_submodules.items():
        for name, encoder in submodules.encoders.items():
            yield f"modality_submodules.{modality}.encoders.{name}", encoder
        for index, projection in enumerate(submodules.input_projections):
            yield f"modality_submodules.{modality}.input_projections.{index}", projection


def load_all(megatron, model, folder):
    """No tensor of the checkpoint is left over, none of the model's is missing, and none of the
    states that its modules ask for."""
    tensors = checkpoints.load_dcp(folder)
    tensors = {k: v for k, v in tensors.items() if not k.startswith("hf_extra.")}
    megatron.load(model, checkpoints.iteration_folder(folder), "assume_ok_unexpected")
    assert megatron.assert_holds(model, tensors) == tensors.keys()


SPECS = pytest.mark.parametrize("spec", ["te", "local"])


@SPECS
def test_mimo_model_of_megatron(shardwright, megatron, tmp_path, spec):
    """Language model, encoder and projection, all in one process."""
    hf = saved(tmp_path / "hf", "llava")
    parts = ["--component", "language=tp=2", "--component", "images=tp=1", "--spec", spec]
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "mimo", *parts)
    load_all(megatron, mimo_model(hf, spec).eval(), tmp_path / "out")


def test_towers_of_which_one_rank_was_saved(shardwright, ranks, tmp_path):
    """MimoModel of Megatron-Core 0.16 saves a tower's shards of its first tensor rank as if they were all."""
    saved(tmp_path / "hf", "llava")
    for tp in (1, 2):
        ranks("mimo_jobs", "save", tp, hf=tmp_path / "hf", folder=tmp_path / f"tp{tp}", tp=tp)
    tower = "modality_submodules.images.encoders.clip_encoder.decoder.layers"
    tensors = checkpoints.load_dcp(tmp_path / "tp2")
    assert tensors[f"{tower}.0.self_attention.linear_proj.weight"].shape == (36, 18)
    said = shardwright("verify", tmp_path / "tp2", expect=1)
    assert f"of {tower} only the first rank's shards were saved" in said.stdout + said.stderr
    assert "only the first rank's shards" in shardwright("diagnose", tmp_path / "tp2", expect=1).stdout
    for flags in (("--to", "torch_dist", "--tp", 1), ("--to", "dcp"), ("--to", "torch_dist", "--accept-loss")):
        is_taken = "--accept-loss" in flags
        done = shardwright("convert", tmp_path / "tp2", tmp_path / "out", *flags, expect=0 if is_taken else 2)
        assert "only the first rank's shards" in done.stdout + done.stderr, flags
    # What Megatron has no place for is not there, which nobody is left to find out.
    told = shlex.split(json.loads(shardwright("diagnose", tmp_path / "tp1", "--json").stdout)["next"])
    assert told[0] == "shardwright" and told[-2:] == ["--hf-config", "MODEL"]
    words = [{"OUT": tmp_path / "back", "MODEL": tmp_path / "hf"}.get(word, word) for word in told[1:]]
    assert "post_layernorm.weight and 1 more are not in the checkpoint" in shardwright(*words).stderr
    report = json.loads(shardwright("verify", tmp_path / "back", "--json").stdout)
    lost = sorted(finding["object"].rpartition("post_layernorm.")[2] for finding in report["findings"])
    assert lost == ["bias", "weight"], report
    assert not json.loads(shardwright("verify", tmp_path / "hf", "--json").stdout)["findings"]
    # Whole ones stay so, also where ours shares the language model out.
    shardwright("verify", tmp_path / "tp1")
    parts = ["--component", "language=tp=2", "--component", "images=tp=1", "--hf-config", tmp_path / "hf"]
    shardwright("convert", tmp_path / "tp1", tmp_path / "mimo", "--to", "mimo", *parts)
    shardwright("verify", tmp_path / "mimo")
    shardwright("convert", tmp_path / "mimo", tmp_path / "again", "--to", "torch_dist", "--tp", 2)
    shardwright("verify", tmp_path / "again")


@SPECS
@pytest.mark.parametrize("name, kind", [("llava", "clip"), ("llava_onevision", "siglip")])
def test_llava_model_of_megatron(shardwright, megatron, tmp_path, name, kind, spec):
    """Nothing is missing or too much, the projection and the language model included; also of what
    comes from files of ranks, whose names are the modules'."""
    hf = saved(tmp_path / "hf", name)
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2, "--spec", spec)
    load_all(megatron, llava_model(hf, kind, spec).eval(), tmp_path / "out")
    shardwright("convert", tmp_path / "out", tmp_path / "ranks", "--to", "legacy", "--tp", 2)
    shardwright("convert", tmp_path / "ranks", tmp_path / "again", "--to", "torch_dist")
    load_all(megatron, llava_model(hf, kind, spec).eval(), tmp_path / "again")
