# SPDX-License-Identifier: Apache-2.0
"""Runs functions on several ranks, forked from one process that has imported everything once.

`serve(MODULE)` imports the module and reads jobs from its input, a JSON object a line: calls
`MODULE.function(**arguments)` on each of `world` ranks of a gloo job that meets at the file `store`.
Each is answered with a line, the ranks that failed; what ranks print goes to the file `log`.
"""
import gc
import importlib
import json
import os
import pathlib
import select
import sys
import traceback

import warm


class Ranks:
    """A process that has imported `module` under `environment`, and runs jobs until `close`."""

    def __init__(self, module, environment, server):
        """`server` is the folder of the warm process that it is forked from."""
        jobs, self._jobs = os.pipe()
        self._answers, answers = os.pipe()
        self._process = warm.Fork(
            server,
            "ranks.serve",
            [module],
            folder=pathlib.Path(__file__).parent,
            environment=environment,
            files=[jobs, answers, 2],
        )
        os.close(jobs)
        os.close(answers)
        self.is_open = True

    def run(self, function, world, store, arguments, seconds=240):
        """Fails with what was printed if a rank fails, or if the job is not done in time."""
        log = pathlib.Path(f"{store}.log")
        job = dict(
            function=function, world=world, store=str(store), arguments=arguments, log=str(log)
        )
        os.write(self._jobs, json.dumps(job, default=str).encode() + b"\n")
        done, _, _ = select.select([self._answers], [], [], seconds)
        answer = os.read(self._answers, 1 << 16) if done else b""
        text = log.read_text()[-6000:] if log.exists() else ""
        if not answer:
            self.close()
        assert answer, f"no answer within {seconds} s\n{text}"
        assert json.loads(answer) == [], f"ranks {answer.decode().strip()} failed:\n{text}"

    def close(self):
        """Ends the process and every rank that it still has."""
        if self.is_open:
            self._process.close()
            os.close(self._jobs)
            os.close(self._answers)
        self.is_open = False


def run_rank(job, function, rank):
    import torch.distributed as dist

    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    try:
        meeting = f"file://{job['store']}"
        dist.init_process_group("gloo", init_method=meeting, rank=rank, world_size=job["world"])
        function(**job["arguments"])
        dist.barrier()
        return 0
    except BaseException:
        print(f"rank {rank}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
        return 1


def run(job, function):
    """The ranks that failed."""
    children = []
    for rank in range(job["world"]):
        child = os.fork()
        if child == 0:
            os._exit(run_rank(job, function, rank))
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return [rank for rank, status in enumerate(statuses) if status]


def serve(module):
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what importing prints is no answer
    functions = importlib.import_module(module)
    importlib.import_module("gloo_device").share()
    gc.freeze()  # what was imported is no garbage: nobody need look at it, or copy its pages
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps(run(job, getattr(functions, job["function"]))), file=answers, flush=True)
