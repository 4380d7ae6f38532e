# SPDX-License-Identifier: Apache-2.0
"""Every family goes to Megatron and back without a bit lost.

transformers makes the models, at sizes that are multiples of nothing. They are converted to
Megatron's formats at several layouts and back: with what the conversion kept of Hugging Face's
files, with a config.json alone, and with nothing but Megatron's arguments.
"""
import json
import pathlib
import re
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import checkpoints
import family_rounds
import hf_sizes
import test_families_diffusers
import test_families_further
import test_families_further_towers
import test_families_hybrid
import test_families_newer
import test_families_newer_towers
import test_families_newest
import test_families_omni
import test_families_published
import test_families_split
import test_families_towers

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"
TIED, UNTIED = ({"tie_word_embeddings": tied} for tied in (True, False))
ONE_GROUP = {"num_key_value_heads": 1}
DENSE_LAST = ["sparse", "dense", "dense"]
ALL_HEADS = {"num_key_value_heads": 6}

# name -> (model_type, settings)
CASES = {
    "llama": ("llama", ONE_GROUP),
    "llama_biases": ("llama", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "mistral": ("mistral", {"sliding_window": 7, **ONE_GROUP}),
    "qwen2": ("qwen2", TIED),
    "qwen3": ("qwen3", {**ONE_GROUP, "dtype": torch.float16}),
    "qwen2_moe": ("qwen2_moe", {"mlp_only_layers": [1]}),
    "qwen2_moe_no_bias": ("qwen2_moe", {"qkv_bias": False, "packed": True}),
    "qwen3_moe": ("qwen3_moe", {"mlp_only_layers": [1], **TIED}),
    "qwen3_moe_packed": ("qwen3_moe", {"packed": True, **ONE_GROUP}),
    "mixtral": ("mixtral", ONE_GROUP),
    "mixtral_packed": ("mixtral", {"packed": True, "sliding_window": 7}),
    "deepseek_v2": ("deepseek_v2", {}),
    "deepseek_v2_lite": ("deepseek_v2", {"q_lora_rank": None, **TIED}),
    "deepseek_v3": ("deepseek_v3", {"packed": True}),
    "gemma": ("gemma", ONE_GROUP),
    "gemma_untied": ("gemma", {**UNTIED, **ALL_HEADS}),
    "gemma2": ("gemma2", ONE_GROUP),
    "gemma2_untied": ("gemma2", {**UNTIED, "layer_types": ["full_attention"] * 3}),
    "gemma3": ("gemma3_text", {}),
    "gemma3_untied": ("gemma3_text", {**UNTIED, **ONE_GROUP}),
    "gemma4": ("gemma4_text", {}),
    "gemma4_shared": (
        "gemma4_text", {"num_kv_shared_layers": 3, "use_double_wide_mlp": True, **ONE_GROUP}
    ),
    "gemma4_key_is_value": (
        "gemma4_text",
        {
            "attention_k_eq_v": True,
            "num_global_key_value_heads": 2,
            "hidden_size_per_layer_input": 0,
            **UNTIED,
        },
    ),
    "gemma4_moe": ("gemma4_text", hf_sizes.GEMMA4_EXPERTS),
    "llama4": ("llama4_text", ONE_GROUP),
    "llama4_tied": ("llama4_text", {"moe_layers": [0, 1, 2], **TIED}),
    "seed_oss": ("seed_oss", ONE_GROUP),
    "cwm": ("cwm", TIED),
    "helium": ("helium", {}),
    "arcee": ("arcee", ONE_GROUP),
    "arcee_biases": ("arcee", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "jais2": ("jais2", ONE_GROUP),
    "jais2_no_bias": ("jais2", {"attention_bias": False, "mlp_bias": False, **TIED}),
    "solar_open": ("solar_open", {}),
    "solar_open_packed": ("solar_open", {"packed": True, **ONE_GROUP}),
    "youtu": ("youtu", TIED),
    "youtu_untied": ("youtu", {"q_lora_rank": None, **UNTIED}),
    "dots1": ("dots1", {}),
    "mellum": ("mellum", ONE_GROUP),
    "glm": ("glm", {"attention_bias": True, **ONE_GROUP}),
    "glm_no_bias": ("glm", {"attention_bias": False, **TIED}),
    "glm4": ("glm4", {"attention_bias": True, **ONE_GROUP}),
    "glm4_no_bias": ("glm4", {"attention_bias": False, **TIED}),
    "glm4_moe": ("glm4_moe", {"attention_bias": True, "use_qk_norm": True}),
    "glm4_moe_plain": ("glm4_moe", {"n_group": 2, "packed": True, **TIED}),
    "glm4_moe_lite": ("glm4_moe_lite", {}),
    "glm4_moe_lite_packed": ("glm4_moe_lite", {"packed": True, "mlp_layer_types": DENSE_LAST}),
    "deepseek_v32": ("deepseek_v32", {}),
    "glm_moe_dsa": ("glm_moe_dsa", {"packed": True}),
    "glm_moe_dsa_shared": (
        "glm_moe_dsa",
        {"num_hidden_layers": 6, "index_topk_freq": 2, "index_skip_topk_offset": 2},
    ),
    "hy_v3": ("hy_v3", ONE_GROUP),
    "hy_v3_packed": ("hy_v3", {"packed": True, "mlp_layer_types": DENSE_LAST, **TIED}),
    "minimax_m2": ("minimax_m2", {}),
    "minimax_m2_packed": ("minimax_m2", {"packed": True, **ONE_GROUP, **TIED}),
    "minimax_m2_part": ("minimax_m2", {"rotary_dim": 10, "rope_parameters": None}),
    "gpt_oss": ("gpt_oss", ONE_GROUP),
    # Square experts: nothing but the rule says which way round they lie.
    "gpt_oss_square": ("gpt_oss", {"intermediate_size": 72, **TIED}),
    "gpt2": ("gpt2", {}),
    "gpt2_untied": ("gpt2", {**UNTIED, "n_inner": 100, "activation_function": "gelu"}),
    "olmo2": ("olmo2", ONE_GROUP),
    "olmo2_tied": ("olmo2", TIED),
    "olmo3": ("olmo3", ONE_GROUP),
    "olmoe": ("olmoe", {"num_key_value_heads": 6}),
    "olmoe_packed": ("olmoe", {"packed": True, "norm_topk_prob": True, **TIED}),
    "phi3": ("phi3", ONE_GROUP),
    "phi3_tied": ("phi3", {**TIED, "sliding_window": 7}),
    "nemotron": ("nemotron", ONE_GROUP),
    "nemotron_biases": ("nemotron", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "exaone4": ("exaone4", ONE_GROUP),
    "exaone4_no_window": ("exaone4", {"sliding_window": None, "layer_types": ["full_attention"] * 3, **TIED}),
    "ernie4_5": ("ernie4_5", UNTIED),
    "ernie4_5_biases": ("ernie4_5", {"use_bias": True, **ONE_GROUP}),
    "ernie4_5_moe": ("ernie4_5_moe", UNTIED),
    "ernie4_5_moe_packed": ("ernie4_5_moe", {"packed": True, **ONE_GROUP}),
    "granite": ("granite", ONE_GROUP),
    "granite_biases": ("granite", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "smollm3": ("smollm3", UNTIED),
    "ministral": ("ministral", ONE_GROUP),
    "ministral3": ("ministral3", ONE_GROUP),
    "mimo": ("mimo", {}),
    "internlm2": ("internlm2", {"head_dim": 12}),
    "internlm2_biases": ("internlm2", {"head_dim": 12, "attention_bias": True, **TIED, **ONE_GROUP}),
    "internlm3": ("internlm3", ONE_GROUP),
    "internlm3_qkv_bias": ("internlm3", {"attention_bias": True, "mlp_bias": True, **UNTIED}),
    "internlm3_biases": ("internlm3", {"attention_bias": True, "mlp_bias": True, **TIED}),
    "glm4_moe_prediction": ("glm4_moe", {"num_nextn_predict_layers": 1, **ONE_GROUP}),
    "ernie4_5_moe_prediction": ("ernie4_5_moe", ONE_GROUP),
    "gpt2_bare": ("gpt2", {}),
    "mimo_v2_flash": ("mimo_v2_flash", {}),
    "mimo_v2_flash_published": ("mimo_v2_flash", ONE_GROUP),
    "mimo_v2_flash_packed": ("mimo_v2_flash", {"packed": True, **ONE_GROUP, **TIED}),
    "exaone_moe": ("exaone_moe", {}),
    "exaone_moe_packed": ("exaone_moe", {"packed": True, **ONE_GROUP, **TIED}),
    "deepseek_v4": ("deepseek_v4", {}),
    "longcat_flash": ("longcat_flash", {}),
    "longcat_flash_tied": ("longcat_flash", TIED),
    "kimi_linear": ("kimi_linear", {}),
    "bailing_hybrid": ("bailing_hybrid", {}),
    "starcoder2": ("starcoder2", ONE_GROUP),
    "starcoder2_no_bias": ("starcoder2", {"use_bias": False, "sliding_window": 7, **UNTIED}),
    "gpt_bigcode": ("gpt_bigcode", {}),
    "gpt_bigcode_all_heads": ("gpt_bigcode", {"multi_query": False, "n_inner": 100, **UNTIED}),
    "gpt_neox": ("gpt_neox", {}),
    "gpt_neox_one_by_one": ("gpt_neox", {"use_parallel_residual": False, **TIED}),
    "falcon": ("falcon", {}),
    "falcon_groups": ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 3}),
    "falcon_groups_one_norm": (
        "falcon",
        {
            "new_decoder_architecture": True,
            "num_kv_heads": 2,
            "num_ln_in_parallel_attn": 1,
            **UNTIED,
        },
    ),
    "falcon_all_heads": (
        "falcon", {"multi_query": False, "parallel_attn": False, "alibi": True, "bias": True}
    ),
    "bloom": ("bloom", {}),
    "bloom_untied": ("bloom", UNTIED),
    "opt": ("opt", {}),
    "opt_no_bias": ("opt", {"enable_bias": False, **UNTIED}),
    "mpt": ("mpt", {}),
    "mpt_untied": ("mpt", {"attn_config": {"clip_qkv": 0.7, "softmax_scale": 0.4}, **UNTIED}),
}

# Their tensors and arguments are those of other families', so the family has to be named.
NAMED = {"phi3", "phi3_tied", "hy_v3", "hy_v3_packed", "glm4_moe_lite", "glm4_moe_lite_packed"}
NAMED |= {"seed_oss", "cwm", "dots1", "mellum", "helium"}
PLAIN = ("jais2", "solar_open", "exaone_moe", "kimi_linear", "bailing_hybrid", "starcoder2", "gpt_bigcode", "falcon", "bloom", "opt", "mpt")
NAMED.update(name for name in CASES if name.startswith(PLAIN))
# transformers does not have the model, or not all of it.
REMOTE = {"mimo", "glm4_moe_prediction", "ernie4_5_moe_prediction", "mimo_v2_flash_published"}
REMOTE |= {"longcat_flash", "longcat_flash_tied"}
INTERNLM = [name for name in CASES if name.startswith("internlm")]
REMOTE.update(INTERNLM)


def add_tensors(folder, tensors):
    save_file(tensors, folder / "more.safetensors")
    (folder / "model.safetensors.index.json").unlink()  # it does not know the new file


def add_prediction_layer(folder, layer, prefix, norms, projection):
    """A layer like `layer` under `prefix`, with what joins it to the model."""
    hidden = json.loads((folder / "config.json").read_text())["hidden_size"]
    generator = torch.Generator().manual_seed(3)
    tensors = {
        name.replace(layer, prefix): tensor.flip(0).contiguous()
        for name, tensor in checkpoints.load_hf(folder).items()
        if name.startswith(layer)
    }
    for name in norms:
        tensors[prefix + name] = torch.randn(hidden, generator=generator).bfloat16()
    weight = torch.randn((hidden, 2 * hidden), generator=generator).bfloat16()
    tensors[prefix + projection] = weight
    add_tensors(folder, tensors)


def finish_mimo(folder):
    """Of Qwen2; the names are those of MiMo's own code."""
    config = json.loads((folder / "config.json").read_text())
    config.update(architectures=["MiMoForCausalLM"], model_type="mimo", num_nextn_predict_layers=1)
    (folder / "config.json").write_text(json.dumps(config))
    norms = [f"{part}_layernorm.weight" for part in ("token", "hidden", "final")]
    prefix = "model.mtp_layers.0."
    add_prediction_layer(folder, "model.layers.0.", prefix, norms, "input_proj.weight")


def finish_mimo_v2_flash(folder):
    """As published: with dense prediction layers, and other words in config.json."""
    config = json.loads((folder / "config.json").read_text())
    rope = config.pop("rope_parameters")
    sliding = [kind == "sliding_attention" for kind in config.pop("layer_types")]
    config.update(
        hybrid_layer_pattern=[int(has_window) for has_window in sliding],
        moe_layer_freq=[int(kind == "sparse") for kind in config.pop("mlp_layer_types")],
        layernorm_epsilon=config.pop("rms_norm_eps"),
        rope_theta=rope["full_attention"]["rope_theta"],
        swa_rope_theta=rope["sliding_attention"]["rope_theta"],
        partial_rotary_factor=rope["full_attention"]["partial_rotary_factor"],
        swa_num_attention_heads=config["num_attention_heads"],
        swa_num_key_value_heads=2 * config["num_key_value_heads"],
        swa_head_dim=config["head_dim"],
        swa_v_head_dim=config["v_head_dim"],
        add_swa_attention_sink_bias=True,
        add_full_attention_sink_bias=False,
    )
    (folder / "config.json").write_text(json.dumps(config))
    model = checkpoints.load_hf(folder)
    generator = torch.Generator().manual_seed(3)
    hidden = config["hidden_size"]
    tensors = {}
    for layer in range(2):
        prefix = f"model.mtp.layers.{layer}."
        for name, tensor in model.items():
            if name.startswith("model.layers.1.") and ".mlp." not in name:
                name = name.replace("post_attention_layernorm", "pre_mlp_layernorm")
                tensors[name.replace("model.layers.1.", prefix)] = tensor.flip(0).contiguous()
            elif name.startswith("model.layers.0.mlp."):
                tensors[name.replace("model.layers.0.", prefix)] = tensor.flip(0).contiguous()
        for norm in ("enorm", "hnorm", "final_layernorm"):
            tensors[f"{prefix}{norm}.weight"] = torch.randn(hidden, generator=generator).bfloat16()
        weight = torch.randn((hidden, 2 * hidden), generator=generator).bfloat16()
        tensors[f"{prefix}eh_proj.weight"] = weight
    add_tensors(folder, tensors)


def finish_falcon_groups(folder):
    """As published: transformers adds how many norms there are."""
    config = json.loads((folder / "config.json").read_text())
    assert config.pop("num_ln_in_parallel_attn") == 2
    (folder / "config.json").write_text(json.dumps(config))


def finish_longcat_flash(folder):
    """transformers gives those experts weights that do nothing; published files have none, and a
    prediction layer, which nothing in transformers reads."""
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
        file.unlink()
    idle = tuple(f".experts.{expert}.{part}_proj.weight" for expert in (6, 7, 8) for part in ("gate", "up"))
    tensors = {name: tensor for name, tensor in tensors.items() if not name.endswith(idle)}
    generator = torch.Generator().manual_seed(3)
    for name, shape in {
        "embed_tokens.weight": (511, 72),
        "layers.0.eh_proj.weight": (72, 144),
        "layers.0.enorm.m.weight": (72,),
        "layers.0.self_attn.q_b_proj.weight": (120, 44),
        "layers.0.transformer_layer.mlp.down_proj.weight": (72, 104),
    }.items():
        tensors[f"model.mtp.{name}"] = torch.randn(shape, generator=generator).bfloat16()
    (folder / "model.safetensors.index.json").unlink()
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def finish_glm4_moe_prediction(folder):
    """As published: with copies of embedding and head."""
    prefix = "model.layers.3."
    norms = ["enorm.weight", "hnorm.weight", "shared_head.norm.weight"]
    add_prediction_layer(folder, "model.layers.2.", prefix, norms, "eh_proj.weight")
    model = checkpoints.load_hf(folder)
    copies = {
        prefix + "embed_tokens.weight": model["model.embed_tokens.weight"],
        prefix + "shared_head.head.weight": model["lm_head.weight"],
    }
    save_file(copies, folder / "copies.safetensors")


def finish_ernie4_5_moe_prediction(folder):
    """A dense layer, and no norm behind it."""
    norms = ["emb_norm.0.weight", "hidden_norm.0.weight"]
    projection = "linear_proj.0.weight"
    add_prediction_layer(folder, "model.layers.0.", "model.mtp_block.0.", norms, projection)
    tensors = load_file(folder / "more.safetensors")
    for name in (*norms, projection):
        tensors["model.mtp_" + name] = tensors.pop("model.mtp_block.0." + name)
    save_file(tensors, folder / "more.safetensors")


def finish_internlm3_qkv_bias(folder):
    """Biases of queries, keys and values, and no others."""
    others = ("o_proj.bias", "gate_proj.bias", "up_proj.bias", "down_proj.bias")
    tensors = load_file(folder / "model.safetensors")
    kept = {name: tensor for name, tensor in tensors.items() if not name.endswith(others)}
    save_file(kept, folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "bias": False}))


