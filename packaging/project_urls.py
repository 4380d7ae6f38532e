# SPDX-License-Identifier: Apache-2.0
"""Writes where the project lives into pyproject.toml: its own table `project.urls`.

    project_urls.py https://HOST/OWNER/REPOSITORY [PYPROJECT]

The tree itself names no address, so a copy that is published elsewhere never points at another's
issues: the workflows say where they run, before they build what is published.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAGES = {
    "Homepage": "",
    "Documentation": "/tree/main/docs",
    "Source": "",
    "Changelog": "/blob/main/CHANGELOG.md",
    "Issues": "/issues",
}


def with_urls(text, address):
    """The text of a pyproject.toml with its addresses. ValueError: what is none, or they are there."""
    if not re.fullmatch(r"https://[\w.-]+(/[\w.-]+){2}", address):
        raise ValueError(f"{address!r}: found no address like https://HOST/OWNER/REPOSITORY")
    if "[project.urls]" in text:
        raise ValueError("pyproject.toml names its addresses already")
    table = "".join(f'{name} = "{address}{page}"\n' for name, page in PAGES.items())
    return text.rstrip("\n") + "\n\n[project.urls]\n" + table


def main():
    address, *more = sys.argv[1:]
    path = pathlib.Path(*more) if more else ROOT / "pyproject.toml"
    try:
        path.write_text(with_urls(path.read_text(), address))
    except ValueError as error:
        sys.exit(f"project_urls.py: {error}")


if __name__ == "__main__":
    main()
