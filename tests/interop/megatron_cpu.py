# SPDX-License-Identifier: Apache-2.0
"""Real Megatron-Core models on a CPU: built from a Hugging Face config, filled, saved and loaded.

One process of the job per rank; `start` must come first. Values are set and compared through the
model's own sharded_state_dict, so every parallel layout is checked by what Megatron says it holds.
"""
import argparse
import json
import multiprocessing
import os
import pathlib
import typing

import torch
import torch.distributed as dist
import torch.multiprocessing

# Megatron's saver starts a process; without fork that would import the test program again.
_fork = multiprocessing.get_context("fork")
multiprocessing.get_context = torch.multiprocessing.get_context = lambda *_: _fork
if not hasattr(typing, "override"):
    typing.override = lambda function: function

import gloo_device  # noqa: E402
import cpu_shims  # noqa: E402,F401  patches torch.cuda before Megatron looks at it
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.activations import squared_relu  # noqa: E402
from megatron.core.dist_checkpointing.mapping import (  # noqa: E402
    ShardedTensor,
    apply_factories,
)
from megatron.core.dist_checkpointing.dict_utils import nested_values  # noqa: E402
from megatron.core.models.gpt import gpt_layer_specs  # noqa: E402
from megatron.core.models.gpt.gpt_model import GPTModel  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.transformer.transformer_config import TransformerConfig  # noqa: E402


def start(rank=0, world=1, *, store, **sizes):
    """Joins the job of `world` processes that meet at the file `store`."""
    gloo_device.share()
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=world)
    join(**sizes)


def join(tp=1, pp=1, ep=1, etp=None):
    """Makes Megatron's groups of the job that this process belongs to. `etp`: of experts; without
    it TP where there is no EP, else 1."""
    rank, world = dist.get_rank(), dist.get_world_size()
    os.environ.update(RANK=str(rank), WORLD_SIZE=str(world), LOCAL_RANK=str(rank))
    torch.set_num_threads(1)
    parallel_state.initialize_model_parallel(
        tp,
        pp,
        expert_model_parallel_size=ep,
        expert_tensor_parallel_size=etp or (tp if ep == 1 else 1),
    )
    model_parallel_cuda_manual_seed(1)


def without_children(function):
    """Ends what Megatron's saver started."""

    def run(*arguments, **named):
        try:
            return function(*arguments, **named)
        finally:
            for child in multiprocessing.active_children():
                child.kill()

    return run


def read_config(hf_folder):
    return json.loads((pathlib.Path(hf_folder) / "config.json").read_text())


# Of MLPs without gates, which have biases here.
PLAIN_ACTIVATIONS = {"gelu": torch.nn.functional.gelu, "relu2": squared_relu}


def transformer_config(hf):
    """The sizes and switches of a llama-like or MoE model, as Megatron names them."""
    experts = hf.get("num_local_experts") or hf.get("num_experts")
    tp = parallel_state.get_tensor_model_parallel_world_size()
    ep = parallel_state.get_expert_model_parallel_world_size()
    activation = PLAIN_ACTIVATIONS.get(hf.get("hidden_act"))
    moe = {}
    if experts:
        moe = dict(
            num_moe_experts=experts,
            moe_ffn_hidden_size=hf.get("moe_intermediate_size") or hf["intermediate_size"],
            moe_router_topk=hf["num_experts_per_tok"],
            moe_router_pre_softmax=hf.get("pre_softmax", False),
            moe_router_load_balancing_type="none",
            moe_token_dispatcher_type="alltoall",
        )
    return TransformerConfig(
        num_layers=hf["num_hidden_layers"],
        hidden_size=hf["hidden_size"],
        ffn_hidden_size=hf["intermediate_size"],
        num_attention_heads=hf["num_attention_heads"],
        num_query_groups=hf["num_key_value_heads"],
        kv_channels=hf.get("head_dim") or hf["hidden_size"] // hf["num_attention_heads"],
        normalization="RMSNorm",
        layernorm_epsilon=hf["rms_norm_eps"],
        gated_linear_unit=activation is None,
        activation_func=activation or torch.nn.functional.silu,
        add_bias_linear=activation is not None,
        add_qkv_bias=hf["model_type"] == "qwen2" or bool(hf.get("attention_bias")),
        qk_layernorm=hf["model_type"].startswith("qwen3"),
        bf16=True,
        params_dtype=torch.bfloat16,
        pipeline_dtype=torch.bfloat16,
        use_cpu_initialization=True,
        tensor_model_parallel_size=tp,
        pipeline_model_parallel_size=parallel_state.get_pipeline_model_parallel_world_size(),
        expert_model_parallel_size=ep,
        expert_tensor_parallel_size=parallel_state.get_expert_tensor_parallel_world_size(),
        sequence_parallel=bool(experts) and tp > 1,
        **moe,
    )


