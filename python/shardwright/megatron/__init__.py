# SPDX-License-Identifier: Apache-2.0
"""For Megatron-Core: Hugging Face models into live models and out of them."""
from ._hf import load_hf, save_hf

__all__ = ["load_hf", "save_hf"]
