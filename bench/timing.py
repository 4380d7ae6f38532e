# SPDX-License-Identifier: Apache-2.0
"""Runs of programs, timed so that two of them can be compared on one machine."""

import os
import platform
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

BLOCK = 1 << 20

# What touches the data and its files; buffered calls are counted to show that there are none.
COUNTED_CALLS = (
    "open", "openat", "openat2", "creat", "read", "pread64", "readv", "preadv", "write",
    "pwrite64", "writev", "pwritev", "copy_file_range", "sendfile", "mmap", "fallocate",
    "sync_file_range", "fsync", "fdatasync", "syncfs", "rename", "renameat2",
)  # fmt: skip


class Failed(Exception):
    """A command that ended badly, or an output that is wrong."""


class Run:
    """One command that ended well: seconds, those of the processors, peak memory in bytes, standard
    output."""

    def __init__(self, seconds, cpu_seconds, peak_bytes, output):
        self.seconds = seconds
        self.cpu_seconds = cpu_seconds
        self.peak_bytes = peak_bytes
        self.output = output


def own_peak_bytes():
    """A child's peak memory starts at what its parent had when it was started."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def run(command):
    with tempfile.TemporaryFile() as out:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE)
        messages = child.stderr.read()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        child.stderr.close()
        if child.returncode != 0:
            reason = messages.decode(errors="replace").strip()
            if child.returncode < 0:
                reason = f"{signal.Signals(-child.returncode).name} {reason}"
            raise Failed(f"{' '.join(command)}: exit {child.returncode}: {reason}")
        out.seek(0)
        cpu = usage.ru_utime + usage.ru_stime
        return Run(seconds, cpu, usage.ru_maxrss * 1024, out.read().decode(errors="replace"))


def remove(path):
    if os.path.isdir(path):
        shutil.rmtree(path)


def warm_file(path):
    with open(path, "rb", buffering=0) as file:
        while file.read(BLOCK):
            pass


def files_below(folder):
    return sorted(
        os.path.join(parent, name) for parent, _, names in os.walk(folder) for name in names
    )


def warm(folder):
    """Brings every file of a folder into the page cache."""
    for path in files_below(folder):
        warm_file(path)


def make_cold(folder):
    """Gives the cached pages of every file of a folder back, and of no other. They must be clean."""
    for path in files_below(folder):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fdatasync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def cached_bytes(folder):
    """What of a folder's files is in the page cache, to the page."""
    command = ["fincore", "--bytes", "--noheadings", "--output", "RES", *files_below(folder)]
    return sum(int(line) for line in run(command).output.split())


def settle():
    """Nothing that was written before may be written during what is timed next."""
    os.sync()


def timed_copy(source, target):
    """Seconds of `cp -r`, and of `cp -r` with `sync -f` behind it."""
    settle()
    start = time.perf_counter()
    run(["cp", "-r", source, target])
    copied = time.perf_counter() - start
    run(["sync", "-f", target])
    durable = time.perf_counter() - start
    remove(target)
    return copied, durable


def timed_command(command, target):
    remove(target)
    settle()
    return run(command)


def durable(command, target):
    """Seconds until what a command wrote is on the device; its processor time with that of
    `sync -f`, and its peak memory."""
    remove(target)
    settle()
    start = time.perf_counter()
    done = run(command)
    synced = run(["sync", "-f", target])
    seconds = time.perf_counter() - start
    return Run(seconds, done.cpu_seconds + synced.cpu_seconds, done.peak_bytes, done.output)


def spread(values):
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "all": list(values),
    }


def count_calls(command, target):
    """How often a command makes each system call that touches files; None where strace cannot run."""
    if shutil.which("strace") is None:
        return None
    remove(target)
    report = target + ".strace"
    calls = ",".join("?" + name for name in COUNTED_CALLS)
    try:
        run(["strace", "-f", "-qq", "-c", "-o", report, "-e", "trace=" + calls, *command])
    except Failed as failure:
        print(f"bench: no calls counted: {failure}", file=sys.stderr)
        return None
    counts = {}
    with open(report) as file:
        for line in file:
            columns = line.split()
            if len(columns) >= 5 and columns[3].isdigit() and columns[-1] != "total":
                counts[columns[-1]] = int(columns[3])
    os.remove(report)
    return counts


def file_system(path):
    """The type of the file system that a path lies on."""
    path = os.path.realpath(path)
    best, kind = "", "unknown"
    with open("/proc/mounts") as file:
        for line in file:
            _, point, name = line.split()[:3]
            inside = path == point or path.startswith(point.rstrip("/") + "/")
            if inside and len(point) >= len(best):
                best, kind = point, name
    return kind


def machine(folder):
    """What figures are of, with the file system that a folder lies on."""
    return {
        "processor": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "file_system": file_system(folder),
        "load": list(os.getloadavg()),
    }


def processor():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return "unknown"
