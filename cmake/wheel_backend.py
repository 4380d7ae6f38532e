# SPDX-License-Identifier: Apache-2.0
"""Builds the Python package: scikit-build-core, and what the pages of `report` draw with.

That is d3, which Debian's node-d3 has. Elsewhere PyPI's mpld3 is asked for, whose wheel carries a
copy that find_d3.py finds; of mpld3 itself nothing is used.
"""
import os
import pathlib

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403  (the hooks that are not below)

PLACES = ("/usr/share/nodejs/d3/dist", "/usr/share/javascript/d3", "/usr/lib/node_modules/d3/dist",
          "/usr/local/lib/node_modules/d3/dist")  # those of d3.cmake


def _has_d3(config_settings):
    given = [os.environ.get("CMAKE_ARGS", ""), *map(str, (config_settings or {}).items())]
    if any("SHARDWRIGHT_D3" in words for words in given):
        return True
    return any((pathlib.Path(place) / "d3.min.js").is_file() for place in PLACES)


def _with_d3(requirements, config_settings):
    return requirements if _has_d3(config_settings) else [*requirements, "mpld3>=0.5.10"]


def get_requires_for_build_wheel(config_settings=None):
    """What a wheel needs to be built, besides what pyproject.toml says: requirements of pip."""
    return _with_d3(_build.get_requires_for_build_wheel(config_settings), config_settings)


def get_requires_for_build_editable(config_settings=None):
    """The same for an installation in place."""
    return _with_d3(_build.get_requires_for_build_editable(config_settings), config_settings)
