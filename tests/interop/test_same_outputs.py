# SPDX-License-Identifier: Apache-2.0
"""A converted model computes what the original computes.

Models of the transformers library are converted and loaded into Megatron models that are built from
the arguments which the converter wrote. Both get the same tokens; their logits must agree. That
proves names, shapes, the order of rows and the meaning of arguments at once, at sizes which the
golden files do not have.
"""
import argparse
import shutil
import types

import pytest
import torch

import checkpoints
import hf_models
import megatron_from_args
from hf_models import logits as hf_logits, tokens

# Measured: what is right differs by at most 3e-5, logits having a standard deviation of 1.5; of the
# mistakes that are made below on purpose, the least makes 0.18.
TOLERANCE = 2e-4
NOTICED = 0.1

LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 5000.0,
    "factor": 32.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
PLAIN_ROPE = {"rope_type": "default", "rope_theta": 5000.0}
YARN_ROPE = {
    "rope_type": "yarn",
    "rope_theta": 5000.0,
    "factor": 4.0,
    "original_max_position_embeddings": 16,
}
MLA_YARN_ROPE = {
    **YARN_ROPE,
    "original_max_position_embeddings": 128,
    "beta_fast": 2.0,
    "beta_slow": 0.1,
    "mscale": 0.8,
    "mscale_all_dim": 1.2,
}

# Megatron-Core has arguments for the rest.
GRANITE_WITHOUT_FACTORS = {
    "embedding_multiplier": 1.0,
    "residual_multiplier": 1.0,
    "logits_scaling": 1.0,
}

