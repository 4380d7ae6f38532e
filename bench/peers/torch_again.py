# SPDX-License-Identifier: Apache-2.0
"""torch: `torch.load` and `torch.save` of each file of ranks."""
import pathlib
import sys

import torch

source, target = map(pathlib.Path, sys.argv[1:])
for path in source.rglob("*.pt"):
    place = target / path.relative_to(source)
    place.parent.mkdir(parents=True, exist_ok=True)
    torch.save(torch.load(path, weights_only=False), place)
