# SPDX-License-Identifier: Apache-2.0
"""The jobs of test_load_hf.py with a later Megatron-Core, which wants modules of GPUs."""
import cpu_shims  # noqa: F401  patches torch.cuda before Megatron looks at it
import gpu_modules

gpu_modules.install()

from load_hf_jobs import load, save  # noqa: E402,F401
