#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_docs.py finds what it is there for, on planted pages, and nothing else."""
import unittest

from check_docs import TWINS, broken_docs

LISTED = {path.replace("*", "x"): "" for path in TWINS}
LISTED.update({path.replace(".md", "_zh.md"): "" for path in LISTED})
LISTED["mkdocs.yml"] = "  /kept/\n" + "".join(f"- x: {path[5:]}\n" for path in LISTED)


class Rules(unittest.TestCase):
    def finds(self, pages, *complaints):
        menu = LISTED["mkdocs.yml"] + "".join(f"- {path[5:]}\n" for path in pages)
        found = list(broken_docs({**LISTED, "mkdocs.yml": menu, **pages}))
        self.assertEqual(len(found), len(complaints), found)
        for line, complaint in zip(found, complaints):
            self.assertIn(complaint, line)

    def pair(self, english, chinese, *complaints):
        self.finds({"a.md": english, "a_zh.md": chinese}, *complaints)

    def test_links(self):
        self.finds({"docs/a.md": "[x](b/c.md) [y](../README.md) ![z](p.svg)",
                    "docs/b/c.md": "[up](../a.md) [all](../b)", "docs/p.svg": ""})
        self.finds({"docs/a.md": "[x](b.md)"}, "docs/a.md: links to b.md, which does not exist")
        self.finds({"docs/a.md": "[x](../../out.md)"}, "does not exist")
        self.finds({"a.md": '<img src="lost.svg">'}, "lost.svg")
        self.finds({"a.md": '<source media="dark" srcset="lost.svg">'}, "lost.svg")
        self.finds({"a.md": "[x][y]\n\n[y]: lost.md\n"}, "lost.md")
        self.finds({"a.md": "[x](https://example.invalid/) [m](mailto:a@example.invalid)"})

    def test_code_is_no_link(self):
        self.finds({"a.md": "```\n[x](lost.md)\n```\nand `[x](lost.md)`"})
        self.finds({"a.md": "````\n```\n[x](lost.md)\n```\n````\n[y](gone.md)"}, "gone.md")

    def test_anchors(self):
        page = "# A `b`, [c](README.md)\n## 一个 标题\n## Twice\n## Twice\n"
        for anchor in ("a-b-c", "一个-标题", "twice-1"):
            self.finds({"a.md": page + f"[x](#{anchor})"})
        self.finds({"a.md": page, "b.md": "[x](a.md#twice-2)"}, "a.md has no heading of that name")
        self.finds({"a.md": "```\n# code\n```\n[x](#code)"}, "no heading")

    def test_twins_are_there(self):
        lone = {path: text for path, text in LISTED.items() if path != "docs/verify_zh.md"}
        found = list(broken_docs(lone))
        self.assertEqual(found, ["docs/verify.md: has no Chinese twin, docs/verify_zh.md"])
        del lone["docs/verify.md"]
        self.assertIn("does not exist", "".join(broken_docs(lone)))
        self.finds({"docs/formats/a.md": ""})
        self.finds({"docs/formats/a_zh.md": ""}, "which does not exist")
        self.finds({"docs/recipes/new.md": ""}, "docs/recipes/new.md: has no Chinese twin")

    def test_menu(self):
        self.finds({"docs/a.md": "", "mkdocs.yml": LISTED["mkdocs.yml"] + "- A: b/a.md\n"},
                   "docs/a.md: is not in the menu")
        self.finds({"docs/a.md": "", "mkdocs.yml": LISTED["mkdocs.yml"] + "- A: a.md\n"})
        self.finds({"docs/kept/a.md": "", "mkdocs.yml": LISTED["mkdocs.yml"]})

    def test_outline(self):
        self.pair("# A\n## B\n", "# 甲\n## 乙\n")
        self.pair("# A\n## B\n", "# 甲\n", "its outline parts from a.md at heading 2, 'B'")
        self.pair("# A\n", "# 甲\n## 乙\n", "heading 2, '乙'")
        self.pair("# A\n## B\n", "# 甲\n### 乙\n", "outline")

    def test_code(self):
        self.pair("```sh\na b   # why\n# alone\n```", "```sh\na b # 原因\n```")
        self.pair("```sh\na b\n```", "```sh\na c\n```",
                  "code block 1 differs from that of a.md: 'a b' is 'a c'")
        self.pair("```sh\na\n```", "```text\na\n```", "'```sh' is '```text'")
        self.pair("```sh\na\n```", "", "one page has no more")
        self.pair("```sh\na#b\n```", "```sh\na#c\n```", "'a#b' is 'a#c'")

    def test_tables(self):
        self.pair("|a|\n|-|\n|b|\n", "|甲|\n|-|\n|乙|\n")
        self.pair("|a|\n|-|\n|b|\n", "|甲|\n|-|\n", "table 1 has 2 rows, that of a.md has 3")


if __name__ == "__main__":
    unittest.main()
