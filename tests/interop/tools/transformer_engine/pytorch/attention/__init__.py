# SPDX-License-Identifier: Apache-2.0
import torch
from ..module.base import TransformerEngineBaseModule


class DotProductAttention(TransformerEngineBaseModule):
    def __init__(self, num_attention_heads, kv_channels, num_gqa_groups=None, attention_dropout=0.0,
                 qkv_format="sbhd", attn_mask_type="causal", window_size=None, sequence_parallel=False, tp_size=1,
                 get_rng_state_tracker=None, tp_group=None, layer_number=None, attention_type="self", cp_group=None,
                 cp_global_ranks=None, cp_stream=None, cp_comm_type="p2p", softmax_scale=None,
                 softmax_type="vanilla", return_max_logit=False, bottom_right_diagonal=None, name=None):
        super().__init__(name)
        self.num_attention_heads, self.kv_channels, self.num_gqa_groups = num_attention_heads, kv_channels, num_gqa_groups
        self.tp_size = tp_size if tp_group is None else torch.distributed.get_world_size(tp_group)
        self.tp_group = tp_group
        self.softmax_type = softmax_type
        self.layer_number = layer_number
        self.window_size = window_size
        self.softmax_scale = softmax_scale
        self.cp_comm_type = cp_comm_type
        self.softmax_offset = None
        if softmax_type == "off-by-one":
            self.softmax_offset = torch.zeros(num_attention_heads // self.tp_size)
        elif softmax_type == "learnable":
            # real TE: torch.zeros(...) in the default dtype (fp32), on cuda
            del self.softmax_offset
            self.register_parameter("softmax_offset", torch.nn.Parameter(torch.zeros(num_attention_heads // self.tp_size)))


class MultiheadAttention(TransformerEngineBaseModule):
    def __init__(self, *a, **k):
        raise NotImplementedError("TE stub: MultiheadAttention")


class InferenceParams:
    pass
