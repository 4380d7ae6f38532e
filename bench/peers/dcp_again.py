# SPDX-License-Identifier: Apache-2.0
"""torch: `dcp.load` of everything and `dcp.save` of it, with as many threads as there are cores."""
import os
import sys

import torch
import torch.distributed.checkpoint as dcp

source, target = sys.argv[1:]
stored = dcp.FileSystemReader(source).read_metadata().state_dict_metadata
state = {name: torch.empty(one.size, dtype=one.properties.dtype) for name, one in stored.items()}
dcp.load(state, checkpoint_id=source, no_dist=True)
threads = len(os.sched_getaffinity(0))
dcp.save(state, storage_writer=dcp.FileSystemWriter(target, thread_count=threads), no_dist=True)