def build(hf, spec):
    """This rank's part of the model, with the "local" or "te" layer spec, its values garbage."""
    config = transformer_config(hf)
    choices = dict(num_experts=config.num_moe_experts, qk_layernorm=config.qk_layernorm)
    if spec == "te":
        layers = gpt_layer_specs.get_gpt_layer_with_transformer_engine_spec(
            moe_grouped_gemm=bool(config.num_moe_experts), **choices
        )
    else:
        layers = gpt_layer_specs.get_gpt_layer_local_spec(normalization="RMSNorm", **choices)
    model = GPTModel(
        config,
        layers,
        vocab_size=hf["vocab_size"],
        max_sequence_length=hf["max_position_embeddings"],
        position_embedding_type="rope",
        share_embeddings_and_output_weights=hf["tie_word_embeddings"],
        pre_process=parallel_state.is_pipeline_first_stage(),
        post_process=parallel_state.is_pipeline_last_stage(),
    )
    model.bfloat16()  # as training's Float16Module does: the local norms start in float32
    for parameter in model.parameters():
        parameter.data.fill_(-7.0)
    return model


def sharded(model, **metadata):
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    return model.sharded_state_dict(metadata={"dp_cp_group": group, **metadata})


def _pieces(model):
    """(key, this rank's tensor, its place in the global tensor) for each piece the rank holds."""
    state = sharded(model)
    apply_factories(state)
    for piece in nested_values(state):
        if not isinstance(piece, ShardedTensor) or piece.key.endswith("_extra_state"):
            continue
        extent = (1,) * piece.prepend_axis_num + tuple(piece.local_shape)
        place = tuple(slice(o, o + n) for o, n in zip(piece.global_offset, extent))
        yield piece.key, piece.data, place, tuple(piece.global_shape)


def truth_name(key, truth):
    """The local MoE spec has its own name for the norm that the truth calls pre_mlp_layernorm."""
    if key in truth:
        return key
    return key.replace("mlp.linear_fc1.layer_norm_weight", "pre_mlp_layernorm.weight")


def fill(model, truth):
    """Gives every parameter its value of the global tensors."""
    with torch.no_grad():
        for key, data, place, _ in _pieces(model):
            data.copy_(truth[truth_name(key, truth)][place].reshape(data.shape))


def assert_holds(model, truth):
    """Every parameter has, bit by bit, its part of the global tensors; returns the keys seen."""
    seen, wrong = set(), []
    for key, data, place, global_shape in _pieces(model):
        whole = truth[truth_name(key, truth)]
        seen.add(truth_name(key, truth))
        part = whole[place].reshape(data.shape)
        same = torch.equal(data.contiguous().view(torch.uint8), part.contiguous().view(torch.uint8))
        if tuple(whole.shape) != global_shape or data.dtype != whole.dtype or not same:
            wrong.append(f"{key} {place}")
    assert not wrong, "differs from the truth: " + ", ".join(wrong)
    return seen


