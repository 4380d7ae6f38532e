# SPDX-License-Identifier: Apache-2.0
"""Every Megatron model is read by the names of its layers and by those of their stacks."""
import numpy
import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, filled_with_garbage, load_dcp, load_hf, same_bits, truth
from safetensors.torch import save_file

import shardwright
from shardwright.torch import StorageReader

LLAMA = GOLDEN / "hf" / "llama3"
VOCABULARY = ("embedding.word_embeddings.weight", "output_layer.weight")


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """The same weights in every format."""
    folder = tmp_path_factory.mktemp("formats")
    paths = {"hf": LLAMA / "hf", "legacy": LLAMA / "legacy_tp2pp2ep1"}
    for to in ("torch_dist", "fsdp_dtensor"):
        paths[to] = folder / to
        options = {"tp": 2} if to == "torch_dist" else {"shards": 2}
        shardwright.convert(LLAMA / "hf", paths[to], to=to, **options)
    return paths


FORMATS = ["hf", "legacy", "torch_dist", "fsdp_dtensor"]


def per_layer(stacked):
    tensors = {}
    for name, tensor in stacked.items():
        if ".layers." not in name:
            tensors[name] = tensor
            continue
        stack, rest = name.split(".layers.")
        for number, layer in enumerate(tensor):
            tensors[f"{stack}.layers.{number}.{rest}"] = layer.clone()
    return tensors


def loaded_by_torch(path, names):
    """The tensors of these names as `dcp.load` gives them, vocabulary as high as it is stored."""
    with shardwright.open(path, "pt") as checkpoint:
        state = {}
        for name, tensor in names.items():
            shape = checkpoint.shape_of(name) if name in VOCABULARY else tensor.shape
            state[name] = filled_with_garbage(shape, tensor.dtype)
    dcp.load(state, storage_reader=StorageReader(path), no_dist=True)
    for name in VOCABULARY:
        if name in state:
            state[name] = state[name][: names[name].shape[0]]
    return state


@pytest.mark.parametrize("format", FORMATS)
def test_a_state_dict_of_stacks_is_loaded(sources, format):
    expected = truth("llama3")
    assert any(".layers." in name and ".layers.0" not in name for name in expected)
    assert_same(loaded_by_torch(sources[format], expected), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_a_state_dict_of_layers_is_loaded(sources, format):
    expected = per_layer(truth("llama3"))
    assert_same(loaded_by_torch(sources[format], expected), expected)


@pytest.mark.parametrize("format", FORMATS)
def test_stored_names_stay_what_is_listed(sources, format):
    with shardwright.open(sources[format], "pt") as checkpoint:
        names = checkpoint.keys()
        assert list(checkpoint) == names and len(checkpoint) == len(names)
        assert "decoder.layers.0.mlp.linear_fc2.weight" in checkpoint
        assert "decoder.layers.mlp.linear_fc2.weight" in checkpoint
        for absent in (
            "decoder.layers.99.mlp.linear_fc2.weight", "decoder.layers.nope", "decoder.layers.0.nope",
            "nope", "", "decoder.layers.-1.mlp.linear_fc2.weight",
        ):  # fmt: skip
            assert absent not in checkpoint
            with pytest.raises(shardwright.UsageError, match="no such name"):
                checkpoint.get_tensor(absent)
        assert checkpoint.keys() == names
    described = StorageReader(sources[format]).read_metadata().state_dict_metadata
    assert sorted(described) == sorted([*names, *checkpoint.object_keys()])


@pytest.mark.parametrize("format", FORMATS)
def test_boxes_of_both_kinds(sources, format):
    name = "decoder.layers.mlp.linear_fc2.weight"
    with shardwright.open(sources[format], "pt") as checkpoint:
        # Megatron-FSDP keeps float32.
        stack = truth("llama3")[name].to(getattr(torch, checkpoint.dtype_of(name)))
        one = checkpoint.get_slice("decoder.layers.1.mlp.linear_fc2.weight")
        assert one.get_shape() == list(stack.shape[1:])
        assert same_bits(one[3:9, 1::5], stack[1, 3:9, 1::5])
        whole = checkpoint.get_slice("decoder.layers.mlp.linear_fc2.weight")
        assert whole.get_shape() == list(stack.shape)
        for index in ((slice(1, 3), slice(2, 5)), (2, 3, 4), (slice(0, 0),), (Ellipsis, -1)):
            assert same_bits(whole[index], stack[index]), index
        with pytest.raises((IndexError, shardwright.Error)):
            checkpoint.read_box("decoder.layers.mlp.linear_fc2.weight", (2, 0, 0), (9, 1, 1))
    with shardwright.open(sources[format]) as checkpoint:
        array = checkpoint.get_tensor("decoder.layers.mlp.linear_fc2.weight")
        assert isinstance(array, numpy.ndarray) and array.tobytes() == stack.view(torch.uint8).numpy().tobytes()


def test_a_sharded_load_of_layers(sources):
    """What a rank of tensor parallelism asks for: boxes of one layer of a stack."""
    name = "decoder.layers.2.self_attention.linear_proj.weight"
    whole = truth("llama3")["decoder.layers.self_attention.linear_proj.weight"][2]
    half = whole.shape[1] // 2
    with shardwright.open(sources["torch_dist"], "pt") as checkpoint:
        assert same_bits(checkpoint.read_box(name, (0, half), (whole.shape[0], half)), whole[:, half:])


def test_experts_and_layers_that_differ():
    """As in torch_dist: what only some layers have, or in other sizes, has no stack."""
    for family in ("qwen3_moe", "deepseek_v3"):
        expected = truth(family)
        with shardwright.open(GOLDEN / "hf" / family / "hf", "pt") as checkpoint:
            for name, tensor in per_layer_of(expected).items():
                assert name in checkpoint, name
                assert same_bits(checkpoint.get_tensor(name)[: len(tensor)], tensor), name
    with shardwright.open(GOLDEN / "hf" / "deepseek_v3" / "hf") as checkpoint:
        assert "decoder.layers.input_layernorm.weight" in checkpoint
        assert "decoder.layers.mlp.router.weight" not in checkpoint


def per_layer_of(named):
    """The truth of a family whose layers are numbered or stacked."""
    numbered = {name: tensor for name, tensor in named.items() if ".layers.0" in name}
    return named if numbered else per_layer(named)


def test_states_of_the_optimizer_by_layer():
    path = GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"
    stacked = load_dcp(path)
    name = "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc2.weight"
    with shardwright.open(path, "pt") as checkpoint:
        for number, layer in enumerate(stacked[name]):
            of_one = name.replace("layers.", f"layers.{number}.")
            assert same_bits(checkpoint.get_tensor(of_one), layer)


def test_a_model_of_no_family_has_its_own_names_and_says_why(tmp_path):
    save_file({"a.layers.0.w": torch.ones(3), "a.layers.1.w": torch.ones(3)},
              tmp_path / "model.safetensors")  # fmt: skip
    (tmp_path / "config.json").write_text('{"architectures": ["Unheard"], "model_type": "unheard"}')
    with shardwright.open(tmp_path) as checkpoint:
        assert "a.layers.w" not in checkpoint and "a.layers.1.w" in checkpoint
        with pytest.raises(shardwright.UsageError, match=r"SW0400"):
            checkpoint.get_tensor("decoder.layers.0.mlp.linear_fc1.weight")
    assert_same(load_hf(tmp_path), {"a.layers.0.w": torch.ones(3), "a.layers.1.w": torch.ones(3)})
