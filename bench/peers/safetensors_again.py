# SPDX-License-Identifier: Apache-2.0
"""safetensors: each file of a model is loaded and saved."""
import pathlib
import shutil
import sys

from safetensors.torch import load_file, save_file

source, target = map(pathlib.Path, sys.argv[1:])
target.mkdir()
for path in source.iterdir():
    if path.suffix == ".safetensors":
        save_file(load_file(path), target / path.name)
    else:
        shutil.copy(path, target)
