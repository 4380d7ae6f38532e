# SPDX-License-Identifier: Apache-2.0
"""R10, R11, R13: each system call of each writer fails, or is the last one."""
import shutil

import traced
import writers
from row import Outcome


def says_it_is_there(ran):
    """Whether an error is about what came after the target was in place."""
    return "power failure" in ran.messages or "standard output" in ran.messages


def check_end(bench, writer, stage, ran, was_killed):
    """What is wrong with what a disturbed run left, or ''."""
    after = stage.digest()
    if was_killed:
        if after not in (writer.old, writer.new):
            return "the target is neither the old nor the new one"
        return ""
    if ran.crashed:
        return f"ended by a signal or a crash ({ran.status}): {ran.messages[-200:]}"
    if ran.status == 0:
        return "" if after == writer.new else "success, but the target is not the complete new one"
    if after != writer.old and not (after == writer.new and says_it_is_there(ran)):
        return f"an error, but the target is not the old one: {ran.messages[-300:]}"
    if not ran.messages.strip() and ran.status != 127:
        return f"status {ran.status} without a message"
    unsaid = [name for name in stage.others() if name not in ran.messages]
    if after == writer.new:  # what could not be told is how it went: the old index's copy stays
        unsaid = [name for name in unsaid if not name.endswith(".bak")]
    return f"left {unsaid[0]} and did not say so" if unsaid else ""


def check_again(bench, writer, stage):
    """Whether the same command, or what it says to run, makes a whole target."""
    if stage.digest() == writer.new:
        return ""
    for words in stage.again:
        ran = bench.shardwright(*words, cwd=stage.folder)
        if ran.status != 0:
            return f"run again it fails: {ran.messages[-200:]}"
    return "" if stage.digest() == writer.new else "run again it makes another target"


def disturbed(bench, job):
    """Runs one job: what was wrong, or '', or None where its call was not met."""
    writer, call, nth, what = job
    stage = writer.stage(bench)
    ran, met = traced.inject(bench, stage, call, nth, what)
    was_killed = what == "signal=KILL"
    fault = check_end(bench, writer, stage, ran, was_killed)
    if not fault and met and call in traced.DURABLE - {"sync_file_range"} and ran.status == 0:
        fault = "success although a file is not durable" if what.startswith("error=") else ""
    if not fault and (was_killed or ran.status != 0):
        fault = check_again(bench, writer, stage)
    shutil.rmtree(stage.folder)
    if fault:
        return f"{writer.name}, {what} at {call} {nth}: {fault}"
    return "" if met else None


def jobs_of(bench, kinds):
    """(writer, call, nth, what) for each call of each writer; `kinds(call)` lists what may happen."""
    jobs = []
    for writer in bench.writers():
        for call, numbers in bench.calls(writer).items():
            for what in kinds(call):
                jobs += [(writer, call, nth, what) for nth in numbers]
    return jobs


class Stages:
    """A bench that knows the writers and counts their calls once."""

    def __init__(self, bench):
        self._bench = bench
        self._writers = None
        self._calls = {}

    def __getattr__(self, name):
        return getattr(self._bench, name)

    def writers(self):
        if self._writers is None:
            self._writers = writers.prepared(self._bench)
        return self._writers

    def calls(self, writer):
        if writer.name not in self._calls:
            self._calls[writer.name] = traced.count_calls(self._bench, writer)
        return self._calls[writer.name]


def stages(bench):
    """The bench with its writers, made once for all rows."""
    if not hasattr(bench, "stages"):
        bench.stages = Stages(bench)
    return bench.stages


def measure(bench, kinds, what):
    bench.need("strace")
    bench = stages(bench)
    jobs = jobs_of(bench, kinds)
    ended, count = bench.each(lambda job: disturbed(bench, job), jobs)
    met = [fault for fault in ended if fault is not None]
    faults = sorted(fault for fault in met if fault)
    measured = f"{len(faults)} faults in {len(met)} {what} met, {len(ended)} of {count} tried"
    return Outcome(f"{measured}, {len(bench.writers())} writers", faults, len(ended) < count)


def measure_errors(bench):
    """R10."""

    def kinds(call):
        if call in traced.NEVER_FAIL:
            return []
        return [f"error={error}" for error in traced.errors_of(call)]

    return measure(bench, kinds, "errors")


def measure_kills(bench):
    """R11."""
    return measure(bench, lambda call: ["signal=KILL"], "kills")


def measure_fsync(bench):
    """R13: EIO of fsync and its like, once and for good."""
    bench.need("strace")
    bench = stages(bench)
    jobs = []
    for writer, call, nth, what in jobs_of(
        bench, lambda call: ["error=EIO"] if call in traced.DURABLE else []
    ):
        jobs += [(writer, call, nth, what), (writer, call, f"{nth}+", what)]
    ended, count = bench.each(lambda job: disturbed(bench, job), jobs)
    met = [fault for fault in ended if fault is not None]
    faults = sorted(fault for fault in met if fault)
    return Outcome(f"{len(faults)} successes or other faults in {len(met)} failed calls "
                   f"({len(ended)} of {count} tried)", faults, len(ended) < count)  # fmt: skip
