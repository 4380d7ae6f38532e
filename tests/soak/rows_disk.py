# SPDX-License-Identifier: Apache-2.0
"""R14: file systems that are full, read-only, or take no larger files."""
import contextlib
import errno
import os
import resource
import shutil
import subprocess
import time

import rows_crash
from bench import LLAMA
from row import Lacking, Outcome

PAGE = os.sysconf("SC_PAGESIZE")


def unmount(folder):
    """Tries for some seconds: whoever searches the machine's folders may be in it. Errors: CalledProcessError."""
    for _ in range(100):
        if subprocess.run(["umount", folder], check=False, capture_output=True).returncode == 0:
            return
        time.sleep(0.1)
    subprocess.run(["umount", folder], check=True, capture_output=True)


@contextlib.contextmanager
def mounted(folder, *words):
    """Mounts something on a folder for a while. Errors: CalledProcessError."""
    subprocess.run(["mount", *words, folder], check=True, capture_output=True)
    try:
        yield folder
    finally:
        unmount(folder)


def bytes_in(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def convert_into(bench, folder, form="torch_dist"):
    return bench.shardwright("convert", LLAMA, folder / "out", "--to", form, cwd=folder)


def judge(ran, folder, what, faults):
    """A run that failed says why and leaves nothing."""
    left = [entry.name for entry in folder.iterdir() if entry.name != "lost+found"]
    if ran.crashed or (ran.status != 0 and not ran.messages.strip()):
        faults.append(f"{what}: status {ran.status}: {ran.messages[-200:]}")
    elif left != (["out"] if ran.status == 0 else []):
        faults.append(f"{what}: status {ran.status} and there is {left}")


def bytes_needed(bench):
    """By a conversion."""
    reference = bench.fresh("reference")
    convert_into(bench, reference)
    return bytes_in(reference / "out")


def fill(bench, need, faults):
    """Disks of sizes around what a conversion needs: (tried, refused beforehand, failed later)."""
    early = late = 0
    sizes = [need * part // 10 for part in range(1, 10)]
    sizes += [need + step * PAGE for step in range(-12, 25)]
    for kind in ("tmpfs", "ext4"):
        for size in sizes if kind == "tmpfs" else sizes[::6]:
            place = bench.fresh("full")
            words = ["-t", "tmpfs", "-o", f"size={max(size, PAGE)}", "none"]
            if kind == "ext4":
                image = place.with_suffix(".img")
                with open(image, "wb") as file:
                    file.truncate(size + (1 << 20))
                command = ["mkfs.ext4", "-q", "-m", "0", "-O", "^has_journal", str(image)]
                subprocess.run(command, check=True, capture_output=True)
                words = ["-o", "loop", str(image)]
            with mounted(place, *words):
                ran = convert_into(bench, place)
                judge(ran, place, f"{kind} of {size} bytes", faults)
                if ran.status != 0 and "SW0500" in ran.messages:
                    early += 1
                    if ran.seconds > 1:
                        faults.append(f"{kind} of {size} bytes: refused after {ran.seconds:.1f} s")
                elif ran.status != 0:
                    late += 1
            if kind == "ext4":
                image.unlink()
    return len(sizes) + len(sizes[::6]), early, late


def read_only(bench, faults):
    place = bench.fresh("readonly")
    with mounted(place, "-t", "tmpfs", "-o", "ro", "none"):
        ran = convert_into(bench, place)
        judge(ran, place, "a read-only file system", faults)
        if ran.status != 2:
            faults.append(f"a read-only file system: status {ran.status}")


def large_files(bench, faults):
    """RLIMIT_FSIZE at several sizes."""
    for limit in (1, 4096, 20_000, 100_000):
        place = bench.fresh("limited")

        def limits(most=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

        done = subprocess.run(
            [bench.program, "convert", LLAMA, place / "out", "--to", "torch_dist"],
            preexec_fn=limits, capture_output=True, text=True, check=False,
            env=bench.environment,
        )  # fmt: skip
        left = [entry.name for entry in place.iterdir()]
        if done.returncode != 2 or left or "error[" not in done.stderr:
            faults.append(f"files of {limit} bytes: status {done.returncode}, left {left}")


def over_quota(bench, need, faults):
    """Subvolumes of btrfs with limits below what a conversion needs, which free space does not show:
    (tried, how many ended by EDQUOT)."""
    place = bench.fresh("quota")
    image = place.with_suffix(".img")
    with open(image, "wb") as file:
        file.truncate(300 << 20)

    def btrfs(*words):
        subprocess.run(["btrfs", *words], check=True, capture_output=True)

    subprocess.run(["mkfs.btrfs", "-q", str(image)], check=True, capture_output=True)
    told = 0
    parts = range(1, 9)
    with mounted(place, "-o", "loop", str(image)):
        btrfs("quota", "enable", str(place))
        for part in parts:
            folder = place / f"part{part}"
            btrfs("subvolume", "create", str(folder))
            btrfs("qgroup", "limit", str(need * part // 10), str(folder))
            ran = convert_into(bench, folder)
            judge(ran, folder, f"a quota of {part} tenths", faults)
            told += ran.status == 2 and os.strerror(errno.EDQUOT) in ran.messages
    image.unlink()
    if told == 0:
        faults.append("no quota was exceeded")
    return len(parts), told


def full_later(bench, faults):
    """A disk that others fill up: ENOSPC of every writing call of each writer is R10's; here one."""
    writer = rows_crash.stages(bench).writers()[1]
    stage = writer.stage(bench)
    place = stage.folder
    source = (place / "in").resolve()
    (place / "in").unlink()
    with mounted(place, "-t", "tmpfs", "-o", "size=2m", "none"):
        shutil.copytree(source, place / "in")
        before = shutil.disk_usage(place).free
        (place / "filler").write_bytes(b"\1" * (before - 40 * PAGE))
        ran = bench.shardwright(*stage.words, cwd=place)
        left = sorted(entry.name for entry in place.iterdir())
        if ran.status != 2 or left != ["filler", "in"]:
            faults.append(f"a disk that others filled: status {ran.status}, there is {left}")


def measure(bench):
    """R14."""
    bench.need_root()
    bench.need("mount", "mkfs.ext4")
    faults = []
    need = bytes_needed(bench)
    tried, early, late = fill(bench, need, faults)
    read_only(bench, faults)
    large_files(bench, faults)
    full_later(bench, faults)
    try:
        quotas, told = over_quota(bench, need, faults)
    except (OSError, subprocess.CalledProcessError) as error:
        if faults:
            return Outcome("no quotas here", faults)
        raise Lacking(f"no quotas here: {error}") from error
    return Outcome(
        f"{tried} full disks (tmpfs, ext4): {early} refused beforehand, {late} clean errors later; "
        f"a read-only one; four limits of file size; {told} of {quotas} quotas exceeded (btrfs)", faults
    )  # fmt: skip
