# SPDX-License-Identifier: Apache-2.0
"""Async saves: Megatron's protocol, with a thread where it has a process."""
import threading
import time

from megatron.core.dist_checkpointing.strategies import async_utils

from .._errors import make


class Background:
    """Work in a thread, as the process of a caller of Megatron-Core is asked about it."""

    def __init__(self, work, publish):
        self._work, self._publish = work, publish
        self._error = None
        self._thread = threading.Thread(target=self._run, name="shardwright-save")
        self._thread.start()

    def __call__(self):
        """The request's first function: what all ranks have written becomes a checkpoint."""
        self.join()
        if self._error is not None:
            raise self._error
        self._publish()

    def is_alive(self):
        return self._thread.is_alive()

    def join(self):
        self._thread.join()

    def kill(self):
        """Megatron's for a save that is given up: the thread ends, and nothing is published."""
        self._thread.join()

    def _run(self):
        try:
            self._work()
        except BaseException as error:  # raised where Megatron asks, on the main thread
            self._error = error


def requested(background, async_strategy):
    """Megatron-Core's request for a save whose thread already runs."""
    if async_strategy != "mcore":
        raise make(
            "SW0900",
            f"async_strategy: found {async_strategy!r}, expected 'mcore' "
            "(--async-strategy mcore): the save runs in a thread of this process",
        )
    return async_utils.AsyncRequest(None, (), [background])


def take_threads():
    """Lets Megatron's queue ask our threads; every other request goes the way it went. To be called
    before there is a request: whoever schedules it may have looked the method up before."""
    queue = async_utils.AsyncCallsQueue
    stock = queue.schedule_async_request
    if getattr(stock, "takes_threads", False):
        return

    def schedule_async_request(self, async_request):
        works = [fn for fn in async_request.finalize_fns if isinstance(fn, Background)]
        if not works:
            return stock(self, async_request)
        self.call_idx += 1
        caller = async_utils.TemporalAsyncCaller()
        caller.process, caller.start_time = works[0], time.time()
        active = async_utils._ActiveAsyncRequest(self.call_idx, caller, async_request.freeze())
        self.async_calls.append(active)
        return self.call_idx

    schedule_async_request.takes_threads = True
    queue.schedule_async_request = schedule_async_request
