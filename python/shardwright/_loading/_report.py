# SPDX-License-Identifier: Apache-2.0
"""What a load made one rank do."""
from typing import NamedTuple


class LoadReport(NamedTuple):
    """Of one rank. A file is foreign to every rank but the one in its name, `__RANK_...`.

    `opens` and `foreign_opens` count files that hold tensors and objects, `own_bytes` and
    `foreign_bytes` what was read of them; `sent_bytes` and `received_bytes` go to and come from
    other ranks. `seconds` is the time from the call to the end.
    """

    opens: int
    foreign_opens: int
    own_bytes: int
    foreign_bytes: int
    sent_bytes: int
    received_bytes: int
    seconds: float
