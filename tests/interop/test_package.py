# SPDX-License-Identifier: Apache-2.0
"""The source distribution: what is in it, how large it is, and what it says of itself."""
import email
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = 3_000_000
BUILD = "import sys, scikit_build_core.build as build; build.build_sdist(sys.argv[1])"


def build_archive(root, folder):
    done = subprocess.run(
        [sys.executable, "-c", BUILD, folder], cwd=root, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    (found,) = folder.iterdir()
    return found


def said_by(archive):
    with tarfile.open(archive) as tar:
        (name,) = (one for one in tar.getnames() if one.count("/") == 1 and one.endswith("PKG-INFO"))
        return email.message_from_bytes(tar.extractfile(name).read())


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    return build_archive(ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def names(archive):
    with tarfile.open(archive) as tar:
        return {pathlib.PurePosixPath(*pathlib.PurePosixPath(name).parts[1:]).as_posix()
                for name in tar.getnames()}  # fmt: skip


def test_it_is_small_and_has_no_other_tests(archive, names):
    assert archive.stat().st_size <= LARGEST
    tests = {name for name in names if name.startswith(("tests", "fuzz", "bench", "build"))}
    assert tests == {"tests/wheel_check.py"} | {
        f"tests/golden/hf/llama3/hf/{file.name}"
        for file in (ROOT / "tests/golden/hf/llama3/hf").iterdir()
    }


def test_every_source_is_in_it(names):
    """All that git has and the build may read."""
    done = subprocess.run(
        ["git", "ls-files", "CMakeLists.txt", "LICENSE", "README.md", "cmake", "include", "licenses",
         "models", "python", "pyproject.toml", "src", "docs/errors.md", "docs/diagnose_zh.md"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert set(done.stdout.split()) <= names


def test_it_says_what_it_is(archive):
    said = said_by(archive)
    assert said["Name"] == "shardwright" and said["License-Expression"] == "Apache-2.0"
    # Of its own, and of what pages and the wheel have in them.
    assert said.get_all("License-File") == ["LICENSE", "licenses/d3.txt", "licenses/libraries.txt"]
    assert said["Requires-Python"] == ">=3.9"
    assert said["Author"] and "Megatron-LM" in said["Keywords"]
    assert "Typing :: Typed" in said.get_all("Classifier")
    assert said.get_all("Provides-Extra") == ["bf16", "torch"]
    assert said.get_payload().startswith("# shardwright")


def test_what_is_published_says_where_it_lives(tmp_path):
    """As the workflows build it, with the address that they run at."""
    root = tmp_path / "tree"
    root.mkdir()
    for name in ("cmake", "licenses"):
        shutil.copytree(ROOT / name, root / name)
    for name in ("CMakeLists.txt", "LICENSE", "README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, root)
    naming = [sys.executable, ROOT / "packaging/project_urls.py"]
    step = 'packaging/project_urls.py "$GITHUB_SERVER_URL/$GITHUB_REPOSITORY"'
    assert (ROOT / ".github/workflows/wheels.yml").read_text().count(step) == 2
    address = "https://code.example/someone/shardwright"
    subprocess.run([*naming, address, root / "pyproject.toml"], check=True)
    said = said_by(build_archive(root, tmp_path / "sdist"))
    urls = dict(line.split(", ") for line in said.get_all("Project-URL"))
    assert urls["Homepage"] == urls["Source"] == address
    assert urls["Issues"] == address + "/issues"
    assert urls["Changelog"] == address + "/blob/main/CHANGELOG.md"
    for wrong in (address, "code.example/someone", address + '/"\nname = "other'):
        done = subprocess.run(
            [*naming, wrong, root / "pyproject.toml"], capture_output=True, text=True
        )
        assert done.returncode == 1 and done.stderr.startswith("project_urls.py: "), wrong
