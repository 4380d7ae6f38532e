# SPDX-License-Identifier: Apache-2.0
"""Which keywords each command's function takes: what `help()` and editors show.

A keyword is the program's flag with `_` for `-`; a word of Python's own has a `_` behind. What is not
listed, such as Megatron's spellings of sizes, goes to the program, which refuses what it doesn't know.
"""
import inspect

_FAMILY = ("family", "map")
_SOURCE = ("accept_loss", "source_ep", "source_etp", "source_tp")
_MODEL = ("as_", "hf_config", *_FAMILY, "vocab_size", "own_names", "threads", *_SOURCE)
_PROOF = (*_MODEL, "replica")
_PLAN = (
    "as_", "tp", "pp", "vpp", "ep", "etp", "encoder_tp", "component", "world_size", "shards", "mtp",
    "hf_config", *_FAMILY, "include", "exclude", "dtype", "spec", "optimizer", "check_replicas",
    "tp_replicas", "dp", "for_", "naming", "make_vocab_size_divisible_by", "max_shard_size", *_SOURCE,
    "replica", "threads", "max_memory", "digests", "sha256", "sign", "overwrite",
)  # fmt: skip
_PARTS = ("as_", *_FAMILY, "max_shard_size", "threads", "overwrite")
KEYWORDS = {
    "convert": (*_PLAN, "quantise", "adapter_names", "extend_vocab", "upcycle", "plan", "part", "resume", "dry_run"),
    "plan": (*_PLAN, "quantise", "adapter_names", "extend_vocab", "upcycle", "html", "save", "lang"),
    "publish": ("threads", "max_memory"),
    "verify": ("against", "other_as", "public_key", "certificate_chain", *_MODEL, "lang"),
    "diff": ("tolerance", "other_as", *_PROOF),
    "hash": ("manifest", *_PROOF),
    "diagnose": ("tp", "pp", "vpp", "ep", "etp", "as_", "check_replicas", "lang"),
    "locality": ("tp", "pp", "vpp", "dp", "ep", "etp", "optimizer", "as_"),
    "inspect": ("as_", "tensors", "depth", "limit"),
    "show": ("as_", "replica", "threads"),
    "merge": ("without", *_PARTS, "dry_run"),
    "split": _PARTS,
    "merge_adapter": (*_PLAN, "quantise", "resume", "dry_run", "save"),
    "average": (*_PLAN, "resume", "dry_run", "save"),
    "explain": ("lang",),
    "report": (
        "statistics", "verify", "tolerance", "other_as", *_PROOF, "lang", "overwrite", "open",
    ),  # fmt: skip
    "index": (),
    "clean": ("remove",),
}
# Flags without a value.
_TRUTHS = {"accept_loss", "digests", "sha256", "overwrite", "dry_run", "own_names", "resume"}
_TRUTHS_OF = {
    "diagnose": {"check_replicas"},
    "clean": {"remove"},
    "locality": {"optimizer"},
    "report": {"statistics", "verify", "open"},
}


def with_keywords(function):
    """Gives a function that takes `**flags` the signature with the keywords of its command."""
    command = function.__name__
    truths = _TRUTHS | _TRUTHS_OF.get(command, set())
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    keywords = [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=False if name in truths else None
        )
        for name in KEYWORDS[command]
    ]
    function.__signature__ = signature.replace(parameters=own + keywords)
    return function
