#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures the scorecard of docs/reliability.md: `./dev soak` runs this.

Each row is measured on this machine with the program that was built; a row passes only where its
target was met here, and counts as `part` where its time ended before all was tried. Rows may be
measured one after another (`--only R8 --json >r8.json`) and put into one table (`--with r8.json`).
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import table
from bench import Bench
from row import Lacking, Outcome
from scorecard import ROWS


def measure(row, bench, seconds):
    """(`pass`, `part`, `fail`, `lacking` or `not measured`; Outcome; seconds)."""
    if row.measure is None:
        return "not measured", Outcome(row.missing), 0.0
    started = time.monotonic()
    bench.deadline = started + seconds
    try:
        outcome = row.measure(bench)
        status = "fail" if outcome.faults else "part" if outcome.partly else "pass"
    except Lacking as lacking:
        status, outcome = "lacking", Outcome(str(lacking))
    except (OSError, ValueError, KeyError, AssertionError, subprocess.SubprocessError) as error:
        # A row that can't be measured to its end says why and is no pass; the others go on.
        status, outcome = "fail", Outcome("broke off", [f"{type(error).__name__}: {error}"])
    return status, outcome, time.monotonic() - started


def chosen(words):
    names = {name.strip().upper() for word in words for name in word.split(",") if name.strip()}
    unknown = sorted(names - {row.name for row in ROWS})
    if unknown:
        known = f"{ROWS[0].name} to {ROWS[-1].name}"
        raise SystemExit(f"soak: found {', '.join(unknown)}, expected rows from {known}")
    return [row for row in ROWS if not names or row.name in names]


def arguments():
    parser = argparse.ArgumentParser(prog="./dev soak", description=__doc__.split("\n")[0])
    parser.add_argument("program", help=argparse.SUPPRESS)
    parser.add_argument("--minutes", type=float, default=60, help="for all rows (default: 60)")
    parser.add_argument("--only", action="append", default=[], metavar="R11,R12")
    parser.add_argument("--seed", type=int, default=1, help="what is tried first, and what chance")
    parser.add_argument("--json", action="store_true", help="a document instead of the table")
    parser.add_argument("--write-docs", action="store_true", help="docs/reliability*.md anew")
    parser.add_argument("--with", action="append", default=[], metavar="FILE", dest="measured", type=Path,
                        help="what --json printed of this commit on this machine: not measured again")
    parser.add_argument("--name-rows", action="store_true", help=argparse.SUPPRESS)  # for ./dev
    parser.add_argument("--passing", action="store_true",
                        help="status 0 also where rows are tried in part, lack something or are not measured")  # fmt: skip
    return parser.parse_args()


def main():
    asked = arguments()
    if asked.write_docs and asked.only:
        raise SystemExit("soak: --write-docs writes the whole table; leave --only out")
    kept = table.kept_results(asked.measured)
    rows = [row for row in chosen(asked.only) if row.name not in kept]
    if asked.name_rows:
        print("\n".join(row.name for row in rows))
        return
    work = Path(tempfile.mkdtemp(prefix="soak-"))
    results = []
    try:
        bench = Bench(os.path.realpath(asked.program), work, asked.seed)
        shares = sum(row.share for row in rows if row.measure)
        for row in rows:
            seconds = asked.minutes * 60 * row.share / shares if shares else 0
            status, outcome, took = measure(row, bench, seconds)
            results.append(table.Result(row, status, outcome, took))
            if not asked.json:
                print(results[-1].text(), flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    results = sorted([*results, *kept.values()], key=lambda result: result.row.number)
    if asked.json:
        print(json.dumps(table.document(results, asked.minutes, asked.seed), indent=2))
    else:
        print(table.summary(results))
    if asked.write_docs:
        table.write_pages(results)
    failed = any(result.status == "fail" for result in results)
    unproven = any(result.status in ("part", "lacking", "not measured") for result in results)
    sys.exit(1 if failed or (unproven and not asked.passing) else 0)


if __name__ == "__main__":
    main()
