# SPDX-License-Identifier: Apache-2.0
"""What the examples of docs/python.md and docs/placements.md take for given; they follow."""
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.device_mesh import init_device_mesh

import shardwright
from shardwright.torch import StorageReader, StorageWriter

model: torch.nn.Module = torch.nn.Linear(1, 1)
state_dict: dict[str, object] = {}
