# SPDX-License-Identifier: Apache-2.0
"""For torch: plug-ins of torch.distributed.checkpoint, placements of DTensors."""
from ._placing import (
    Placing,
    checkpoint_dtensor,
    checkpoint_meshes,
    checkpoint_tensors,
    local_from_checkpoint,
    placements_for,
)
from ._reader import StorageReader
from ._writer import SavePlanner, StorageWriter

__all__ = [
    "Placing",
    "SavePlanner",
    "StorageReader",
    "StorageWriter",
    "checkpoint_dtensor",
    "checkpoint_meshes",
    "checkpoint_tensors",
    "local_from_checkpoint",
    "placements_for",
]
