# SPDX-License-Identifier: Apache-2.0
"""What `convert HF --to torch_dist` writes, read by torch and by Megatron-Core."""
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import save_file

import checkpoints
import hf_models

GOLDEN_HF = checkpoints.GOLDEN / "hf"

# family, layout flags
LAYOUTS = [
    ("llama3", ()),
    ("llama3", ("--tp", 2, "--pp", 2)),
    ("qwen2", ("--tp", 2)),
    ("qwen3_moe", ("--tp", 2, "--pp", 3, "--ep", 4)),
    ("mixtral", ("--ep", 2)),
    ("deepseek_v3", ("--pp", 3, "--ep", 2)),
]


@pytest.mark.parametrize("family, layout", LAYOUTS)
def test_torch_reads_the_truth(shardwright, tmp_path, family, layout):
    source = GOLDEN_HF / family / "hf"
    shardwright("convert", source, tmp_path / "out", "--to", "torch_dist", *layout)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), checkpoints.truth(family))


@pytest.mark.parametrize("spec", ["te", "local"])
@pytest.mark.parametrize(
    "family, layout",
    [
        ("llama3", ("--tp", 2, "--pp", 2)),
        ("qwen2", ()),
        ("qwen3", ("--tp", 2)),
        ("qwen3_moe", ("--tp", 2, "--ep", 4)),
        ("mixtral", ("--pp", 2, "--ep", 2)),
    ],
)
def test_megatron_loads_at_another_layout(shardwright, megatron, tmp_path, family, layout, spec):
    source, out = GOLDEN_HF / family / "hf", tmp_path / "out"
    shardwright("convert", source, out, "--to", "torch_dist", "--spec", spec, *layout)
    model = megatron.build(megatron.read_config(source), spec)
    common = megatron.load(model, checkpoints.iteration_folder(out), "raise_all")
    truth = checkpoints.truth(family)
    assert megatron.assert_holds(model, truth) == truth.keys()
    assert common["iteration"] == 0
    assert common["checkpoint_version"] == 3.0
    assert common["args"].hidden_size == model.config.hidden_size


def test_te_checkpoint_in_a_local_model(shardwright, megatron, tmp_path):
    """Norm states that only TE has are extra there, which Megatron's default allows."""
    source, out = GOLDEN_HF / "llama3" / "hf", tmp_path / "out"
    shardwright("convert", source, out, "--to", "torch_dist")
    model = megatron.build(megatron.read_config(source), "local")
    megatron.load(model, checkpoints.iteration_folder(out), "assume_ok_unexpected")
    truth = checkpoints.truth("llama3")
    assert megatron.assert_holds(model, truth) == truth.keys()


@pytest.mark.parametrize(
    "family, layout, sizes",
    [
        ("llama3", ("--pp", 2), {"tp": 2}),
        ("llama3_4l", ("--tp", 2), {"pp": 2}),
        ("qwen3_moe", ("--tp", 2), {"ep": 2}),
    ],
)
def test_two_processes_load(shardwright, megatron_job, tmp_path, family, layout, sizes):
    source, out = GOLDEN_HF / family / "hf", tmp_path / "out"
    shardwright("convert", source, out, "--to", "torch_dist", *layout)
    megatron_job("load", family, out, **sizes)


def test_biases_that_config_json_denies_are_told(shardwright, tmp_path):
    source = tmp_path / "hf"
    hf_models.create(source, "llama", attention_bias=True, mlp_bias=True)
    done = shardwright("convert", source, tmp_path / "right", "--to", "torch_dist")
    assert "contradicts" not in done.stderr
    config = json.loads((source / "config.json").read_text())
    config.update(attention_bias=False, mlp_bias=False)
    (source / "config.json").write_text(json.dumps(config))
    done = shardwright("convert", source, tmp_path / "out", "--to", "torch_dist")
    assert "what config.json says contradicts the tensors: argument add_" in done.stderr
    assert "repeat it" in done.stderr


