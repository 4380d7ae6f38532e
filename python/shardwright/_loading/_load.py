# SPDX-License-Identifier: Apache-2.0
"""One load, on one rank of a job."""
import functools
import os
import time

from ._catalog import catalog_of, read_metadata
from ._exchange import Exchange
from ._job import Job
from ._phase import Phase
from ._report import LoadReport

ROUND_BYTES = 32 << 20


class Loading:
    """A load of the folder `path` by the ranks of `job`. Every rank of the job must make one and
    run it; where one fails, all raise the error of the first that did.

    Tensors are planned and exchanged by the ranks of `group`, who need much the same; `tensor_rank`
    is what they should have in common. Of this and of the numbers below a group goes by what its
    first rank has. Objects, of which many ranks need one that is stored once, are by
    the whole job. `read_price` and `sent_price`, whole numbers up to 1000, say what a byte of a
    tensor costs: where sending is the dearer, and an exchange would cost more than it saves, each
    rank reads for itself. In a round of the exchange a rank sends at most `round_bytes` and
    receives as many (8 MiB through memory), and it holds one chunk more. One thread's.
    """

    def __init__(
        self,
        path,
        group=None,
        *,
        job=None,
        tensor_rank=0,
        read_price=1,
        sent_price=1,
        round_bytes=ROUND_BYTES,
    ):
        self._path = os.fsencode(path)
        self._name = os.fsdecode(path)
        self._job = job or Job()
        self._group = group
        self._tensor_rank = tensor_rank
        self._prices = read_price, sent_price
        self._limit = round_bytes

    def run(self, ask):
        """Fills everything that `ask` wants. `ask(catalog)` gives a list of Wanted. Gives those of
        them that are objects, now with their bytes, in order, and this rank's LoadReport."""
        started = time.perf_counter()
        phases = self._job.attempt(self._phases)
        try:
            done, report = self._fill(phases, ask)
        finally:
            for phase in phases:
                phase.close()
        return done, report._replace(seconds=time.perf_counter() - started)

    def _fill(self, phases, ask):
        job = self._job
        contents = job.tell_first(lambda: read_metadata(self._name))
        resolving = functools.partial(self._resolve, contents, ask)
        (catalog, wanted), objects = job.attempt(resolving, number_of=lambda made: len(made[1][1]))
        if not objects:  # of any rank
            del phases[1]
        counts = []
        for phase, own in zip(phases, wanted):
            phase.ask(own, self._tensor_rank, *self._prices, self._limit)
            planning = functools.partial(phase.plan, catalog)
            counts.append(job.attempt(planning, number_of=int)[1])
        reads = [read for phase in phases for read in phase.own_reads()]
        reader = job.attempt(lambda: self._open(catalog, phases, reads))
        first = 0
        for phase, count in zip(phases, counts):
            self._run_rounds(phase, count, reader, first)
            first += len(phase.own_reads())
        # Who has come here has read all that is to be read.
        job.attempt(lambda: self._finish(reader, phases))
        return phases[1].wanted if objects else [], self._report(reads, reader.opens, phases)

    def _phases(self):
        return [
            Phase(
                Exchange(group), self._name, ranks=self._job.ranks_of(group), of_objects=of_objects
            )
            for group, of_objects in ((self._group, False), (self._job.group, True))
        ]

    def _resolve(self, contents, ask):
        catalog = catalog_of(contents, self._name)
        wanted = ask(catalog)
        tensors = [one for one in wanted if one.target is not None]
        return catalog, (tensors, [one for one in wanted if one.target is None])

    def _open(self, catalog, phases, reads):
        reader = catalog.open(self._path, [(read.tensor, read.chunk) for read in reads])
        for phase in phases:
            phase.make_objects()
        return reader

    def _run_rounds(self, phase, count, reader, first):
        # As many as any group of the job has: all look before each whether one has failed.
        for number in range(count):
            self._job.attempt(functools.partial(phase.read_round, number, reader, first))
            self._job.attempt(functools.partial(phase.exchange_round, number))

    @staticmethod
    def _finish(reader, phases):
        for phase in phases:
            phase.take_rest()
        reader.finish()
        for phase in phases:
            phase.finish()

    def _report(self, reads, opens, phases):
        own = f"__{self._job.rank}_"
        foreign = [read for read in reads if not os.path.basename(read.file).startswith(own)]
        foreign_bytes = sum(read.bytes for read in foreign)
        return LoadReport(
            opens=opens,
            foreign_opens=len({read.file for read in foreign}),
            own_bytes=sum(read.bytes for read in reads) - foreign_bytes,
            foreign_bytes=foreign_bytes,
            sent_bytes=sum(phase.exchange.sent_bytes for phase in phases),
            received_bytes=sum(phase.exchange.received_bytes for phase in phases),
            seconds=0.0,
        )
