# SPDX-License-Identifier: Apache-2.0
"""What mapping files say that parts of a model always hold, which Megatron takes over as they are:
whoever lost one of these tensors is told, and the whole model is not."""
import json
import pathlib
import shutil

import pytest
from safetensors.torch import save_file

import checkpoints
import hf_models
import test_families_further_towers as further
import test_families_newer_towers as newer
import test_families_newest as newest
import test_families_omni as omni
import test_families_towers as towers

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


def mapping(family):
    return json.loads((MODELS / f"{family}.json").read_text())


def bases(file):
    extended = file.get("extends", [])
    return [extended] if isinstance(extended, str) else extended


def holds(family):
    """With those that it extends, which have nothing to take away."""
    file = mapping(family)
    below = {part: names for base in bases(file) for part, names in holds(base).items()}
    return {**below, **file.get("holds", {})}


def alike(family):
    file = mapping(family)
    inherited = [parts for base in bases(file) if (parts := alike(base))]
    return file.get("alike") or (inherited[-1] if inherited else [])


def spellings(names):
    return [names] if isinstance(names, str) else names


def held(family):
    """The prefixes of each part in files, and its tensors, each by all of its spellings."""
    said = holds(family)
    for part in alike(family):
        names = [spellings(each) for each in said.get(part["megatron"], [])]
        if names:
            yield tuple(spellings(part["hf"])), names


ALL = [path.stem for path in sorted(MODELS.glob("*.json")) if path.stem != "schema"]
TAKEN = [name for name in ALL if not mapping(name).get("abstract") and alike(name)]
# Of towers that transformers has no class for, and of kept prediction layers, too little is known.
WITHOUT = ("deepseek_v41", "hy_v4", "kimi_k3", "longcat_flash", "ovis2_5", "qwen4_exp_text")
FAMILIES = [name for name in TAKEN if name not in WITHOUT]


def write_kimi(root):
    tensors, config = towers.kimi_k25(root / "made")
    (root / "hf").mkdir()
    (root / "hf" / "config.json").write_text(json.dumps(config))
    save_file(tensors, root / "hf" / "model.safetensors", metadata={"format": "pt"})


WRITTEN = {
    "gemma3n_vl": lambda root: further.gemma3n(root / "hf"),
    "kimi_k25": write_kimi,
    "nemotron_omni": omni.nemotron_omni,
    "qwen3_asr": omni.qwen3_asr,
}


def write(root, family):
    """The family's model of the tests of families, in hf/."""
    if family in WRITTEN:
        WRITTEN[family](root)
        return
    for module in (further, newer):
        if family in module.CASES:
            hf_models.create_form(root / "hf", module.CASES[family], "published")
            return
    module = next(each for each in (towers, omni, newest) if family in each.CASES)
    module.build(root / "hf", family)


def stem_of(tensors, prefixes, names):
    """What is in front of a part's names in the model; None where it has nothing of the part."""
    own = [key for key in tensors if key.startswith(prefixes)]
    stems = [
        key.removesuffix(name)
        for key in own
        for name in sum(names, [])
        if key.endswith("." + name)
    ]
    assert bool(stems) == bool(own), (prefixes, own)
    return max(sorted(set(stems)), key=stems.count) if stems else None


@pytest.mark.parametrize("family", FAMILIES)
def test_each_loss_is_told(shardwright, tmp_path, family):
    write(tmp_path, family)
    tensors = checkpoints.load_hf(tmp_path / "hf")
    shardwright("verify", tmp_path / "hf")
    (tmp_path / "less").mkdir()
    shutil.copy(tmp_path / "hf" / "config.json", tmp_path / "less")
    seen = 0
    assert list(held(family))
    for prefixes, names in held(family):
        stem = stem_of(tensors, prefixes, names)
        for each in names if stem else []:
            gone = next(stem + name for name in each if stem + name in tensors)
            kept = {key: tensor for key, tensor in tensors.items() if key != gone}
            save_file(kept, tmp_path / "less" / "model.safetensors", metadata={"format": "pt"})
            told = shardwright("verify", tmp_path / "less", expect=1)
            assert gone in told.stdout + told.stderr, gone
            seen += 1
    assert seen


@pytest.mark.parametrize("name", [None, "vision_tower.embeddings.position_embedding.weight"])
def test_a_loss_in_megatron_is_told(shardwright, tmp_path, name):
    """Nothing there says how the model was imported. A mapping file that asks for less writes it."""
    write(tmp_path, "paligemma")
    asks_less = mapping("paligemma")
    asks_less["holds"]["vision_tower."] = None
    (tmp_path / "paligemma.json").write_text(json.dumps(asks_less))
    less = ("--exclude", "*position_embedding.weight") if name else ()
    flags = ("--to", "torch_dist", "--map", tmp_path / "paligemma.json", *less)
    shardwright("convert", tmp_path / "hf", tmp_path / "run", *flags)
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "run") / "hf")
    config = ("--hf-config", tmp_path / "hf")
    done = shardwright("verify", tmp_path / "run", *config, expect=1 if name else 0)
    assert name is None or name in done.stdout + done.stderr
    back = ("convert", tmp_path / "run", tmp_path / "back", "--to", "hf")
    done = shardwright(*back, *config, expect=2 if name else 0)
    assert name is None or name in done.stdout + done.stderr
