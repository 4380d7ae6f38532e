# SPDX-License-Identifier: Apache-2.0
"""Files that appear together: whatever goes wrong, no file lies beside one of another save."""
import itertools
import os

import pytest

from shardwright.megatron._file_set import FileSet

FIRST, SECOND, GONE = ".metadata", "common.pt", "stale"
CALLS = ("replace", "fsync", "unlink")


def filled(folder, names, text):
    folder.mkdir()
    for name in names:
        (folder / name).write_text(text)
    return folder


def contents(folder):
    names = (FIRST, SECOND, GONE)
    return {name: (folder / name).read_text() for name in names if (folder / name).exists()}


def prepared(folder, names):
    files = FileSet(str(folder))
    for name in names:
        files.add(name, b"new")
    files.drop(GONE)
    return files


def steps(files):
    """How often `appear` calls the system."""
    with pytest.MonkeyPatch.context() as patch:
        counted = []
        for name in CALLS:
            real = getattr(os, name)
            patch.setattr(os, name, lambda *a, real=real, **k: (counted.append(1), real(*a, **k)))
        files.appear()
    return len(counted)


def stop_at(patch, step, stop):
    """Lets `stop` happen instead of the call with that number; calls after it go through."""
    seen = []
    for name in CALLS:

        def call(*arguments, real=getattr(os, name), **named):
            seen.append(1)
            return stop() if len(seen) == step + 1 else real(*arguments, **named)

        patch.setattr(os, name, call)


CASES = {
    "both": ((FIRST, SECOND), (FIRST, SECOND)),
    "first alone": ((FIRST,), (FIRST,)),
    "second is new": ((FIRST,), (FIRST, SECOND)),
    "nothing is there": ((), (FIRST, SECOND)),
    "one goes": ((FIRST, GONE), (FIRST,)),
    "all": ((FIRST, SECOND, GONE), (FIRST, SECOND)),
}


@pytest.mark.parametrize("case", CASES)
def test_all_appear(tmp_path, case):
    before, names = CASES[case]
    folder = filled(tmp_path / "folder", before, "old")
    files = prepared(folder, names)
    assert contents(folder) == dict.fromkeys(before, "old") and not files.is_visible
    files.appear()
    assert files.is_visible and contents(folder) == dict.fromkeys(names, "new")
    assert sorted(os.listdir(folder)) == sorted(names)


@pytest.mark.parametrize("case", CASES)
def test_an_error_takes_all_back(tmp_path, monkeypatch, case):
    before, names = CASES[case]
    count = steps(prepared(filled(tmp_path / "counted", before, "old"), names))
    failed = 0
    for step in range(count):
        folder = filled(tmp_path / str(step), before, "old")
        files = prepared(folder, names)

        def stop():
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patch, pytest.raises(OSError):
            stop_at(patch, step, stop)
            files.appear()
        failed += not files.is_visible
        is_new = files.is_visible
        assert contents(folder) == dict.fromkeys(*((names, "new") if is_new else (before, "old")))
    assert failed >= 2


def outcome_of(act):
    """The exit status of a process that does it."""
    child = os.fork()
    if child == 0:
        try:
            act()
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("case", CASES)
def test_who_is_killed_leaves_no_mixture(tmp_path, monkeypatch, case):
    before, names = CASES[case]
    count = steps(prepared(filled(tmp_path / "counted", before, "old"), names))
    # The second number: of a call that fails earlier, so that what was done is taken back.
    for step, failing in itertools.product(range(2 * count), (None, *range(count))):
        folder = filled(tmp_path / f"{step} {failing}", before, "old")
        files = prepared(folder, names)

        def act():
            stop_at(monkeypatch, step, lambda: os._exit(9))
            if failing is not None:
                stop_at(monkeypatch, failing, lambda: 1 / 0)
            files.appear()

        was_killed = outcome_of(act) == 9
        assert was_killed or step >= count or failing is not None
        left = contents(folder)
        is_whole = left in (dict.fromkeys(before, "old"), dict.fromkeys(names, "new"))
        assert is_whole or was_killed and FIRST not in left, (step, failing, left)
        # The next one clears it away.
        prepared(folder, names).appear()
        assert contents(folder) == dict.fromkeys(names, "new")
        assert sorted(os.listdir(folder)) == sorted(names)
