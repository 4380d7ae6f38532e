# SPDX-License-Identifier: Apache-2.0
"""FAKE transformer_engine: parameters, shapes, names, TP attributes and _extra_state only (CPU)."""
import os
__version__ = os.environ.get("TE_STUB_VERSION", "2.14.0")
import cpu_shims  # noqa: F401
from . import common, pytorch  # noqa: F401
IS_STUB = True
