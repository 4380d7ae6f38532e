# SPDX-License-Identifier: Apache-2.0
import torch
from .base import TransformerEngineBaseModule, default_init, zeros_, set_tp_attr, resolve_device


class GroupedLinear(TransformerEngineBaseModule):
    def __init__(self, num_gemms, in_features, out_features, sequence_parallel=False, fuse_wgrad_accumulation=False,
                 tp_group=None, tp_size=1, get_rng_state_tracker=None, rng_tracker_name=None, init_method=None,
                 bias=True, return_bias=False, params_dtype=None, parallel_mode=None, device="cuda",
                 ub_overlap_rs=False, ub_overlap_ag=False, ub_name=None, delay_wgrad_compute=False,
                 save_original_input=False, single_grouped_weight=False, single_grouped_bias=False, name=None):
        super().__init__(name)
        assert not single_grouped_weight and not single_grouped_bias, "TE stub: single grouped params"
        dtype = params_dtype or torch.get_default_dtype()
        self.params_dtype = dtype
        self.num_gemms, self.in_features, self.out_features = num_gemms, in_features, out_features
        self.use_bias, self.return_bias, self.apply_bias = bias, return_bias, bias and not return_bias
        self.single_grouped_weight = self.single_grouped_bias = False
        self.ub_name = ub_name
        self.fuse_wgrad_accumulation = fuse_wgrad_accumulation
        self.rng_tracker_name = rng_tracker_name
        self.tp_size = tp_size if tp_group is None else torch.distributed.get_world_size(tp_group)
        self.tp_group = tp_group
        if self.tp_size > 1 and bias:
            raise ValueError("GroupedLinear doesn't support bias when TP > 1")
        assert parallel_mode in ("row", "column", None)
        self.parallel_mode = parallel_mode
        if parallel_mode == "column":
            self.out_features = out_features // self.tp_size
        elif parallel_mode == "row":
            self.in_features = in_features // self.tp_size
        self.sequence_parallel = self.tp_size > 1 and sequence_parallel
        device = resolve_device(device)
        for i in range(num_gemms):
            self._init_param(f"weight{i}", (self.out_features, self.in_features), dtype, device,
                             init_method or default_init)
            set_tp_attr(getattr(self, f"weight{i}"), True, 1 if parallel_mode == "row" else 0, 1)
            if bias:
                self._init_param(f"bias{i}", (self.out_features,), dtype, device, zeros_)
                if parallel_mode == "row":
                    getattr(self, f"bias{i}").sequence_parallel = self.sequence_parallel
                elif parallel_mode == "column":
                    set_tp_attr(getattr(self, f"bias{i}"), True, 0, 1)
            else:
                setattr(self, f"bias{i}", torch.empty(0, dtype=dtype, device=device))


class _GroupedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, *a):
        raise NotImplementedError("TE stub")
