# SPDX-License-Identifier: Apache-2.0
import torch
from .linear import Linear
from .base import zeros_


class LayerNormLinear(Linear):
    def __init__(self, in_features, out_features, eps=1e-5, sequence_parallel=False, fuse_wgrad_accumulation=False,
                 tp_group=None, tp_size=1, get_rng_state_tracker=None, init_method=None, bias=True,
                 normalization="LayerNorm", return_bias=False, params_dtype=None, parallel_mode=None,
                 return_layernorm_output=False, return_layernorm_output_gathered=False, parameters_split=None,
                 zero_centered_gamma=False, device="cuda", ub_overlap_ag=False, ub_overlap_rs=False,
                 ub_overlap_rs_dgrad=False, ub_bulk_wgrad=False, ub_bulk_dgrad=False, ub_name=None,
                 delay_wgrad_compute=False, symmetric_ar_type=None, name=None):
        self.__dict__["_ln"] = (normalization, zero_centered_gamma)
        self.__dict__["_in"] = in_features
        super().__init__(in_features, out_features, sequence_parallel=sequence_parallel,
                         fuse_wgrad_accumulation=fuse_wgrad_accumulation, tp_group=tp_group, tp_size=tp_size,
                         get_rng_state_tracker=get_rng_state_tracker, init_method=init_method, bias=bias,
                         return_bias=return_bias, params_dtype=params_dtype, parallel_mode=parallel_mode,
                         parameters_split=parameters_split, device=device, ub_name=ub_name, name=name)
        self.eps = eps
        self.normalization = normalization
        self.zero_centered_gamma = zero_centered_gamma
        self.return_layernorm_output = return_layernorm_output
        self.layer_norm_weight.sequence_parallel = self.sequence_parallel
        if self.layer_norm_bias is not None:
            self.layer_norm_bias.sequence_parallel = self.sequence_parallel

    def _pre_weight(self, dtype, device):
        normalization, zc = self._ln
        assert normalization in ("LayerNorm", "RMSNorm")
        self._init_param("layer_norm_weight", (self.__dict__["_in"],), dtype, device,
                         zeros_ if zc else torch.nn.init.ones_)
        if normalization != "RMSNorm":
            self._init_param("layer_norm_bias", (self.__dict__["_in"],), dtype, device, zeros_)
        else:
            self.layer_norm_bias = None
