# SPDX-License-Identifier: Apache-2.0
"""A row of the scorecard, and what measuring it came to."""
from dataclasses import dataclass, field


class Lacking(Exception):
    """This machine lacks what a row needs; the message says what. Never a pass."""


@dataclass
class Outcome:
    """What was measured, in words, and every way in which the target was missed.

    `partly`: time ended before all was tried that the target asks for.
    """

    measured: str
    faults: list = field(default_factory=list)
    partly: bool = False


@dataclass(frozen=True)
class Row:
    """A row: its name (`R11`), what it is about, its target, and how it is measured.

    `measure` takes a Bench and returns an Outcome, or raises Lacking. A row without one is listed
    as not measured. `share` is its part of the time, compared with the other rows.
    """

    name: str
    title: str
    target: str
    measure: object = None
    share: float = 1.0
    missing: str = ""

    @property
    def number(self):
        return int(self.name[1:])
