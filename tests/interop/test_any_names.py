# SPDX-License-Identifier: Apache-2.0
"""Tensors of any checkpoint under the names of the other side are those of converted files."""
import random
import re

import pytest
import torch
from checkpoints import GOLDEN, load_dcp, load_hf, same_bits
from safetensors.torch import load_file

import shardwright

FAMILIES = sorted(folder.name for folder in (GOLDEN / "hf").iterdir() if (folder / "hf").exists())
BOXES = 3
LAYER = re.compile(r"\.(\d+)\.")


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """`converted(source, to, **flags)`: the folder that a conversion makes, once."""
    made = {}

    def convert(source, to, **flags):
        key = (str(source), to, str(flags))
        if key not in made:
            made[key] = tmp_path_factory.mktemp("converted") / to
            shardwright.convert(source, made[key], to=to, **flags)
        return made[key]

    return convert


def assert_sees(path, expected, seed=7, listed=True, **options):
    """Every tensor, whole and in boxes; gives how many."""
    draw = random.Random(seed)
    with shardwright.open(path, "pt", **options) as checkpoint:
        if listed:
            assert checkpoint.keys() == sorted(expected)
            assert len(checkpoint) == len(expected) and list(checkpoint) == checkpoint.keys()
        for name, tensor in expected.items():
            assert name in checkpoint, name
            assert checkpoint.shape_of(name) == tuple(tensor.shape), name
            assert same_bits(checkpoint.get_tensor(name), tensor), name
            for _ in range(BOXES):
                origin = [draw.randrange(size) for size in tensor.shape]
                extent = [draw.randint(1, size - at) for at, size in zip(origin, tensor.shape)]
                place = tuple(slice(at, at + count) for at, count in zip(origin, extent))
                box = checkpoint.read_box(name, origin, extent)
                assert same_bits(box, tensor[place]), f"{name} {origin} {extent}"
    return len(expected)


def numbered(stacked, names):
    """Tensors of a torch_dist checkpoint by names of layers, all of which must be needed."""
    tensors, used = {}, set()
    for name in names:
        used.add(name if name in stacked else LAYER.sub(".", name, 1))
        if name in stacked:
            tensors[name] = stacked[name]
            continue
        tensors[name] = stacked[LAYER.sub(".", name, 1)][int(LAYER.search(name)[1])]
    assert used == set(stacked)
    return tensors


@pytest.mark.parametrize("family", FAMILIES)
def test_a_megatron_checkpoint_by_hugging_faces_names(converted, family):
    source = converted(GOLDEN / "hf" / family / "hf", "torch_dist", tp=2)
    expected = load_hf(converted(source, "hf"))
    assert assert_sees(source, expected, names="hf") > 10


@pytest.mark.parametrize("family", FAMILIES)
def test_a_hugging_face_model_by_megatrons_names(converted, family):
    source = GOLDEN / "hf" / family / "hf"
    stacked = load_dcp(converted(source, "torch_dist"))
    stacked = {name: value for name, value in stacked.items() if not name.startswith("hf_extra.")}
    assert assert_sees(source, stacked, names="megatron", listed=False) > 5
    with shardwright.open(source, names="megatron") as checkpoint:
        expected = numbered(stacked, checkpoint.keys())
    assert len(expected) >= len(stacked)
    assert_sees(source, expected, names="megatron")


FORMATS = {
    "torch_dist": dict(tp=2, pp=2),
    "legacy": dict(tp=2, pp=2),
    "fsdp_dtensor": dict(shards=2),
    "dcp": dict(shards=2),
    "safetensors": {},
}


@pytest.mark.parametrize("to", FORMATS)
def test_every_format_of_a_model(converted, to):
    """With padding of the vocabulary, and another dtype."""
    source = GOLDEN / "hf" / "llama3" / "hf"
    if to in ("dcp", "safetensors"):  # these keep the names that they find
        source = converted(source, "torch_dist", tp=2, pp=2)
    source = converted(source, to, **FORMATS[to])
    hf_config = GOLDEN / "hf" / "llama3" / "hf"
    expected = load_hf(converted(source, "hf", hf_config=hf_config))
    assert_sees(source, expected, names="hf", hf_config=hf_config)
    expected = load_hf(converted(source, "hf", hf_config=hf_config, dtype="fp16"))
    assert {tensor.dtype for tensor in expected.values()} == {torch.float16}
    hf_config = hf_config / "config.json"
    assert_sees(source, expected, names="hf", hf_config=hf_config, dtype=torch.float16)


MCORE = sorted(
    folder.relative_to(GOLDEN / "mcore")
    for folder in (GOLDEN / "mcore").glob("*/*/*")
    if folder.is_dir() and "moe" not in str(folder)
)


@pytest.mark.parametrize("run", MCORE, ids=str)
def test_what_megatron_saved(converted, run):
    """Models of which only the run's arguments tell the config, optimizer states beside them."""
    source = GOLDEN / "mcore" / run
    expected = load_hf(converted(source, "hf"))
    assert not any("optimizer" in name or "exp_avg" in name for name in expected)
    assert assert_sees(source, expected, names="hf") > 10


