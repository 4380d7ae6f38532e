# SPDX-License-Identifier: Apache-2.0
"""Hugging Face weights into live models of Megatron-Core, and out of them."""
import json
import math
import os
import pathlib
import shutil

import pytest
from checkpoints import GOLDEN, load_dcp, load_hf
from safetensors.torch import save_file

import shardwright

LAYOUTS = [
    ("llama3", "te", dict(tp=2)),
    ("llama3_4l", "local", dict(tp=2, pp=2)),
    ("llama3_4l", "te", dict(tp=2, pp=2)),
    ("llama3", "te", dict(pp=3)),
    ("qwen2", "te", dict(tp=2)),  # tied, with biases
    ("qwen2", "te", dict(pp=3)),  # tied, the head on another rank than the embedding
    ("qwen3_moe", "te", dict(ep=2)),
    ("qwen3_moe", "te", dict(tp=2)),
    ("mixtral", "local", dict(ep=2)),
]


@pytest.mark.parametrize("family,spec,sizes", LAYOUTS)
def test_a_model_is_filled(ranks, family, spec, sizes):
    world = math.prod(sizes.values())
    path = GOLDEN / "hf" / family / "hf"
    ranks("load_hf_jobs", "load", world, family=family, path=path, spec=spec, sizes=sizes)


@pytest.mark.parametrize(
    "family,spec,sizes",
    [
        ("llama3_4l", "te", dict(tp=2, pp=2)),
        ("qwen2", "te", dict(tp=2)),
        ("qwen3_moe", "te", dict(ep=2)),
    ],
)
def test_a_model_is_saved(ranks, tmp_path, family, spec, sizes):
    world = math.prod(sizes.values())
    config = GOLDEN / "hf" / family / "hf"
    ranks(
        "load_hf_jobs", "save", world, family=family, path=tmp_path / "hf", spec=spec, sizes=sizes,
        config=config,
    )  # fmt: skip


@pytest.fixture
def newer_ranks(ranks, monkeypatch):
    """As `ranks`, with a later Megatron-Core in front."""
    folder = os.environ.get("SHARDWRIGHT_NEWER_MEGATRON", "")
    assert pathlib.Path(folder, "megatron/core").is_dir(), f"found no Megatron-Core in '{folder}'"
    path = os.pathsep.join([folder, os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    return ranks


@pytest.mark.parametrize("family,spec,sizes", [LAYOUTS[2], LAYOUTS[-1]])
def test_a_later_megatron(newer_ranks, tmp_path, family, spec, sizes):
    world = math.prod(sizes.values())
    source = GOLDEN / "hf" / family / "hf"
    common = dict(family=family, spec=spec, sizes=sizes)
    newer_ranks("newer_load_hf_jobs", "load", world, path=source, **common)
    newer_ranks(
        "newer_load_hf_jobs", "save", world, path=tmp_path / "hf", config=source, **common
    )


def with_vocabulary(target, rows):
    """llama3_4l with fewer words."""
    source = GOLDEN / "hf" / "llama3_4l" / "hf"
    target.mkdir()
    tensors = load_hf(source)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        tensors[name] = tensors[name][:rows].clone()
    save_file(tensors, target / "model.safetensors")
    config = json.loads((source / "config.json").read_text())
    (target / "config.json").write_text(json.dumps({**config, "vocab_size": rows}))
    return target


def test_padding_of_the_vocabulary_is_what_a_conversion_makes_of_it(ranks, tmp_path):
    # Some of the second rank's rows, then all of those and some of the first one's.
    for rows in (200, 100):
        path = with_vocabulary(tmp_path / f"hf{rows}", rows)
        made = tmp_path / f"td{rows}"
        shardwright.convert(path, made, to="torch_dist", tp=2, make_vocab_size_divisible_by=128)
        assert load_dcp(made)["output_layer.weight"].shape == (256, 64)
        ranks("load_hf_jobs", "load_padded", 2, path=path, expected=made)


def test_what_does_not_fit_is_refused_on_every_rank(ranks, tmp_path):
    source = GOLDEN / "hf" / "llama3" / "hf"
    nowhere = tmp_path / "nowhere"
    ranks("load_hf_jobs", "refuse", 2, path=nowhere, words=["SW0101"])
    ranks("load_hf_jobs", "refuse", 2, path=nowhere, words=["SW0101", "nowhere"], only=1)
    other = GOLDEN / "hf" / "llama3_4l" / "hf"
    ranks("load_hf_jobs", "refuse", 2, path=other, words=["SW0405", "expected (3, "])
    tied = tmp_path / "tied"
    shutil.copytree(GOLDEN / "hf" / "qwen2" / "hf", tied)
    config = json.loads((source / "config.json").read_text())
    assert not config["tie_word_embeddings"]
    ranks("load_hf_jobs", "refuse", 2, path=tied, words=["SW0404", "output_layer.weight"])
    ranks("load_hf_jobs", "refuse_silence", 2)


def test_a_save_that_fails_leaves_nothing(ranks, tmp_path):
    ranks("load_hf_jobs", "refuse_save", 2, path=tmp_path / "hf", words=["SW0101", "nowhere"])


def test_a_save_that_megatron_refuses_on_one_rank_does_not_hang(ranks, tmp_path):
    ranks("load_hf_jobs", "refuse_save_on_one_rank", 2, path=tmp_path / "raised")


def test_the_module_is_typed():
    import shardwright.megatron

    stub = pathlib.Path(shardwright.megatron.__file__).with_suffix(".pyi").read_text()
    for name in ("load_hf", "save_hf"):
        assert name in shardwright.megatron.__all__ and f"def {name}(" in stub
