# SPDX-License-Identifier: Apache-2.0
"""In which order ranks read chunks and send pieces of them, so that no rank holds more than so many
bytes for others at a time."""
import math
from typing import NamedTuple


class Piece(NamedTuple):
    """What one rank sends another of a chunk: a box of the tensor. Members are counted in the
    group, `asked` in what the receiver asked for."""

    read: int
    member: int
    asked: int
    origin: tuple
    shape: tuple
    bytes: int


def pieces_of(read, member, asked, origin, shape, itemsize, limit):
    """A box in pieces of at most `limit` bytes, as far as elements allow."""
    size = math.prod(shape) * itemsize
    axis = next((at for at, extent in enumerate(shape) if extent > 1), None)
    if size <= limit or axis is None:
        yield Piece(read, member, asked, tuple(origin), tuple(shape), size)
        return
    rows = max(1, limit * shape[axis] // size)
    for at in range(0, shape[axis], rows):
        begin, extent = list(origin), list(shape)
        begin[axis] += at
        extent[axis] = min(rows, shape[axis] - at)
        yield from pieces_of(read, member, asked, begin, extent, itemsize, limit)


def rounds_of(queues, limit):
    """By round and member: what is next to do, which is the number of a chunk to read or a Piece of
    the chunk read last to send. `queues`: all of it, by member, in order.

    In a round no member sends or receives more than `limit` bytes, but for one larger piece.
    The same queues give the same rounds on every rank.
    """
    rounds = []
    at = [0] * len(queues)
    while any(at[member] < len(queue) for member, queue in enumerate(queues)):
        sent, received = [0] * len(queues), [0] * len(queues)
        steps = []
        for member, queue in enumerate(queues):
            begin = at[member]
            while at[member] < len(queue):
                step = queue[at[member]]
                if isinstance(step, Piece):
                    is_first = not any(sent)
                    fits = max(sent[member], received[step.member]) + step.bytes <= limit
                    if not fits and not is_first:
                        break
                    sent[member] += step.bytes
                    received[step.member] += step.bytes
                at[member] += 1
            steps.append(queue[begin : at[member]])
        rounds.append(steps)
    return rounds
