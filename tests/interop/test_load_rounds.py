# SPDX-License-Identifier: Apache-2.0
"""In which order ranks send pieces: bounded, complete, the same on every rank."""
import itertools
import math

import numpy
import pytest

from shardwright._loading._rounds import Piece, pieces_of, rounds_of


@pytest.mark.parametrize("shape", ((), (1,), (7,), (3, 5), (1, 4, 6), (2, 1, 3)))
@pytest.mark.parametrize("limit", (1, 8, 40, 1000))
def test_pieces_fill_a_box_once(shape, limit):
    origin = tuple(10 * (axis + 1) for axis in range(len(shape)))
    filled = numpy.zeros(shape, int)
    for piece in pieces_of(3, 1, 2, origin, shape, 4, limit):
        assert (piece.read, piece.member, piece.asked) == (3, 1, 2)
        assert piece.bytes == 4 * math.prod(piece.shape)
        assert piece.bytes <= max(limit, 4)
        at = zip(piece.origin, piece.shape, origin)
        filled[tuple(slice(o - b, o - b + n) for o, n, b in at)] += 1
    assert (filled == 1).all()


def queue(member, sizes, members):
    steps = []
    for read, size in enumerate(sizes):
        steps.append(100 * member + read)
        for other in range(members):
            if other != member:
                steps.append(Piece(100 * member + read, other, 0, (0,), (size,), size))
    return steps


@pytest.mark.parametrize("limit", (1, 10, 64, 10_000))
def test_rounds_are_bounded_and_complete(limit):
    queues = [queue(0, [5, 9, 40], 3), queue(1, [], 3), queue(2, [64, 3, 3], 3)]
    rounds = rounds_of(queues, limit)
    for member, steps in enumerate(queues):
        assert list(itertools.chain(*(one[member] for one in rounds))) == steps
    for one in rounds:
        sent, received = [0, 0, 0], [0, 0, 0]
        pieces = 0
        for member, steps in enumerate(one):
            for step in steps:
                if isinstance(step, Piece):
                    pieces += 1
                    sent[member] += step.bytes
                    received[step.member] += step.bytes
        assert pieces == 1 or max(sent + received) <= limit
        assert any(one), "a round in which nothing is done"
    assert len(rounds) == 1 or limit < 10_000
