# SPDX-License-Identifier: Apache-2.0
"""A part of a load: what the ranks of one group need, planned and exchanged by them."""
import math
import os
from typing import NamedTuple, Optional

import torch

from .._errors import make
from .._pickles import check_intact
from ._rounds import Piece, pieces_of, rounds_of


class Wanted(NamedTuple):
    """What a rank asks for: a box of a tensor, or an object.

    `row` is what `LoadCatalog.find` or `find_object` gave for the name. `target` is memory of the
    box's shape, on any device, of any strides, and of a type that torch converts to; None for an
    object, whose bytes are made.
    """

    row: tuple
    origin: tuple = (0,)
    target: Optional[torch.Tensor] = None


class Read(NamedTuple):
    """That a member of the group reads a chunk of a catalog's tensor whole."""

    member: int
    tensor: int
    chunk: int
    file: str
    bytes: int
    dtype: str
    origin: tuple
    shape: tuple


class Phase:
    """What the group of an exchange wants: tensors, or objects. `where`: the checkpoint, for
    messages."""

    def __init__(self, exchange, where, *, of_objects):
        self.exchange = exchange
        self._where = where
        self._of_objects = of_objects
        self._scratch = None
        self._current = None, None  # the number of the chunk read last, and the chunk

    def ask(self, wanted, *facts):
        """Takes this rank's list of Wanted. Tells the group that and `facts`: a tensor rank, what a
        byte costs to read, and to send, and how many a rank sends or receives in a round."""
        self.wanted = wanted
        told = self.exchange.meet(([_row(one) for one in wanted], facts))
        self._asked = [rows for rows, _ in told]
        # Ranks that were told different ones must not plan different loads.
        *self._facts, self._limit = told[0][1]

    def plan(self, catalog):
        """Gives the number of rounds. Every rank of the group plans the same."""
        asked = self._asked
        self._catalog = catalog
        planned, parts = catalog.plan(
            self.exchange.ranks, asked, *self._facts, by_owner=self._of_objects
        )
        self._reads = [Read(*read) for read in planned]
        limit = self.exchange.most_bytes(self._limit)
        self._own_parts = {}  # by read: what of it this rank needs, where it reads it
        queues = [[] for _ in asked]
        at = 0
        for number, read in enumerate(self._reads):
            itemsize = _type_of(read.dtype, self._where).itemsize
            queues[read.member].append(number)
            while at < len(parts) and parts[at][0] == number:
                _, member, which, origin, shape = parts[at]
                at += 1
                if member != read.member:
                    sent = (number, member, which, origin, shape, itemsize, limit)
                    queues[read.member].extend(pieces_of(*sent))
                elif member == self.exchange.member:
                    self._own_parts.setdefault(number, []).append((which, origin, shape))
        own = self.exchange.member
        self._missing = [math.prod(shape) for _, _, shape in asked[own]]
        self._own = [number for number, read in enumerate(self._reads) if read.member == own]
        self._place = {number: place for place, number in enumerate(self._own)}
        self._rounds = rounds_of(queues, limit)
        self.exchange.prepare(self._rounds)
        return len(self._rounds)

    def own_reads(self):
        """What this rank reads, in order."""
        return [self._reads[number] for number in self._own]

    def make_objects(self):
        # Not before all files were opened: a length that `.metadata` made up takes no memory.
        if self._of_objects:
            self.wanted = [
                one._replace(target=torch.empty(one.row[3], dtype=torch.uint8))
                for one in self.wanted
            ]

    def read_round(self, number, reader, first):
        """Reads what belongs to a round, if there is one of that number. `first`: which of the
        reader's chunks is this phase's first."""
        if number >= len(self._rounds):
            return
        steps = self._rounds[number]
        self.exchange.begin(steps)
        for step in steps[self.exchange.member]:
            if isinstance(step, Piece):
                read, chunk = self._reads[self._current[0]], self._current[1]
                self.exchange.put(step, chunk[_slices(step.origin, step.shape, read.origin)])
            else:
                self._current = step, self._read_chunk(reader, step, first + self._place[step])

    def exchange_round(self, number):
        if number < len(self._rounds):
            self.exchange.run(self._unpack)

    def close(self):
        """Gives all memory back."""
        self._current = self._scratch = None
        self.exchange.close()

    def finish(self):
        """Raises SW0999 should anything have been left out."""
        for wanted, missing in zip(self.wanted, self._missing):
            if missing:
                text = f"{self._where}: {wanted.row[1]}: {missing} elements were not loaded"
                raise make("SW0999", text)
        if self._of_objects:
            self._decode()

    def _read_chunk(self, reader, number, place):
        read, parts = self._reads[number], self._own_parts.get(number, [])
        chunk = self._memory_for(read, parts)
        reader.read(place, chunk.reshape(-1).view(torch.uint8).numpy())
        for which, origin, shape in parts:
            wanted = self.wanted[which]
            target = wanted.target[_slices(origin, shape, wanted.origin)]
            if target.data_ptr() != chunk.data_ptr():
                target.copy_(chunk[_slices(origin, shape, read.origin)])
            self._missing[which] -= math.prod(shape)
        if self._of_objects and not self._catalog.is_compressed(read.tensor):
            name = self.wanted[parts[0][0]].row[1]
            where = f"{os.path.join(self._where, read.file)}: object {name}"
            check_intact(chunk.numpy().tobytes(), where)
        return chunk

    def _decode(self):
        # What is compressed is sent so; each rank decodes what it needs.
        packed = {one.row[0]: one for one in self.wanted if self._catalog.is_compressed(one.row[0])}
        stored = [one.target.numpy().tobytes() for one in packed.values()]
        decoded = dict(zip(packed, self._catalog.decode(list(packed), stored)))
        for number, contents in decoded.items():
            check_intact(contents, f"{self._where}: object {packed[number].row[1]}")
        for at, one in enumerate(self.wanted):
            if one.row[0] in decoded:
                contents = bytearray(decoded[one.row[0]])
                self.wanted[at] = one._replace(target=torch.frombuffer(contents, dtype=torch.uint8))

    def _memory_for(self, read, parts):
        dtype = _type_of(read.dtype, self._where)
        for which, _, shape in parts:
            target = self.wanted[which].target
            is_whole = tuple(shape) == tuple(read.shape) == tuple(target.shape)
            if is_whole and target.dtype == dtype and target.is_contiguous() and target.is_cpu:
                return target.detach()
        size = math.prod(read.shape) * dtype.itemsize
        if self._scratch is None or self._scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8)
        return self._scratch[:size].view(dtype).view(read.shape)

    def _unpack(self, piece, buffer):
        wanted = self.wanted[piece.asked]
        target = wanted.target[_slices(piece.origin, piece.shape, wanted.origin)]
        target.copy_(buffer.view(_type_of(wanted.row[2], self._where)).view(piece.shape))
        self._missing[piece.asked] -= math.prod(piece.shape)


def _type_of(name, where):
    dtype = getattr(torch, name, None)
    if dtype is None:
        raise make("SW0409", f"{where}: torch {torch.__version__} has no type {name}")
    return dtype


def _row(wanted):
    shape = wanted.row[3] if wanted.target is None else wanted.target.shape
    return wanted.row[0], list(wanted.origin), list(shape)


def _slices(origin, shape, base):
    return tuple(slice(o - b, o - b + n) for o, n, b in zip(origin, shape, base))