def test_a_model_of_no_family_is_refused_as_a_conversion_refuses_it(tmp_path):
    source = GOLDEN / "mcore" / "moe_te_grouped" / "v0.16.1" / "tp1pp2ep2dp2-torch_dist-full"
    with pytest.raises(shardwright.ModelError) as by_conversion:
        shardwright.convert(source, tmp_path / "hf", to="hf")
    with pytest.raises(shardwright.ModelError) as by_opening:
        shardwright.open(source, names="hf")
    assert by_opening.value.code == by_conversion.value.code == "SW0400"
    assert "give hf_config=" in by_opening.value.message and "--" not in by_opening.value.message


def test_components(converted):
    """A MIMO checkpoint: names of a vision and a language component become those of one model."""
    source = GOLDEN / "hf" / "qwen35_vl" / "hf"
    layout = ["language=tp=2,pp=1", "images=tp=1,pp=1"]
    source = converted(source, "mimo", component=layout)
    expected = load_hf(converted(source, "hf"))
    assert any(name.startswith("model.visual.") for name in expected)
    assert assert_sees(source, expected, names="hf") > 10


def test_a_quantised_model_is_dequantised_where_a_dtype_is_asked_for(converted):
    source = GOLDEN / "hf" / "gpt_oss_mxfp4" / "hf"
    with shardwright.open(source, names="hf") as checkpoint:
        assert any(name.endswith("_scales") for name in checkpoint.keys())
    expected = load_hf(converted(source, "hf", dtype="bf16"))
    assert not any(name.endswith("_scales") for name in expected)
    assert_sees(source, expected, names="hf", dtype="bfloat16")


def test_files_that_go_along(converted):
    source = converted(GOLDEN / "hf" / "llama3" / "hf", "torch_dist", tp=2)
    made = converted(source, "hf")
    with shardwright.open(source, names="hf") as checkpoint:
        files = {path.name for path in made.iterdir() if "safetensors" not in path.name}
        assert "config.json" in files and set(checkpoint.document_keys()) == files
        for name in files:
            assert checkpoint.get_document(name) == (made / name).read_bytes()
        with pytest.raises(shardwright.StorageError, match="SW0101.*no file nothing.txt"):
            checkpoint.get_document("nothing.txt")
        assert checkpoint.object_keys() == []


def test_stored_names_stay_the_default(converted):
    source = converted(GOLDEN / "hf" / "llama3" / "hf", "torch_dist", tp=2)
    with shardwright.open(source) as one, shardwright.open(source, names="stored") as other:
        assert one.keys() == other.keys() and "embedding.word_embeddings.weight" in one
        assert one.document_keys() == []
    with shardwright.open(source, names="hf") as checkpoint:
        assert "embedding.word_embeddings.weight" not in checkpoint
        with pytest.raises(shardwright.UsageError, match="SW0900.*embedding.*no such name"):
            checkpoint.get_tensor("embedding.word_embeddings.weight")
        with pytest.raises(shardwright.Error, match="SW0309"):
            checkpoint.read_box("model.norm.weight", [0], [999])


def test_what_is_asked_for_wrongly_is_refused_by_the_options_own_names(tmp_path):
    source = GOLDEN / "hf" / "llama3" / "hf"
    for options, message in [
        (dict(names="gguf"), "names: 'gguf' is none of \"stored\", \"megatron\", \"hf\""),
        (dict(hf_config=source), "changes nothing of names=\"stored\""),
        (dict(replica=1), "changes nothing of names=\"stored\""),
        (dict(dtype="bfloat16", names="megatron"), "dtype= is for names=\"hf\""),
        (dict(source_ep=2, names="hf"), "source_ep=, source_etp= and source_tp= describe"),
        (dict(source_ep=2, names="megatron"), "source_ep=, source_etp= and source_tp= describe"),
        (dict(mtp="drop", names="megatron"), "mtp= is for names=\"hf\""),
        (dict(mtp="no", names="hf"), "mtp: 'no' is none of \"keep\", \"drop\""),
        (dict(dtype="bf", names="hf"), "dtype: 'bf' is none of torch's types"),
    ]:
        with pytest.raises(shardwright.UsageError, match="SW0900") as refused:
            shardwright.open(source, **options)
        assert message in str(refused.value)
    with pytest.raises(TypeError, match="hf_cofnig"):
        shardwright.open(source, names="hf", hf_cofnig=source)
    bare = tmp_path / "bare"
    shardwright.convert(source, tmp_path / "td", to="torch_dist")
    shardwright.convert(tmp_path / "td", bare, to="safetensors")
    with pytest.raises(shardwright.ModelError) as refused:
        shardwright.open(bare, names="hf")
    assert "hf_config=" in str(refused.value) and "--" not in str(refused.value)
    with pytest.raises(shardwright.StorageError, match="SW0101"):
        shardwright.open(bare, names="hf", hf_config=tmp_path / "nowhere")
