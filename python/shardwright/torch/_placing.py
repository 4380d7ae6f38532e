# SPDX-License-Identifier: Apache-2.0
"""DTensors as checkpoints have them; the rules are the library's (`_core.place`)."""
from typing import NamedTuple, Tuple

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.placement_types import _StridedShard

from .. import _core
from .._errors import make

_DENSE_AXES = ("pp", "dp", "cp", "tp")
_EXPERT_AXES = ("pp", "edp", "ep", "etp")


class Placing(NamedTuple):
    """Where a parameter belongs: on the experts' mesh or the dense one, and how."""

    is_expert: bool
    placements: Tuple


def placements_for(name, family):
    """The placements that a family's rules give a parameter, by its name in the model.

    They are for the mesh [PP, DP, CP, TP], of a routed expert for [PP, EDP, EP, ETP]. The first
    rule that fits wins; a name that no rule fits is replicated. Raises ModelError (SW0400) for a
    family without rules.
    """
    return _placing_of(name, _core.PlacementRules(family))


def checkpoint_meshes(device_type, *, pp=1, cp=1, tp=1, ep=1, etp=1):
    """The dense mesh [PP, DP, CP, TP] and the experts' [PP, EDP, EP, ETP] over all ranks.

    Ranks lie row-major; DP and EDP are what the other sizes leave. Makes process groups, as
    `init_device_mesh` does: all ranks must call it. Raises ModelError (SW0412) where the sizes do
    not divide the number of ranks.
    """
    sizes = (dist.get_world_size(), pp, cp, tp, ep, etp)
    return tuple(
        init_device_mesh(device_type, _core.run_mesh(*sizes, experts), mesh_dim_names=names)
        for names, experts in ((_DENSE_AXES, False), (_EXPERT_AXES, True))
    )


def checkpoint_dtensor(param, mesh, placements, *, name="(unnamed)", fsdp_first=False):
    """The DTensor that stands for a parameter, or a state of its shape, in a checkpoint.

    `mesh` and `placements` are the checkpoint's. `param`: what this rank has.

    * Where they shard nothing (all replicate, or every axis that shards has one rank), a DTensor
      keeps its own mesh, placements and shape; a plain tensor is replicated.
    * Else FSDP2's shard is merged in: the mesh axis whose ranks are FSDP's gets it, inside the cuts
      of EP and TP, so that rows lie in the model's order and load at any other sizes.
      `fsdp_first` counts FSDP's index first, as MLite does: that loads at the same sizes only.

    The result shares memory with `param`, so that `dcp.load` fills it in place; to save and to load
    are the same call. No rank talks to another, and shards without elements stay without. `name` is
    for messages. Raises ModelError: SW0412 where no axis has FSDP's ranks (hybrid sharding, DP and
    CP flattened into one), SW0405 for shapes that do not fit.
    """
    local = _local_of(param)
    own = _own_of(param, name) if isinstance(param, DTensor) else None
    placed = _core.place(
        name=name,
        mesh=_mesh_pair(mesh),
        placements=_to_pairs(placements, local.ndim, name),
        fsdp_first=fsdp_first,
        own=own,
        local=list(local.shape),
        rank=dist.get_rank(),
    )
    if placed is None:
        return param.detach()
    pairs, shape, strides = placed
    # The same boxes as torch computes: every TP and EP rank has as many rows, and its mistakes with
    # strided shards are where they have not.
    with torch.no_grad():
        return DTensor.from_local(
            local, mesh, _to_placements(pairs), shape=torch.Size(shape), stride=strides
        )


def checkpoint_tensors(tensors, family, dense, experts, *, fsdp_first=False):
    """A state dict for `dcp.save` or `dcp.load` of a mapping from names to what this rank has.

    Placements follow from the names, see `placements_for`; `dense` and `experts` are the meshes,
    see `checkpoint_meshes`. Names are the family's own: give a prefix afterwards. Raises what
    `checkpoint_dtensor` raises.
    """
    rules = _core.PlacementRules(family)  # read once: they are a file of their own
    state = {}
    for name, tensor in tensors.items():
        is_expert, placements = _placing_of(name, rules)
        mesh = experts if is_expert else dense
        state[name] = checkpoint_dtensor(
            tensor, mesh, placements, name=name, fsdp_first=fsdp_first
        )
    return state


def local_from_checkpoint(loaded, param, *, name="(unnamed)"):
    """Puts this rank's piece of a loaded tensor into `param` and gives that back.

    A rank whose `param` has no elements does nothing, whatever it got; so does one whose piece is
    `param`'s own memory, as those of `checkpoint_dtensor` are. Raises ModelError (SW0405) for a
    piece of another shape.
    """
    source, target = _local_of(loaded), _local_of(param)
    if _core.copies_back(name, list(target.shape), list(source.shape)):
        if source.data_ptr() != target.data_ptr():
            target.copy_(source)
    return param


def _placing_of(name, rules):
    is_expert, pairs = rules.placements_of(name)
    return Placing(is_expert, _to_placements(pairs))


def _local_of(tensor):
    # Without gradients to_local gives the very piece, not a view of it.
    with torch.no_grad():
        return tensor.to_local().detach() if isinstance(tensor, DTensor) else tensor.detach()


def _mesh_pair(mesh):
    return list(mesh.mesh.shape), mesh.mesh.flatten().tolist()


def _own_of(param, name):
    placements = _to_pairs(param.placements, param.ndim, name)
    return _mesh_pair(param.device_mesh), placements, list(param.shape)


def _to_pairs(placements, axes, name):
    pairs = []
    for placement in placements:
        if isinstance(placement, Replicate):
            pairs.append((-1, 1))
            continue
        axis = getattr(placement, "dim", None)
        if axis is None or not -axes <= axis < axes:
            raise make(
                "SW0405",
                f"parameter {name}: found {placement}, expected Replicate or a shard of one of "
                f"{axes} axes",
            )
        pairs.append((axis % axes, getattr(placement, "split_factor", 1)))
    return pairs


def _to_placements(pairs):
    return tuple(
        Replicate()
        if axis < 0
        else Shard(axis) if factor == 1 else _StridedShard(axis, split_factor=factor)
        for axis, factor in pairs
    )
