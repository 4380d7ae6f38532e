# SPDX-License-Identifier: Apache-2.0
"""Prints where PyPI's mpld3 keeps its copy of d3, or nothing. The package is not imported."""
import importlib.util
import pathlib

spec = importlib.util.find_spec("mpld3")
if spec is not None and spec.origin is not None:
    for file in sorted((pathlib.Path(spec.origin).parent / "js").glob("d3.v[5-9].min.js")):
        print(file)
        break
