# SPDX-License-Identifier: Apache-2.0
"""The program's commands as functions."""
import json
import os
import warnings

from . import _core, _results
from ._errors import UsageError, make
from ._keywords import with_keywords


@with_keywords
def convert(input=None, output=None, *, to=None, progress=None, **flags):
    """Converts or reshards a checkpoint; `output` appears whole or not at all.

    `to`: "hf", "torch_dist", "legacy", "mimo", "fsdp_dtensor", "dcp" or "safetensors". Keywords are
    the flags of `shardwright convert --help` with `_` for `-`: `tp=2`, `hf_config=folder`,
    `overwrite=True`; what may be repeated takes a list. `progress(bytes_done, bytes_total)` is called
    from the calling thread, about ten times a second and once before publishing; what it raises, and
    Ctrl-C, stop the conversion and leave nothing behind. `dry_run=True` writes nothing and gives the
    Plan. `plan=file, part="3/8"`, and nothing of what says what is converted: a part of what
    `plan(save=file)` saved, for `publish`. Raises Error.
    """
    result = _results.Plan if flags.get("dry_run") else _results.Conversion
    paths = [path for path in (input, output) if path is not None]
    return _run("convert", paths, result, progress, to=to, **flags)


@with_keywords
def plan(input, output, *, to, **flags):
    """What `convert` with the same arguments would do; writes nothing. Sizes are in bytes.

    `save=file` keeps it for processes that each do a part: `convert(plan=file, part="3/8")`.
    """
    return _run("plan", [input, output], _results.Plan, None, to=to, **flags)


@with_keywords
def publish(plan, *, progress=None, **flags):
    """Checks what the parts of a saved plan wrote; the output appears whole or not at all.

    SW0118, a StorageError, names the parts that are missing; they can be run again.
    """
    return _run("publish", [plan], _results.Publication, progress, **flags)


@with_keywords
def verify(path, *, progress=None, **flags):
    """Proves what can be proven of a checkpoint and lists everything that is wrong.

    The result is true where nothing is wrong. `against`: a manifest of `hash`, or a checkpoint.
    `lang`: "en" or "zh", which `checks` are told in.
    """
    return _run("verify", [path], _results.Verification, progress, **flags)


@with_keywords
def diff(left, right, *, progress=None, **flags):
    """Compares two checkpoints of any formats and layouts, bit by bit or within `tolerance`.

    The result is true where they are equal, as that of `verify` is where nothing is wrong.
    """
    return _run("diff", [left, right], _results.Difference, progress, **flags)


@with_keywords
def diagnose(path, **flags):
    """Which layout a path holds and what is wrong with it; `tp=2` and its like are your belief.

    The result is true where no finding is an error. `lang`: "en" or "zh".
    """
    return _run("diagnose", [path], _results.Diagnosis, None, **flags)


@with_keywords
def hash(path, *, progress=None, **flags):
    """Digests of every tensor, the same for the same weights in any format and layout."""
    return _run("hash", [path], _results.Digests, progress, **flags)


@with_keywords
def locality(path, **flags):
    """Who would read which file when a job of `tp=2, pp=1, dp=2` and its like loads a checkpoint.

    `rules` has the counts by "stock" (Megatron-Core's), "per_name" (PR 3392's) and "per_chunk".
    """
    return _run("locality", [path], _results.Locality, None, **flags)


@with_keywords
def inspect(path, **flags):
    """What a checkpoint or a single file holds; of tensors only metadata and headers are read.

    `tensors`: only those whose names match a glob, or one of a list of globs. Of a pickle `depth`
    levels and `limit` values are described; nothing in it is run.
    """
    return _run("inspect", [path], _results.Inspection, None, **flags)


@with_keywords
def show(path, tensor, *, progress=None, **flags):
    """Where a tensor lies, its first values, and its statistics."""
    return _run("show", [path, tensor], _results.TensorReport, progress, **flags)


@with_keywords
def merge(output, parts, *, config, progress=None, **flags):
    """Puts Hugging Face models together into one; `output` appears whole or not at all.

    `parts`: name and folder of each, `{"language": LLM, "images": VIT, "adapter": MLP}`. `config`: the
    whole model's config.json, or its folder. The result is true where they fit; where they do not,
    nothing is written and `findings` says why.
    """
    components = [f"{name}={os.fsdecode(path)}" for name, path in dict(parts).items()]
    return _run(
        "merge", [output], _results.Merge, progress,
        component=components, config=config, **flags,
    )  # fmt: skip


