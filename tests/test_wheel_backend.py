#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""cmake/wheel_backend.py asks for PyPI's copy of d3 where there is no other, and only there."""
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parents[1]

# Stands in for scikit-build-core, which only the builds of wheels install.
stand_in = types.ModuleType("scikit_build_core")
stand_in.build = types.ModuleType("scikit_build_core.build")
for hook in ("wheel", "editable"):
    setattr(stand_in.build, f"get_requires_for_build_{hook}", lambda settings=None: ["ninja"])
stand_in.build.build_wheel = lambda *arguments: "built"
sys.modules.update({"scikit_build_core": stand_in, "scikit_build_core.build": stand_in.build})
sys.path.insert(0, str(ROOT / "cmake"))
import wheel_backend  # noqa: E402


class Requirements(unittest.TestCase):
    def requirements(self, settings=None):
        found = [hook(settings) for hook in (wheel_backend.get_requires_for_build_wheel,
                                             wheel_backend.get_requires_for_build_editable)]
        self.assertEqual(found[0], found[1])
        return found[0]

    def test_d3_of_the_machine_is_enough(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.object(
                wheel_backend, "PLACES", ["/nowhere", place]):
            self.assertEqual(self.requirements(), ["ninja", "mpld3>=0.5.10"])
            (pathlib.Path(place) / "d3.min.js").write_text("")
            self.assertEqual(self.requirements(), ["ninja"])

    def test_so_is_a_file_that_is_named(self):
        with mock.patch.object(wheel_backend, "PLACES", ["/nowhere"]):
            self.assertEqual(self.requirements({"cmake.define.SHARDWRIGHT_D3": "f"}), ["ninja"])
            with mock.patch.dict("os.environ", CMAKE_ARGS="-DSHARDWRIGHT_D3=f"):
                self.assertEqual(self.requirements(), ["ninja"])

    def test_the_other_hooks_are_the_backend_s(self):
        self.assertEqual(wheel_backend.build_wheel(), "built")

    def test_cmake_looks_in_the_same_places(self):
        text = (ROOT / "cmake/d3.cmake").read_text()
        listed = text.split("PATHS")[1].split("DOC")[0].split()
        self.assertEqual(tuple(listed), wheel_backend.PLACES)

    def test_pyproject_names_the_backend(self):
        text = (ROOT / "pyproject.toml").read_text()
        self.assertIn('build-backend = "wheel_backend"\nbackend-path = ["cmake"]', text)


if __name__ == "__main__":
    unittest.main()
