# SPDX-License-Identifier: Apache-2.0
"""The jobs of layer_wise_jobs.py with a later Megatron-Core."""
import gpu_modules

gpu_modules.install()

from layer_wise_jobs import check, save  # noqa: E402,F401