@with_keywords
def split(input, output, *, progress=None, **flags):
    """Takes a multimodal model apart into folders of `output`, one for each part."""
    return _run("split", [input, output], _results.Split, progress, **flags)


@with_keywords
def merge_adapter(base, adapter, output, *, to="hf", progress=None, **flags):
    """Adds a LoRA, rsLoRA or DoRA adapter of PEFT to its base model, in any target of `convert`.

    `base`: a Hugging Face model in any of its formats; `adapter`: the folder that PEFT wrote. Other
    arguments are those of `convert`.
    """
    result = _results.Plan if flags.get("dry_run") else _results.AdapterMerge
    return _run("merge-adapter", [base, adapter, output], result, progress, to=to, **flags)


@with_keywords
def average(inputs, output, *, to="hf", weights=None, progress=None, **flags):
    """The weighted mean of checkpoints of one model, in any target of `convert`.

    `inputs`: two paths or more, of any formats and layouts; `weights`: how much each counts, adding
    up to 1. Other arguments are those of `convert`.
    """
    if isinstance(inputs, (str, bytes, os.PathLike)):
        raise UsageError("SW0900", "average: `inputs` is one path; give a list of two or more")
    if weights is not None and not isinstance(weights, str):
        weights = ",".join(repr(float(weight)) for weight in weights)
    result = _results.Plan if flags.get("dry_run") else _results.Average
    return _run(
        "average", [*inputs, output], result, progress, to=to, weights=weights, **flags
    )


@with_keywords
def report(path, other=None, *, output, progress=None, **flags):
    """Writes `output`, one HTML file about a checkpoint, or about two and what is different.

    The result is true where no finding is an error and the two are equal; the page is written all
    the same. `statistics` and `verify` read every byte. `lang`: "en" or "zh", which it opens in.
    """
    paths = [path] if other is None else [path, other]
    return _run("report", paths, _results.Report, progress, output=output, **flags)


@with_keywords
def index(path):
    """Writes model.safetensors.index.json of a Hugging Face model anew, from the files' headers.

    The old one is kept beside it.
    """
    return _run("index rebuild", [path], _results.Index, None)


@with_keywords
def clean(path, **flags):
    """Unfinished outputs that killed runs left in a folder; `remove=True` removes them.

    What a process holds stays, and so does the only copy of what was to be replaced.
    """
    return _run("clean", [path], _results.Leftovers, None, **flags)


@with_keywords
def explain(code, **flags):
    """What an error's or a finding's code means and what to do about it. `lang`: "en" or "zh"."""
    return _run("explain", [code], _results.Page, None, **flags)


def _words(command, paths, flags):
    words = command.split()
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")  # as_: `as` is a word of Python's own
        if value is None or value is False:
            continue
        values = value if isinstance(value, (list, tuple)) else [value]
        for one in values:
            # With its value behind the equals sign no flag takes the next word for it.
            text = "true" if one is True else _text(one)
            if not text:
                raise UsageError("SW0900", f"{command}: {name}: the value is empty; leave it out")
            words.append(f"{flag}={text}")
    words += ["--json", "--", *(os.fsdecode(path) for path in paths)]
    return [os.fsencode(word) for word in words]


def _text(value):
    return os.fsdecode(value) if isinstance(value, (bytes, os.PathLike)) else str(value)


def _run(command, paths, result, progress, **flags):
    status, output, messages = _core.run(_words(command, paths, flags), progress)
    # A flag that asks for something else, such as help, has no document.
    try:
        document = json.loads(output)
    except ValueError:
        text = f"{command}: the arguments ask for no result: {messages or output}"
        raise UsageError("SW0900", text) from None
    if "error" in document:
        error = document["error"]
        raise make(error["code"], _core.in_words_of_arguments(error["message"]))
    if "notes" in document:
        document["notes"] = [_core.in_words_of_arguments(note) for note in document["notes"]]
    for path in document.get("leftovers", []):
        warnings.warn(f"what was replaced could not be removed: {path}; remove it", stacklevel=3)
    return result.of(document, succeeded=status == 0)
