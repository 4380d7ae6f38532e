# SPDX-License-Identifier: Apache-2.0
"""A part of a load: what the ranks of one group need, planned and exchanged by them."""
import math
import os
from typing import NamedTuple, Optional

import torch

from .._errors import make
from .._pickles import check_intact
from .._torch_memory import bytes_of
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
    messages. `ranks`: those of the group, as files are named after them."""

    def __init__(self, exchange, where, *, ranks, of_objects):
        self.exchange = exchange
        self._ranks = ranks
        self._where = where
        self._of_objects = of_objects
        self._scratch = None
        self._current = None, None  # the number of the chunk read last, and the chunk

    def ask(self, wanted, *facts):
        """Takes this rank's list of Wanted. Tells the group that and `facts`: a tensor rank, what a
        byte costs to read, and to send, and how many a rank sends or receives in a round."""
        self.wanted = wanted
        rows = [_row(one) for one in wanted]
        told = self.exchange.meet((rows, _addresses_of(wanted), facts))
        self._asked = [rows for rows, _, _ in told]
        self._addresses = [addresses for _, addresses, _ in told]
        # Ranks that were told different ones must not plan different loads.
        *self._facts, self._limit = told[0][2]

    def plan(self, catalog):
        """Gives the number of rounds. Every rank of the group plans the same."""
        asked = self._asked
        self._catalog = catalog
        planned, parts = catalog.plan(
            self._ranks, asked, *self._facts, by_owner=self._of_objects
        )
        self._reads = [Read(*read) for read in planned]
        limit = self.exchange.most_bytes(self._limit)
        own = self.exchange.member
        self._own_parts = {}  # by read: what of it this rank needs, where it reads it
        self._taken = []  # pieces for this rank out of another's memory, whose, and from where on
        queues = [[] for _ in asked]
        at = 0
        for number, read in enumerate(self._reads):
            itemsize = _type_of(read.dtype, self._where).itemsize
            queues[read.member].append(number)
            first = at
            while at < len(parts) and parts[at][0] == number:
                at += 1
            kept = [part[2:] for part in parts[first:at] if part[1] == read.member]
            if kept and read.member == own:
                self._own_parts[number] = kept
            address = self._address_of(read, kept) if self.exchange.reads_memory else 0
            for _, member, which, origin, shape in parts[first:at]:
                if member == read.member:
                    continue
                pieces = pieces_of(number, member, which, origin, shape, itemsize, limit)
                if not address:
                    queues[read.member].extend(pieces)
                    continue
                for piece in pieces:
                    begin = _bytes_before(piece, read, itemsize)
                    if begin is None:
                        queues[read.member].append(piece)
                    elif member == own:
                        self._taken.append((piece, read.member, address + begin))
                    elif read.member == own:
                        self.exchange.sent_bytes += piece.bytes
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

    def take_rest(self):
        """Takes out of the others' memory what lies there as it was read. All must have read all of
        theirs, and change nothing until all have taken."""
        for piece, member, address in self._taken:
            wanted = self.wanted[piece.asked]
            target = wanted.target[_slices(piece.origin, piece.shape, wanted.origin)]
            is_in_place = self._addresses[self.exchange.member][piece.asked] != 0
            memory = target
            if not (is_in_place and target.is_contiguous()):
                dtype = _type_of(wanted.row[2], self._where)
                memory = self._room(piece.bytes).view(dtype).view(piece.shape)
            self.exchange.read(piece, member, address, memory)
            if memory is not target:
                target.copy_(memory)
            self._missing[piece.asked] -= math.prod(piece.shape)

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
        reader.read(place, bytes_of(chunk).numpy())
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
        which = self._home_of(read, parts)
        if which is not None:
            return self.wanted[which].target.detach()
        size = math.prod(read.shape) * dtype.itemsize
        return self._room(size).view(dtype).view(read.shape)

    def _home_of(self, read, parts):
        """What the reader asked for and is the chunk, in memory as it is stored: it is read there.
        `parts`: what it needs of the chunk. None where there is no such thing."""
        asked, addresses = self._asked[read.member], self._addresses[read.member]
        for which, _, shape in parts:
            is_whole = tuple(shape) == tuple(read.shape) == tuple(asked[which][2])
            if is_whole and (self._of_objects or addresses[which]):
                return which
        return None

    def _address_of(self, read, parts):
        """Where the chunk will lie in the reader's memory for others to read; 0 for nowhere."""
        which = self._home_of(read, parts)
        return 0 if which is None else self._addresses[read.member][which]

    def _room(self, size):
        if self._scratch is None or self._scratch.numel() < size:
            self._scratch = torch.empty(size, dtype=torch.uint8)
        return self._scratch[:size]

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


def _addresses_of(wanted):
    """Where in this process the targets lie that are memory as it is stored; 0 for every other one,
    and for those that have memory in common: what is read first would not stay there."""
    addresses = [_address(one) for one in wanted]
    alone = list(addresses)
    end, last = 0, None
    for at in sorted(range(len(wanted)), key=addresses.__getitem__):
        if not addresses[at]:
            continue
        if addresses[at] < end:
            alone[at] = alone[last] = 0
        if addresses[at] + wanted[at].target.nbytes > end:
            end, last = addresses[at] + wanted[at].target.nbytes, at
    return alone


def _address(one):
    target = one.target
    if target is None or not target.is_cpu or not target.is_contiguous():
        return 0
    if target.is_conj() or target.is_neg():  # its memory is another tensor's
        return 0
    return target.data_ptr() if target.dtype == getattr(torch, one.row[2], None) else 0


def _bytes_before(piece, read, itemsize):
    """How far into a chunk a piece begins; None where it does not lie there in one run."""
    begin, stride, is_cut = 0, itemsize, False
    for at in reversed(range(len(piece.shape))):
        if is_cut and piece.shape[at] > 1:
            return None
        begin += (piece.origin[at] - read.origin[at]) * stride
        stride *= read.shape[at]
        is_cut |= piece.shape[at] != read.shape[at]
    return begin


def _slices(origin, shape, base):
    return tuple(slice(o - b, o - b + n) for o, n, b in zip(origin, shape, base))
