#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compile_alone.py finds what sources that are compiled together hide."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().with_name("compile_alone.py")
WHOLE = "#include <string>\ninline std::string b() { return {}; }\n"
LACKS = "inline std::string lone() { return {}; }\n"
SOUND = {"a.h": "int a();\n", "a.cc": '#include "x/a.h"\nint a() { return 1; }\n', "b.h": WHOLE,
         "b.cc": '#include "x/b.h"\n', "c_test.cc": "no C++\n"}


class CompileAlone(unittest.TestCase):
    def run_on(self, files, *flags):
        with tempfile.TemporaryDirectory() as place:
            root = pathlib.Path(place).resolve()
            folder, unity = root / "src" / "x", root / "build" / "Unity"
            for each in (folder, unity, root / "tests"):
                each.mkdir(parents=True)
            shutil.copy(SCRIPT, root / "tests")
            for name, text in files.items():
                (folder / name).write_text(text)
            sources = [folder / name for name in files if name.endswith(".cc")]
            (unity / "unity_0.cxx").write_text("".join(f'#include "{path}"\n' for path in sources))
            command = f"c++ -std=c++17 -Wall -I{root}/src -o unity.o -c {unity}/unity_0.cxx"
            entry = {"directory": str(root), "command": command, "file": str(unity / "unity_0.cxx")}
            commands = [entry] if sources else []
            (root / "build" / "compile_commands.json").write_text(json.dumps(commands))
            done = subprocess.run([sys.executable, root / "tests" / SCRIPT.name, root / "build", *flags],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(list(root.rglob("*.o")), [])
            return done.returncode, done.stdout + done.stderr

    def test_whole_ones(self):
        self.assertEqual(self.run_on(SOUND), (0, "2 of 2 files compile alone\n"))

    def test_a_source_that_another_one_helps(self):
        # Together they compile: b.cc comes first.
        status, text = self.run_on({**SOUND, "d.cc": LACKS})
        self.assertEqual(status, 1)
        self.assertIn("d.cc:1", text)
        self.assertIn("2 of 3 files", text)

    def test_a_header_that_no_source_begins_with(self):
        status, text = self.run_on({**SOUND, "lone.h": LACKS, "d.cc": '#include "x/b.h"\n#include "x/lone.h"\n'})
        self.assertEqual(status, 1)
        self.assertIn("lone.h:1", text)
        self.assertIn("3 of 4 files", text)

    def test_turns_that_leave_none_out(self):
        files = {**SOUND, "d.cc": LACKS}
        found = [self.run_on(files, "--turn", f"{turn}/3") for turn in range(3)]
        self.assertEqual([status for status, _ in found], [0, 0, 1])
        self.assertIn("0 of 1 files", found[2][1])
        self.assertEqual(self.run_on(files, "--turn", "3/3")[0], 2)

    def test_warnings(self):
        self.assertEqual(self.run_on({**SOUND, "d.cc": "bool f(unsigned a, int b) { return a < b; }\n"})[0], 1)

    def test_nothing(self):
        self.assertEqual(self.run_on({})[0], 2)


if __name__ == "__main__":
    unittest.main()
