# SPDX-License-Identifier: Apache-2.0
"""Renders the recipe for each Python that it may be built for, as rattler-build would first of all."""
import pathlib
import re

from rattler_build import Stage0Recipe, VariantConfig

HERE = pathlib.Path(__file__).resolve().parent
# What conda-forge's own configuration gives every recipe.
VARIANTS = """
python: ["3.12.* *_cpython", "3.13.* *_cp313"]
c_stdlib: [sysroot]
c_stdlib_version: ["2.28"]
cxx_compiler: [gxx]
cxx_compiler_version: ["14"]
"""


def main():
    version = re.search(r"VERSION (\d+\.\d+\.\d+)", (HERE.parents[1] / "CMakeLists.txt").read_text())[1]
    recipe = Stage0Recipe.from_file(str(HERE / "recipe.yaml"))
    variants = recipe.render(VariantConfig.from_yaml(VARIANTS))
    assert len(variants) == 2, variants
    for variant in variants:
        rendered = variant.recipe.to_dict()
        assert rendered["package"] == {"name": "shardwright", "version": version}, rendered["package"]
        for licence in rendered["about"]["license_file"]:
            assert (HERE.parents[1] / licence).is_file(), licence


if __name__ == "__main__":
    main()
