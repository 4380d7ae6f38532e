# SPDX-License-Identifier: Apache-2.0
"""Arguments that are looked at when they are given, not when something is done with them."""
import operator

from ._errors import UsageError


def whole_number(name, value, least=0, most=None):
    """`value` as an int. Raises TypeError for what is no whole number, UsageError for one that is
    too small or too large."""
    if isinstance(value, bool) or not hasattr(type(value), "__index__"):
        raise TypeError(f"{name}: found {value!r}, expected a whole number")
    number = operator.index(value)
    if number < least or (most is not None and number > most):
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise UsageError("SW0900", f"{name}: found {number}, expected a whole number {bounds}")
    return number


def text_or_none(name, value):
    """`value`, "" for None. Raises TypeError for what is no text."""
    if value is None or isinstance(value, str):
        return value or ""
    raise TypeError(f"{name}: found {value!r}, expected a word (str)")
