# SPDX-License-Identifier: Apache-2.0
"""R12: what a power failure leaves: every prefix of what a disk was told, and parts of it.

What was written before the last flush is on the disk; of what came behind it any part may be.
"""
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import rows_crash
import sync_model
from bench import LLAMA, tree_digest
from power_disk import RECORD
from row import Lacking, Outcome
from rows_disk import mounted

HERE = Path(__file__).resolve().parent
FILE_SYSTEMS = {
    "ext4": (32 << 20, ["mkfs.ext4", "-q", "-F"], "loop"),
    "xfs": (320 << 20, ["mkfs.xfs", "-q", "-f"], "loop,nouuid"),
    "btrfs": (128 << 20, ["mkfs.btrfs", "-q", "-f"], "loop"),
}
IMAGES = 1000
# Mounting waits for the kernel more than it computes.
AT_ONCE = 8
# A conversion that replaces a model; with one thread the fsyncs come in one order.
WORDS = ["--to", "torch_dist", "--tp", "2", "--overwrite", "--threads", "1"]
# Images of a disk that one fsync did not reach, until one shows it.
IMAGES_OF_ONE = 30
# fsync and its like, as if they had been obeyed.
NO_SYNC = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync,sync_file_range",
           "-e", "inject=fsync,fdatasync,sync_file_range:retval=0"]  # fmt: skip


class Recording:
    """A disk's image before a run, what it was told during it, and the digests of the target."""

    def __init__(self, base, records, begun, done, old, new):
        self.base = base
        self.records = records
        self.begun = begun
        self.done = done
        self.old = old
        self.new = new


def records_of(log):
    """(offset, bytes) of each write, None for each flush."""
    data = log.read_bytes()
    found = []
    at = 0
    while at + RECORD.size <= len(data):
        kind, offset, size = RECORD.unpack_from(data, at)
        at += RECORD.size
        found.append((offset, data[at : at + size]) if kind == b"w" else None)
        at += size
    return found


def record(bench, kind, prefix):
    """Runs a conversion that replaces a model, on a disk that is listened to."""
    size, mkfs, options = FILE_SYSTEMS[kind]
    folder = bench.fresh(kind)
    base, image = folder / "base", folder / "image"
    with open(base, "wb") as file:
        file.truncate(size)
    subprocess.run([*mkfs, base], check=True, capture_output=True)
    subprocess.run(["cp", "--sparse=always", base, image], check=True)
    disk, place, log = folder / "fuse", folder / "mnt", folder / "log"
    disk.mkdir()
    place.mkdir()
    server = subprocess.Popen(
        [sys.executable, HERE / "power_disk.py", image, disk, log], stdout=subprocess.PIPE
    )
    try:
        if server.stdout.readline() != b"ready\n":
            raise Lacking("no FUSE mounts here")
        with mounted(place, "-o", options, str(disk / "disk")):
            shutil.copytree(LLAMA, place / "out")
            old = tree_digest(place / "out")
            # Of this disk alone: others may be recorded at the same time.
            subprocess.run(["sync", "-f", place], check=True)
            begun = len(records_of(log))
            ran = bench.run(*prefix, bench.program, "convert", LLAMA, place / "out", *WORDS)
            done = len(records_of(log))
            if ran.status != 0:
                raise ValueError(ran.messages[-300:])
            new = tree_digest(place / "out")
            time.sleep(0.2)
    finally:
        subprocess.run(["umount", disk], check=False, capture_output=True)
        server.wait(timeout=20)
    return Recording(base, records_of(log), begun, done, old, new)


def crash_points(recording, chance, count):
    """(records on the disk for sure, records behind them of which some are) for each image."""
    points = []
    last = min(recording.done + 30, len(recording.records))
    for end in range(recording.begun, last + 1):
        flush = max((i for i in range(end) if recording.records[i] is None), default=0)
        points.append((flush, list(range(flush, end)), end))
    images = [(flush, behind, end) for flush, behind, end in points]
    while len(images) < count:
        flush, behind, end = chance.choice(points)
        images.append((flush, [i for i in behind if chance.random() < 0.5], end))
    chance.shuffle(images)
    return images[:count]


def apply(image, recording, numbers):
    with open(image, "r+b") as file:
        for number in numbers:
            if recording.records[number] is not None:
                offset, data = recording.records[number]
                file.seek(offset)
                file.write(data)


def violation(bench, recording, kind, point):
    """What is wrong after the machine comes up again, or ''."""
    flush, behind, end = point
    folder = bench.fresh("crash")
    image, place = folder / "image", folder / "mnt"
    place.mkdir()
    subprocess.run(["cp", "--sparse=always", recording.base, image], check=True)
    apply(image, recording, list(range(flush)) + behind)
    try:
        with mounted(place, "-o", FILE_SYSTEMS[kind][2], str(image)):
            found = tree_digest(place / "out")
    except (subprocess.CalledProcessError, OSError) as error:
        return f"{kind}, after {end} records: {error}"
    finally:
        if not os.path.ismount(place):
            shutil.rmtree(folder)
    if found not in (recording.old, recording.new):
        return f"{kind}, after {end} records: neither the old nor the new target"
    if end >= recording.done and found != recording.new:
        return f"{kind}, after {end} records: success was told, and the target is the old one"
    return ""


