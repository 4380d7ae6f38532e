# SPDX-License-Identifier: Apache-2.0
"""What test_same_outputs_newer.py asks of a later Megatron-Core: models that Megatron-LM builds of the
arguments which a checkpoint carries, of the modules that training has, computing on a CPU."""
import contextlib
import logging
import os
import re
import sys
import typing
import warnings

import torch

import cpu_shims  # noqa: F401  patches torch.cuda before Megatron looks at it
import gpu_modules
import te_arithmetic

if not hasattr(typing, "override"):
    typing.override = lambda function: function
gpu_modules.install()
te_arithmetic.install()
warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.process_groups_config import ProcessGroupCollection  # noqa: E402
from megatron.core.tensor_parallel.random import model_parallel_cuda_manual_seed  # noqa: E402
from megatron.core.transformer.moe import moe_utils  # noqa: E402
from megatron.training import arguments  # noqa: E402
from megatron.training.models.gpt import GPTModelBuilder, GPTModelConfig  # noqa: E402
from megatron.training.models.hybrid import HybridModelBuilder, HybridModelConfig  # noqa: E402

import added_further  # noqa: E402
import added_modules  # noqa: E402

moe_utils.te_general_gemm = None  # without it the router takes torch's

# What a command line has to say in any case; the checkpoint's arguments follow.
WORDS = """
  --num-layers 1 --hidden-size 8 --num-attention-heads 1 --seq-length 8 --max-position-embeddings 8
  --micro-batch-size 1 --lr 1e-3 --train-iters 10 --distributed-backend gloo --deterministic-mode
  --use-cpu-initialization --no-masked-softmax-fusion --no-gradient-accumulation-fusion
  --no-bias-swiglu-fusion --no-bias-dropout-fusion --no-persist-layer-norm --no-rope-fusion
  --no-bias-gelu-fusion --moe-token-dispatcher-type alltoall
"""
# How the checkpoint was cut does not matter, and all is computed in float32.
WHOLE = dict(
    tensor_model_parallel_size=1,
    pipeline_model_parallel_size=1,
    virtual_pipeline_model_parallel_size=None,
    expert_model_parallel_size=1,
    expert_tensor_parallel_size=1,
    bf16=False,
    fp16=False,
    tokenizer_type="NullTokenizer",
)


def start():
    os.environ.update(
        RANK="0", WORLD_SIZE="1", LOCAL_RANK="0", NCCL_ALGO="Ring", CUDA_DEVICE_MAX_CONNECTIONS="1"
    )
    torch.set_num_threads(1)
    parallel_state.initialize_model_parallel(1, 1)
    model_parallel_cuda_manual_seed(1)


def parse(folder, changed):
    """Megatron-LM's arguments, with those that the checkpoint in `folder` has."""
    sys.argv = ["train", *WORDS.split()]
    args = arguments.parse_args()
    args.rank, args.world_size = 0, 1
    stored = vars(dist_checkpointing.load_common_state_dict(str(folder))["args"])
    assert all(stored.get(name) != value for name, value in changed.items())
    for name, value in {**stored, **WHOLE, **changed}.items():
        setattr(args, name, value)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing):
        arguments.validate_args(args)
    if args.position_embedding_type == "mrope":
        args.position_embedding_type = "rope"  # text has the same place in all dimensions
    return args


def build(args, additions):
    """The model that the arguments describe, its values garbage."""
    shared = dict(
        transformer=arguments.core_transformer_config_from_args(args),
        vocab_size=args.padded_vocab_size,
        seq_length=args.max_position_embeddings,
        share_embeddings_and_output_weights=not args.untie_embeddings_and_output_weights,
        position_embedding_type=args.position_embedding_type,
        rotary_percent=args.rotary_percent,
        rotary_base=args.rotary_base,
    )
    if args.hybrid_layer_pattern:
        pattern = args.hybrid_layer_pattern
        builder = HybridModelBuilder(HybridModelConfig(hybrid_layer_pattern=pattern, **shared))
    else:
        builder = GPTModelBuilder(GPTModelConfig(rope_scaling=args.use_rope_scaling, **shared))
    model = builder.build_model(ProcessGroupCollection.use_mpu_process_groups()).eval()
    for name in additions:
        add = getattr(added_modules, name, None) or getattr(added_further, name)
        add(model, args)
    for tensor in tensors(model).values():
        tensor.fill_(float("nan"))
    return model


def tensors(model):
    """Its parameters and buffers by name, without the states that only Transformer Engine fills."""
    state = model.state_dict().items()
    return {name: value for name, value in state if not name.endswith("_extra_state")}


def load(model, folder, prefix):
    """Every tensor of an iteration folder whose name begins so finds its place, and every place its
    tensor."""
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    metadata = {
        "dp_cp_group": group,
        "non_homogeneous_layers": any(hasattr(layer, "mixer") for layer in model.decoder.layers),
    }
    sharded = model.sharded_state_dict(prefix=prefix, metadata=metadata)
    state, *left_over = dist_checkpointing.load(sharded, str(folder), strict="return_all")
    left_over = {
        key for key in set.union(*left_over) if key.startswith(prefix) and "_extra_state" not in key
    }
    assert not left_over, left_over
    state = {key.removeprefix(prefix): value for key, value in state.items()}
    model.load_state_dict(state, strict=False)


def disturbed(tensor):
    """Its rows in another order, or its one number another."""
    if tensor.numel() == 1:
        return tensor - 10
    return tensor.roll(1, dims=0 if len(tensor) > 1 else 1)


def compare(folder, outputs, prefix, additions, wrong, tolerance, noticed):
    """The model of the checkpoint in `folder` puts out what the file `outputs` has. Where rows of a
    tensor lie in another order, or an argument is `wrong`, it does not."""
    start()
    ids, expected = torch.load(outputs)
    model = build(parse(folder, {}), additions)
    load(model, folder, prefix)

    def error(model, count):
        some = ids[:1, :count]
        with torch.no_grad():
            logits = model(some, torch.arange(count)[None], None)[..., : expected.shape[-1]]
        return (logits - expected[:1, :count]).abs().max().item()

    assert expected.std() > 0.5, "a model that says little agrees with everything"
    difference = error(model, ids.shape[1])
    assert difference < tolerance, f"logits differ by {difference}"
    unnoticed = []
    # Those of other layers and experts are no other rule's.
    kinds = {}
    for name, tensor in tensors(model).items():
        kinds.setdefault(re.sub(r"(?<=\.)\d+|(?<=weight)\d+", "", name), []).append(tensor)
    for kind, alike in kinds.items():
        originals = [tensor.clone() for tensor in alike]
        for tensor, original in zip(alike, originals):
            tensor.copy_(disturbed(original))
        # Zeros that Megatron has where the model has none are as they were.
        if any(not torch.equal(*pair) for pair in zip(alike, originals)):
            if not error(model, ids.shape[1] // 3) > noticed:
                unnoticed.append(kind)
        for tensor, original in zip(alike, originals):
            tensor.copy_(original)
    for name, value in wrong.items():
        other = build(parse(folder, {name: value}), additions)
        other.load_state_dict(model.state_dict())
        if not error(other, ids.shape[1]) > noticed:
            unnoticed.append(name)
    assert not unnoticed, unnoticed
