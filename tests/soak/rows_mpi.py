# SPDX-License-Identifier: Apache-2.0
"""R18: a rank of a conversion under MPI fails, at each phase and in each way."""
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from bench import ROOT
from row import Lacking, Outcome

RANKS = 3
SECONDS_TO_END = 5
RANK_TIMEOUT = 4  # of --rank-timeout, for those that hang
WORDS = ["--to", "torch_dist", "--tp", "2"]
# What the faulty rank is at: which call it is, of which path, the how-manieth.
PHASES = {
    "reading the source": {"CALL": "pread", "PATH": "model.safetensors", "AT": 1},
    "the first write": {"CALL": "pwrite", "PATH": ".partial-", "AT": 1},
    "a later write": {"CALL": "pwrite", "PATH": ".partial-", "AT": 4},
    "fdatasync": {"CALL": "fdatasync", "PATH": ".partial-", "AT": 1},
    "the rename": {"CALL": "rename", "PATH": ".partial-", "AT": 1},
}
KINDS = ("kill", "exit", "stop", "enospc", "eio")


def ranks_module(bench):
    """tests/mpi/ranks.py, with the programs of this build. Errors: Lacking."""
    bench.need("mpirun")
    programs = {
        "SHARDWRIGHT_BIN": Path(bench.program),
        "SHARDWRIGHT_MPI_BIN": bench.build / "shardwright-mpi",
        "SHARDWRIGHT_MPI_FAULT": next(bench.build.rglob("libmpi_fault.so"), Path("libmpi_fault.so")),
    }
    for name, path in programs.items():
        if not path.exists():
            raise Lacking(f"{path.name} is not built; ./dev test builds it")
        os.environ[name] = str(path)
    sys.path.append(str(ROOT / "tests" / "mpi"))
    return importlib.import_module("ranks")


def jobs():
    """(rank, phase, kind, whether it is to be resumed); only rank 0 renames."""
    return [
        (rank, phase, kind, resumes)
        for rank in range(RANKS)
        for phase in PHASES
        for kind in KINDS
        for resumes in (False, True)
        if rank == 0 or phase != "the rename"
    ]


def leftovers(out):
    return sorted(out.parent.glob(f".{out.name}.partial-*"))


def fault_of_end(ranks, job, out, ended):
    """What is wrong with how a disturbed job ended, or ''."""
    _, _, kind, resumes = job
    limit = SECONDS_TO_END + (RANK_TIMEOUT if kind == "stop" else 0)
    if ended.status == 0:
        return "success"
    if out.exists():
        return "the target was published"
    if ended.since_fault > limit:
        return f"it took {ended.since_fault:.1f} s to end, expected {limit}"
    if ranks.living(str(out), within=SECONDS_TO_END):
        return "a rank goes on"
    left = leftovers(out)
    unsaid = [folder for folder in left if str(folder) not in ended.messages]
    if unsaid:
        return f"left {unsaid[0].name} and did not say so"
    is_told = kind in ("enospc", "eio")
    if left and is_told and not resumes:
        return f"left {left[0].name} although nobody was killed"
    return ""


def fault_of_resuming(ranks, bench, job, source, out, whole):
    """What is wrong with the same conversion, run again, or ''."""
    words = ["convert", source, out, *WORDS, "--resume", "--json"]
    ended = ranks.run_ranks(2, *words)
    if ended.status != 0:
        return f"run again it fails: {ended.messages[-200:]}"
    if ranks.contents(out) != whole["contents"]:
        return "run again it makes another target"
    report = json.loads(ended.output)
    if report["bytes_resumed"] + report["bytes_written"] != whole["bytes"]:
        return "run again it writes more than what is missing"
    # At the rename the journal is gone, so that nothing is gone on with: clean removes what is left.
    if leftovers(out) and job[1] != "the rename":
        return "run again it leaves something"
    return ""


def disturbed(ranks, bench, job, source, whole):
    """One job: what was wrong, or '', or None where its fault never came."""
    rank, phase, kind, resumes = job
    folder = bench.fresh("ranks")
    out, mark = folder / "out", folder / "mark"
    words = ["convert", source, out, *WORDS, "--threads", "1"]
    words += ["--rank-timeout", RANK_TIMEOUT] if kind == "stop" else []
    words += ["--resume"] if resumes else []
    fault = {"RANK": rank, "KIND": kind, **PHASES[phase]}
    try:
        ended = ranks.run_ranks(RANKS, *words, fault=fault, mark=mark)
    except subprocess.TimeoutExpired as hang:
        return f"rank {rank}, {kind} at {phase}: no end within {hang.timeout:.0f} s"
    if ended.since_fault is None:
        shutil.rmtree(folder)
        return None
    wrong = fault_of_end(ranks, job, out, ended)
    if not wrong and resumes:
        wrong = fault_of_resuming(ranks, bench, job, source, out, whole)
    shutil.rmtree(folder)
    return f"rank {rank}, {kind} at {phase}: {wrong}" if wrong else ""


def measure(bench):
    """R18. One job after another: how long they take is measured."""
    ranks = ranks_module(bench)
    folder = bench.fresh("source")
    source, alone = folder / "in", folder / "alone"
    ranks.make_llama(source)
    report = json.loads(ranks.run_alone("convert", source, alone, *WORDS, "--json"))
    whole = {"contents": ranks.contents(alone), "bytes": report["bytes_written"]}
    planned = jobs()
    faults, met, tried = [], 0, 0
    for job in bench.in_time(planned):
        found = disturbed(ranks, bench, job, source, whole)
        tried += 1
        met += found is not None
        faults += [found] if found else []
    shutil.rmtree(folder)
    if not met:
        faults.append("no fault ever came")
    return Outcome(
        f"{len(faults)} faults in {met} failures met, {tried} of {len(planned)} tried, {RANKS} ranks",
        faults, tried < len(planned),
    )  # fmt: skip
