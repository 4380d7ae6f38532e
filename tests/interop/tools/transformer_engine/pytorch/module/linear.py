# SPDX-License-Identifier: Apache-2.0
import torch
from .base import TransformerEngineBaseModule, default_init, zeros_, set_tp_attr, resolve_device


class Linear(TransformerEngineBaseModule):
    def __init__(self, in_features, out_features, sequence_parallel=False, fuse_wgrad_accumulation=False,
                 tp_group=None, tp_size=1, get_rng_state_tracker=None, rng_tracker_name=None, init_method=None,
                 bias=True, return_bias=False, params_dtype=None, parallel_mode=None, parameters_split=None,
                 device="cuda", ub_overlap_ag=False, ub_overlap_rs=False, ub_overlap_rs_dgrad=False,
                 ub_bulk_dgrad=False, ub_bulk_wgrad=False, ub_name=None, delay_wgrad_compute=False,
                 symmetric_ar_type=None, save_original_input=False, name=None):
        # Megatron sets plain attributes before super().__init__(); nn.Module.__init__ keeps them.
        super().__init__(name)
        assert not parameters_split
        dtype = params_dtype or torch.get_default_dtype()
        self.in_features, self.out_features = in_features, out_features
        self.use_bias, self.return_bias = bias, return_bias
        self.apply_bias = bias and not return_bias
        self.fuse_wgrad_accumulation = fuse_wgrad_accumulation
        self.get_rng_state_tracker, self.rng_tracker_name = get_rng_state_tracker, rng_tracker_name
        self.ub_name = ub_name
        self.symmetric_ar_type = symmetric_ar_type
        self.save_original_input = save_original_input
        self.tp_size = tp_size if tp_group is None else torch.distributed.get_world_size(tp_group)
        self.tp_group = tp_group
        assert parallel_mode in ("row", "column", None)
        self.parallel_mode = parallel_mode
        if parallel_mode == "column":
            assert out_features % self.tp_size == 0
            self.out_features = out_features // self.tp_size
        elif parallel_mode == "row":
            assert in_features % self.tp_size == 0
            self.in_features = in_features // self.tp_size
        self.sequence_parallel = self.tp_size > 1 and sequence_parallel
        device = resolve_device(device)
        self.weight_names, self.bias_names = ["weight"], ["bias"]
        self._pre_weight(dtype, device)
        self._init_param("weight", (self.out_features, self.in_features), dtype, device, init_method or default_init)
        set_tp_attr(self.weight, True, 1 if parallel_mode == "row" else 0, 1)
        if bias:
            self._init_param("bias", (self.out_features,), dtype, device, zeros_)
            if parallel_mode == "row":
                self.bias.sequence_parallel = self.sequence_parallel
            elif parallel_mode == "column":
                set_tp_attr(self.bias, True, 0, 1)
        else:
            self.bias = torch.empty(0, dtype=dtype, device=device)

    def _pre_weight(self, dtype, device):
        pass

    def __setattr__(self, k, v):
        # real TE keeps an empty plain tensor as bias when use_bias is False; Megatron may replace it by a Parameter
        super().__setattr__(k, v)
