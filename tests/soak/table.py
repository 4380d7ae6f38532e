# SPDX-License-Identifier: Apache-2.0
"""The scorecard as lines, as a JSON document and as the table in docs/reliability.md."""
import json
import os
import platform
import subprocess
from dataclasses import dataclass

from bench import ROOT, some
from row import Outcome, Row
from scorecard import ROWS
from scorecard_zh import TEXTS

MARK = {"pass": "pass", "part": "part", "fail": "FAIL", "lacking": "lacking", "not measured": "not measured"}
CHINESE = {"pass": "通过", "part": "部分", "fail": "未通过", "lacking": "缺少条件", "not measured": "未测"}
BEGIN = "<!-- soak: begin -->\n"
END = "<!-- soak: end -->\n"


@dataclass
class Result:
    """A row with what came of it."""

    row: Row
    status: str
    outcome: Outcome
    seconds: float

    def text(self):
        """The row's lines for people: what was measured, the target, what was wrong."""
        lines = [
            f"{self.row.name:<4} {MARK[self.status]:<13} {self.seconds:6.1f} s  {self.row.title}",
            f"       target:   {self.row.target}",
            f"       measured: {self.outcome.measured}",
        ]
        lines += [f"       fault:    {fault}" for fault in some(self.outcome.faults, 10)]
        return "\n".join(lines)


def summary(results):
    """How many rows of each kind there are, on one line."""
    counts = []
    for status in MARK:
        count = sum(1 for result in results if result.status == status)
        counts.append(f"{count} {status}")
    return f"soak: {', '.join(counts)}"


def document(results, minutes, seed):
    """What `--json` prints."""
    return {
        "schema": "shardwright/soak/1",
        "minutes": minutes,
        "seed": seed,
        "machine": machine(),
        "commit": commit(),
        "rows": [
            {
                "row": result.row.name,
                "title": result.row.title,
                "target": result.row.target,
                "status": result.status,
                "measured": result.outcome.measured,
                "faults": result.outcome.faults,
                "seconds": round(result.seconds, 3),
            }
            for result in results
        ],
    }


def machine():
    """Cores and kernel, which the figures depend on."""
    return f"{os.cpu_count()} cores, Linux {platform.release().split('-')[0]}"


def commit():
    """What is measured; with a `+` where files were changed since."""

    def git(*words):
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
        return done.stdout.strip()

    return (git("rev-parse", "--short=10", "HEAD") or "no commit") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")


def kept_results(files):
    """By row, what runs of before found. Of another commit or machine, or a row that two of them have,
    it is nothing to put into one table: SystemExit."""
    kept = {}
    here = {"schema": "shardwright/soak/1", "machine": machine(), "commit": commit()}
    for file in files:
        found = json.loads(file.read_text())
        for key, wanted in here.items():
            if found.get(key) != wanted or wanted.endswith("+"):
                raise SystemExit(f"soak: {file}: found {key} {found.get(key)}, expected {wanted.rstrip('+')}"
                                 f"{' without changes' if wanted.endswith('+') else ''}; measure it again")
        for one in found["rows"]:
            row = next((row for row in ROWS if row.name == one["row"]), None)
            if row is None or row.name in kept:
                raise SystemExit(f"soak: {file}: row {one['row']} is {'in another file' if row else 'no row'}")
            outcome = Outcome(one["measured"], one["faults"])
            kept[row.name] = Result(row, one["status"], outcome, one["seconds"])
    return kept


def cell(text):
    """A text that can stand in a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def rows_of(results, words):
    lines = []
    for result in results:
        said = (result.row.title, result.row.target) if words is MARK else TEXTS[result.row.name]
        measured = "; ".join([result.outcome.measured, *some(result.outcome.faults, 1)])
        fields = [result.row.name, *said, measured]
        fields += [words[result.status], f"{result.seconds:.0f}"]
        lines.append("| " + " | ".join(cell(field) for field in fields) + " |\n")
    return "".join(lines)


def write_pages(results):
    """Puts the table into docs/reliability.md and its Chinese twin, between the marks."""
    minutes = sum(result.seconds for result in results) / 60
    heads = {
        "reliability.md": (
            f"Commit `{commit()}` on {machine()}, {minutes:.0f} minutes in all.\n\n"
            "| Row | What | Target | Measured | Result | Seconds |\n",
            MARK,
        ),
        "reliability_zh.md": (
            f"提交 `{commit()}`，{machine()}，共 {minutes:.0f} 分钟。\n\n"
            "| 行 | 内容 | 目标 | 实测 | 结果 | 秒 |\n",
            CHINESE,
        ),
    }
    for name, (head, words) in heads.items():
        page = ROOT / "docs" / name
        text = page.read_text()
        before, rest = text.split(BEGIN)
        after = rest.split(END)[1]
        made = f"{head}| --- | --- | --- | --- | --- | ---: |\n{rows_of(results, words)}"
        page.write_text(before + BEGIN + "\n" + made + "\n" + END + after)
