# SPDX-License-Identifier: Apache-2.0
"""The scorecard as lines, as a JSON document and as the table in docs/reliability.md."""
import os
import platform
from dataclasses import dataclass

from bench import ROOT, some
from row import Outcome, Row

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


def cell(text):
    """A text that can stand in a table of Markdown."""
    return text.replace("|", "\\|").replace("\n", " ")


def rows_of(results, words):
    lines = []
    for result in results:
        measured = "; ".join([result.outcome.measured, *some(result.outcome.faults, 1)])
        fields = [result.row.name, result.row.title, result.row.target, measured]
        fields += [words[result.status], f"{result.seconds:.0f}"]
        lines.append("| " + " | ".join(cell(field) for field in fields) + " |\n")
    return "".join(lines)


def write_pages(results, minutes):
    """Puts the table into docs/reliability.md and its Chinese twin, between the marks."""
    heads = {
        "reliability.md": (
            f"Measured on {machine()}, in {minutes:g} minutes.\n\n"
            "| Row | What | Target | Measured | Result | Seconds |\n",
            MARK,
        ),
        "reliability_zh.md": (
            f"测量环境：{machine()}，共 {minutes:g} 分钟。\n\n"
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
