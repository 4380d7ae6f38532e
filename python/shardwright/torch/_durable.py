# SPDX-License-Identifier: Apache-2.0
"""What is still there after a crash."""
import os


def make_durable(path):
    """Of a folder the names in it, of a file its contents."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