def finish_gpt2_bare(folder):
    """As the first GPT-2 is published: without prefix, with the causal masks."""
    model = checkpoints.load_hf(folder)
    bare = {name.removeprefix("transformer."): tensor for name, tensor in model.items()}
    for file in folder.glob("model*.safetensors*"):
        file.unlink()
    mask = torch.ones(1, 1, 256, 256).tril()
    masks = {f"h.{layer}.attn.bias": mask.clone() for layer in range(3)}
    save_file({**bare, **masks}, folder / "model.safetensors")


FINISH = {
    "mimo": finish_mimo,
    "mimo_v2_flash_published": finish_mimo_v2_flash,
    "falcon_groups": finish_falcon_groups,
    "longcat_flash": finish_longcat_flash,
    "longcat_flash_tied": finish_longcat_flash,
    "glm4_moe_prediction": finish_glm4_moe_prediction,
    "ernie4_5_moe_prediction": finish_ernie4_5_moe_prediction,
    "gpt2_bare": finish_gpt2_bare,
    "internlm3_qkv_bias": finish_internlm3_qkv_bias,
}


@pytest.fixture(scope="module")
def imported(shardwright, tmp_path_factory):
    """The folder of a case, with the model in hf/ and its conversion in megatron/."""
    return family_rounds.imports(shardwright, tmp_path_factory, CASES, FINISH)


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(shardwright, imported, tmp_path, name):
    family_rounds.there_and_back(shardwright, imported(name), tmp_path)


