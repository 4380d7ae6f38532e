# SPDX-License-Identifier: Apache-2.0
"""What a wheel for other machines may need of them: `./dev wheel` runs this on what it built.

usage: wheel_contents.py WHEEL...
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

# A subset of what every manylinux tag allows: nothing of X11, glib or the C++ library.
ALLOWED = {"ld-linux-x86-64.so.2", "libc.so.6", "libgcc_s.so.1", "libm.so.6", "libpthread.so.0"}
PROGRAM = re.compile(r"^shardwright-[^/]+\.data/scripts/shardwright$")
MODULE = re.compile(r"^shardwright/_core\.[^/]*so$")
# What shells and man look for, under the environment's share.
SHARED = ["bash-completion/completions/shardwright", "zsh/site-functions/_shardwright",
          "fish/vendor_completions.d/shardwright.fish", "man/man1/shardwright.1"]
# Of what is in it.
LICENCES = ["LICENSE", "licenses/d3.txt", "licenses/libraries.txt"]


def readelf(option, file):
    """Output of binutils' readelf, untranslated."""
    done = subprocess.run(["readelf", "-W", option, file], capture_output=True, text=True,
                          check=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    return done.stdout


def version(text):
    return tuple(int(part) for part in text.split("."))


def tagged_glibc(wheel):
    """The libc that a wheel's name promises to be enough, the lowest of its tags."""
    found = re.findall(r"manylinux_(\d+)_(\d+)_x86_64", wheel.name)
    if not found:
        raise SystemExit(f"{wheel.name}: found no manylinux_N_M tag, expected one: the program or the "
                         "module needs a library that manylinux does not allow")
    return min((int(major), int(minor)) for major, minor in found)


def check_elf(name, file, glibc):
    """Returns what is wrong with one program or module."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", readelf("-d", file)))
    wrong = [f"{name}: needs {library}, expected none but {', '.join(sorted(ALLOWED))}"
             for library in sorted(needed - ALLOWED)]
    if re.search(r"\((RPATH|RUNPATH)\)", readelf("-d", file)):
        wrong.append(f"{name}: looks for libraries in a folder of its own, expected no such path")
    versions = {version(text) for text in re.findall(r"GLIBC_([\d.]+)", readelf("-V", file))}
    assert versions, f"{name}: readelf shows no versions of libc"
    if max(versions) > glibc:
        wrong.append(f"{name}: needs libc {max(versions)}, expected at most the tag's {glibc}")
    return wrong, max(versions)


def exported(file):
    """Names that a module offers to others in its process."""
    rows = (line.split() for line in readelf("--dyn-syms", file).splitlines())
    return {row[7] for row in rows
            if len(row) > 7 and row[6] not in ("UND", "Ndx") and row[4] in ("GLOBAL", "WEAK", "UNIQUE")}


def check(wheel):
    """Returns what is wrong with a wheel, and the highest libc that a file in it needs."""
    glibc = tagged_glibc(wheel)
    wrong, highest, programs, modules = [], (0,), 0, 0
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        for shared in SHARED:
            if not any(name.endswith(f".data/data/share/{shared}") for name in archive.namelist()):
                wrong.append(f"found no share/{shared}, expected it for shells and man")
        for licence in LICENCES:
            if not any(name.endswith(f".dist-info/licenses/{licence}") for name in archive.namelist()):
                wrong.append(f"found no {licence} among its licences, expected that of each part")
        for name in archive.namelist():
            if archive.open(name).read(4) != b"\x7fELF":
                continue
            file = pathlib.Path(archive.extract(name, folder))
            problems, needs = check_elf(name, file, glibc)
            wrong += problems
            highest = max(highest, needs)
            if PROGRAM.match(name):
                programs += 1
            elif MODULE.match(name):
                modules += 1
                others = exported(file) - {"PyInit__core"}
                if others or "PyInit__core" not in exported(file):
                    wrong.append(f"{name}: offers {sorted(others)[:3]}, expected PyInit__core alone")
            else:
                wrong.append(f"{name}: found a library in the wheel, expected none")
    if (programs, modules) != (1, 1):
        wrong.append(f"found {programs} programs and {modules} modules, expected one of each")
    return wrong, highest


def main(wheels):
    failed = False
    for wheel in map(pathlib.Path, wheels):
        wrong, highest = check(wheel)
        for problem in wrong:
            print(f"{wheel.name}: {problem}", file=sys.stderr)
        failed |= bool(wrong)
        print(f"{wheel.name}: libc {'.'.join(map(str, highest))} is enough")
    return 1 if failed or not wheels else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
