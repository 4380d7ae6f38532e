# SPDX-License-Identifier: Apache-2.0
"""MIMO checkpoints of every vision-language family: what torch loads, and the way back."""
import json
import shutil

import pytest

import checkpoints
from test_families_hybrid import CASES, HAVE_EXPERTS, build

FAMILIES = [name for name in CASES if "vision_config" in CASES[name][2]]


def components(name):
    """Two layouts of a case: which component has which ranks."""
    experts = ",dp=2,ep=2,etp=1" if name in HAVE_EXPERTS else ""
    yield "language=tp=2", "images=tp=1"
    yield "images=tp=2,dp=2", f"language=tp=1,pp=2{experts}"


def convert(shardwright, source, target, specs, *more):
    flags = [word for spec in specs for word in ("--component", spec)]
    return shardwright("convert", source, target, "--to", "mimo", "--mtp", "keep", *flags, *more)


def test_there_is_a_case_of_every_family():
    assert len(FAMILIES) >= 12, FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_components_at_other_layouts_and_back(shardwright, tmp_path, name):
    source = build(tmp_path / "hf", name)
    first, second = components(name)
    convert(shardwright, tmp_path / "hf", tmp_path / "first", first)
    convert(shardwright, tmp_path / "first", tmp_path / "second", second)
    one = checkpoints.load_dcp(tmp_path / "first")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "second"), one)
    assert any(key.startswith("modality_submodules.images.") for key in one)
    roots = ("language_model.", "modality_submodules.images.", "hf_extra.")
    assert all(key.startswith(roots) for key in one)
    (tmp_path / "second").rename(tmp_path / "moved")
    shardwright("convert", tmp_path / "moved", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


@pytest.mark.parametrize("name", FAMILIES)
def test_ordinary_models_and_mimo_hold_the_same(shardwright, tmp_path, name):
    build(tmp_path / "hf", name)
    shardwright("convert", tmp_path / "hf", tmp_path / "one", "--to", "torch_dist", "--tp", 2)
    convert(shardwright, tmp_path / "one", tmp_path / "mimo", next(components(name)))
    flags = ("--to", "torch_dist", "--tp", 2)
    shardwright("convert", tmp_path / "mimo", tmp_path / "again", *flags)
    one = checkpoints.load_dcp(tmp_path / "one")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "again"), one)


def digest(shardwright, path, *flags):
    return json.loads(shardwright("hash", path, "--json", *flags).stdout)["digest"]


@pytest.mark.parametrize("name", FAMILIES)
def test_is_proven_against_its_family(shardwright, tmp_path, name):
    """Every layout is the model: verify proves it, diff and hash find what it was made of."""
    build(tmp_path / "hf", name)
    config = ("--hf-config", tmp_path / "hf")
    expected = digest(shardwright, tmp_path / "hf")
    for number, specs in enumerate(components(name)):
        made = tmp_path / f"mimo{number}"
        convert(shardwright, tmp_path / "hf", made, specs)
        for flags in ((), config):
            report = json.loads(shardwright("verify", made, "--json", *flags).stdout)
            assert report["family"] and not report["findings"], report
            assert any("shape by shape" in check for check in report["checks"]), report["checks"]
            assert digest(shardwright, made, *flags) == expected
        shardwright("diff", tmp_path / "hf", made)


def test_a_training_run_of_wrapped_components(shardwright, tmp_path):
    """DDP and Float16Module put segments of their own into the names."""
    import torch.distributed.checkpoint as dcp

    source = build(tmp_path / "hf", "qwen3_vl")
    convert(shardwright, tmp_path / "hf", tmp_path / "mimo", ("language=tp=1", "images=tp=1"))
    wrapped = {
        key.replace("language_model.", "language_model.module.module.", 1).replace(
            "modality_submodules.images.", "modality_submodules.images.module.", 1
        ): value
        for key, value in checkpoints.load_dcp(tmp_path / "mimo").items()
    }
    folder = tmp_path / "run" / "iter_0000003"
    dcp.save(wrapped, storage_writer=dcp.FileSystemWriter(str(folder)), no_dist=True)
    marker = {"sharded_backend": "torch_dist", "sharded_backend_version": 1}
    (folder / "metadata.json").write_text(json.dumps(marker))
    (tmp_path / "run" / "latest_checkpointed_iteration.txt").write_text("3")
    bare = tmp_path / "config"
    bare.mkdir()
    shutil.copy(tmp_path / "hf" / "config.json", bare)
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf", "--hf-config", bare)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    shardwright("diff", tmp_path / "hf", tmp_path / "run", "--hf-config", bare)
