#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What must hold of the documents: links lead somewhere, Chinese pages keep up with English ones.

check_docs.py [ROOT] prints what does not, one line each, and exits with 1 if anything does not.
Each page below docs/ is in the site's menu, or among those that mkdocs.yml keeps out of it.
A page X.md and its twin X_zh.md have the same headings (by level, in order), the same fenced code
apart from comments, and tables of as many rows; a page that was changed alone is found by that.
"""
import fnmatch
import itertools
import pathlib
import re
import sys
import urllib.parse

# What users read: these must have a twin. Others may.
TWINS = [
    "README.md", "docs/index.md", "docs/diagnose.md", "docs/errors.md", "docs/locality.md",
    "docs/cpp.md", "docs/losses.md", "docs/performance.md", "docs/placements.md", "docs/python.md",
    "docs/recipes/*.md", "docs/report.md", "docs/running.md", "docs/training.md", "docs/verify.md",
]  # fmt: skip
LEAVES = re.compile(r"^[a-z][a-z0-9+.-]*:|^//", re.I)
COMMENT = re.compile(r"(^|\s)(#|//)\s.*$")


def blocks(text):
    """Pairs of (opening line, lines): prose has no opening line, a fenced block has."""
    fence, opening, lines = "", "", []
    for line in text.split("\n"):
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if not mark or (fence and not (mark[1].startswith(fence) and line.strip() == mark[1])):
            lines.append(line)
            continue
        yield opening, lines
        fence, opening, lines = ("", "", []) if fence else (mark[1], line.strip(), [])
    yield opening, lines


def prose(text):
    return [line for opening, lines in blocks(text) if not opening for line in lines]


def headings(text):
    found = [re.match(r"(#{1,6})\s+(.*?)\s*#*$", line) for line in prose(text)]
    return [(len(match[1]), match[2]) for match in found if match]


def anchors(text):
    """The names that GitHub and the site give to headings, and those that a page gives itself."""
    seen = {}
    for _, title in headings(text):
        title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", title)
        name = re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-")
        count = seen[name] = seen.get(name, -1) + 1
        yield f"{name}-{count}" if count else name
    yield from re.findall(r'<a (?:id|name)="([^"]+)"', text)


def code(text):
    """Each fenced block: its opening line, and its lines without comments."""
    for opening, lines in blocks(text):
        if opening:
            bare = (" ".join(COMMENT.sub("", line).split()) for line in lines)
            yield opening, [line for line in bare if line]


def tables(text):
    """The number of rows of each table."""
    runs = itertools.groupby(prose(text), lambda line: line.lstrip().startswith("|"))
    return [len(list(lines)) for is_table, lines in runs if is_table]


def links(text):
    text = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", "\n".join(prose(text)), flags=re.S)
    yield from re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", text)
    yield from re.findall(r"^\[[^\]]+\]:\s+(\S+)", text, re.M)
    yield from re.findall(r'<(?:img|a|source)\s[^>]*?(?:src|href|srcset)="([^"]+)"', text)


def resolve(page, link):
    """The path and the anchor that a link of this page means; the path is None outside the tree."""
    path, _, anchor = urllib.parse.unquote(link).partition("#")
    parts = page.split("/")[:-1] if path else page.split("/")
    for part in path.split("/"):
        if part == ".." and not parts:
            return None, anchor
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts), anchor


def broken_links(page, tree, folders):
    for link in links(tree[page]):
        if LEAVES.match(link):
            continue
        path, anchor = resolve(page, link)
        if path is None or (path not in tree and path not in folders):
            yield f"{page}: links to {link}, which does not exist"
        elif anchor and path.endswith(".md") and anchor not in anchors(tree[path]):
            yield f"{page}: links to {link}, but {path} has no heading of that name"


def first_difference(a, b):
    pairs = enumerate(itertools.zip_longest(a, b, fillvalue=None), 1)
    return next(((number, left, right) for number, (left, right) in pairs if left != right), None)


def lags(page, twin, tree):
    """Where a page and its twin part ways."""
    text, other = tree[page], tree[twin]
    levels = [level for level, _ in headings(text)]
    found = first_difference(levels, [level for level, _ in headings(other)])
    if found:
        titles = headings(text)[found[0] - 1 :] or headings(other)[found[0] - 1 :]
        yield f"{twin}: its outline parts from {page} at heading {found[0]}, '{titles[0][1]}'"
    found = first_difference(list(code(text)), list(code(other)))
    if found:
        number, left, right = found
        lines = left and right and first_difference([left[0], *left[1]], [right[0], *right[1]])
        what = f": '{lines[1]}' is '{lines[2]}'" if lines else ": one page has no more"
        yield f"{twin}: code block {number} differs from that of {page}{what}"
    found = first_difference(tables(text), tables(other))
    if found:
        yield f"{twin}: table {found[0]} has {found[2]} rows, that of {page} has {found[1]}"


def missing_in_menu(tree):
    menu = set(re.findall(r"[\w/.-]+\.md", tree["mkdocs.yml"]))
    kept_out = re.findall(r"^  /(\S+/)$", tree["mkdocs.yml"], re.M)
    for page in sorted(path[5:] for path in tree if re.match(r"docs/.*\.md$", path)):
        if page not in menu and not page.startswith(tuple(kept_out)):
            yield f"docs/{page}: is not in the menu of mkdocs.yml"


def broken_docs(tree):
    """tree: path -> text. What is wrong, a line each."""
    folders = {str(parent) for path in tree for parent in pathlib.PurePosixPath(path).parents}
    for page in sorted(path for path in tree if path.endswith(".md")):
        yield from broken_links(page, tree, folders)
        base = page.removesuffix("_zh.md") + ".md"
        if page.endswith("_zh.md") and base not in tree:
            yield f"{page}: is the twin of {base}, which does not exist"
        if page.endswith("_zh.md"):
            continue
        twin = page.removesuffix(".md") + "_zh.md"
        if twin in tree:
            yield from lags(page, twin, tree)
        elif any(fnmatch.fnmatch(page, pattern) for pattern in TWINS):
            yield f"{page}: has no Chinese twin, {twin}"
    for pattern in TWINS:
        if not fnmatch.filter(tree, pattern):
            yield f"{pattern}: is listed as a page that has a twin and does not exist"
    yield from missing_in_menu(tree)


def read_tree(root):
    skipped = re.compile(r"^(build|\.git|\.venv)(/|$)|/__pycache__/")
    tree = {}
    for path in root.rglob("*"):
        name = path.relative_to(root).as_posix()
        if not skipped.search(name) and path.is_file():
            tree[name] = path.read_text("utf-8") if name.endswith((".md", "mkdocs.yml")) else ""
    return tree


def main():
    root = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1]
    broken = list(broken_docs(read_tree(root)))
    print("\n".join(broken) or "links lead somewhere and twins keep up")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