# name -> (model_type, settings, layout flags)
CASES = {
    "llama": ("llama", {}, ("--pp", 3)),
    "llama_tied": ("llama", {"tie_word_embeddings": True}, ()),
    "llama_biases": ("llama", {"attention_bias": True, "mlp_bias": True}, ()),
    "llama_padded": (
        "llama",
        {"vocab_size": 1003, "intermediate_size": 105},
        ("--tp", 3, "--make-vocab-size-divisible-by", 7),
    ),
    "llama3_rope": (
        "llama",
        {"rope_parameters": LLAMA3_ROPE, "max_position_embeddings": 16384},
        (),
    ),
    "llama_linear_rope": (
        "llama",
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 5000.0, "factor": 4.0}},
        (),
    ),
    "llama_bf16": ("llama", {"dtype": torch.bfloat16}, ("--pp", 2)),
    "mistral": (
        "mistral",
        {"sliding_window": 7, "intermediate_size": 105},
        ("--tp", 3, "--make-vocab-size-divisible-by", 1),
    ),
    "mistral_no_window": ("mistral", {"sliding_window": None, "tie_word_embeddings": True}, ()),
    "qwen2": (
        "qwen2",
        {"num_key_value_heads": 2},
        ("--tp", 2, "--make-vocab-size-divisible-by", 4),
    ),
    "qwen2_tied": ("qwen2", {"tie_word_embeddings": True}, ()),
    "qwen2_yarn": ("qwen2", {"rope_parameters": YARN_ROPE}, ()),
    "qwen2_yarn_mscale": ("qwen2", {"rope_parameters": {**YARN_ROPE, "mscale": 0.1}}, ()),
    "qwen2_yarn_factor": ("qwen2", {"rope_parameters": {**YARN_ROPE, "attention_factor": 0.4}}, ()),
    "qwen3": ("qwen3", {}, ("--pp", 2)),
    "qwen3_tied": ("qwen3", {"tie_word_embeddings": True, "dtype": torch.bfloat16}, ()),
    "qwen3_moe": ("qwen3_moe", {}, ("--ep", 3)),
    "qwen3_moe_packed": ("qwen3_moe", {"packed": True}, ("--ep", 2)),
    "qwen3_moe_dense_layer": ("qwen3_moe", {"mlp_only_layers": [1]}, ("--pp", 3, "--ep", 2)),
    "qwen3_moe_every_other": ("qwen3_moe", {"decoder_sparse_step": 2}, ()),
    "qwen3_moe_not_normalized": ("qwen3_moe", {"norm_topk_prob": False}, ()),
    "mixtral": ("mixtral", {}, ("--ep", 2, "--pp", 2)),
    "mixtral_packed": ("mixtral", {"packed": True, "sliding_window": 7}, ("--ep", 3)),
    "deepseek_v2": ("deepseek_v2", {}, ("--pp", 3)),
    "deepseek_v2_lite": ("deepseek_v2", {"q_lora_rank": None, "first_k_dense_replace": 0}, ()),
    "deepseek_v2_groups": (
        "deepseek_v2",
        {
            "topk_method": "group_limited_greedy",
            "n_group": 3,
            "topk_group": 2,
            "num_experts_per_tok": 3,
        },
        ("--ep", 2),
    ),
    "deepseek_v3": ("deepseek_v3", {}, ("--ep", 3)),
    "deepseek_v3_packed": ("deepseek_v3", {"packed": True}, ()),
    # What transformers 5 writes for every DeepSeek-V3, though it never has the layer.
    "deepseek_v3_no_mtp": ("deepseek_v3", {"num_nextn_predict_layers": 1}, ()),
    "deepseek_v3_yarn": ("deepseek_v3", {"rope_parameters": MLA_YARN_ROPE}, ()),
    "deepseek_v3_yarn_all_dim": (
        "deepseek_v3", {"rope_parameters": {**MLA_YARN_ROPE, "mscale": 0.0}}, ()
    ),
    "gemma": ("gemma", {"num_key_value_heads": 1}, ()),
    "glm": ("glm", {"attention_bias": True}, ("--pp", 3)),
    "glm4_moe": ("glm4_moe", {"attention_bias": True, "use_qk_norm": True}, ("--ep", 3)),
    "glm4_moe_groups": ("glm4_moe", {"n_group": 3, "topk_group": 1}, ()),
    "glm4_moe_lite": ("glm4_moe_lite", {}, ("--ep", 3)),
    "glm4_moe_lite_dense_last": (
        "glm4_moe_lite", {"mlp_layer_types": ["sparse", "dense", "dense"]}, ("--pp", 3)
    ),
    "hy_v3": ("hy_v3", {}, ("--ep", 2)),
    "hy_v3_dense_last": ("hy_v3", {"mlp_layer_types": ["sparse", "dense", "dense"]}, ()),
    "seed_oss": ("seed_oss", {}, ()),
    "cwm": ("cwm", {}, ("--pp", 3)),
    "helium": ("helium", {}, ()),
    "arcee": ("arcee", {"attention_bias": True, "mlp_bias": True}, ("--pp", 3)),
    "jais2": ("jais2", {}, ()),
    # transformers has the share of channels that turn in the file, and turns all.
    "jais2_share": ("jais2", {"rope_parameters": {**PLAIN_ROPE, "partial_rotary_factor": 0.4}}, ()),
    "solar_open": ("solar_open", {}, ("--ep", 2)),
    "youtu": ("youtu", {}, ("--pp", 3)),
    "dots1": ("dots1", {}, ("--ep", 2)),
    "gpt_oss": ("gpt_oss", {}, ("--ep", 2)),
    "gpt_oss_plain": ("gpt_oss", {"rope_parameters": PLAIN_ROPE}, ()),
    "gpt_oss_linear": (
        "gpt_oss", {"rope_parameters": {**PLAIN_ROPE, "rope_type": "linear", "factor": 4.0}}, ()
    ),
    "gpt2": ("gpt2", {}, ("--pp", 3)),
    "gpt2_untied": ("gpt2", {"tie_word_embeddings": False, "activation_function": "gelu"}, ()),
    "phi3": ("phi3", {"sliding_window": 7}, ()),
    "nemotron": ("nemotron", {}, ("--pp", 2)),
    "nemotron_biases": ("nemotron", {"attention_bias": True, "mlp_bias": True}, ()),
    "ernie4_5": ("ernie4_5", {"use_bias": True}, ()),
    "qwen2_moe": ("qwen2_moe", {}, ("--ep", 2)),
    "granite": ("granite", GRANITE_WITHOUT_FACTORS, ()),
    "smollm3": ("smollm3", {}, ()),
    "smollm3_window": (
        "smollm3",
        {
            "sliding_window": 7,
            "layer_types": ["sliding_attention", "full_attention", "full_attention"],
        },
        (),
    ),
    "ministral": ("ministral", {}, ()),
    "internlm2": ("internlm2", {"head_dim": 12}, ("--pp", 3)),
    "internlm2_one_group": ("internlm2", {"head_dim": 12, "num_key_value_heads": 1}, ()),
    "internlm3": ("internlm3", {"attention_bias": True, "mlp_bias": True}, ()),
    "granitemoe": ("granitemoe", GRANITE_WITHOUT_FACTORS, ("--ep", 2)),
    "olmo": ("olmo", {}, ("--pp", 3)),
    "stablelm": ("stablelm", {"use_qkv_bias": True}, ()),
    "flint": ("flint", {}, ("--pp", 3, "--ep", 2)),
    "mistral4": (
        "mistral4",
        {
            "rope_parameters": {**MLA_YARN_ROPE, "llama_4_scaling_beta": 0.0},
            "n_group": 1,
        },
        ("--ep", 3),
    ),
    "granitemoeshared": ("granitemoeshared", GRANITE_WITHOUT_FACTORS, ("--ep", 2)),
    "hyperclovax": ("hyperclovax", {**GRANITE_WITHOUT_FACTORS, "use_post_norm": False}, ()),
    "starcoder2": ("starcoder2", {}, ("--pp", 3)),
    "starcoder2_window": ("starcoder2", {"use_bias": False, "sliding_window": 7}, ()),
    "gpt_bigcode": ("gpt_bigcode", {}, ("--pp", 3)),
    "gpt_bigcode_all_heads": ("gpt_bigcode", {"multi_query": False}, ()),
    # Where attention and MLP follow each other; Megatron-Core knows no other order.
    "gpt_neox": ("gpt_neox", {"use_parallel_residual": False}, ("--pp", 3)),
    "falcon": ("falcon", {"parallel_attn": False}, ()),
    "falcon_all_heads": (
        "falcon", {"parallel_attn": False, "multi_query": False, "bias": True}, ("--pp", 3)
    ),
}


