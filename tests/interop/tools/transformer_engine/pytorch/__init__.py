# SPDX-License-Identifier: Apache-2.0
from .module import (Linear, LayerNormLinear, LayerNormMLP, LayerNorm, RMSNorm, GroupedLinear,
                     Fp8Padding, Fp8Unpadding, initialize_ub, destroy_ub, UserBufferQuantizationMode)
from .attention import DotProductAttention, MultiheadAttention, InferenceParams
from .transformer import TransformerLayer
from .fp8 import fp8_autocast, fp8_model_init
from . import (fp8, quantization, module, ops, optimizers, tensor, attention, distributed, constants,
               cpu_offload, permutation, router, cross_entropy, graph, utils, cpp_extensions, float8_tensor)
from .distributed import checkpoint, CudaRNGStatesTracker
from .cpu_offload import get_cpu_offload_context
from .graph import make_graphed_callables
from .tensor import QuantizedTensor, Float8Tensor, MXFP8Tensor, NVFP4Tensor
quantized_model_init = fp8_model_init
autocast = fp8_autocast
def is_fp8_available(*a, **k): return (False, "stub")
