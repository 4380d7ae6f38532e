# SPDX-License-Identifier: Apache-2.0
"""For Megatron-Core: its `torch_dist` checkpoints, saved and loaded at training time, and Hugging
Face weights in live models.

A Megatron-Core that is not known is refused by name (ModelError, SW0416) by whatever is taken from
here, before anything of it is imported or changed.
"""
import importlib

from ._versions import check_version

# Where each public name is. Nothing is imported before the version is known.
_HOMES = {
    "LoadReport": "_load",
    "LoadStrategy": "_load",
    "SaveReport": "_report",
    "SaveStrategy": "_save",
    "disable": "_enable",
    "enable": "_enable",
    "enabled": "_enable",
    "last_load": "_load",
    "last_save": "_report",
    "load_hf": "_hf",
    "save_hf": "_hf",
}

__all__ = sorted(_HOMES)


def __dir__():
    return sorted([*globals(), *__all__])


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    check_version()
    return getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
