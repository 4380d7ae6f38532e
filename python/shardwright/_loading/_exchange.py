# SPDX-License-Identifier: Apache-2.0
"""What ranks of a group send one another in a round."""
import torch
import torch.distributed as dist

from ._job import device_of
from ._rounds import Piece

# Pieces begin where any element may: torch views bytes as larger elements only there.
_ALIGNMENT = 16


class Exchange:
    """The exchange of one group over its own backend, from and to CPU and CUDA tensors alike. All
    ranks of the group take the same rounds. One thread's."""

    def __init__(self, group=None):
        is_alone = not (dist.is_available() and dist.is_initialized())
        self._group = group if group is not None or is_alone else dist.group.WORLD
        self.ranks = [0] if is_alone else dist.get_process_group_ranks(self._group)
        self.member = 0 if is_alone else dist.get_rank(self._group)
        self.sent_bytes = 0
        self.received_bytes = 0
        self.close()

    def gather(self, value):
        """What every member has, by member."""
        if len(self.ranks) == 1:
            return [value]
        values = [None] * len(self.ranks)
        dist.all_gather_object(values, value, group=self._group)
        return values

    def begin(self, steps):
        """Lays a round out: `steps` by member, see rounds_of."""
        to, come = [[[] for _ in self.ranks] for _ in range(2)]
        for member, own in enumerate(steps):
            for piece in own:
                if not isinstance(piece, Piece):
                    continue
                if member == self.member:
                    to[piece.member].append(piece)
                elif piece.member == self.member:
                    come[member].append(piece)
        self._is_quiet = not any(isinstance(step, Piece) for own in steps for step in own)
        self._sizes, self._places, total = _layout(to)
        self._come_sizes, come_places, come_total = _layout(come)
        self._come = [(piece, come_places[id(piece)]) for pieces in come for piece in pieces]
        if self._is_quiet:
            return
        self._outgoing = self._buffer(0, total)
        self._incoming = self._buffer(1, come_total)

    def put(self, piece, box):
        """Gives the elements of a piece of this round that this rank sends."""
        at = self._places[id(piece)]
        flat = box.contiguous().reshape(-1).view(torch.uint8)
        self._outgoing[at : at + piece.bytes].copy_(flat)
        self.sent_bytes += piece.bytes

    def run(self, unpack):
        """Exchanges the round; calls `unpack(piece, bytes)` for each piece that came."""
        if self._is_quiet:
            return
        dist.all_to_all_single(
            self._incoming, self._outgoing, self._come_sizes, self._sizes, group=self._group
        )
        for piece, at in self._come:
            unpack(piece, self._incoming[at : at + piece.bytes])
            self.received_bytes += piece.bytes

    def close(self):
        """Gives the memory of the rounds back."""
        self._outgoing = self._incoming = None
        self._buffers = [None, None]

    def _buffer(self, number, size):
        # One for all rounds: new memory costs as much as what is done with it.
        if self._buffers[number] is None or self._buffers[number].numel() < size:
            self._buffers[number] = None
            device = device_of(self._group)
            self._buffers[number] = torch.empty(size, dtype=torch.uint8, device=device)
        return self._buffers[number][:size]


def _layout(pieces):
    """Bytes by member, where each piece begins, bytes of all."""
    sizes, places, at = [], {}, 0
    for own in pieces:
        begin = at
        for piece in own:
            places[id(piece)] = at
            at += -(-piece.bytes // _ALIGNMENT) * _ALIGNMENT
        sizes.append(at - begin)
    return sizes, places, at