def images_of(bench, kind, seconds, prefix=()):
    """(images tried, violations) on one file system within some time."""
    recording = record(bench, kind, prefix)
    bench.deadline = time.monotonic() + seconds
    points = crash_points(recording, bench.random, IMAGES)
    ended, _ = bench.each(lambda point: violation(bench, recording, kind, point), points, AT_ONCE)
    return len(ended), [fault for fault in ended if fault]


def calls_of(bench, words, folder):
    """What a writer does to files, as the model of POSIX sees it."""
    log = folder.parent / f"{folder.name}.calls"
    ran = bench.run("strace", "-f", "-y", "-qq", "-s", "4096", "-o", log, "-e", f"trace={sync_model.CALLS}",
                    bench.program, *words, cwd=folder)  # fmt: skip
    assert ran.status == 0, ran.messages
    return sync_model.events_of(log.read_text(errors="replace"), str(folder))


def faults_by_rules(bench):
    """(how many fsyncs all writers make, what POSIX lets be lost, which fsyncs it does not ask for)."""
    count, faults = 0, []
    stages = rows_crash.stages(bench)
    for writer in stages.writers():
        stage = writer.stage(bench)
        events = calls_of(bench, stage.words, stage.folder)
        target = str(stage.folder / writer.target)
        faults += [f"{writer.name}: may be lost: {loss}" for loss in sync_model.lost(events, target)[:3]]
        for number, path in enumerate(sync_model.synced(events)):
            count += 1
            if not sync_model.lost(events, target, without=number):
                faults.append(f"{writer.name}: nothing misses the fsync of {os.path.basename(path)}")
        shutil.rmtree(stage.folder)
    return count, faults


def image_that_misses(bench, shim, number):
    """Which file system shows that an fsync was not done, or ''."""
    prefix = ["env", f"LD_PRELOAD={shim}", f"SKIP_SYNC={number}"]
    for kind in FILE_SYSTEMS:
        recording = record(bench, kind, prefix)
        points = crash_points(recording, bench.random, IMAGES_OF_ONE)
        # What came after success was told shows most.
        points.sort(key=lambda point: point[2] < recording.done)
        for point in points:
            if violation(bench, recording, kind, point):
                return kind
    return ""


def missed_on_disks(bench, seconds):
    """(how many fsyncs of a conversion images miss where they are taken away, tried, there are)."""
    shim = bench.work / "skip_sync.so"
    ran = bench.run("cc", "-O1", "-shared", "-fPIC", "-o", shim, HERE / "skip_sync.c", "-ldl")
    assert ran.status == 0, ran.messages
    folder = bench.fresh("synced")
    shutil.copytree(LLAMA, folder / "out")
    events = calls_of(bench, ["convert", LLAMA, folder / "out", *WORDS], folder)
    count = len(sync_model.synced(events))
    bench.deadline = time.monotonic() + seconds
    found, _ = bench.each(lambda number: image_that_misses(bench, shim, number), range(1, count + 1), AT_ONCE // 2)
    return sum(map(bool, found)), len(found), count


def measure(bench):
    """R12."""
    bench.need_root()
    bench.need("strace", "cc", *(mkfs[0] for _, mkfs, _ in FILE_SYSTEMS.values()))
    if not os.path.exists("/dev/fuse") or not os.path.exists("/dev/loop-control"):
        raise Lacking("/dev/fuse and loop devices are needed")
    share = max(5.0, (bench.deadline - time.monotonic()) / 5)
    faults = []
    said = []
    fewest = IMAGES
    for kind in FILE_SYSTEMS:
        count, found = images_of(bench, kind, share)
        faults += found
        fewest = min(fewest, count)
        said.append(f"{kind} {len(found)} of {count}")
    count, found = images_of(bench, "ext4", share / 2, NO_SYNC)
    if not found:
        faults.append(f"with every fsync taken away none of {count} images shows it")
    said.append(f"without any fsync ext4 {len(found)} of {count}")
    count, found = faults_by_rules(bench)
    faults += found
    said.append(f"by POSIX's rules {count} fsyncs of all writers, {len(found)} faults")
    missed, tried, count = missed_on_disks(bench, share * 3 / 2)
    said.append(f"one taken away: seen on disks {missed} of {tried}, of {count} that a conversion makes")
    return Outcome(f"violations: {', '.join(said)}", faults, fewest < IMAGES or tried < count)
