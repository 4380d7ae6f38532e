# SPDX-License-Identifier: Apache-2.0
"""Parts of docs/performance.md and its Chinese twin that a bench writes, and pictures of it."""
import datetime
import pathlib
import re

import matplotlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = ("performance.md", "performance_zh.md")


def replace_part(page, name, lines):
    """Puts `lines` between the marks of part `name`, of which the page has one."""
    path = ROOT / "docs" / page
    begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
    inside = "\n".join([begin, "", *lines, "", end])
    found, count = re.subn(f"{begin}.*{end}", lambda _: inside, path.read_text(), flags=re.S)
    if count != 1:
        raise SystemExit(f"{path}: found {count} places for {name}, expected one")
    path.write_text(found)


def use_style(name):
    """The same figures give the same bytes."""
    matplotlib.rcParams.update({"svg.hashsalt": name, "font.size": 9, "font.family": "sans-serif"})


def save_picture(figure, axes, name, date, columns):
    """With the legend of `axes` below; `date` of the figures, in ISO form."""
    figure.tight_layout(rect=(0, 0.07, 1, 1))
    figure.legend(*axes.get_legend_handles_labels(), frameon=False, ncols=columns, loc="lower center")
    day = datetime.datetime.fromisoformat(date)
    path = ROOT / "docs" / "pictures" / f"{name}.svg"
    figure.savefig(path, metadata={"Date": day.isoformat(), "Creator": None})
