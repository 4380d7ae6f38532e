# SPDX-License-Identifier: Apache-2.0
"""The package's types: what checkers say of a user's program, and whether they are true."""
import ast
import dataclasses
import inspect
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap

import pytest

import shardwright

HERE = pathlib.Path(__file__).resolve().parent
USE = HERE / "typed_use.py"
DOCS = HERE.parents[1] / "docs"
# What a checker must find, by the line that it is put for.
MISTAKES = {
    'shardwright.convert("a", "b", to="torchdist")': "a target that there is not",
    'shardwright.convert("a", "b", to="hf", overwite=True)': "a keyword that there is not",
    'shardwright.convert("a", "b", to="torch_dist", tp="two")': "a size that is no number",
    'shardwright.open("a", framework="jax")': "a framework that there is not",
    'shardwright.explain("SW0307").txt': "a field that there is not",
}


PACKAGE = pathlib.Path(shardwright.__file__).parent


def check(tmp_path, source, *command):
    """Runs a checker on a copy of a program, in a folder that has nothing else."""
    shutil.copy(source, tmp_path / "program.py")
    environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent), "HOME": str(tmp_path)}
    return subprocess.run(
        [sys.executable, "-m", *command],
        env=environment, capture_output=True, text=True, timeout=300, cwd=tmp_path,
    )  # fmt: skip


def mypy(tmp_path, source, *flags):
    done = check(tmp_path, source, "mypy", "--strict", *flags, "program.py")
    assert "program.py:" in done.stdout or "no issues found in 1 source" in done.stdout, done
    return {int(line.split(":")[1]) for line in done.stdout.splitlines() if ": error:" in line}


def pyright(tmp_path, source, **options):
    config = {"typeCheckingMode": "strict", "extraPaths": [str(PACKAGE.parent)], **options}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    done = check(tmp_path, source, "pyright", "--outputjson", "--pythonpath", sys.executable)
    assert done.stdout.startswith("{"), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {one["range"]["start"]["line"] + 1 for one in report["generalDiagnostics"]}


@pytest.fixture(scope="module")
def mistaken(tmp_path_factory):
    file = tmp_path_factory.mktemp("mistaken") / "mistaken.py"
    file.write_text("import shardwright\n\n" + "\n".join(MISTAKES) + "\n")
    return file


@pytest.mark.parametrize("checker", [mypy, pyright])
def test_a_users_program_is_clean_and_its_mistakes_are_found(tmp_path, mistaken, checker):
    assert checker(tmp_path, USE) == set()
    assert checker(tmp_path, mistaken) == set(range(3, 3 + len(MISTAKES)))


def mypy_with_torch(tmp_path, source):
    # torch says of none of its names that they are for others; Megatron-Core has no types; what of
    # the package has no stub is not the program's.
    return mypy(
        tmp_path, source, "--implicit-reexport", "--allow-subclassing-any",
        "--disable-error-code=import-untyped", "--follow-imports=silent",
    )  # fmt: skip


def pyright_with_torch(tmp_path, source):
    # The same; and documents show values that nothing is done with.
    return pyright(
        tmp_path, source, typeCheckingMode="standard",
        reportPrivateImportUsage=False, reportUnusedExpression=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def documented(tmp_path_factory):
    """The examples of the documents, each in a function of its own, and at the end a mistake."""
    text = (HERE / "typed_examples.py").read_text()
    for page in ("python.md", "placements.md"):
        blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
        assert blocks, page
        for number, block in enumerate(blocks):
            name = f"{page.removesuffix('.md')}_{number}"
            text += f"\n\ndef {name}() -> None:\n" + textwrap.indent(block, "    ")
    file = tmp_path_factory.mktemp("documented") / "documented.py"
    file.write_text(text + '\n\nStorageReader("a", name="hf")\n')
    return file


@pytest.mark.parametrize("checker", [mypy_with_torch, pyright_with_torch])
def test_of_the_examples_of_the_documents_only_the_mistake_is_found(tmp_path, documented, checker):
    lines = documented.read_text().splitlines()
    assert [lines[line - 1] for line in sorted(checker(tmp_path, documented))] == lines[-1:]


def stub_of_package():
    """Functions and classes of the stub by name; of an overloaded function the last one."""
    tree = ast.parse((PACKAGE / "__init__.pyi").read_text())
    return {node.name: node for node in tree.body if hasattr(node, "name")}


def parameters_of(node):
    """Name, whether it is keyword-only, and the default's text, of a function in a stub."""
    plain = [*node.args.posonlyargs, *node.args.args]
    defaults = [None] * (len(plain) - len(node.args.defaults)) + node.args.defaults
    rows = [(one.arg, False, default) for one, default in zip(plain, defaults)]
    rows += [
        (one.arg, True, default)
        for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults)
    ]
    assert node.args.vararg is None and node.args.kwarg is None, node.name
    return {(name, keyword, default and ast.literal_eval(default)) for name, keyword, default in rows}


def parameters_now(function):
    return {
        (one.name, one.kind is one.KEYWORD_ONLY, None if one.default is one.empty else one.default)
        for one in inspect.signature(function).parameters.values()
    }


def test_the_stub_is_true():
    """It has what the package has: names, parameters, defaults, bases and fields."""
    stub = stub_of_package()
    assert {name for name in stub if not name.startswith("_")} == set(shardwright.__all__)
    for name in shardwright.__all__:
        real, node = getattr(shardwright, name), stub[name]
        if isinstance(node, ast.FunctionDef):
            said, now = parameters_of(node), parameters_now(real)
            if name in ("convert", "merge_adapter", "average"):  # the last overload has to be told dry_run
                said, now = ({row for row in one if row[0] != "dry_run"} for one in (said, now))
            assert said == now, name
            continue
        bases = [base.id for base in node.bases]
        assert bases == [base.__name__ for base in real.__bases__ if base is not object], name
        fields = {one.target.id for one in node.body if isinstance(one, ast.AnnAssign)}
        if dataclasses.is_dataclass(real):
            assert fields == {one.name for one in dataclasses.fields(real)}, name
        for method in (one for one in node.body if isinstance(one, ast.FunctionDef)):
            assert hasattr(real, method.name), f"{name}.{method.name}"


def test_every_public_method_is_in_the_stub():
    for name in ("Checkpoint", "Slice"):
        node = stub_of_package()[name]
        said = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        now = {one for one in vars(getattr(shardwright, name)) if not one.startswith("_")}
        assert now <= said, name
