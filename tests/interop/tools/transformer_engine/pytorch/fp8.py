# SPDX-License-Identifier: Apache-2.0
import contextlib
from ..common.recipe import DelayedScaling, Recipe  # noqa: F401


class FP8GlobalStateManager:
    HIGH_PRECISION_INIT_VAL = False
    @classmethod
    def is_fp8_enabled(cls): return False
    @classmethod
    def is_fp8_calibration(cls): return False
    @classmethod
    def with_fp8_parameters(cls): return False
    @classmethod
    def get_fp8_recipe(cls): return DelayedScaling()
    @classmethod
    def is_fp8_available(cls): return (False, "stub")
    @classmethod
    def is_first_fp8_module(cls): return False
    @classmethod
    def set_skip_fp8_weight_update_tensor(cls, *a, **k): pass
    @classmethod
    def get_skip_fp8_weight_update_tensor(cls): return None
    @classmethod
    def reset(cls): pass
    @classmethod
    def reduce_and_update_fp8_tensors(cls, *a, **k): pass


@contextlib.contextmanager
def fp8_autocast(*a, **k):
    yield


@contextlib.contextmanager
def fp8_model_init(*a, **k):
    if k.get("enabled"):
        raise NotImplementedError("TE stub: no fp8 parameters")
    yield


def check_fp8_support(): return (False, "stub")
def get_default_fp8_recipe(): return DelayedScaling()
