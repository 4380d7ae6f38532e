# SPDX-License-Identifier: Apache-2.0
from .layernorm import _Norm


class RMSNorm(_Norm):
    _has_bias = False
