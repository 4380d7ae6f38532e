# SPDX-License-Identifier: Apache-2.0
"""Messages between the ranks of one save, through the job's store: nobody waits for a dead rank."""
import hashlib
import json
import pickle
import threading
import time
import zlib

import torch.distributed as dist
from torch.distributed import distributed_c10d

from .._errors import make

# A store takes no larger values: that of torch refuses 8 MiB.
_PART_BYTES = 4 << 20
_BEAT_SECONDS = 1.0
# Who waits asks again after a share of what it has waited, so that little is lost; and all ranks
# together no more often than a store answers.
_PAUSE_SHARE, _LONGEST_PAUSE, _STORE_SECONDS = 0.05, 0.05, 1e-4
# What rank 0 began last may have failed before this rank came: it waits so long for a newer one.
_NEWER_SECONDS = 5.0

# Saves to so many paths may be under way at once; who comes later to an older one waits in vain.
_MOST_PATHS = 64


class _Attempts:
    """The saves that the processes of a job began together. Rank 0 counts them, for another rank may
    have missed some."""

    _of_job = None

    def __init__(self, store):
        self._job = store
        self._last = 0  # that this process took part in
        self._begun = {}  # of rank 0, by path: the one that it began last

    @classmethod
    def of_job(cls):
        store = distributed_c10d._get_default_store()
        if cls._of_job is None or cls._of_job._job is not store:
            cls._of_job = cls(store)
        return cls._of_job

    def begin(self, path):
        """Rank 0 begins one; the number of it."""
        name = _name_of(path, "")
        self._last += 1
        self._begun.pop(name, None)
        self._begun[name] = self._last
        if len(self._begun) > _MOST_PATHS:
            del self._begun[next(iter(self._begun))]
        _store_of("attempts").set("begun", json.dumps(self._begun))
        return self._last

    def join(self, path, arrival_seconds):
        """The number of the one that rank 0 began."""
        name, store = _name_of(path, ""), _store_of("attempts")
        begun, seen, of_seen = time.monotonic(), 0, None
        while True:
            told = json.loads(store.get("begun")) if store.check(["begun"]) else {}
            number = told.get(name, 0)
            waited = time.monotonic() - begun
            if number > self._last:
                if number != seen:
                    seen, of_seen = number, _store_of(_name_of(path, number))
                if not of_seen.check(["failed"]) or waited > _NEWER_SECONDS:
                    self._last = number
                    return number
            if waited > arrival_seconds:
                text = f"rank 0: has not come to this save for {waited:.0f} s (arrival_seconds)"
                raise make("SW0114", f"{path}: not saved; {text}")
            _pause(waited)