def arguments_of(model, hf, iteration):
    """The part of a training run's arguments that describes the model and its layout."""
    config = model.config
    return argparse.Namespace(
        num_layers=config.num_layers,
        hidden_size=config.hidden_size,
        ffn_hidden_size=config.ffn_hidden_size,
        num_attention_heads=config.num_attention_heads,
        num_query_groups=config.num_query_groups,
        group_query_attention=config.num_query_groups != config.num_attention_heads,
        kv_channels=config.kv_channels,
        max_position_embeddings=hf["max_position_embeddings"],
        padded_vocab_size=hf["vocab_size"],
        untie_embeddings_and_output_weights=not hf["tie_word_embeddings"],
        normalization="RMSNorm",
        swiglu=config.gated_linear_unit,
        squared_relu=config.activation_func is squared_relu,
        add_bias_linear=config.add_bias_linear,
        add_qkv_bias=config.add_qkv_bias,
        qk_layernorm=config.qk_layernorm,
        position_embedding_type="rope",
        num_experts=config.num_moe_experts,
        moe_grouped_gemm=any(name.endswith("weight0") for name, _ in model.named_parameters()),
        tensor_model_parallel_size=config.tensor_model_parallel_size,
        pipeline_model_parallel_size=config.pipeline_model_parallel_size,
        expert_model_parallel_size=config.expert_model_parallel_size,
        expert_tensor_parallel_size=config.expert_tensor_parallel_size,
        bf16=True,
        iteration=iteration,
    )


def save(model, root, hf, iteration=10, strategy=None, model_state=None, **others):
    """What Megatron-LM's save_checkpoint leaves behind: weights, or `model_state` where that is
    another than the model's own, and `others` by their names."""
    folder = pathlib.Path(root) / f"iter_{iteration:07d}"
    if dist.get_rank() == 0:
        folder.mkdir(parents=True)
    dist.barrier()
    state = {
        "args": arguments_of(model, hf, iteration),
        "checkpoint_version": 3.0,
        "iteration": iteration,
        "model": sharded(model) if model_state is None else model_state,
        **others,
    }
    dist_checkpointing.save(state, str(folder), strategy)
    if dist.get_rank() == 0:
        tracker = pathlib.Path(root) / "latest_checkpointed_iteration.txt"
        tracker.write_text(str(iteration))
    dist.barrier()


def load(model, folder, strict):
    """dist_checkpointing.load of one iteration folder into the model; returns the common state."""
    state = dist_checkpointing.load({"model": sharded(model)}, str(folder), strict=strict)
    model.load_state_dict(state.pop("model"), strict=False)
    return state


def rank_file(folder):
    """This rank's file of a legacy checkpoint, named as Megatron-LM's get_checkpoint_name does."""
    name = f"mp_rank_{parallel_state.get_tensor_model_parallel_rank():02d}"
    if parallel_state.get_pipeline_model_parallel_world_size() > 1:
        name += f"_{parallel_state.get_pipeline_model_parallel_rank():03d}"
    if parallel_state.get_expert_model_parallel_world_size() > 1:
        name += f"_{parallel_state.get_expert_model_parallel_rank():03d}"
    return pathlib.Path(folder) / name / "model_optim_rng.pt"


def save_legacy(model, root, hf, iteration=10, optimizer=None, more_arguments=None):
    """What save_checkpoint leaves behind with --ckpt-format torch: weights, and the optimizer's
    state dict where there is one."""
    file = rank_file(pathlib.Path(root) / f"iter_{iteration:07d}")
    file.parent.mkdir(parents=True, exist_ok=True)
    state = {
        "args": arguments_of(model, hf, iteration),
        "checkpoint_version": 3.0,
        "iteration": iteration,
        "model": model.state_dict_for_save_checkpoint(),
    }
    vars(state["args"]).update(more_arguments or {})
    if optimizer is not None:
        state["optimizer"] = optimizer
    torch.save(state, file)
    if dist.get_rank() == 0:
        tracker = pathlib.Path(root) / "latest_checkpointed_iteration.txt"
        tracker.write_text(str(iteration))
    dist.barrier()


def load_legacy(model, folder):
    """A rank's own file into its part of the model, nothing missing and nothing left over."""
    torch.serialization.add_safe_globals([argparse.Namespace])  # as Megatron does, for all loads
    state = torch.load(rank_file(folder), weights_only=True)
    model.load_state_dict(state.pop("model"), strict=True)
    return state
