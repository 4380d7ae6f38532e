# SPDX-License-Identifier: Apache-2.0
"""A hook of MkDocs: pages lead to their twins and to the repository, Chinese lines are joined.

`X_zh.md` is the Chinese twin of `X.md`. Links from docs/ to other parts of the tree work where the
files are read in the repository; on the site they become links to `repo_url`, or plain text while
none is configured.
"""
import logging
import posixpath
import re

HAN = "[\u3001-\u303f\u4e00-\u9fff\uff01-\uff5e]"
GAP = re.compile(rf"(?<={HAN})\n[ ]*(?={HAN})")
LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(((?:\.\./)+[^)\s]*)\)")


def twin_of(path):
    return path[:-6] + ".md" if path.endswith("_zh.md") else path[:-3] + "_zh.md"


def with_twin(markdown, twin):
    """The page with a link to its twin below the title, unless it has one there."""
    name = posixpath.basename(twin)
    title, newline, rest = markdown.partition("\n")
    if f"]({name})" in rest[:200] or not title.startswith("# "):
        return markdown
    word = "中文" if twin.endswith("_zh.md") else "English"
    return f"{title}{newline}\n[{word}]({name})\n{newline}{rest}"


def without_links_out(markdown, page, repository):
    def replaced(match):
        path = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), match[2]))
        if path.startswith("docs/"):
            return match[0]
        return f"[{match[1]}]({repository}/blob/HEAD/{path})" if repository else match[1]

    return LINK.sub(replaced, markdown)


def without_gaps(markdown):
    """Between a line that ends and one that begins with a Chinese character there is no space."""
    pieces = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)
    return "".join(piece if piece[:3] == "```" else GAP.sub("", piece) for piece in pieces)


def on_pre_build(config):
    logging.getLogger("jieba").setLevel(logging.WARNING)  # it tells of its dictionary otherwise


def on_page_markdown(markdown, page, config, files):
    path = page.file.src_uri
    markdown = without_links_out(markdown, path, (config.repo_url or "").rstrip("/"))
    twin = twin_of(path)
    markdown = without_gaps(markdown) if path.endswith("_zh.md") else markdown
    return with_twin(markdown, twin) if files.get_file_from_path(twin) else markdown
