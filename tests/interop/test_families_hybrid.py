# SPDX-License-Identifier: Apache-2.0
"""Hybrid and vision-language families: models of the real transformers library, there and back."""
import shutil

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file

import checkpoints
import hf_models

# As in hf_models, nothing is a power of two or what another size is; two ranks can share all of it.
TEXT = dict(hf_models.SIZES, vocab_size=510, num_hidden_layers=4, num_key_value_heads=2)
MOE = dict(num_experts_per_tok=2, moe_intermediate_size=40)
KINDS = ["linear_attention", "full_attention", "linear_attention", "full_attention"]
DELTA = dict(
    linear_num_key_heads=2,
    linear_num_value_heads=6,
    linear_key_head_dim=10,
    linear_value_head_dim=14,
    linear_conv_kernel_dim=3,
    layer_types=KINDS,
)
SHARED = dict(num_experts=6, shared_expert_intermediate_size=28, **MOE)
TOWER = dict(
    depth=3,
    hidden_size=36,
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
FALCON = dict(
    TEXT,
    mamba_n_heads=6,
    mamba_d_head=10,
    mamba_d_ssm=60,
    mamba_d_state=12,
    mamba_n_groups=2,
    mamba_d_conv=4,
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
        dict(text_config=dict(TEXT, head_dim=12), vision_config=TOWER),
    ),
    "qwen2_vl": (
        "qwen2_vl",
        "Qwen2VLForConditionalGeneration",
        dict(
            text_config=dict(TEXT, head_dim=12),
            vision_config=dict(
                depth=3, embed_dim=36, hidden_size=72, mlp_ratio=3, num_heads=6, patch_size=4
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
            vision_config=dict(
                hidden_size=36,
                intermediate_size=52,
                num_hidden_layers=3,
                num_attention_heads=6,
                image_size=28,
                patch_size=14,
            ),
            mm_tokens_per_image=4,
        ),
    ),
    "glm4_5v": (
        "glm4v_moe",
        "Glm4vMoeForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT, n_routed_experts=6, n_shared_experts=1, first_k_dense_replace=1, **MOE
            ),
            vision_config=dict(TOWER, image_size=16),
        ),
    ),
    "falcon_h1": ("falcon_h1", "FalconH1ForCausalLM", FALCON),
    "falcon_h1_normed": ("falcon_h1", "FalconH1ForCausalLM", dict(FALCON, mamba_rms_norm=True)),
}
HAVE_EXPERTS = [name for name in CASES if "moe" in name or name in ("qwen3_next", "nemotron_h", "glm4_5v")]

# Megatron's arguments and tensors are the same: only HF has two names for what they are.
SAME_IN_MEGATRON = ("qwen3_5_moe", "qwen3_next")


def build(folder, name, packed=False):
    """Saves a random model of a case in `folder` and returns its tensors."""
    model_type, architecture, settings = CASES[name]
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
    by_config = checkpoints.load_hf(tmp_path / "by_config")
    if name == "qwen3_vl_moe":  # nothing says that this file was not the published form
        for key in by_config:
            if key.endswith(("experts.gate_up_proj", "experts.down_proj")):
                by_config[key] = by_config[key].transpose(1, 2).contiguous()
    checkpoints.assert_same(by_config, source)
    if name in SAME_IN_MEGATRON:
        done = shardwright("convert", out, tmp_path / "no", "--to", "hf", expect=2)
        assert "found 2 that fit (qwen3_5_moe, qwen3_next)" in done.stderr
    named = ("--family", name) if name in SAME_IN_MEGATRON else ()
    shardwright("convert", out, tmp_path / "by_arguments", "--to", "hf", *named)
    ours = transformers.AutoConfig.from_pretrained(tmp_path / "by_arguments")
    was = transformers.AutoConfig.from_pretrained(tmp_path / "hf")
    assert ours.architectures == was.architectures
    assert type(ours) is type(was)
    assert checkpoints.load_hf(tmp_path / "by_arguments").keys() == source.keys()


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


def test_norms_that_round(shardwright, tmp_path):
    """Megatron keeps w - 1. What that loses in bfloat16 is kept beside it, until it is trained."""
    source = build(tmp_path / "hf", "qwen3_5")
    name = "model.layers.0.linear_attn.norm.weight"
    for file in (tmp_path / "hf").glob("*.safetensors"):
        tensors = load_file(file)
        if name in tensors:
            tensors[name][0] = 0.458984375
            save_file(tensors, file, metadata={"format": "pt"})
            source[name][0] = 0.458984375
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
    checkpoints.dcp.save(made, storage_writer=checkpoints.dcp.FileSystemWriter(folder), no_dist=True)
    done = shardwright("convert", tmp_path / "out", tmp_path / "trained", "--to", "hf")
    assert "are those of before it was trained" in done.stderr
    trained = checkpoints.load_hf(tmp_path / "trained")
    assert torch.equal(trained[name], made[stored] + 1)
    assert not torch.equal(trained[name], source[name])
