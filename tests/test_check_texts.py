#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_texts.py finds each kind of fault, on planted sources, and nothing else."""
import pathlib
import tempfile
import unittest

from check_texts import faults, literals, placeholders

SOURCE = """#include "a.h"
// fail("in a comment");
Status f() { return fail(Code::kIo, "{}: found {}, "
                         "expected {}", name, n, "an empty file"); }
"""
KNOWN = {"{}: found {}, expected {}": "{}: 发现 {}，应为 {}", "an empty file": "空文件"}


class Faults(unittest.TestCase):
    def finds(self, source, known, *complaints):
        with tempfile.TemporaryDirectory() as work:
            root = pathlib.Path(work)
            for name in ("io", "language"):
                (root / "src" / name).mkdir(parents=True)
            (root / "src/io/a.cc").write_text(source)
            table = "".join(f'{{"{english}", "{chinese}"}},\n' for english, chinese in known.items())
            (root / "src/language/chinese_io.cc").write_text(table)
            found = list(faults(root))
        self.assertEqual(len(found), len(complaints), found)
        for fault, complaint in zip(found, complaints):
            self.assertIn(complaint, fault)

    def test_nothing_is_wrong(self):
        self.finds(SOURCE, KNOWN)

    def test_a_sentence_without_its_chinese(self):
        more = SOURCE + 'void g() { translated("removed it"); }\n'
        self.finds(more, KNOWN, "io/a.cc:5: no Chinese for 'removed it'")
        self.finds(SOURCE + 'auto c = "a second phrase";\n', KNOWN, "no Chinese for 'a second phrase'")
        self.finds(SOURCE + 'auto c = translated("twice");\n', KNOWN, "no Chinese for 'twice'")
        self.finds(SOURCE + 'auto c = "twice"; auto d = "a/b.txt --flag";\n', KNOWN)

    def test_a_word_within_a_sentence(self):
        def given(argument):
            said = '"{}: found {}, expected {}"'
            return SOURCE + f"Status g() {{ return fail(Code::kIo, {said}, f(a), {argument}); }}\n"

        self.finds(given('"b", ok ? "none" : c'), KNOWN, "io/a.cc:5: 'none' stays English within a sentence")
        self.finds(given('"b", ok ? "see \'x y\'" : c'), KNOWN, "stays English within a sentence")
        self.finds(given('"b", ok ? translated("none") : c'), KNOWN | {"none": "没有"})
        self.finds(given('"2", "LoRA", fmt::format("{}/{}", c)'), KNOWN)
        self.finds(SOURCE + 'auto c = "none";\n', KNOWN)

    def test_a_sentence_that_nothing_says(self):
        self.finds(SOURCE, KNOWN | {"it is gone": "它不在了"}, "nothing says 'it is gone'")

    def test_placeholders(self):
        for chinese in ("{}: 发现 {}", "{}: 发现 {}，应为 {:x}", "{}: 发现 {}，应为 {} {}", "{0}: 发现 {}，应为 {2}", "{}: 发现 {"):
            self.finds(SOURCE, KNOWN | {"{}: found {}, expected {}": chinese}, "other placeholders")
        self.finds(SOURCE, KNOWN | {"{}: found {}, expected {}": "{0}: 应为 {2}，发现 {1}"})
        plural = 'void g() { translated("{} tensor{} gone", n, s); }\n'
        self.finds(plural, {"{} tensor{} gone": "{} 个张量不在了"})
        self.finds(plural, {"{} tensor{} gone": "张量不在了"}, "other placeholders")

    def test_english_in_the_catalogue(self):
        self.finds(SOURCE, KNOWN | {"an empty file": "a blank file"}, "is not Chinese")


class Reading(unittest.TestCase):
    def test_literals(self):
        found = [literal for _, _, literal in literals('f("a" // "b"\n "c", R"(d "e)", \'"\', "f");')]
        self.assertEqual(found, ["ac", 'd "e', "f"])

    def test_placeholders(self):
        self.assertEqual(placeholders("{} {:08x} {{}}"), {(0, ""), (1, "08x")})
        self.assertEqual(placeholders("{1:08x} {0}"), {(0, ""), (1, "08x")})


if __name__ == "__main__":
    unittest.main()