# Their arguments and tensors are those of other families, so the family has to be named.
NAMED = {"glm4_moe_lite", "hy_v3", "seed_oss", "cwm", "dots1", "helium", "jais2", "solar_open"}
NAMED |= {"starcoder2", "gpt_bigcode", "falcon", "olmo", "stablelm"}


def megatron_logits(model, vocab_size):
    """Also of the rows that pad the vocabulary."""
    ids = tokens(vocab_size)
    with torch.no_grad():
        return model(ids, torch.arange(ids.shape[1]).expand_as(ids), None)


def difference(one, other):
    return (one - other).abs().max().item()


def build(model_type, args):
    model = megatron_from_args.build(args)
    if model_type == "gemma":
        megatron_from_args.scale_embeddings(model)
    return model


@pytest.fixture(scope="module")
def converted(shardwright, megatron, tmp_path_factory):
    """Makes a case's model, converts it and loads the result; each case once."""
    made = {}

    def convert(name):
        if name in made:
            return made[name]
        model_type, settings, layout = CASES[name]
        root = tmp_path_factory.mktemp(name)
        hf_model = hf_models.create(root / "hf", model_type, **settings)
        flags = ("--to", "torch_dist", "--spec", "local", *layout)
        shardwright("convert", root / "hf", root / "out", *flags)
        folder = checkpoints.iteration_folder(root / "out")
        args = megatron_from_args.read_arguments(folder)
        model = build(model_type, args)
        megatron_from_args.load(model, folder)
        expected = hf_logits(hf_model, hf_model.config.vocab_size)
        made[name] = types.SimpleNamespace(
            model_type=model_type, root=root, args=args, model=model, expected=expected
        )
        return made[name]

    return convert


def error(model, expected):
    """How far the Megatron model's logits are from what they should be."""
    vocab_size = expected.shape[-1]
    return difference(megatron_logits(model, vocab_size)[..., :vocab_size], expected)


def twin(case, **arguments):
    """A second model of the same weights, with other arguments."""
    changed = argparse.Namespace(**{**vars(case.args), **arguments})
    model = build(case.model_type, changed)
    model.load_state_dict(case.model.state_dict())
    return model


@pytest.mark.parametrize("name", CASES)
def test_same_logits(converted, name):
    case = converted(name)
    assert case.expected.std() > 1, "a model that says little agrees with everything"
    assert error(case.model, case.expected) < TOLERANCE


@pytest.mark.parametrize("name", CASES)
def test_legacy_is_the_models_own_state(converted, shardwright, tmp_path, name):
    """A legacy file has the names and the values of the state dict of the model that was loaded."""
    case = converted(name)
    shardwright("convert", case.root / "out", tmp_path / "legacy", "--to", "legacy")
    file = checkpoints.iteration_folder(tmp_path / "legacy") / "mp_rank_00" / "model_optim_rng.pt"
    with torch.serialization.safe_globals([argparse.Namespace]):
        state = torch.load(file, weights_only=True)["model"]
    own = case.model.state_dict()
    # The local block here has no TE norm; where TE is installed it has, and asks for its state.
    assert state.keys() ^ own.keys() <= {"decoder.final_layernorm._extra_state"}
    for key, value in own.items():
        if isinstance(value, torch.Tensor):
            assert torch.equal(state[key], value), key


