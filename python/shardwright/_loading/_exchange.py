# SPDX-License-Identifier: Apache-2.0
"""What ranks of a group send one another in a round."""
import torch
import torch.distributed as dist

from .._torch_memory import bytes_of
from ._host_memory import HostMemory
from ._job import device_of
from ._rounds import Piece

# Pieces begin where any element may: torch views bytes as larger elements only there.
_ALIGNMENT = 16
# Of a round through memory: what is sent and taken again lies in the processor's caches then.
_CACHED_BYTES = 8 << 20


class Exchange:
    """The exchange of one group, from and to CPU and CUDA tensors alike: through memory where all
    its ranks are on one machine and its backend moves CPU tensors, else over that backend. What
    lies whole in a member's memory the others on its machine may `read` there, outside rounds. All
    ranks of the group take the same rounds, and all of the job wait for one another before and
    after `run`. One thread's."""

    def __init__(self, group=None):
        is_alone = not (dist.is_available() and dist.is_initialized())
        self._group = group if group is not None or is_alone else dist.group.WORLD
        self.ranks = [0] if is_alone else dist.get_process_group_ranks(self._group)
        self.member = 0 if is_alone else dist.get_rank(self._group)
        self.sent_bytes = 0
        self.received_bytes = 0
        self._host = None
        self._buffers = [None, None]

    def gather(self, value):
        """What every member has, by member."""
        if len(self.ranks) == 1:
            return [value]
        values = [None] * len(self.ranks)
        dist.all_gather_object(values, value, group=self._group)
        return values

    def meet(self, value):
        """The same, and from then on members on one machine have memory in common."""
        if len(self.ranks) == 1 or device_of(self._group).type != "cpu":
            return self.gather(value)
        self._host = HostMemory()
        told = self.gather((value, self._host.told()))
        self._host.meet([memory for _, memory in told], self._agree)
        return [one for one, _ in told]

    @property
    def reads_memory(self):
        """Whether members may read what others have in memory, by `read`."""
        return self._host is not None and self._host.is_open

    def read(self, piece, member, address, memory):
        """Fills a dense tensor with a piece for this rank that lies in a member's memory."""
        self._host.read(member, address, memory)
        self.received_bytes += piece.bytes

    def most_bytes(self, limit):
        """What a member sends or receives in a round, of at most `limit` bytes."""
        return min(limit, _CACHED_BYTES) if self._is_shared else limit

    def prepare(self, rounds):
        """Takes the memory for these rounds, see rounds_of."""
        if self._is_shared:
            sent = (_layout(_by_receiver(steps[self.member], self.ranks))[2] for steps in rounds)
            self._host.take(max(sent, default=0))

    def begin(self, steps):
        """Lays a round out: `steps` by member."""
        layouts = [_layout(_by_receiver(own, self.ranks)) for own in steps]
        self._sizes, self._places, total = layouts[self.member]
        self._is_quiet = not any(size for _, _, size in layouts)
        self._come = [
            (piece, member, layouts[member][1][id(piece)])
            for member, own in enumerate(steps)
            for piece in own
            if isinstance(piece, Piece) and piece.member == self.member != member
        ]
        if self._is_quiet:
            return
        if self._is_shared:
            self._outgoing = self._host.views()[self.member]
            return
        self._come_sizes = [sizes[self.member] for sizes, _, _ in layouts]
        self._outgoing = self._buffer(0, total)
        self._incoming = self._buffer(1, sum(self._come_sizes))

    def put(self, piece, box):
        """Gives the elements of a piece of this round that this rank sends."""
        at = self._places[id(piece)]
        self._outgoing[at : at + piece.bytes].copy_(bytes_of(box.contiguous()))
        self.sent_bytes += piece.bytes

    def run(self, unpack):
        """Exchanges the round; calls `unpack(piece, bytes)` for each piece that came."""
        if self._is_quiet:
            return
        for piece, memory, at in self._arrived():
            unpack(piece, memory[at : at + piece.bytes])
            self.received_bytes += piece.bytes

    def close(self):
        """Gives the memory of the rounds back."""
        self._outgoing = self._incoming = None
        self._buffers = [None, None]
        if self._host is not None:
            self._host.close()

    @property
    def _is_shared(self):
        return self._host is not None and self._host.is_shared

    def _agree(self, flags):
        agreed = torch.tensor(flags, dtype=torch.int32)
        dist.all_reduce(agreed, op=dist.ReduceOp.MIN, group=self._group)
        return [bool(flag) for flag in agreed.tolist()]

    def _arrived(self):
        if self._is_shared:
            memory = self._host.views()
            return [(piece, memory[member], at) for piece, member, at in self._come]
        dist.all_to_all_single(
            self._incoming, self._outgoing, self._come_sizes, self._sizes, group=self._group
        )
        # What a member sends to one receiver lies together.
        begins = [sum(self._come_sizes[:member]) for member in range(len(self.ranks))]
        first = {}
        for _, member, at in self._come:
            first[member] = min(at, first.get(member, at))
        return [
            (piece, self._incoming, begins[member] + at - first[member])
            for piece, member, at in self._come
        ]

    def _buffer(self, number, size):
        # One for all rounds: new memory costs as much as what is done with it.
        if self._buffers[number] is None or self._buffers[number].numel() < size:
            self._buffers[number] = None
            device = device_of(self._group)
            self._buffers[number] = torch.empty(size, dtype=torch.uint8, device=device)
        return self._buffers[number][:size]


def _by_receiver(steps, ranks):
    pieces = [[] for _ in ranks]
    for step in steps:
        if isinstance(step, Piece):
            pieces[step.member].append(step)
    return pieces


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
