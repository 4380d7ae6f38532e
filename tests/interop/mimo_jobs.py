# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_vision_towers.py do: Megatron-Core's own MimoModel saves itself, as it does
without the names that the other tests give it."""
import argparse
import functools
import pathlib
from unittest import mock

import gpu_modules

gpu_modules.install()

import megatron_cpu  # noqa: E402
import torch.distributed as dist  # noqa: E402
import transformers  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402

import test_vision_towers as towers  # noqa: E402


def arguments(text, tp):
    return argparse.Namespace(
        num_layers=text.num_hidden_layers, hidden_size=text.hidden_size, ffn_hidden_size=text.intermediate_size,
        num_attention_heads=text.num_attention_heads, num_query_groups=text.num_key_value_heads,
        group_query_attention=True, kv_channels=text.head_dim, padded_vocab_size=text.vocab_size,
        max_position_embeddings=text.max_position_embeddings, swiglu=True, normalization="RMSNorm",
        untie_embeddings_and_output_weights=True, position_embedding_type="rope", add_bias_linear=False,
        tensor_model_parallel_size=tp, pipeline_model_parallel_size=1, expert_model_parallel_size=1,
    )  # fmt: skip


@megatron_cpu.without_children
def save(hf, folder, tp):
    megatron_cpu.join(tp=tp)
    config = functools.partial(towers.transformer_config, tensor_model_parallel_size=tp)
    with mock.patch.object(towers, "transformer_config", config):
        model = towers.mimo_model(transformers.LlavaForConditionalGeneration.from_pretrained(hf), "local").eval()
    del model.sharded_state_dict
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    state = model.sharded_state_dict(metadata={"dp_cp_group": group})
    text = transformers.AutoConfig.from_pretrained(hf).text_config
    if dist.get_rank() == 0:
        pathlib.Path(folder).mkdir()
    dist.barrier()
    dist_checkpointing.save(
        {"args": arguments(text, tp), "checkpoint_version": 3.0, "iteration": 5, "model": state}, str(folder)
    )
