#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the site's hook (packaging/site/pages.py) does to a page."""
import pathlib
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "packaging" / "site"))
from pages import twin_of, with_twin, without_gaps, without_links_out  # noqa: E402


class Pages(unittest.TestCase):
    def test_twins(self):
        self.assertEqual(twin_of("recipes/fsdp.md"), "recipes/fsdp_zh.md")
        self.assertEqual(twin_of("recipes/fsdp_zh.md"), "recipes/fsdp.md")

    def test_a_page_leads_to_its_twin_once(self):
        page = with_twin("# A\n\ntext\n", "r/a_zh.md")
        self.assertEqual(page, "# A\n\n[中文](a_zh.md)\n\n\ntext\n")
        self.assertEqual(with_twin(page, "r/a_zh.md"), page)
        self.assertIn("[English](a.md)", with_twin("# 甲\n", "a.md"))

    def test_links_out_of_the_site(self):
        text = "[x](../../README.md#a) [y](../b.md) [z](c.md) ![p](../../p.svg)"
        found = without_links_out(text, "recipes/a.md", "")
        self.assertEqual(found, "x [y](../b.md) [z](c.md) ![p](../../p.svg)")
        found = without_links_out(text, "recipes/a.md", "https://host.invalid/r")
        self.assertIn("[x](https://host.invalid/r/blob/HEAD/README.md#a) [y](../b.md)", found)

    def test_chinese_lines_are_joined_without_a_space(self):
        text = "内存占用\n增大。\n\n* 一，\n  二\n* 三 TP\n四\n```sh\n# 甲\n乙\n```\n"
        joined = "内存占用增大。\n\n* 一，二\n* 三 TP\n四\n```sh\n# 甲\n乙\n```\n"
        self.assertEqual(without_gaps(text), joined)


if __name__ == "__main__":
    unittest.main()
