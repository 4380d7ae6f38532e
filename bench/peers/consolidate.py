# SPDX-License-Identifier: Apache-2.0
"""torch: the safetensors files of several ranks become one, by its own tool for that."""
import os
import pathlib
import sys

from safetensors import safe_open
from torch.distributed.checkpoint._consolidate_hf_safetensors import consolidate_safetensors_files

source, target = sys.argv[1:]
names = set()
for path in pathlib.Path(source).glob("*.safetensors"):
    with safe_open(path, "pt") as file:
        names.update(file.keys())
os.mkdir(target)
consolidate_safetensors_files(
    source, target, dict.fromkeys(names, 1), num_threads=len(os.sched_getaffinity(0))
)
