# SPDX-License-Identifier: Apache-2.0
"""In which order ranks send pieces: bounded, complete, the same on every rank."""
import itertools
import math

import numpy
import pytest
import torch

from shardwright._loading._phase import Read, Wanted, _addresses_of, _bytes_before
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


def test_where_in_its_chunk_a_piece_begins():
    shape, base = (2, 3, 4), (5, 0, 10)
    chunk = numpy.arange(math.prod(shape)).reshape(shape)
    read = Read(0, 0, 0, "file", 4 * chunk.size, "float32", base, shape)
    extents = [[(b, e) for e in range(1, n + 1) for b in range(n - e + 1)] for n in shape]
    runs = 0
    for box in itertools.product(*extents):
        values = chunk[tuple(slice(b, b + e) for b, e in box)].reshape(-1)
        origin = tuple(b + at for (b, _), at in zip(box, base))
        piece = Piece(0, 1, 0, origin, tuple(e for _, e in box), 4 * values.size)
        is_one_run = values[-1] - values[0] == values.size - 1
        assert _bytes_before(piece, read, 4) == (4 * values[0] if is_one_run else None), box
        runs += is_one_run
    assert 0 < runs < math.prod(map(len, extents))


def test_only_memory_as_it_is_stored_is_read_by_others():
    def wanted(target):
        return Wanted((0, "name", "float32", ()), (0,) * target.dim(), target)

    whole = torch.zeros(6, 4)
    assert _addresses_of([wanted(whole)]) == [whole.data_ptr()]
    others = [whole.t(), whole.double(), torch.zeros(6, 4, device="meta")]
    assert _addresses_of([wanted(target) for target in others]) == [0, 0, 0]
    apart = [wanted(whole[:2]), wanted(whole[2:])]
    assert _addresses_of(apart) == [one.target.data_ptr() for one in apart]
    tied = [wanted(whole[1:2]), wanted(torch.zeros(3)), wanted(whole), wanted(whole[4:])]
    addresses = _addresses_of(tied)
    assert addresses == [0, tied[1].target.data_ptr(), 0, 0], "what is read first may not stay"
