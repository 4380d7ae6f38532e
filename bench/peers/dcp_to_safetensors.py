# SPDX-License-Identifier: Apache-2.0
"""torch: every tensor of a DCP checkpoint into memory, then into one safetensors file."""
import pathlib
import sys

from safetensors.torch import save_file
from torch.distributed.checkpoint import FileSystemReader
from torch.distributed.checkpoint.default_planner import _EmptyStateDictLoadPlanner
from torch.distributed.checkpoint.state_dict_loader import _load_state_dict

source, target = sys.argv[1:]
state = {}
_load_state_dict(
    state, storage_reader=FileSystemReader(source), planner=_EmptyStateDictLoadPlanner(), no_dist=True
)
pathlib.Path(target).mkdir()
save_file(state, pathlib.Path(target) / "model.safetensors")
