#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of peers in docs/performance.md and its Chinese twin, and their picture, from what
compare_peers.py saved."""
import datetime
import json
import pathlib
import re

import matplotlib
from compare_peers import HEADINGS, rows_of, table_of

ROOT = pathlib.Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- peers: begin -->", "<!-- peers: end -->"
OURS, THEIRS = "#1f5fbf", "#b8bfc9"


ENGLISH = ("{date}: {program}, torch {torch}, safetensors {safetensors}; {size:.1f} GiB of bf16, {runs} runs each, "
           "{processor}, {cores} cores, {file_system}.")  # fmt: skip
CHINESE = ("{date}：{program}，torch {torch}，safetensors {safetensors}；{size:.1f} GiB 的 bf16，每项 {runs} 次，"
           "{processor}，{cores} 核，{file_system}。")  # fmt: skip
CHINESE_HEADINGS = ("任务", "对照做法", "本工具 / cp", "对照 / cp", "本工具 MiB", "对照 MiB")
PAGES = {"performance.md": (ENGLISH, HEADINGS), "performance_zh.md": (CHINESE, CHINESE_HEADINGS)}


def write_page(document, page, sentence, headings):
    text = page.read_text()
    said = sentence.format(size=document["bytes"] / 2**30, **document, **document["machine"])
    inside = "\n".join([BEGIN, "", said, "", *table_of(document, headings), "", END])
    found, count = re.subn(f"{BEGIN}.*{END}", lambda _: inside, text, flags=re.S)
    if count != 1:
        raise SystemExit(f"{page}: found {count} places for the table, expected one")
    page.write_text(found)


def bars(axes, names, ours, theirs, title):
    places = range(len(names))
    axes.barh([place - 0.2 for place in places], ours, 0.36, color=OURS, label="shardwright")
    axes.barh([place + 0.2 for place in places], theirs, 0.36, color=THEIRS, label="peer")
    axes.set_yticks(list(places), names)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def draw(document, path):
    from matplotlib import pyplot

    # The same bytes from the same figures.
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "font.size": 9, "font.family": "sans-serif"})
    names, _, ours, theirs, ours_mib, theirs_mib = zip(*rows_of(document))
    figure, (time, memory) = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    bars(time, names, ours, theirs, "time, as a multiple of cp of the source (less is better)")
    time.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    bars(memory, names, ours_mib, theirs_mib, "peak memory, MiB (less is better)")
    time.invert_yaxis()  # of both
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(*memory.get_legend_handles_labels(), frameon=False, ncols=2, loc="lower center")
    day = datetime.datetime.fromisoformat(document["date"])
    figure.savefig(path, metadata={"Date": day.isoformat(), "Creator": None})


def main():
    document = json.loads((ROOT / "bench/results/peers.json").read_text())
    for page, (sentence, headings) in PAGES.items():
        write_page(document, ROOT / "docs" / page, sentence, headings)
    draw(document, ROOT / "docs/pictures/peers.svg")


if __name__ == "__main__":
    main()