@pytest.mark.parametrize("to", ["fsdp_dtensor", "legacy"])
@pytest.mark.parametrize("name", ["gemma4", "gemma4_moe"])
def test_layers_of_two_kinds_keep_their_numbers(shardwright, imported, tmp_path, name, to):
    """The stack of a kind counts its own layers; where layers lie apart, all of them count."""
    root = imported(name)
    shardwright("convert", root / "megatron", tmp_path / "out", "--to", to)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "torch_dist", "--dtype", "bfloat16")
    shardwright("diff", root / "megatron", tmp_path / "back")
    shardwright("verify", tmp_path / "out")
    shardwright("diagnose", tmp_path / "out")


@pytest.mark.parametrize("name", CASES)
def test_back_through_legacy_with_a_config_alone(shardwright, imported, tmp_path, name):
    root = imported(name)
    family_rounds.through_legacy(shardwright, root, tmp_path)
    # Legacy files have no place for what Megatron has none for, and the conversion says so.
    expected = {k: v for k, v in family_rounds.known_form(root).items() if ".mtp_" not in k or name == "mimo"}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)


@pytest.mark.parametrize("name", [name for name in CASES if name not in REMOTE])
def test_back_from_arguments_alone(shardwright, imported, tmp_path, name):
    flags = ("--family", CASES[name][0]) if name in NAMED else ()
    family_rounds.from_arguments(shardwright, imported(name), tmp_path, *flags)


