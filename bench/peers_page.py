#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of peers in docs/performance.md and its Chinese twin, and their picture, from what
compare_peers.py saved."""
import json

from compare_peers import HEADINGS, rows_of, table_of
from page_parts import PAGES, ROOT, replace_part, save_picture, use_style

OURS, THEIRS = "#1f5fbf", "#b8bfc9"

ENGLISH = ("{date}: {program}, torch {torch}, safetensors {safetensors}; {size:.1f} GiB of bf16, {runs} runs each, "
           "{processor}, {cores} cores, {file_system}.")  # fmt: skip
CHINESE = ("{date}：{program}，torch {torch}，safetensors {safetensors}；{size:.1f} GiB 的 bf16，每项 {runs} 次，"
           "{processor}，{cores} 核，{file_system}。")  # fmt: skip
CHINESE_HEADINGS = ("任务", "对照做法", "本工具 / cp", "对照 / cp", "本工具 MiB", "对照 MiB")
SAID = ((ENGLISH, HEADINGS), (CHINESE, CHINESE_HEADINGS))


def bars(axes, names, ours, theirs, title):
    places = range(len(names))
    axes.barh([place - 0.2 for place in places], ours, 0.36, color=OURS, label="shardwright")
    axes.barh([place + 0.2 for place in places], theirs, 0.36, color=THEIRS, label="peer")
    axes.set_yticks(list(places), names)
    axes.set_title(title, fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)


def draw(document):
    from matplotlib import pyplot

    use_style("peers")
    names, _, ours, theirs, ours_mib, theirs_mib = zip(*rows_of(document))
    figure, (time, memory) = pyplot.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    bars(time, names, ours, theirs, "time, as a multiple of cp of the source (less is better)")
    time.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    bars(memory, names, ours_mib, theirs_mib, "peak memory, MiB (less is better)")
    time.invert_yaxis()  # of both
    save_picture(figure, memory, "peers", document["date"], 2)


def main():
    document = json.loads((ROOT / "bench/results/peers.json").read_text())
    for page, (sentence, headings) in zip(PAGES, SAID):
        said = sentence.format(size=document["bytes"] / 2**30, **document, **document["machine"])
        replace_part(page, "peers", [said, "", *table_of(document, headings)])
    draw(document)


if __name__ == "__main__":
    main()
