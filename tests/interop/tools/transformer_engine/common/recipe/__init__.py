# SPDX-License-Identifier: Apache-2.0
import enum


class Format(enum.Enum):
    E4M3 = 0
    E5M2 = 1
    HYBRID = 2
    E2M1 = 3


class Recipe:
    def __init__(self, *a, **k):
        self.__dict__.update(k)

    def delayed(self): return isinstance(self, DelayedScaling)
    def mxfp8(self): return isinstance(self, MXFP8BlockScaling)
    def nvfp4(self): return isinstance(self, NVFP4BlockScaling)
    def float8_current_scaling(self): return isinstance(self, Float8CurrentScaling)
    def float8_block_scaling(self): return isinstance(self, Float8BlockScaling)
    def custom(self): return isinstance(self, CustomRecipe)


class DelayedScaling(Recipe): pass
class Float8CurrentScaling(Recipe): pass
class MXFP8BlockScaling(Recipe): pass
class Float8BlockScaling(Recipe): pass
class NVFP4BlockScaling(Recipe): pass
class CustomRecipe(Recipe): pass