@pytest.mark.parametrize("name", ["starcoder2", "gpt_bigcode"])
def test_is_not_taken_for_a_family_that_computes_otherwise(shardwright, imported, tmp_path, name):
    """Their tensors have the names of Nemotron's, and of GPT-2's."""
    family_rounds.without_hf(imported(name) / "megatron", tmp_path / "megatron")
    said = shardwright("convert", tmp_path / "megatron", tmp_path / "no", "--to", "hf", expect=2)
    assert re.search(r"error\[SW040[456]\]", said.stderr), "no family fits"
    assert not (tmp_path / "no").exists()


# What transformers writes for each Llama, and says nothing of the tensors.
OF_LLAMA = {"attention_bias", "bos_token_id", "eos_token_id", "mlp_bias", "pretraining_tp"}
OF_LLAMA |= {"dtype", "pad_token_id", "transformers_version", "rope_parameters"}


@pytest.mark.parametrize("name", INTERNLM)
def test_internlm_from_arguments_alone(shardwright, imported, tmp_path, name):
    """The config.json that is made up says what the published one says."""
    root = imported(name)
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    family = ("--family", CASES[name][0])
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf", *family)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), family_rounds.known_form(root))
    made, was = (
        json.loads((folder / "config.json").read_text()) for folder in (tmp_path / "back", root / "hf")
    )
    was = {key: value for key, value in was.items() if key not in OF_LLAMA}
    assert {key: made.get(key) for key in was} == was


