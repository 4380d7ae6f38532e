# SPDX-License-Identifier: Apache-2.0
from .fp8 import *  # noqa
from .fp8 import FP8GlobalStateManager, fp8_autocast, fp8_model_init  # noqa
autocast = fp8_autocast
quantized_model_init = fp8_model_init
