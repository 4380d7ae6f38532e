# SPDX-License-Identifier: Apache-2.0
"""Saving for Megatron-Core's dist_checkpointing."""
import contextlib
import os
import time
from typing import NamedTuple

import torch.distributed as dist
from megatron.core import parallel_state
from megatron.core.dist_checkpointing.dict_utils import nested_values
from megatron.core.dist_checkpointing.mapping import ShardedTensor, is_main_replica
from megatron.core.dist_checkpointing.strategies.torch import (
    MCoreSavePlanner,
    TorchDistSaveShardedStrategy,
    mcore_to_pyt_state_dict,
)

from .._arguments import whole_number
from ..torch._items import ItemFile, Staging
from ..torch._replicas import Group
from ._background import Background, request_class, requested, take_threads
from ._common import hold_common_once
from ._exchange import Exchange
from ._hooks import balance_once
from ._in_flight import InFlight
from ._publish import Publication, clear_failed
from ._replicas import choose_writers, find_replicated, held_by, is_saved, own_name
from ._report import SaveReport, record_save

_STAGING_BYTES = 16 << 30


class SaveStrategy(TorchDistSaveShardedStrategy):
    """Saves a `torch_dist` checkpoint: each rank one file, written and made durable by threads
    without the GIL, and `.metadata` once every rank's file is.

    `dist_checkpointing.save(state, folder, SaveStrategy())`. All ranks of the job save together,
    to a file system that all of them see.

    * `replicas`: what tensor-parallel ranks hold alike is saved by each of them, under a name of
      its own (`NAME.__tp_replica_1`), so that each finds it in its own file. Where TP is 1, and for
      objects and tensors that are cut, names stay. False: Megatron's names.
    * `tp_group`, `dp_group`: of this rank; Megatron's own for None. A component of a MIMO model
      has its own. What the ranks of `dp_group` hold alike they share out by bytes.
    * `threads` write a file, 0: this rank's share of the machine's processors.
    * `max_staging_bytes`: what an async save copies to host memory at most, in bytes. The rest is
      written before it returns. The memory is kept for the next save.
    * `silent_seconds`: after which time a rank that gave no sign of life counts as dead.
    * `arrival_seconds`: how long a rank may come later than others to a save. None: until the
      process group's own timeout.

    An async save copies, and writes in a thread of this process; the next one waits for it. If a
    rank fails or dies, every other one raises StorageError (SW0114), nothing is published, and what
    was there before stays. Of saves to one folder the one that began last stays: one that began
    earlier and is published later raises ExistsError (SW0107).
    """

    def __init__(
        self,
        backend="torch_dist",
        version=1,
        *,
        replicas=True,
        tp_group=None,
        dp_group=None,
        threads=0,
        max_staging_bytes=_STAGING_BYTES,
        silent_seconds=6.0,
        arrival_seconds=None,
        **options,
    ):
        threads = whole_number("threads", threads)
        staging = Staging(whole_number("max_staging_bytes", max_staging_bytes))
        balance_once()
        take_threads()
        hold_common_once()
        super().__init__(backend, version, **options)
        self.replicas = replicas
        self.tp_group, self.dp_group = tp_group, dp_group
        self.threads = threads
        self.silent_seconds = silent_seconds
        self.arrival_seconds = arrival_seconds
        self._staging = staging
        self._background = None
        self._saved_before = None
        self._common = {}  # by folder

    def save(self, sharded_state_dict, checkpoint_dir):
        """Returns once the checkpoint is published; only metadata.json is Megatron's to write."""
        job = self._begin(sharded_state_dict, checkpoint_dir)
        job.write()
        job.publish()

    def async_save(self, sharded_state_dict, checkpoint_dir, async_strategy="mcore"):
        """Returns Megatron's AsyncRequest once everything is copied. Its process is a thread, and
        its first function publishes."""
        request = request_class(async_strategy)
        self._background = self._in_background(sharded_state_dict, checkpoint_dir)
        return requested(self._background, request)

    def _in_background(self, sharded_state_dict, checkpoint_dir):
        """Errors wait for Megatron's queue, which asks all ranks together: raised here on one, the
        others would wait there for it."""
        try:
            job = self._begin(sharded_state_dict, checkpoint_dir)
            job.stage(self._staging)
        except Exception as error:
            return Background.failed(error)
        return Background(job.write, job.publish)

    def wait(self):
        """Until what was begun in the background is written; Megatron's queue publishes it."""
        if self._background is not None:
            self._background.join()

    def hold_common(self, checkpoint_dir, contents):
        """What is to be in common.pt of the next save to that folder; rank 0 is told."""
        self._common[os.fspath(checkpoint_dir)] = contents

    def _begin(self, sharded_state_dict, checkpoint_dir):
        self.wait()  # for the staging that is still read
        folder = os.fspath(checkpoint_dir)
        job = _Job(self, folder, self._common.pop(folder, None))
        job.plan(sharded_state_dict)
        return job


class _Written(NamedTuple):
    """What a rank tells of its file."""

    plan: object  # torch's SavePlan
    file: str
    places: list  # offset and length of each of the plan's items