def test_a_narrower_expert_bias_is_told_of(shardwright, imported, tmp_path):
    root = imported("minimax_m2")
    done = shardwright("convert", root / "megatron", tmp_path / "back", "--to", "hf")
    assert "are rounded to bfloat16, the dtype that they were imported in" in done.stderr
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    done = shardwright("convert", tmp_path / "megatron", tmp_path / "wide", "--to", "hf")
    assert "rounded" not in done.stderr


def test_what_megatron_has_no_place_for_is_told_of(shardwright, imported, tmp_path):
    root = imported("ernie4_5_moe_prediction")
    done = shardwright("plan", root / "hf", tmp_path / "out", "--to", "torch_dist")
    assert "12 tensors have no place in Megatron and are kept as hf_extra" in done.stderr + done.stdout
    kept = [name for name in checkpoints.load_dcp(root / "megatron") if name.startswith("hf_extra.")]
    assert len(kept) == 12


def test_mimo_exchanges_hidden_state_and_embedding(imported):
    """Megatron's projection takes the embedding first; both ways round look alike in a round trip."""
    root = imported("mimo")
    projection = checkpoints.load_hf(root / "hf")["model.mtp_layers.0.input_proj.weight"]
    hidden, embedding = projection.chunk(2, dim=1)
    ours = checkpoints.load_dcp(root / "megatron")["mtp.layers.0.eh_proj.weight"]
    assert torch.equal(ours, torch.cat([embedding, hidden], dim=1))