@pytest.mark.parametrize("name, is_bf16", [("llama", False), ("llama_bf16", True)])
def test_argument_of_the_dtype(converted, name, is_bf16):
    """The one argument of a model's meaning that the models here do not follow."""
    assert converted(name).args.bf16 is is_bf16


def test_padding_is_zero(converted):
    case = converted("llama_padded")
    logits = megatron_logits(case.model, 1003)
    assert logits.shape[-1] == 1008
    assert not logits[..., 1003:].any()


@pytest.mark.parametrize("name", CASES)
def test_way_back(shardwright, converted, tmp_path, name):
    root = converted(name).root
    shardwright("convert", root / "out", tmp_path / "back", "--to", "hf")
    original = checkpoints.load_hf(root / "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), original)


@pytest.mark.parametrize("name", CASES)
def test_way_back_from_arguments_alone(shardwright, converted, tmp_path, name):
    """As after training, where Megatron's own checkpoints say nothing of Hugging Face."""
    case = converted(name)
    shutil.copytree(case.root / "out", tmp_path / "out")
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    family = ("--family", case.model_type) if case.model_type in NAMED else ()
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", *family)
    # Rows that pad the vocabulary stay, because training may have filled them.
    logits = hf_logits(hf_models.load(tmp_path / "back"), case.expected.shape[-1])
    assert difference(logits, case.expected) < TOLERANCE


RUN_WITH_YARN = {
    "position_embedding_type": "yarn",
    "yarn_rotary_scaling_factor": 4.0,
    "yarn_original_max_position_embeddings": 16,
    "yarn_mscale": 1.0,
    "yarn_mscale_all_dim": 0.0,
}


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("qwen2_yarn", {"yarn_mscale": 9.0, "yarn_mscale_all_dim": 0.0}),
        ("deepseek_v3_yarn", {"mscale": 0.8, "mscale_all_dim": 0.0}),
        ("qwen2", {**RUN_WITH_YARN, "use_rope_scaling": True, "rope_scaling_factor": 8.0}),
        ("qwen2", {**RUN_WITH_YARN, "rotary_seq_len_interpolation_factor": 3}),
        ("glm4_moe", RUN_WITH_YARN),  # half of whose channels turn otherwise
    ],
)
def test_the_way_back_of_a_run_with_other_arguments(shardwright, converted, tmp_path, name, arguments):
    """What Megatron-Core computed of its arguments, transformers does of the config.json that is written."""
    case = converted(name)
    model = twin(case, **arguments)
    assert error(model, case.expected) > NOTICED
    shutil.copytree(case.root / "out", tmp_path / "out")
    folder = checkpoints.iteration_folder(tmp_path / "out")
    shutil.rmtree(folder / "hf")
    common = torch.load(folder / "common.pt", weights_only=False)
    for key, value in arguments.items():
        setattr(common["args"], key, value)
        if key.startswith("yarn_") and hasattr(common["args"], key.removeprefix("yarn_")):
            setattr(common["args"], key.removeprefix("yarn_"), value)
    torch.save(common, folder / "common.pt")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    logits = hf_logits(hf_models.load(tmp_path / "back"), case.expected.shape[-1])
    assert error(model, logits) < TOLERANCE


def test_one_row_of_q_is_noticed(converted):
    case = converted("llama")
    model = twin(case)
    weight = model.state_dict()["decoder.layers.2.self_attention.linear_qkv.weight"]
    weight[7] = weight[8]
    assert error(model, case.expected) > NOTICED


@pytest.mark.parametrize(
    "name",
    [
        "llama_biases",
        "mistral",
        "qwen2",
        "qwen3",
        "qwen3_moe_dense_layer",
        "deepseek_v3",
        "glm4_moe",
        "gpt_oss",
        "gpt2",
        "nemotron_biases",
        "ernie4_5",
        "qwen2_moe",
    ],
)
def test_order_within_every_tensor_is_noticed(converted, name):
    """Otherwise equal logits would say nothing about that tensor."""
    case = converted(name)
    model = twin(case)
    unnoticed = []
    for key, tensor in megatron_from_args.tensors(model).items():
        original = tensor.clone()
        tensor.copy_(original.roll(1, dims=0 if len(original) > 1 else 1))
        if error(model, case.expected) < NOTICED:
            unnoticed.append(key)
        tensor.copy_(original)
    assert not unnoticed
    assert error(model, case.expected) < TOLERANCE


