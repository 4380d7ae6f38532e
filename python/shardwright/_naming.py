# SPDX-License-Identifier: Apache-2.0
"""In which names a checkpoint is seen, and what the caller knows of it that files do not tell."""
import os

from ._arguments import text_or_none

STORED, MEGATRON, HF = "stored", "megatron", "hf"


def reader_options(
    *,
    hf_config=None,
    family=None,
    map=None,
    dtype=None,
    mtp=None,
    accept_loss=False,
    replica=None,
    source_ep=None,
    source_etp=None,
    source_tp=None,
):
    """The options of `shardwright.open` as the library's reader takes them."""
    maps = [map] if isinstance(map, (str, bytes, os.PathLike)) else list(map or [])
    return {
        "hf_config": os.fsencode(hf_config) if hf_config is not None else b"",
        "family": text_or_none("family", family),
        "maps": [os.fsencode(one) for one in maps],
        "dtype": _dtype_name(dtype),
        "mtp": text_or_none("mtp", mtp),
        "accept_loss": bool(accept_loss),
        "replica": replica,
        "source_ep": source_ep,
        "source_etp": source_etp,
        "source_tp": source_tp,
    }


def _dtype_name(dtype):
    return "" if dtype is None else str(dtype).rpartition("torch.")[2]