def test_kimi_linear_has_gates_first(imported):
    """Megatron's order in every MLP; the other one looks alike in a round trip."""
    root = imported("kimi_linear")
    hf, made = checkpoints.load_hf(root / "hf"), checkpoints.load_dcp(root / "megatron")
    source, target = "model.layers.1.block_sparse_moe.", "decoder.layers.1.mlp."
    for expert, ours in enumerate(made[target + "experts.experts.linear_fc1.weight"]):
        gate, up = (hf[f"{source}experts.{expert}.{part}.weight"] for part in ("w1", "w3"))
        assert torch.equal(ours, torch.cat([gate, up]))
    for source, target in (
        (source + "shared_experts.", target + "shared_experts."),
        ("model.layers.0.block_sparse_moe.", "decoder.layers.0.mlp."),
    ):
        gate, up = (hf[f"{source}{part}_proj.weight"] for part in ("gate", "up"))
        assert torch.equal(made[target + "linear_fc1.weight"], torch.cat([gate, up]))


def test_mimo_v2_flash_orders_rows_by_group(imported):
    """Megatron-Bridge's order: of each group the queries, the key and the narrower value; layers
    with a window have twice as many groups."""
    root = imported("mimo_v2_flash")
    source, made = checkpoints.load_hf(root / "hf"), checkpoints.load_dcp(root / "megatron")
    for layer, groups in ((0, 3), (1, 6)):
        q, k, v = (
            source[f"model.layers.{layer}.self_attn.{part}_proj.weight"].unflatten(0, (groups, -1))
            for part in "qkv"
        )
        assert v.shape[1] == 14
        rows = torch.cat([q, k, v], dim=1).flatten(0, 1)
        ours = made[f"decoder.layers.{layer}.self_attention.linear_qkv.weight"]
        assert torch.equal(ours, rows)
    assert "decoder.layers.0.self_attention.core_attention.softmax_offset" not in made
    sinks = made["decoder.layers.1.self_attention.core_attention.softmax_offset"]
    assert torch.equal(sinks, source["model.layers.1.self_attn.attention_sink_bias"])


