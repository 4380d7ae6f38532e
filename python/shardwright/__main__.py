# SPDX-License-Identifier: Apache-2.0
"""`python -m shardwright`: the command line, in this process."""
import os
import signal
import sys

from . import _core


def main():
    """Runs the command line of this process and gives its exit status."""
    # Python would only remember Ctrl-C until the command is done.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.environ.setdefault("SHARDWRIGHT_DEMO", os.path.join(sys.prefix, "share/shardwright/demo"))
    return _core.program([os.fsencode(word) for word in sys.argv])


if __name__ == "__main__":
    sys.exit(main())
