# SPDX-License-Identifier: Apache-2.0
import torch
from ...common.recipe import DelayedScaling


def get_dummy_wgrad(shape, dtype, zero=False):
    return torch.zeros(*shape, dtype=dtype)


def get_workspace():
    return torch.empty(0, dtype=torch.uint8)


def set_tp_attr(tensor, is_parallel, dim, stride):
    tensor.tensor_model_parallel = is_parallel
    tensor.partition_dim = dim
    tensor.partition_stride = stride


class TransformerEngineBaseModule(torch.nn.Module):
    """Same observable state as real TE >= 2.0 without fp8: an empty uint8 tensor as extra state."""

    def __init__(self, name=None, **kw):
        super().__init__()
        self.name = name
        self.fp8_initialized = False
        self.fp8 = False
        self.fp8_calibration = False
        self.fp8_meta = {"fp8_checkpoint": False, "fp8_group": None, "recipe": DelayedScaling()}
        self.fp8_meta_tensors_initialized = False
        self.tp_group = None
        self.tp_size = 1
        self.sequence_parallel = False
        self.primary_weights_in_fp8 = False
        self.preserve_high_precision_init_val = False
        self.save_original_input = False
        self._te_init_fns = {}

    def init_fp8_metadata(self, num_gemms=1):
        pass

    def set_tensor_parallel_group(self, tp_group):
        self.tp_group = tp_group

    def set_context_parallel_group(self, *a, **k):
        pass

    def get_extra_state(self):
        return torch.empty(0, dtype=torch.uint8)

    def set_extra_state(self, state):
        return

    def backward_dw(self):
        pass

    def _init_param(self, name, shape, dtype, device, init_fn):
        p = torch.nn.Parameter(torch.empty(*shape, dtype=dtype, device=device))
        self.register_parameter(name, p)
        self._te_init_fns[name] = init_fn
        if p.device.type != "meta" and init_fn is not None:
            with torch.no_grad():
                init_fn(p)
        return p

    def reset_parameters(self, defer_init=False):
        """Re-initialise (used after meta-device materialisation)."""
        for n, fn in self._te_init_fns.items():
            p = getattr(self, n)
            if p is not None and p.device.type == "meta":
                p = torch.nn.Parameter(torch.empty_like(p, device="cpu"))
                setattr(self, n, p)
            if p is not None and fn is not None and not defer_init:
                with torch.no_grad():
                    fn(p)

    def forward(self, *a, **k):
        raise NotImplementedError("TE stub: no forward")


def default_init(w):
    torch.nn.init.normal_(w, mean=0.0, std=0.023)


def zeros_(w):
    torch.nn.init.zeros_(w)


def resolve_device(device):
    if device is None or isinstance(device, int) or str(device).startswith("cuda"):
        return torch.device("cpu")
    return torch.device(device)