@pytest.mark.parametrize(
    "name, argument, wrong",
    [
        ("llama", "rotary_base", 5050),
        ("llama", "layernorm_epsilon", 1e-6),
        ("llama", "rotary_interleaved", True),
        ("llama3_rope", "use_rope_scaling", False),
        ("llama3_rope", "rope_scaling_factor", 8.0),
        ("llama_linear_rope", "rotary_seq_len_interpolation_factor", 3),
        ("mistral", "window_size", [7, 0]),
        ("qwen2_yarn", "yarn_rotary_scaling_factor", 3.0),
        ("qwen2_yarn", "yarn_original_max_position_embeddings", 256),
        ("qwen3_moe", "moe_router_topk", 3),
        ("qwen3_moe", "moe_router_pre_softmax", True),
        ("qwen3_moe_not_normalized", "moe_router_pre_softmax", False),
        ("deepseek_v2", "moe_router_topk_scaling_factor", 1.6),
        ("deepseek_v2_groups", "moe_router_num_groups", 2),
        ("deepseek_v3", "moe_router_group_topk", 2),
        ("deepseek_v3_yarn", "rotary_scaling_factor", 3.0),
        ("deepseek_v3_yarn", "original_max_position_embeddings", 64),
        ("deepseek_v3_yarn", "beta_fast", 32.0),
        ("deepseek_v3_yarn", "beta_slow", 1.0),
        ("deepseek_v3_yarn", "mscale", 1.0),
        ("deepseek_v3_yarn", "mscale_all_dim", 1.0),
        ("gemma", "apply_layernorm_1p", False),
        ("glm", "rotary_interleaved", False),
        ("glm", "rotary_percent", 1.0),
        ("glm4_moe", "rotary_percent", 1.0),
        ("glm4_moe", "moe_router_topk_scaling_factor", 1.6),
        ("glm4_moe_groups", "moe_router_num_groups", 2),
        ("hy_v3", "moe_router_topk_scaling_factor", 1.6),
        ("gpt_oss", "activation_func_clamp_value", None),
        ("gpt_oss", "glu_linear_offset", 0.0),
        ("gpt_oss", "window_attn_skip_freq", 3),
        ("gpt_oss", "yarn_correction_range_round_to_int", True),
        ("gpt2", "layernorm_epsilon", 1e-5),
        ("nemotron", "squared_relu", False),
        ("nemotron", "apply_layernorm_1p", False),
        ("qwen2_moe", "moe_router_pre_softmax", False),
        ("granite", "softmax_scale", 0.25),
        ("smollm3", "no_rope_freq", [1, 0, 1]),
        ("smollm3_window", "window_attn_skip_freq", [1, 1, 1]),
        ("qwen2_yarn_mscale", "yarn_mscale", 0.1),
        ("qwen2_yarn_factor", "yarn_mscale", 1.0),
        ("deepseek_v3_yarn_all_dim", "mscale", 0.0),
        ("ministral", "window_attn_skip_freq", [0, 1, 1]),
        ("starcoder2_window", "window_size", [7, 0]),
        ("gpt_bigcode", "layernorm_epsilon", 1e-5),
        ("gpt_neox", "rotary_percent", 0.25),
        ("falcon", "rotary_base", 5),
    ],
)
def test_a_wrong_argument_is_noticed(converted, name, argument, wrong):
    case = converted(name)
    assert getattr(case.args, argument) != wrong
    assert error(twin(case, **{argument: wrong}), case.expected) > NOTICED


@pytest.mark.parametrize("name", ["qwen3", "deepseek_v2", "deepseek_v3", "deepseek_v3_no_mtp"])
def test_no_prediction_layers_are_none(converted, name):
    """Megatron asks whether the number is None; with 0 it wants labels before it gives logits."""
    assert converted(name).args.mtp_num_layers is None


@pytest.mark.parametrize("setting", ["attention_bias", "mlp_bias"])
def test_half_of_the_biases_is_refused(shardwright, tmp_path, setting):
    """Megatron has biases in all linears, or in q, k and v: a bias that no module has is lost."""
    hf_models.create(tmp_path / "hf", "llama", **{setting: True})
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert setting in done.stderr


@pytest.mark.parametrize(
    "model_type, settings, word",
    [
        ("llama", {"hidden_act": "gelu"}, "hidden_act"),
        ("qwen2", {"use_sliding_window": True}, "use_sliding_window"),
        ("deepseek_v3", {"rope_interleave": False}, "rope_interleave"),
    ],
)
def test_what_megatron_lacks_is_said(shardwright, tmp_path, model_type, settings, word):
    hf_models.create(tmp_path / "hf", model_type, **settings)
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")
    assert f"note: {word} = " in done.stdout + done.stderr
