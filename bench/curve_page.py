#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of threads in docs/performance.md and its Chinese twin, and their picture, from what
curve.py saved."""
import json

from curve import HEADINGS, STATES, TASKS, ratios, table_of
from page_parts import PAGES, ROOT, replace_part, save_picture, use_style

COLOURS = ("#1f5fbf", "#c05a1f", "#2f8f5b", "#7a4fb0")
TITLES = {"warm": "source in the page cache", "cold": "source on the device only"}
ENGLISH = ("{date}: {program}; {size:.1f} GiB of bf16, medians of {runs} runs, {processor}, {cores} cores, "
           "{file_system}.")  # fmt: skip
CHINESE = ("{date}：{program}；{size:.1f} GiB 的 bf16，每项 {runs} 次取中位数，{processor}，{cores} 核，"
           "{file_system}。")  # fmt: skip
CHINESE_HEADINGS = ("任务", "源", *(f"{heading[:-5]} 线程" for heading in HEADINGS[2:-3]),
                    "CPU / cp", "MiB", "留在缓存")  # fmt: skip
SAID = ((ENGLISH, HEADINGS), (CHINESE, CHINESE_HEADINGS))


def draw(document):
    from matplotlib import pyplot

    use_style("threads")
    figure, panels = pyplot.subplots(1, len(STATES), figsize=(9, 3.4), sharey=True)
    for axes, state in zip(panels, STATES):
        for colour, name in zip(COLOURS, TASKS):
            if name not in document["tasks"]:
                continue
            times = ratios(document["tasks"][name][state], "seconds")
            axes.plot([int(n) for n in times], list(times.values()), "o-", color=colour,
                      markersize=3, linewidth=1.2, label=name)  # fmt: skip
        axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
        axes.set_xscale("log", base=2)
        axes.set_xticks([1, 2, 4, 8, 16], ["1", "2", "4", "8", "16"])
        axes.set_xlabel("threads")
        axes.set_title(TITLES[state], fontsize=10)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("time, as a multiple of cp -r + sync -f")
    save_picture(figure, panels[0], "threads", document["date"], 4)


def main():
    document = json.loads((ROOT / "bench/results/curve.json").read_text())
    for page, (sentence, headings) in zip(PAGES, SAID):
        said = sentence.format(size=document["bytes"] / 2**30, **document, **document["machine"])
        replace_part(page, "threads", [said, "", *table_of(document, headings)])
    draw(document)


if __name__ == "__main__":
    main()