class Exchange:
    """What the ranks tell one another about the save to `path`.

    A rank that fails calls `fail`, and every other rank that waits raises; so does one that waits
    for a rank whose process is gone or hangs for more than `silent_seconds`, or that has not come
    for `arrival_seconds`: others may be behind, with another step or a slow disk. Collectives of the
    job are not used: they would wait for half an hour. Not safe for concurrent use.
    """

    def __init__(self, path, silent_seconds, arrival_seconds):
        self.rank, self.world = dist.get_rank(), dist.get_world_size()
        self._path = path
        self._silent = silent_seconds
        self._arrival = arrival_seconds
        if arrival_seconds is None:  # as long as a collective of the job would wait
            self._arrival = distributed_c10d._get_default_store().timeout.total_seconds()
        attempts = _Attempts.of_job()
        is_first = self.rank == 0
        attempt = attempts.begin(path) if is_first else attempts.join(path, self._arrival)
        name = _name_of(path, attempt)
        self._store = _store_of(name)
        self._heart = _Heart(_store_of(name), self.rank)
        self._heard = {}  # by rank: what its heart said last, and when that changed
        self._looked = 0.0
        self._begun = time.monotonic()
        self._keys = []

    def close(self):
        """Nobody need wait for this rank any more. Its messages stay for those who come later."""
        self._heart.stop()

    def forget(self):
        """Removes this rank's messages; every rank must have read them."""
        for key in (*self._keys, f"beat/{self.rank}"):
            self._store.delete_key(key)
        self._keys = []

    def send(self, topic, message):
        """Tells all ranks something."""
        data = zlib.compress(pickled(message), 1)
        parts = range(0, len(data), _PART_BYTES)
        for number, start in enumerate(parts):
            self._set(f"{topic}/{self.rank}/{number}", data[start : start + _PART_BYTES])
        self._set(f"{topic}/{self.rank}", str(len(parts)).encode())

    def receive(self, topic, ranks):
        """What each of `ranks` said, in their order. Raises StorageError (SW0114)."""
        try:
            return [self._message(f"{topic}/{rank}", ranks) for rank in ranks]
        except RuntimeError as error:  # torch's, of a store whose process is gone
            text = f"the job's store does not answer, did rank 0 end? {error}"
            raise make("SW0114", f"{self._path}: not saved; {text}") from error

    def fail(self, error):
        """Tells every rank why this one failed; the first that fails is heard."""
        if not self._store.check(["failed"]):
            text = f"rank {self.rank}: {type(error).__name__}: {error}"
            self._set("failed", text.encode(errors="replace")[:_PART_BYTES])

    def check(self):
        """Raises if any rank has failed."""
        if self._store.check(["failed"]):
            text = self._store.get("failed").decode()
            raise make("SW0114", f"{self._path}: not saved; {text}")

    def _message(self, key, ranks):
        self._wait(key, ranks)
        parts = range(int(self._store.get(key)))
        data = b"".join(self._store.get(f"{key}/{number}") for number in parts)
        return pickle.loads(zlib.decompress(data))

    def _wait(self, key, ranks):
        begun = time.monotonic()
        while not self._store.check([key]):
            self.check()
            self._listen(ranks)
            _pause(time.monotonic() - begun)

    def _listen(self, ranks):
        now = time.monotonic()
        if now - self._looked < _BEAT_SECONDS / 2:
            return
        self._looked = now
        for rank in ranks:
            key, since = f"beat/{rank}", now
            beat = self._store.get(key) if self._store.check([key]) else None
            known = self._heard.get(rank)
            if known is not None and known[0] == beat:
                since = known[1]
            elif known is None and beat is None:
                since = self._begun
            self._heard[rank] = beat, since
            if now - since > (self._silent if beat is not None else self._arrival):
                what = "gave no sign of life" if beat is not None else "has not come to this save"
                option = "silent_seconds" if beat is not None else "arrival_seconds"
                text = f"rank {rank}: {what} for {now - since:.0f} s ({option})"
                self._set("failed", text.encode())
                raise make("SW0114", f"{self._path}: not saved; {text}")

    def _set(self, key, value):
        self._store.set(key, value)
        self._keys.append(key)


class _Heart:
    """Says every second that this process lives, from a thread of its own."""

    def __init__(self, store, rank):
        self._store, self._key = store, f"beat/{rank}"
        self._stopped = threading.Event()
        self._store.set(self._key, "0")
        self._thread = threading.Thread(target=self._beat, name="shardwright-heart", daemon=True)
        self._thread.start()

    def stop(self):
        self._stopped.set()
        self._thread.join()

    def _beat(self):
        count = 0
        while not self._stopped.wait(_BEAT_SECONDS):
            count += 1
            try:
                self._store.set(self._key, str(count))
            except RuntimeError:
                return  # the job's store is gone, and with it everybody who would listen


class _Parts(list):
    def write(self, data):
        self.append(bytes(data))


def pickled(message):
    """A pickle, made through calls to Python, which let other threads run."""
    parts = _Parts()
    pickle.Pickler(parts, protocol=4).dump(message)
    return b"".join(parts)


def _pause(waited):
    pause = min(0.001 + _PAUSE_SHARE * waited, _LONGEST_PAUSE)
    time.sleep(max(pause, dist.get_world_size() * _STORE_SECONDS))


def _name_of(path, attempt):
    return hashlib.sha256(f"{path}\0{attempt}".encode()).hexdigest()[:24]


def _store_of(name):
    store = distributed_c10d._get_default_store()
    # With a connection of its own, a heart need not wait for what else the job asks the store.
    if hasattr(store, "clone"):
        store = store.clone()
    return dist.PrefixStore(f"shardwright/{name}", store)
