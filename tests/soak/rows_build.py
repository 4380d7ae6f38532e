# SPDX-License-Identifier: Apache-2.0
"""R7, R8, R9: fuzz targets, sanitizers, and allocations that fail."""
import os
import re
import shutil
import time
from pathlib import Path

import coverage
import rows_crash
import writers
from bench import GOLDEN, LLAMA, ROOT
from row import Lacking, Outcome

HERE = Path(__file__).resolve().parent


def measure_fuzzing(bench):
    """R7: every target replays its corpus, those built with libFuzzer search on; what tests reach."""
    sources = sorted((ROOT / "fuzz").glob("fuzz_*.cc"))
    faults = []
    inputs = searched = 0
    until = bench.deadline - (bench.deadline - time.monotonic()) / 3  # the rest is coverage's
    for source in sources:
        corpus = ROOT / "fuzz" / "corpus" / source.stem
        program = bench.build / source.stem
        if not program.exists():
            raise Lacking(f"{program.name} is not built; ./dev test builds it")
        ran = bench.run(program, corpus)
        count = re.search(r"(\d+) inputs replayed", ran.output)
        inputs += int(count.group(1)) if count else 0
        if ran.status != 0:
            faults.append(f"{source.stem}: {ran.messages[-200:]}")
    searching = [ROOT / "build" / "fuzz" / source.stem for source in sources]
    searching = [program for program in searching if program.exists()]
    seconds = max(1, int((until - time.monotonic()) / max(1, len(searching)))) if searching else 0
    for program in searching:
        found = bench.fresh("found")
        corpus = ROOT / "fuzz" / "corpus" / program.name
        ran = bench.run(program, f"-max_total_time={seconds}", "-timeout=10", "-rss_limit_mb=2048",
                        f"-artifact_prefix={found}/", found, corpus, timeout=seconds + 60)  # fmt: skip
        searched += 1
        if ran.status != 0:
            faults.append(f"{program.name}: {ran.messages[-300:]}")
    if len(sources) < 12:
        faults.append(f"{len(sources)} targets, expected 12")
    said = f"{len(sources)} targets, {inputs} inputs replayed, {searched} searched {seconds} s each"
    if not coverage.is_built():
        raise Lacking(f"{said}, {len(faults)} faults; build/coverage is not built, ./dev coverage "
                      "builds it")  # fmt: skip
    reached = coverage.measured(bench)
    faults += reached.faults()
    return Outcome(f"{said}; {reached.text()}", faults, searched < len(sources))


# Programs whose tests run threads, processes that write one target, or ranks that are threads.
THREADED = ("comm_test", "io_test", "exec_test", "convert_test", "commands_test")
# It counts allocations in an operator new of its own, which is what sanitizers replace too.
WITHOUT_SANITIZERS = ("memory_test",)


def measure_sanitizers(bench):
    """R8: the sanitizers' builds, program by program while there is time."""
    jobs, unbuilt = [], []
    for name in ("asan", "tsan"):
        folder = ROOT / "build" / name
        if not (folder / "CTestTestfile.cmake").exists():
            raise Lacking(f"build/{name} is not built; ./dev {name} builds it")
        wanted = THREADED if name == "tsan" else [program.name for program in programs_of(bench.build)]
        programs = [program for program in programs_of(folder) if program.name in wanted]
        if not programs:
            raise Lacking(f"build/{name} has no test programs; ./dev {name} builds them")
        jobs += [(name, program) for program in programs]
        lacking = set(wanted) - {program.name for program in programs} - set(WITHOUT_SANITIZERS)
        unbuilt += [f"{name} {program}" for program in sorted(lacking)]
    counts = {"asan": 0, "tsan": 0}
    faults, done = [], 0
    for name, program in bench.in_time(jobs):
        ran = bench.run(program, "--gtest_brief=1", cwd=ROOT, timeout=1800, env=SANITIZED[name])
        total = re.search(r"(\d+) tests? from \d+ test suites? ran", ran.output)
        counts[name] += int(total.group(1)) if total else 0
        done += 1
        if ran.status != 0:
            # A sanitizer speaks on standard error, a test that fails on standard output.
            faults.append(f"{name} {program.name}: {ran.output[-300:]}{ran.messages[-300:]}")
    said = ", ".join(f"{name}: {count} tests" for name, count in counts.items())
    said = f"{said}, of {done} of {len(jobs) + len(unbuilt)} programs; {len(faults)} with findings"
    said += f"; {', '.join(WITHOUT_SANITIZERS)} can't run there"
    if unbuilt:
        said += f"; not built: {', '.join(unbuilt)}"
    return Outcome(said, faults, done < len(jobs) + len(unbuilt))


def programs_of(folder):
    """The test programs of a build."""
    return [program for program in sorted(folder.glob("*_test")) if os.access(program, os.X_OK)]


