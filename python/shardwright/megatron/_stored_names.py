# SPDX-License-Identifier: Apache-2.0
"""Names of stored tensors, for Megatron-Core's check of what a model asks for.

A tensor may be stored as `X.__tp_replica_0`, and models ask for X or for a copy of it. Which, only
the check itself knows: what is stored is renamed there, and only what stored_tensors() made.
"""
import functools

import torch
from megatron.core.dist_checkpointing.mapping import ShardedTensor

from .._errors import make

_CHECK = "_determine_missing_and_unexpected_keys"
_MARK = "_shardwright_catalog"
_asking = []  # an entry for each call of a load that is under way


def stored_tensors(catalog):
    """ShardedTensors without data, by the tensors' own names."""
    entries = {}
    for _, name, dtype, shape in catalog.tensors():
        # A type that this torch lacks hinders nobody who doesn't ask for that tensor.
        whole = torch.empty(shape, dtype=getattr(torch, dtype, torch.uint8), device="meta")
        entry = ShardedTensor.from_rank_offsets(name, whole).without_data()
        setattr(entry, _MARK, catalog)
        entries[name] = entry
    return entries


def see_names_as_asked(validation):
    """Lets Megatron-Core's check see what stored_tensors() gives by the names that the model asks
    for. Raises SW0900 for a Megatron-Core that has no such check."""
    check = getattr(validation, _CHECK, None)
    if check is None:
        raise make(
            "SW0900",
            f"{validation.__name__}: this Megatron-Core has no {_CHECK}; its version is not known",
        )
    if hasattr(check, _MARK):
        return

    @functools.wraps(check)
    def checked(ckpt_sharded_metadata, local_metadata, global_metadata=None):
        asked = {entry.key for entry in local_metadata}
        for rank in global_metadata or ():
            asked.update(entry.key for entry in rank)
        stored = _as_asked(ckpt_sharded_metadata, asked)
        return check(stored, local_metadata, global_metadata)

    setattr(checked, _MARK, True)
    setattr(validation, _CHECK, checked)


def know_when_all_ask(serialization):
    """Lets all_ask() tell when Megatron-Core's load asks for names, which all its ranks do: what it
    gives to others to call stays."""
    stock = serialization.load_sharded_metadata
    if hasattr(stock, _MARK):
        return

    @functools.wraps(stock)
    def load_sharded_metadata(*arguments, **named):
        _asking.append(True)
        try:
            return stock(*arguments, **named)
        finally:
            _asking.pop()

    setattr(load_sharded_metadata, _MARK, True)
    serialization.load_sharded_metadata = load_sharded_metadata


def all_ask():
    """Whether every rank asks for the names now, and not perhaps one alone."""
    return bool(_asking)


def _as_asked(entries, asked):
    names = {}  # by tensor: what models call it
    catalog = next((getattr(e, _MARK) for e in entries.values() if hasattr(e, _MARK)), None)
    if catalog is None:
        return entries
    for name in asked:
        tensor = catalog.tensor_name(name)
        if tensor is not None:
            names.setdefault(tensor, []).append(name)
    named = {}
    for key, entry in entries.items():
        for name in names.get(entry.key, ()) if hasattr(entry, _MARK) else ():
            named[name] = _renamed(entry, name)
        if not (hasattr(entry, _MARK) and entry.key in names):
            named[key] = entry
    return named


def _renamed(entry, name):
    renamed = entry.without_data()
    renamed.key = name
    return renamed
