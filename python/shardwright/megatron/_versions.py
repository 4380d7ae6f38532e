# SPDX-License-Identifier: Apache-2.0
"""Which versions of Megatron-Core are known, and where they keep things."""
import re

from .._errors import make

# First and last version of each minor one whose checkpointing was read and tried.
_KNOWN = (
    ((0, 16, 1), (0, 16, 1)),
    ((0, 17, 1), (0, 17, 1)),
    ((0, 18, 0), (0, 18, 2)),
    ((0, 19, 2), (0, 19, 2)),
)


def check_version():
    """Raises ModelError (SW0416), naming the version, unless Megatron-Core is one that is known."""
    import megatron.core

    found = str(megatron.core.__version__)
    numbers = re.match(r"(\d+)\.(\d+)\.(\d+)", found)
    version = tuple(map(int, numbers.groups())) if numbers else ()
    if not any(first <= version <= last for first, last in _KNOWN):
        known = ", ".join(
            _text(first) if first == last else f"{_text(first)} to {_text(last)}"
            for first, last in _KNOWN
        )
        raise make(
            "SW0416",
            f"Megatron-Core: found version {found}, expected {known}; "
            "nothing of it was changed, checkpoints are saved and loaded as before",
        )


def _text(version):
    return ".".join(map(str, version))