# As in CMakePresets.json.
SANITIZED = {
    "asan": {
        "ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    },
    "tsan": {},
}


def readers(bench):
    """Commands that write nothing, by name."""
    run = writers.torch_dist(bench)
    return {
        "inspect": ["inspect", LLAMA],
        "plan": ["plan", LLAMA, bench.work / "nowhere", "--to", "torch_dist", "--tp", "2"],
        "verify": ["verify", LLAMA],
        "verify of a run": ["verify", run],
        "diff": ["diff", LLAMA, run],
        "hash": ["hash", LLAMA],
        "show": ["show", LLAMA, "model.norm.weight"],
        "diagnose": ["diagnose", LLAMA],
        "locality": ["locality", run, "--tp", "2"],
        "map": ["map", "check", ROOT / "models" / "llama.json", "--hf", LLAMA],
        "clean": ["clean", HERE],
        "explain": ["explain", "SW0307"],
        "completion": ["completion", "bash"],
        "man": ["man"],
        "pickle": ["inspect", next(GOLDEN.glob("torch_save/2.13.0/*.pt"))],
        "help": ["--help"],
        "version": ["--version"],
    }


def lasting(output):
    """What a command says again when it is run again: free space of the disk changes meanwhile."""
    return re.sub(r"[\d.]+ [kMGT]?B free", "… free", output)


class Reading:
    """A command that writes nothing: its words, and what it says where nothing fails."""

    def __init__(self, name, words):
        self.name = name
        self.words = words
        self.output = None

    def prepare(self, bench):
        ran = bench.shardwright(*self.words)
        assert ran.status == 0, f"{self.name}: {ran.messages}{ran.output}"
        self.output = lasting(ran.output)

    def allocations(self, bench, shim):
        return allocations_of(bench, shim, self.words, None)

    def fault(self, bench, env):
        ran = bench.shardwright(*self.words, env=env)
        if ran.crashed:
            return f"status {ran.status}: {ran.messages[-120:]}"
        if ran.status == 0:
            return "" if lasting(ran.output) == self.output else "success, but it says something else"
        if ran.status == 1:
            return f"what is lacking is told as a finding: {(ran.output + ran.messages)[-200:]}"
        return "" if ran.messages.strip() else f"status {ran.status} without a message"


class Writing:
    """A command that writes, as the rows of crashes know it."""

    def __init__(self, writer):
        self.name = writer.name
        self._writer = writer

    def prepare(self, bench):
        """It is prepared already."""

    def allocations(self, bench, shim):
        stage = self._writer.stage(bench)
        count = allocations_of(bench, shim, stage.words, stage.folder)
        shutil.rmtree(stage.folder)
        return count

    def fault(self, bench, env):
        stage = self._writer.stage(bench)
        ran = bench.shardwright(*stage.words, cwd=stage.folder, env=env)
        fault = rows_crash.check_end(bench, self._writer, stage, ran, False)
        shutil.rmtree(stage.folder)
        return fault


# Allocations of each command that fail: so many of the first, where little is set up yet, of the
# last, where what was asked for is done, and others.
FIRST, LAST, BY_CHANCE = 40, 40, 40


def measure_allocations(bench):
    """R9: allocations of every command fail, once and for good: the first, the last, others by chance."""
    bench.need("cc")
    shim = bench.work / "fail_malloc.so"
    ran = bench.run("cc", "-O1", "-shared", "-fPIC", "-o", shim, HERE / "fail_malloc.c", "-ldl")
    assert ran.status == 0, ran.messages
    bench = rows_crash.stages(bench)
    commands = [Reading(name, words) for name, words in readers(bench).items()]
    commands += [Writing(writer) for writer in bench.writers()]
    jobs, there_are = [], 0
    for command in commands:
        command.prepare(bench)
        count = command.allocations(bench, shim)
        numbers = {*range(1, FIRST + 1), *range(max(1, count - LAST + 1), count + 1)}
        numbers |= {bench.random.randint(1, count) for _ in range(BY_CHANCE)}
        jobs += [(command, number, on) for number in sorted(numbers) for on in (False, True)]
        there_are += count

    def work(job):
        command, number, goes_on = job
        env = {"LD_PRELOAD": str(shim), "FAIL_MALLOC": str(number)}
        if goes_on:
            env["FAIL_MALLOC_ON"] = "1"
        fault = command.fault(bench, env)
        label = f"{command.name}, allocation {number}{' and all behind' if goes_on else ''}"
        return f"{label}: {fault}" if fault else ""

    ended, count = bench.each(work, jobs)
    faults = sorted(fault for fault in ended if fault)
    return Outcome(f"{len(faults)} faults in {len(ended)} of {count} failures: of each of "
                   f"{len(commands)} commands the first {FIRST} allocations, the last {LAST} and {BY_CHANCE} by "
                   f"chance, of {there_are} that there are", faults, len(ended) < count)  # fmt: skip


def allocations_of(bench, shim, words, folder):
    """How many allocations a command makes where none fails."""
    count = bench.fresh("count") / "count"
    env = {"LD_PRELOAD": str(shim), "FAIL_MALLOC_COUNT": str(count)}
    ran = bench.shardwright(*words, cwd=folder, env=env)
    assert ran.status == 0, ran.messages
    return int(count.read_text())