class _Job:
    """One save on this rank, from its plan until it is published."""

    def __init__(self, strategy, folder, common):
        self._strategy, self._folder, self._common = strategy, folder, common
        self._begun = time.monotonic()
        self._exchange = Exchange(folder, strategy.silent_seconds, strategy.arrival_seconds)
        self._file = self._plan = self._generation = None
        self._replicas = self._staged = 0
        self._blocking = 0.0
        self._in_flight = self._publication = None
        self._handed_over = False

    def plan(self, state):
        with self._guarded():
            if self._exchange.rank == 0:
                self._in_flight = InFlight(self._folder)
                self._exchange.send("folder", self._in_flight.generation)
            # Nobody writes before rank 0 has looked at what lies there.
            (self._generation,) = self._exchange.receive("folder", [0])
            planner = self._planner(self._own_part(list(nested_values(state))))
            self._plan = planner.create_local_plan()
            items = [(item.index.fqn, planner.resolve_data(item)) for item in self._plan.items]
            if items:
                self._file = ItemFile(self._folder, self._name, items, self._strategy.threads)

    def stage(self, staging):
        with self._guarded():
            if self._file is not None:
                self._staged = self._file.stage(staging)
        self._blocking = time.monotonic() - self._begun

    def write(self):
        with self._guarded():
            if self._file is None:
                return
            try:
                self._file.write()
            except Exception:
                # After another rank's failure rank 0 removes all files: that one is the reason.
                self._exchange.check()
                raise

    def publish(self):
        begun = time.monotonic()
        with self._guarded():
            self._exchange.check()
            places = self._file.places if self._file is not None else []
            self._exchange.send("written", _Written(self._plan, self._name, places))
            if self._exchange.rank == 0:
                written = self._exchange.receive("written", range(self._exchange.world))
                planner = MCoreSavePlanner(flatten_state_dict=False)
                self._publication = Publication(
                    self._folder, self._in_flight, planner, written, self._common
                )
                self._publication.appear()
                self._exchange.send("published", True)
            # Should rank 0 die now, this file may be of a checkpoint. If it fails, it removes it.
            self._handed_over = self._exchange.rank != 0
            self._exchange.receive("published", [0])
        self._exchange.close()
        before, self._strategy._saved_before = self._strategy._saved_before, self._exchange
        if before is not None:
            before.forget()  # who has come here has read what was said then
        now = time.monotonic()
        waited = self._blocking + now - begun if self._blocking else now - self._begun
        record_save(
            SaveReport(
                path=self._folder,
                opens=int(self._file is not None),
                own_bytes=self._file.bytes if self._file is not None else 0,
                files=int(self._file is not None),
                items=len(self._plan.items),
                replicas=self._replicas,
                staged_bytes=self._staged,
                blocking_seconds=waited,
                seconds=now - self._begun,
            )
        )

    @property
    def _name(self):
        return f"__{self._exchange.rank}_{self._generation}.distcp"

    def _own_part(self, values):
        """By name, what this rank saves."""
        tensors = [value for value in values if isinstance(value, ShardedTensor)]
        held = [held_by(tensor) for tensor in tensors]
        tp = Group.of(self._group("tp_group"))
        replicated = set()
        if self._strategy.replicas and len(tp.ranks) > 1:
            self._exchange.send("held", held)
            replicated = find_replicated(self._exchange.receive("held", tp.ranks), tp.place)
        writers = self._writers(held, replicated)
        part = {}
        for tensor, one in zip(tensors, held):
            if writers.pop(one.shard, None) is None:
                continue  # another rank's, or this rank holds it twice
            if one.shard in replicated:
                tensor = own_name(tensor, tp.place)
                self._replicas += 1
            part.setdefault(tensor.key, []).append(tensor)
        for value in values:
            if not isinstance(value, ShardedTensor) and is_main_replica(value.replica_id):
                part.setdefault(value.unique_key, []).append(value)
        return part

    def _writers(self, held, replicated):
        """The shards that this rank writes."""
        dp = Group.of(self._group("dp_group"))
        told = [(one.shard, one.bytes, is_saved(one, replicated)) for one in held]
        everyone = [told]
        if len(dp.ranks) > 1:
            self._exchange.send("shards", told)
            everyone = self._exchange.receive("shards", dp.ranks)
        writers = choose_writers(everyone)
        return {shard: place for shard, place in writers.items() if place == dp.place}

    def _group(self, name):
        given = getattr(self._strategy, name)
        if given is not None or not parallel_state.model_parallel_is_initialized():
            return given
        if name == "tp_group":
            return parallel_state.get_tensor_model_parallel_group()
        return parallel_state.get_data_parallel_group(with_context_parallel=True)

    @staticmethod
    def _planner(part):
        planner = MCoreSavePlanner(flatten_state_dict=False, flatten_sharded_tensors=False)
        planner.set_up_planner(mcore_to_pyt_state_dict(part, False), is_coordinator=False)
        return planner

    def _guarded(self):
        return _Guard(self)

    def fail(self, error):
        """Tells the other ranks, and leaves nothing of this save behind."""
        with contextlib.suppress(RuntimeError):  # of a store that went with its rank
            self._exchange.fail(error)
        self._exchange.close()
        is_visible = self._publication is not None and self._publication.is_visible
        if self._generation is not None and not self._handed_over and not is_visible:
            clear_failed(self._folder, self._name, self._exchange.rank, self._generation)
        if self._in_flight is not None:
            self._in_flight.end()


class _Guard:
    """Whatever a rank raises ends the save on all of them."""

    def __init__(self, job):
        self._job = job

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if error is not None:
            self._job.fail(error)