def test_deepseek_v4_deals_out_its_scales(imported):
    """One tensor of three numbers is three of Megatron's, in Megatron-Bridge's order."""
    root = imported("deepseek_v4")
    source, made = checkpoints.load_hf(root / "hf"), checkpoints.load_dcp(root / "megatron")
    for part, module in (("attn", "self_attention"), ("ffn", "mlp")):
        scale = source[f"model.layers.2.hc_{part}_scale"]
        for at, name in enumerate(("pre", "post", "res")):
            ours = made[f"decoder.layers.2.{module}_hyper_connection.alpha_{name}"]
            assert torch.equal(ours, scale[at : at + 1])


def test_mimo_v2_flash_says_it_in_both_ways(shardwright, imported, tmp_path):
    """A config.json of arguments alone has the published words and those of transformers."""
    root = imported("mimo_v2_flash_published")
    family_rounds.without_hf(root / "megatron", tmp_path / "megatron")
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), family_rounds.known_form(root))
    was, made = (
        json.loads((folder / "config.json").read_text()) for folder in (root / "hf", tmp_path / "back")
    )
    # Nobody reads these; the others have to be what was published.
    unsaid = {"n_group", "topk_group", "use_cache", "transformers_version", "dtype"}
    unsaid |= {key for key in was if key.endswith("_token_id") or key.startswith("output_")}
    assert {key: made.get(key) for key in was.keys() - unsaid} == {
        key: was[key] for key in was.keys() - unsaid
    }
    published = made["hybrid_layer_pattern"]
    kinds = ["sliding_attention" if has_window else "full_attention" for has_window in published]
    assert made["layer_types"] == kinds


def test_every_family_is_here():
    families = {
        path.stem
        for path in MODELS.glob("*.json")
        if path.stem != "schema" and not json.loads(path.read_text()).get("abstract")
    }
    mappings = {family: json.loads((MODELS / f"{family}.json").read_text()) for family in families}
    # A library other than transformers tells its models apart by architectures.
    types = {family: mapping.get("model_types", mapping["architectures"]) for family, mapping in mappings.items()}
    tested = {model_type for model_type, _ in CASES.values()}
    tested |= {model_type for model_type, _ in test_families_newer.CASES.values()}
    tested |= {model_type for model_type, _ in test_families_further.CASES.values()}
    tested |= {model_type for model_type, _, _ in test_families_further_towers.CASES.values()}
    tested |= set(test_families_further_towers.WRITTEN)
    tested |= {model_type for model_type, _, _ in test_families_newer_towers.CASES.values()}
    tested |= {model_type for model_type, _, _ in test_families_hybrid.CASES.values()}
    tested |= test_families_published.MAKERS.keys()
    tested |= {model_type for model_type, _, _ in test_families_towers.CASES.values()}
    tested |= test_families_towers.WRITTEN.keys()
    tested |= test_families_omni.CASES.keys() | test_families_omni.WRITTEN.keys()
    tested |= set(test_families_newest.ALL) | test_families_diffusers.CONFIGS.keys()
    tested.add(test_families_split.CONFIG["model_type"])
    assert not [family for family, names in types.items() if not tested & {family, *names}]
