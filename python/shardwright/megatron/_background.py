# SPDX-License-Identifier: Apache-2.0
"""Async saves: Megatron's protocol, with a thread where it has a process."""
import sys
import threading
import time

from megatron.core.dist_checkpointing.strategies import async_utils
from megatron.core.dist_checkpointing.strategies import torch as torch_dist

from .._errors import make

# What later versions of Megatron-Core import with their strategies, where it is installed.
_RESILIENCY = "nvidia_resiliency_ext.checkpointing.async_ckpt.core"


class Background:
    """Work in a thread, as the process of a caller of Megatron-Core is asked about it."""

    def __init__(self, work, publish):
        self._work, self._publish = work, publish
        self._error = None
        self._thread = threading.Thread(target=self._run, name="shardwright-save")
        self._thread.start()

    @classmethod
    def failed(cls, error):
        """What ended before there was anything to write."""

        def work():
            raise error

        return cls(work, None)

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


def request_class(async_strategy):
    """Megatron-Core's class of requests for that strategy. Raises SW0900 where there is none."""
    find = getattr(torch_dist, "get_async_strategy", None)
    if find is None:  # of versions that know no strategies
        return async_utils.AsyncRequest
    try:
        _, modules = find(async_strategy)
    except (ImportError, AssertionError, TypeError) as error:
        # Megatron raises the second for a package that is too old.
        raise make(
            "SW0900",
            f"async_strategy: found {async_strategy!r}: {error}; 'mcore' (--async-strategy mcore) "
            "needs no package",
        ) from error
    return modules["AsyncRequest"]


def requested(background, request):
    """A request of that class for a save whose thread already runs."""
    return request(None, (), [background])


def take_threads():
    """Lets Megatron's queue ask our threads, and that of the package `nvidia-resiliency-ext` where
    Megatron uses it; every other request goes the way it went. To be called before there is a
    request: whoever schedules it may have looked the method up before."""
    for module in (async_utils, sys.modules.get(_RESILIENCY)):
        queue = getattr(module, "AsyncCallsQueue", None)
        if queue is not None and not getattr(queue.schedule_async_request, "takes_threads", False):
            queue.schedule_async_request = _scheduling(module, queue.schedule_async_request)
            queue.close = _closing(queue.close)


def _scheduling(module, stock):
    def schedule_async_request(self, async_request):
        works = [fn for fn in async_request.finalize_fns if isinstance(fn, Background)]
        if not works:
            return stock(self, async_request)
        self.call_idx += 1
        request = async_request.freeze()
        if hasattr(request, "call_idx"):  # by which ranks see that they finish the same save
            request = request._replace(call_idx=self.call_idx)
        # Its process is asked whether it is alive, and joined: no worker that lives on would be.
        caller = module.TemporalAsyncCaller()
        caller.process, caller.start_time = works[0], time.time()
        self.async_calls.append(module._ActiveAsyncRequest(self.call_idx, caller, request))
        return self.call_idx

    schedule_async_request.takes_threads = True
    return schedule_async_request


def _closing(stock):
    def close(self, abort=False):
        # A queue with a worker that lives on would forget saves that the worker was never given.
        works = [call.async_caller.process for call in self.async_calls]
        if not abort and any(isinstance(work, Background) for work in works):
            self.maybe_finalize_async_calls(blocking=True)
        return stock(self, abort)

    return close
