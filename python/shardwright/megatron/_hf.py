# SPDX-License-Identifier: Apache-2.0
"""Weights of a live Megatron model from any checkpoint, and to a Hugging Face one."""
import shutil
import tempfile

import torch

from .._errors import make
from .._loading import Job
from .._local_path import local_path
from .._naming import MEGATRON
from .._reading import Checkpoint
from ._model import chunks_of, filled, is_weight, local_tensors

_MOST_NAMED = 8


def load_hf(model, path, *, as_=None, **options):
    """Fills a live Megatron-Core model with the weights of a Hugging Face model, or of any other
    checkpoint, with nothing written in between.

    `model`: what this rank has of it, a module with `sharded_state_dict` (wrapped by DDP or
    Float16Module or not), or the list of its virtual pipeline stages; any TP, PP, EP and ETP. Each
    rank reads the boxes that `sharded_state_dict` says it holds, tensor by tensor. Rows of padding
    of the vocabulary that the checkpoint lacks become zeros, as a conversion makes them. Values are
    cast to the parameters' types. `as_` and `options` are those of `shardwright.open`; optimizer
    states are not touched.

    All ranks must call it: where one fails every rank raises. Raises Error: SW0404 for a parameter
    that the checkpoint lacks, SW0405 for another shape, those of `shardwright.open`; the model then
    is filled in part.
    """

    def fill():
        checkpoint = Checkpoint(path, "pt", as_, names=MEGATRON, **options)
        with checkpoint, torch.no_grad():
            for chunk in chunks_of(model):
                _fill(chunk, checkpoint)

    Job().attempt(fill)


def save_hf(model, path, *, hf_config, overwrite=False, **flags):
    """Writes a live Megatron-Core model as a Hugging Face one, which appears whole or not at all.

    `model` is as for `load_hf`. `hf_config`: the folder with the config.json, tokenizer and other
    files that go along. `overwrite` and `flags` are those of `convert`: `family`, `dtype`,
    `max_shard_size`. Each rank writes what it owns to a hidden folder beside `path`, out of which
    the first rank makes the Hugging Face files, so that all ranks must see the same file system,
    and for a while it holds the weights twice.

    All ranks must call it: where one fails every rank raises, and nothing is left behind. Where
    Megatron's own save fails on one rank only, that rank raises and the others wait in Megatron,
    as they do in its save, until the launcher ends them; the hidden folder may stay.
    """
    from megatron.core import dist_checkpointing

    from .. import convert

    path = local_path(path)
    job = Job()
    state = job.attempt(lambda: _state_of(model))
    parts = job.tell_first(lambda: _hidden_folder(path))

    def on_first(step):
        job.attempt(lambda: step() if job.rank == 0 else None)

    try:
        dist_checkpointing.save(state, parts)
    except BaseException:
        # The others may be in a collective of Megatron's, where ours would wait for them for ever.
        if job.rank == 0:
            shutil.rmtree(parts, ignore_errors=True)
        raise
    try:
        on_first(
            lambda: convert(parts, path, to="hf", hf_config=hf_config, overwrite=overwrite, **flags)
        )
    finally:
        # Nobody returns while the folder is still there.
        on_first(lambda: shutil.rmtree(parts, ignore_errors=True))


def _fill(chunk, checkpoint):
    places = chunk.state_dict(keep_vars=True)
    unfilled = {name for name in places if is_weight(name, places[name])}
    for name, value in filled(chunk, lambda piece: _read(piece, checkpoint)):
        place = places.get(name)
        if place is None:
            continue
        if place.shape != value.shape:
            raise make(
                "SW0405",
                f"{name}: found shape {tuple(value.shape)}, expected {tuple(place.shape)}; "
                "sharded_state_dict and the module disagree",
            )
        place.copy_(value)
        unfilled.discard(name)
    if unfilled:
        names = sorted(unfilled)
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        raise make(
            "SW0404",
            f"sharded_state_dict says nothing of {', '.join(names[:_MOST_NAMED])}{more}: nothing "
            "would fill them",
        )


def _read(piece, checkpoint):
    """This rank's part of a tensor, in the checkpoint's type."""
    name = _name_in(checkpoint, piece.key)
    found, wanted = tuple(checkpoint.shape_of(name)), tuple(piece.global_shape)
    lacks_rows = piece.allow_shape_mismatch and found[:1] < wanted[:1] and found[1:] == wanted[1:]
    if found != wanted and not lacks_rows:
        raise make(
            "SW0405",
            f"{piece.key}: found shape {found}, expected {wanted}; the model is of another size "
            "than the checkpoint",
        )
    origin = list(piece.global_offset)
    extent = [1] * piece.prepend_axis_num + list(piece.local_shape)
    rows = max(0, min(extent[0], found[0] - origin[0])) if lacks_rows else None
    if rows is None or rows == extent[0]:
        return checkpoint.read_box(name, origin, extent).reshape(piece.local_shape)
    dtype = getattr(torch, checkpoint.dtype_of(name))
    padded = torch.zeros(extent, dtype=dtype)
    if rows:
        padded[:rows] = checkpoint.read_box(name, origin, [rows, *extent[1:]])
    return padded.reshape(piece.local_shape)


def _name_in(checkpoint, key):
    # Megatron's local modules of layers with experts have a name of their own for this norm.
    other = key.replace(".mlp.linear_fc1.layer_norm_", ".pre_mlp_layernorm.")
    for name in (key, other):
        if name in checkpoint:
            return name
    raise make(
        "SW0404",
        f"{key}: the model has it, but the checkpoint "
        f"{checkpoint.metadata()['path']} makes no such tensor; nothing would fill it",
    )


def _state_of(model):
    return {f"model{number}": local_tensors(chunk) for number, chunk in enumerate(chunks_of(model))}


def _hidden_folder(path):
    """A new folder beside `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return tempfile.mkdtemp(prefix=f".{path.name}.shardwright-", dir=path.parent)
