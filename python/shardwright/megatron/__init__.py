# SPDX-License-Identifier: Apache-2.0
"""For Megatron-Core's dist_checkpointing."""
from ._hf import load_hf, save_hf
from ._load import LoadStrategy, last_load

__all__ = ["LoadStrategy", "last_load", "load_hf", "save_hf"]
