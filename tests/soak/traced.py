# SPDX-License-Identifier: Apache-2.0
"""The program under strace, with one system call that fails or is the last."""
import re
from collections import Counter

# Not for failing: they end or start the program, or glibc ends it where they fail.
NEVER_FAIL = {
    "execve", "exit", "exit_group", "futex", "arch_prctl", "set_tid_address", "set_robust_list",
    "rseq", "rt_sigreturn", "rt_sigaction", "rt_sigprocmask", "restart_syscall", "munmap",
    "sched_yield", "getpid", "gettid", "tgkill", "getcwd",
    # The kernel's brk gives the old end where it fails, which an injected error is not.
    "brk",
}  # fmt: skip
WRITING = {"write", "pwrite64", "pwritev", "fallocate", "ftruncate", "mkdir", "mkdirat"}
DURABLE = {"fsync", "fdatasync", "sync_file_range", "syncfs", "msync"}
MEMORY = {"mmap", "mremap", "mprotect"}


def errors_of(call):
    """The errors that a call may give in the field, worst first."""
    if call in WRITING:
        return ["ENOSPC", "EIO", "EDQUOT"]
    if call in DURABLE:
        return ["EIO", "ENOSPC"]
    if call in MEMORY:
        return ["ENOMEM"]
    if call in ("clone", "clone3"):
        return ["EAGAIN"]
    if call in ("openat", "openat2"):
        return ["EIO", "EMFILE", "EACCES"]
    if call.startswith("rename"):
        return ["EIO", "EXDEV"]
    return ["EIO"]


def count_calls(bench, writer):
    """By name, which calls a thread makes, the first is 1: those of the loader are left out."""
    stage = writer.stage(bench)
    log = stage.folder / "calls"
    ran = bench.run("strace", "-f", "-qq", "-o", log, bench.program, *stage.words, cwd=stage.folder)
    assert ran.status == 0, ran.messages
    lines = re.findall(r"^(\d+) +(\w+)\((.*)", log.read_text(errors="replace"), re.M)
    # The loader's own calls come first; it ends them by unmapping its list of libraries.
    start = next(i for i, (_, name, _) in enumerate(lines) if name == "munmap")
    skipped = Counter(name for _, name, _ in lines[:start])
    by_thread = Counter((thread, name) for thread, name, _ in lines)
    calls = {}
    for (_, name), count in by_thread.items():
        calls[name] = max(calls.get(name, range(0)), range(skipped[name] + 1, count + 1), key=len)
    return calls


def inject(bench, stage, call, nth, what):
    """Runs the writer with `what` (`error=EIO`, `signal=KILL`) at a call: (Ran, whether it was met).

    `nth` may end with `+`: from that call on. The N-th call is counted in each thread.
    """
    log = stage.folder / "injected"
    # Filters make errors cheap; strace kills nobody with them.
    fast = ["--seccomp-bpf"] if what.startswith("error=") else []
    ran = bench.run(
        "strace", "-f", "-qq", *fast, "-o", log, "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={nth}", bench.program, *stage.words, cwd=stage.folder,
    )  # fmt: skip
    text = log.read_text(errors="replace") if log.exists() else ""
    log.unlink(missing_ok=True)
    return ran, "INJECTED" in text or ran.status in (-9, 137)