@pytest.mark.parametrize("tied", [False, True])
def test_a_model_that_gives_embeddings_has_no_output_layer(shardwright, tmp_path, tied):
    """As Qwen3-Embedding-8B and e5-mistral are published: names lack `model.`, and there is no head."""
    model = tmp_path / "model"
    config = transformers.Qwen3Config(
        hidden_size=48, intermediate_size=56, num_hidden_layers=2, num_attention_heads=4, head_dim=12,
        num_key_value_heads=2, vocab_size=132, max_position_embeddings=64, tie_word_embeddings=tied,
    )  # fmt: skip
    transformers.Qwen3Model(config).save_pretrained(model)
    tensors = checkpoints.load_hf(model)
    assert "embed_tokens.weight" in tensors and "lm_head.weight" not in tensors
    note = "no tensor is the output layer, as in a model that gives embeddings"
    assert "PROVEN, but nothing guards" in shardwright("verify", model).stdout
    told = shardwright("convert", model, tmp_path / "core", "--to", "torch_dist", "--tp", 2).stderr
    assert (note in told) == (not tied)
    assert "EQUAL" in shardwright("diff", model, tmp_path / "core").stdout
    core = checkpoints.load_dcp(tmp_path / "core")
    assert ("output_layer.weight" in core) == (not tied)
    assert torch.equal(core["embedding.word_embeddings.weight"][:132], tensors["embed_tokens.weight"])
    told = shardwright("convert", model, tmp_path / "hf", "--to", "hf").stderr
    assert note not in told
    assert "EQUAL" in shardwright("diff", model, tmp_path / "hf").stdout
    shardwright("convert", tmp_path / "core", tmp_path / "back", "--to", "hf")
    back = transformers.AutoModel.from_pretrained(tmp_path / "back", dtype="auto").state_dict()
    checkpoints.assert_same({name: back[name] for name in tensors}, tensors)


def save_base_model(folder, model_type):
    """A model of the class that has no head, named as transformers names it."""
    known = {**hf_models.NEWER_SIZES, **hf_models.FURTHER_SIZES, **hf_models.FAMILY_SIZES}[model_type]
    config = transformers.AutoConfig.for_model(model_type, **known)
    model = transformers.AutoModel.from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    model.save_pretrained(folder)
    return checkpoints.load_hf(folder)


@pytest.mark.parametrize("family, part", [("mpt", "transformer."), ("deepseek_v4", "")])
def test_base_models_of_other_names(shardwright, tmp_path, family, part):
    """Layers may be called blocks, and names may be a family's own, with a head beside them."""
    model = tmp_path / "model"
    tensors = save_base_model(model, family)
    assert "head.weight" not in tensors and "lm_head.weight" not in tensors
    shardwright("verify", model)
    told = shardwright("convert", model, tmp_path / "core", "--to", "torch_dist").stderr
    assert ("embed.weight is taken for it" in told) == (family == "deepseek_v4")
    assert "EQUAL" in shardwright("diff", model, tmp_path / "core").stdout
    shardwright("convert", tmp_path / "core", tmp_path / "back", "--to", "hf")
    back = checkpoints.load_hf(tmp_path / "back")
    checkpoints.assert_same({name: back[part + name] for name in tensors}, tensors)
    # A language model's file that has lost its head is none of these.
    config = json.loads((model / "config.json").read_text())
    config["architectures"] = ["DeepseekV4ForCausalLM"]
    (model / "config.json").write_text(json.dumps(config))
    if family == "deepseek_v4":
        refused = shardwright("convert", model, tmp_path / "no", "--to", "torch_dist", expect=2)
        assert "1 tensor missing that it needs: head.weight" in refused.stderr


@pytest.mark.parametrize("family", ["phi", "phimoe"])
def test_the_embedding_is_no_bias_of_a_head(shardwright, tmp_path, family):
    save_base_model(tmp_path / "model", family)
    refused = shardwright("convert", tmp_path / "model", tmp_path / "no", "--to", "torch_dist", expect=2)
    assert "1 tensor missing that it needs: lm_head.bias" in refused.stderr


def test_names_may_lack_the_part_of_the_model(shardwright, tmp_path):
    """As `AutoModel` saves them, and as embedding models are published: transformers puts `model.`
    before them."""
    source, bare = GOLDEN_HF / "qwen2" / "hf", tmp_path / "bare"
    bare.mkdir()
    shutil.copy(source / "config.json", bare)
    tensors = checkpoints.load_hf(source)
    renamed = {name.removeprefix("model."): tensor for name, tensor in tensors.items()}
    save_file(renamed, bare / "model.safetensors", {"format": "pt"})
    loaded = transformers.AutoModelForCausalLM.from_pretrained(bare, dtype="auto").state_dict()
    checkpoints.assert_same({name: loaded[name] for name in tensors}, tensors)
    note = "names lack 'model.', which is put before them"
    for target in ("hf", "torch_dist"):
        out = tmp_path / target
        assert note in shardwright("convert", bare, out, "--to", target).stderr
        assert "EQUAL" in shardwright("diff", source, out).stdout
        assert "EQUAL" in shardwright("diff", bare, out).stdout
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "hf"), tensors)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "torch_dist"), checkpoints.truth("qwen2"))
    assert "family" in shardwright("verify", bare, "--json").stdout
    del renamed["norm.weight"]
    save_file(renamed, bare / "model.safetensors", {"format": "pt"})
    refused = shardwright("convert", bare, tmp_path / "no", "--to", "torch_dist", expect=2)
    assert "SW0403" in refused.stderr or "SW0404" in refused.stderr
