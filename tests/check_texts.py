#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every sentence that a person reads has its Chinese.

check_texts.py [ROOT] compares the English in the sources with the catalogue in src/language and
prints what is missing there, left over, or has other placeholders; it exits with 1 if anything does.
A sentence is the first literal of fail() and translated(), and every literal of two English words
and more, wherever it stands: what is no sentence is named below.
"""
import pathlib
import re
import sys

# What stays English, as docs/running.md says: help, titles of tables and columns; and files whose literals are no sentences of ours: programs, pages and the catalogues themselves.
ENGLISH = """
cli/args.cc cli/args.h cli/command_outline.cc cli/completion.cc cli/console_args.cc
cli/console_args.h cli/conversion_flags.h cli/help.cc cli/help.h cli/man_page.cc cli/options.cc
cli/options.h cli/part_args.cc cli/part_args.h cli/proof_args.cc cli/proof_args.h cli/rank_flags.h
cli/conversion_flags.cc cli/command_line.cc cli/cmd_inspect.cc cli/cmd_locality.cc cli/cmd_plan.cc
cli/cmd_show.cc cli/diff_stat.cc cli/file_report.cc cli/part_report.cc cli/rank_map.cc
cli/summary.cc cli/value_tree.cc cli/progress_line.cc layout/texts.h layout/texts_english.h
layout/texts_chinese.cc report/page.cc report/run_facts.cc report/sections.cc verify/option_words.cc
codec/pickle_names.cc codec/pickle_value.cc codec/pickle_difference.h
""".split()
# Literals that are read by programs, or are commands to copy.
NO_SENTENCE = re.compile(
    r"""shardwright\ (diagnose|explain|inspect|convert|journal|verify|merge-adapter\ BASE)\b | (aws|gcloud|ossutil|azcopy|hf)\ \w
      | version\ https: | <[!\w] | AIAK\ | .*\\x[0-9a-fA-F]{2} | .*\\n\ *_target_: | .*\\"\{\}\\",\\?" | topology:
      | mean\ of\ $ | index\ of\ $ | directory\ listing | folder\ path | model\ types$ | \{\{\\n | \ *\{\{\\n | \{\}version\ \{\} | Authorization: | aws:amz | %llu | help\(shardwright
      | exit\ status | <title> | usage:\ mpirun | error\[ | .*[\u4e00-\u9fff]
      | .*schema\\": | \{\}:\{\{\\" | gptq\ int | \{\}\ \{\}\ \{\}\ <- | pp\|ep""",
    re.X,
)
# Where an argument is a word of English grammar ("is" or "are"), which Chinese has no place for.
GRAMMAR = ("{} tensor{}, {} the first, {} {}",)
# Single words that sentences are given as they are: those of such a sentence, names and results.
SAID_ALIKE = "is are Megatron DoRA LoRA EQUAL DIFFERENT method context context/{} arguments".split()
# Whose conditions are told by the compiler only.
COMPILED = re.compile(r"(static_assert\([^;]*|\[\[\w+\(|throw )$")
TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\((.*?)\)\1"|"((?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.)+'|^\s*#[^\n]*",
    re.S | re.M,
)
ASKED = re.compile(r"\b(?:(?:fail|translated)\(\s*(?:[\w:. >?-]+,\s*)?|format_count\([^;\"]*,\s*)$")
# What an error of the command line quotes, in files that speak English otherwise.
QUOTED = re.compile(r"\b(?:add_paths?\([^;]*,|found\(text,|refuse\()\s*$")
SAYS = re.compile(r"\b(?:fail|translated)\(")
PARENTHESES = re.compile(TOKEN.pattern + r"|[()]", re.S | re.M)
PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def literals(text):
    """(where, what stands in front, literal), adjacent ones joined, comments and includes left out."""
    found, end = [], None
    for token in TOKEN.finditer(text):
        if token[2] is None and token[3] is None:
            is_comment = token[0].startswith("/") and end is not None
            end = token.end() if is_comment and not text[end : token.start()].strip() else None
            continue
        literal = token[3] if token[2] is None else token[2]
        if found and end is not None and not text[end : token.start()].strip():
            found[-1][2] += literal
        else:
            found.append([token.start(), text[max(0, token.start() - 200) : token.start()], literal])
        end = token.end()
    return found


def words(literal):
    bare = re.sub(r"\{[^{}]*\}|'[^']*'|--[\w-]+|\\[nt]", " ", literal)
    return re.findall(r"(?<![\w./*_-])(?:[A-Za-z][A-Za-z']+|a)(?![\w/*_.=-]*[\w=])", bare)


def calls(text):
    """(begin, end) of what is given to fail() and translated()."""
    for call in SAYS.finditer(text):
        depth = 0
        for token in PARENTHESES.finditer(text, call.end() - 1):
            depth += {"(": 1, ")": -1}.get(token[0], 0)
            if depth == 0:
                yield call.end(), token.start()
                break


def sources(root):
    """(path within src, text) of all that speaks."""
    for path in sorted((root / "src").rglob("*")):
        name = path.relative_to(root / "src").as_posix()
        if path.suffix not in (".cc", ".h") or re.search(r"_test\.|fixture|golden|^(testing|language)/", name):
            continue
        yield name, path.read_text()


def untranslated_words(root):
    """(where, literal) for each single word that a sentence is given as it is: unlike a phrase of
    several, no catalogue tells it apart from a name."""
    for name, text in sources(root):
        spans = list(calls(text))
        for at, before, literal in literals(text):
            if ASKED.search(before) or literal in SAID_ALIKE or len(words(literal)) != 1:
                continue
            if any(begin < at < end for begin, end in spans):
                yield f"{name}:{text.count(chr(10), 0, at) + 1}", literal


def sentences(root):
    """literal: where it stands first."""
    found = {}
    for name, text in sources(root):
        for at, before, literal in literals(text):
            asked = ASKED.search(before)
            if COMPILED.search(before) or NO_SENTENCE.match(literal):
                continue
            if name in ENGLISH and not asked and not QUOTED.search(before):
                continue
            if len(words(literal)) >= (1 if asked else 2):
                found.setdefault(literal, f"{name}:{text.count(chr(10), 0, at) + 1}")
    return found


def catalogue(root):
    """English: (Chinese, where)."""
    found = {}
    for path in sorted((root / "src/language").glob("chinese_*.cc")):
        if path.name == "chinese_test.cc":
            continue
        texts = [literal for _, before, literal in literals(path.read_text())]
        if len(texts) % 2:
            yield None, None, f"{path.name}: an entry without its Chinese"
        for english, chinese in zip(texts[::2], texts[1::2]):
            again = english in found
            found[english] = chinese
            yield english, chinese, f"{path.name}: '{english}' is there twice" if again else path.name


def placeholders(text):
    """The arguments that it shows, with how: {1:08x} is (1, '08x'). Raises ValueError if it is none."""
    shown, count = [], 0
    for match in PLACEHOLDER.finditer(text):
        if match[1] is None:
            continue
        number, _, spec = match[1].partition(":")
        shown.append((int(number) if number else count, spec))
        count += 1
    if re.search(r"[{}]", PLACEHOLDER.sub("", text)) or (
        len({bool(re.match(r"\{\d", m[0])) for m in PLACEHOLDER.finditer(text) if m[1] is not None}) > 1
    ):
        raise ValueError
    return set(shown)


def are_alike(english, chinese):
    """Whether both show the same arguments. Chinese has no plural: that of "tensor{}" may be left out."""
    try:
        shown = placeholders(english)
    except ValueError:  # a phrase with a brace in it, which is never a format
        return True
    plural = {(n, spec) for n, spec in shown if re.search(r"^(?:[^{]*\{[^}]*\}){%d}[^{]*[a-z]\{" % n, english)}
    if english in GRAMMAR:
        return placeholders(chinese) < shown
    return shown - plural <= placeholders(chinese) <= shown


def faults(root):
    said = sentences(root)
    known = {}
    for english, chinese, where in catalogue(root):
        if english is None or "twice" in where:
            yield where
        else:
            known[english] = (chinese, where)
    for where, literal in untranslated_words(root):
        yield f"{where}: '{literal}' stays English within a sentence: translated() says it"
    for english, where in said.items():
        if english not in known:
            yield f"{where}: no Chinese for '{english}': add it to src/language"
    for english, (chinese, where) in known.items():
        if english not in said and where != "chinese_system.cc":
            yield f"{where}: nothing says '{english}' any more"
        if not re.search("[\u4e00-\u9fff]", chinese) and chinese != english:
            yield f"{where}: '{chinese}' is not Chinese"
        try:
            same = are_alike(english, chinese)
        except ValueError:
            same = False
        if not same:
            yield f"{where}: '{chinese}' has other placeholders than '{english}'"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parents[1])
    found = list(faults(root))
    for fault in found:
        print(fault)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
