# SPDX-License-Identifier: Apache-2.0
"""What rows are measured with: the program, a folder to work in, and the time they may take."""
import concurrent.futures
import hashlib
import os
import random
import resource
import shutil
import subprocess
import time
from pathlib import Path

from row import Lacking

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden"
LLAMA = GOLDEN / "hf" / "llama3" / "hf"
# No command here takes long on the small checkpoints; one that does hangs.
HANGS_AFTER = 60


class Ran:
    """A command that ended: status (negative: the signal), output, messages, seconds, peak RSS."""

    def __init__(self, status, output, messages, seconds, peak=0):
        self.status = status
        self.output = output
        self.messages = messages
        self.seconds = seconds
        self.peak = peak

    @property
    def crashed(self):
        return self.status < 0 or self.status in (134, 135, 136, 139)


class Bench:
    """`program` is shardwright's; `work` a folder that is removed in the end."""

    def __init__(self, program, work, seed=1):
        self.program = str(program)
        self.build = Path(program).parent
        self.work = Path(work)
        self.random = random.Random(seed)
        self.deadline = float("inf")
        self.environment = {
            **os.environ,
            "LC_ALL": "C.UTF-8",
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
        }
        self._made = {}

    def fresh(self, name):
        """A new, empty folder in the work folder."""
        folder = self.work / f"{name}-{len(os.listdir(self.work))}-{time.monotonic_ns()}"
        folder.mkdir(parents=True)
        return folder

    def need(self, *programs):
        """Errors: Lacking, with the first program that is not installed."""
        for program in programs:
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
                raise Lacking(f"{program} is not installed")

    def need_root(self):
        """Errors: Lacking."""
        if os.geteuid() != 0:
            raise Lacking("root is needed, for mounts")

    def run(self, *words, cwd=None, limit=None, timeout=HANGS_AFTER, env=None):
        """Runs a command to its end. `limit`: bytes of address space. A hang counts as SIGKILL."""

        def limits():
            if limit:
                resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

        started = time.monotonic()
        with subprocess.Popen(
            [str(word) for word in words], cwd=cwd, env={**self.environment, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            preexec_fn=limits if limit else None,
        ) as process:  # fmt: skip
            try:
                output, messages = process.communicate(timeout=timeout)
            except subprocess.TimeoutExpired:
                process.kill()
                output, messages = process.communicate()
            seconds = time.monotonic() - started
        text = [part.decode("utf-8", "replace") for part in (output, messages)]
        return Ran(process.returncode, *text, seconds)

    def shardwright(self, *words, **options):
        """Runs the program under test."""
        return self.run(self.program, *words, **options)

    def measured(self, *words, limit=None):
        """Runs the program to its end: Ran with seconds of processors and its peak RSS, in bytes."""
        folder = self.fresh("measured")
        with open(folder / "out", "wb") as out, open(folder / "err", "wb") as err:
            def limits():
                if limit:
                    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))

            process = subprocess.Popen(
                [self.program, *map(str, words)], stdin=subprocess.DEVNULL, stdout=out,
                stderr=err, env=self.environment, preexec_fn=limits,
            )  # fmt: skip
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds = usage.ru_utime + usage.ru_stime  # others may be using the machine
        texts = [(folder / name).read_text(errors="replace") for name in ("out", "err")]
        shutil.rmtree(folder)
        return Ran(process.returncode, *texts, seconds, usage.ru_maxrss * 1024)

    def made(self, name, make):
        """A folder that `make` fills once, for all rows."""
        if name not in self._made:
            folder = self.work / f"made-{name}"
            make(folder)
            self._made[name] = folder
        return self._made[name]

    def in_time(self, jobs):
        """Yields the jobs in an order of chance until the row's time is used up."""
        jobs = list(jobs)
        self.random.shuffle(jobs)
        for job in jobs:
            if time.monotonic() > self.deadline:
                return
            yield job

    def each(self, work, jobs, at_once=None):
        """Does `work` with each job, as many at a time as there are cores, while there is time.

        `at_once`: how many, for jobs that wait for disks more than they compute.

        Returns the results in the order they ended in, and how many jobs there were in all.
        """
        jobs = list(jobs)
        results = []
        at_once = at_once or os.cpu_count() or 2
        with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
            waiting = set()
            for job in self.in_time(jobs):
                waiting.add(pool.submit(work, job))
                if len(waiting) >= at_once:
                    done, waiting = concurrent.futures.wait(
                        waiting, return_when=concurrent.futures.FIRST_COMPLETED
                    )
                    results += [future.result() for future in done]
            results += [future.result() for future in waiting]
        return results, len(jobs)


def tree_digest(path, without=()):
    """SHA-256 over names and bytes of everything under a path; '' where nothing is there.

    Files whose name has one of `without` in it are passed over.
    """
    path = Path(path)
    if not path.exists():
        return ""
    digest = hashlib.sha256()
    files = [path] if path.is_file() else sorted(path.rglob("*"))
    for file in files:
        if any(part in file.name for part in without):
            continue
        digest.update(str(file.relative_to(path)).encode() + b"\0")
        if file.is_file():
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def some(faults, most=3):
    """The first faults on one line each, and how many more there are."""
    shown = faults[:most]
    if len(faults) > most:
        shown.append(f"… and {len(faults) - most} more")
    return shown
