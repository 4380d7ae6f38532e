#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each rule of check_tree.py finds what it is there for, on planted text, and nothing else."""
import unittest

from check_tree import broken_rules

LICENCE = "// SPDX-License-Identifier: Apache-2.0\n"
CMAKE = {"src/x/CMakeLists.txt": "a.cc b.cc a_test.cc sw_fuzz(zip LAYERS codec)"}


class Rules(unittest.TestCase):
    def finds(self, path, text, *complaints, **more):
        text = text if path.endswith((".md", ".txt")) or "no-licence" in more else LICENCE + text
        found = list(broken_rules({path: text, **CMAKE}, more.get("meetings", {})))
        self.assertEqual(len(found), len(complaints), found)
        for line, complaint in zip(found, complaints):
            self.assertTrue(line.startswith(path + ":") and complaint in line, line)

    def test_arrows(self):
        self.finds("src/io/a.cc", '#include "base/fail.h"\n#include "io/a.h"\n#include <string>\n')
        self.finds("src/io/a.cc", '#include "plan/draft.h"\n', "io may not use plan")
        self.finds("src/plan/a.cc", '#  include   "shardwright/storage.h"\n', "may not use io")
        self.finds("src/layout/a_test.cc", '#include "testing/golden_files.h"\n')
        self.finds("src/layout/a.cc", '#include "testing/golden_files.h"\n', "may not use testing")
        self.finds("src/format/hf/a.cc", '#include "format/legacy/b.h"\n#include "dcp/c.h"\n')
        self.finds("include/shardwright/tensor.h", '#include "shardwright/plan.h"\n', "tensor may not")
        self.finds("src/io/a.cc", '#include "a.h"\n', "belongs to no layer")
        self.finds("src/mystery/a.cc", "", "belongs to no layer")
        self.finds("python/shardwright/a.cc", '#include "b.h"\n#include "cli/run.h"\n')

    def test_folders_of_formats(self):
        text = '#include "format/formats.h"\n#include "format/hf/source.h"\n'
        for path in ("src/format/a.cc", "src/format/dcp/b.cc", "src/cli/a_test.cc"):
            self.finds(path, text)
        for path in ("src/compare/a.cc", "src/cli/b.cc", "python/shardwright/a.cc"):
            self.finds(path, text, "may not include format/hf/")
            self.finds(path, text, meetings={path: "hf"})
            self.finds(path, text, "may not include format/hf/", "needs format/dcp/ no longer",
                       meetings={path: "dcp"})
            self.finds(path, text, "needs format/dcp/ no longer", meetings={path: "dcp hf"})
        self.finds("src/verify/a.cc", text + text, "may not include format/hf/")
        self.finds("src/io/a.cc", "", "needs format/hf/ no longer", meetings={"src/io/a.cc": "hf"})

    def test_system_headers(self):
        self.finds("src/codec/a.cc", "#include <nlohmann/json.hpp>\n#include <CLI/CLI.hpp>\n")
        self.finds("src/codec/a.h", "#include <nlohmann/json_fwd.hpp>\n")
        self.finds("src/codec/a.h", "#include <nlohmann/json.hpp>\n", "in .cc files only")
        self.finds("src/codec/a.cc", "#include <regex>\n", "no place in the library")

    def test_files(self):
        self.finds("src/io/lost.cc", "", "nothing builds it")
        self.finds("fuzz/fuzz_zip.cc", "")
        self.finds("fuzz/fuzz_pickle.cc", "", "nothing builds it")
        self.finds("src/io/b.h", "\n", "licence", **{"no-licence": True})

    def test_texts(self):
        self.finds("a.md", "see /ro" "ot/x\n", "a place of one machine")
        self.finds("a.md", "a TO" "DO\n", "do it or open an issue")
        self.finds("a.md", "TO" "DOS of mine\n")

    def test_types(self):
        inside = "namespace shardwright {\n"
        one = {"src/io/a.h": LICENCE + inside + "struct Part {\n"}
        for text in (inside + "class Part final : public Whole {\n",
                     "namespace shardwright::x {\n}  // namespace x\n" + inside + "struct Part {};\n"):
            lines = list(broken_rules({**one, "src/plan/a.h": LICENCE + text, **CMAKE}, {}))
            self.assertEqual(lines, ["src/plan/a.h: shardwright::Part is another type in src/io/a.h; "
                                     "name one of them otherwise"])
        for text in ("struct Part;\nclass Whole::Part {\n", "namespace x {\nstruct Part {\n",
                     "namespace {\nstruct Part {\n}  // namespace\n"):
            self.assertEqual(
                list(broken_rules({**one, "src/plan/a.h": LICENCE + inside + text, **CMAKE}, {})),
                [])

    def test_codes(self):
        path = "include/shardwright/error.h"
        self.finds(path, "  kA = 101,\n  kB = 102,\n")
        self.finds(path, "  kA = 101,\n  kB = 101,\n", "kA and kB are both 101")
        self.finds(path, "", "has no codes")


if __name__ == "__main__":
    unittest.main()
