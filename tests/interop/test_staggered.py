# SPDX-License-Identifier: Apache-2.0
"""Encoders with fewer tensor ranks than the language model, in legacy checkpoints.

LoongForge needs GPUs, so its checkpoints are made here from its rules, with torch and not with our
writer: see staggered.py."""
import json

import pytest
import torch
from safetensors.torch import save_file

import checkpoints
import hf_models
import hf_sizes
import staggered
import test_families_published as published
from staggered import Layout

TEXT = dict(
    hf_sizes.SIZES,
    vocab_size=508,
    num_hidden_layers=4,
    num_attention_heads=8,
    num_key_value_heads=4,
)
MOE = dict(num_experts=4, num_experts_per_tok=2, moe_intermediate_size=40, norm_topk_prob=True)
HIDDEN, FFN, LAYERS, HEADS, PATCH = 32, 48, 3, 4, 4
QKV = "vision_model.decoder.layers.1.self_attention.linear_qkv.weight"


def onevision(moe):
    from transformers import AutoConfig, AutoModelForCausalLM

    kind = "qwen3_moe" if moe else "qwen3"
    settings = AutoConfig.for_model(kind, **TEXT, **(MOE if moe else {}))
    text = AutoModelForCausalLM.from_config(settings, dtype=torch.bfloat16)
    hf_models.fill(text)
    outer, merger = "model.visual.", HIDDEN * 9
    norm, linear = published.norm, published.linear
    shapes = [
        (f"{outer}embeddings.patch_embedding.weight", (HIDDEN, 3, PATCH, PATCH)),
        *norm(f"{outer}layernorm_pre", HIDDEN),
        *norm(f"{outer}merger.ln_q", HIDDEN),
        *linear(f"{outer}merger.mlp.0", merger, merger),
        *linear(f"{outer}merger.mlp.2", TEXT["hidden_size"], merger),
    ]
    for i in range(LAYERS):
        layer = f"{outer}encoder.layers.{i}."
        shapes += [
            *norm(f"{layer}layer_norm1", HIDDEN),
            *norm(f"{layer}layer_norm2", HIDDEN),
            *linear(f"{layer}self_attn.qkv", 3 * HIDDEN, HIDDEN),
            *linear(f"{layer}self_attn.proj", HIDDEN, HIDDEN),
            *linear(f"{layer}mlp.fc1", FFN, HIDDEN),
            *linear(f"{layer}mlp.fc2", HIDDEN, FFN),
        ]
    config = {
        "architectures": ["LlavaOnevision2ForConditionalGeneration"],
        "model_type": "llava_onevision2_moe" if moe else "llava_onevision2",
        "text_config": settings.to_dict(),
        "tie_word_embeddings": False,
        "vision_config": {
            "model_type": "onevision_encoder",
            "hidden_size": HIDDEN,
            "intermediate_size": FFN,
            "layer_norm_type": "layer_norm",
            "num_attention_heads": HEADS,
            "num_channels": 3,
            "num_hidden_layers": LAYERS,
            "out_hidden_size": TEXT["hidden_size"],
            "patch_size": PATCH,
            "spatial_merge_size": 3,
        },
    }
    tensors = dict(published.filled(shapes))
    tensors.update(published.language(text, "model.language_model."))
    return config, tensors


class Model:
    """A model as Hugging Face has it, and its global Megatron tensors."""

    def __init__(self, shardwright, folder, moe):
        self.hf = folder / "hf"
        config, self.tensors = onevision(moe)
        self.hf.mkdir()
        (self.hf / "config.json").write_text(json.dumps(config))
        save_file(self.tensors, self.hf / "model.safetensors", metadata={"format": "pt"})
        shardwright("convert", self.hf, folder / "dist", "--to", "torch_dist")
        self.canonical = staggered.unstacked(checkpoints.load_dcp(folder / "dist"))


@pytest.fixture(scope="module")
def dense(shardwright, tmp_path_factory):
    return Model(shardwright, tmp_path_factory.mktemp("dense"), moe=False)


@pytest.fixture(scope="module")
def sparse(shardwright, tmp_path_factory):
    return Model(shardwright, tmp_path_factory.mktemp("sparse"), moe=True)


def assert_is_model(shardwright, folder, out, model):
    bare = ("--hf-config", model.hf)
    shardwright("convert", folder, out / "back", "--to", "hf", *bare)
    checkpoints.assert_same(checkpoints.load_hf(out / "back"), model.tensors)


LAYOUTS = {
    "whole": Layout(tp=4, encoder_tp=1),
    "half": Layout(tp=4, encoder_tp=2),
    "same": Layout(tp=4, encoder_tp=4),
    "stages": Layout(tp=4, encoder_tp=2, pp=2),
    "virtual": Layout(tp=4, encoder_tp=2, pp=2, vpp=2),
    "cut_patch": Layout(tp=4, encoder_tp=2, patch="cut"),
    "cut_patch_same": Layout(tp=4, encoder_tp=4, patch="cut"),
    "flat_patch": Layout(tp=4, encoder_tp=2, flat_patch=True),
    "flat_cut_patch": Layout(tp=4, encoder_tp=4, patch="cut", flat_patch=True),
    "merged": Layout(tp=4, encoder_tp=2, merged=True),
    "merged_stages": Layout(tp=4, encoder_tp=2, pp=2, vpp=2, merged=True),
}


@pytest.mark.parametrize("named", [True, False], ids=["told", "found"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_is_read(shardwright, dense, tmp_path, layout, named):
    layout = Layout(**{**vars(LAYOUTS[layout]), "named": named})
    staggered.save(tmp_path / "in", dense.canonical, layout)
    assert_is_model(shardwright, tmp_path / "in", tmp_path, dense)


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("pp", [1, 2])
def test_experts_are_read(shardwright, sparse, tmp_path, pp, merged):
    layout = Layout(tp=2, encoder_tp=1, pp=pp, ep=2, merged=merged, named=False)
    staggered.save(tmp_path / "in", sparse.canonical, layout)
    assert_is_model(shardwright, tmp_path / "in", tmp_path, sparse)


@pytest.mark.parametrize("layout", ["half", "flat_cut_patch", "merged_stages"])
def test_goes_anywhere(shardwright, dense, tmp_path, layout):
    staggered.save(tmp_path / "in", dense.canonical, LAYOUTS[layout])
    targets = {
        "dist": ("--to", "torch_dist", "--tp", 2, "--pp", 2),
        "legacy": ("--to", "legacy", "--tp", 2, "--pp", 4),
        "mimo": ("--to", "mimo", "--component", "language=tp=4", "--component", "images=tp=2"),
    }
    bare = ("--hf-config", dense.hf)
    for name, flags in targets.items():
        more = bare if name == "mimo" else ()
        shardwright("convert", tmp_path / "in", tmp_path / name, *flags, *more)
        shardwright("convert", tmp_path / name, tmp_path / f"{name}_back", "--to", "hf", *bare)
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / f"{name}_back"), dense.tensors)
    made = staggered.unstacked(checkpoints.load_dcp(tmp_path / "dist" / "release"))
    flat = {staggered.PATCH} if LAYOUTS[layout].flat_patch else set()
    for name in flat:
        made[name] = made[name].view(dense.canonical[name].shape)
    checkpoints.assert_same(made, dense.canonical)


def refused(shardwright, tmp_path, *flags):
    out = tmp_path / "out"
    done = shardwright("convert", tmp_path / "in", out, "--to", "torch_dist", *flags, expect=2)
    assert not out.exists()
    return done.stderr


def flip(tensor):
    tensor.view(-1).view(torch.uint8)[-1] ^= 1
    return tensor


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("name", [QKV, "adapter.linear_fc2.weight", staggered.PATCH])
def test_repeats_are_proven(shardwright, dense, tmp_path, name, named):
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2, named=named))
    staggered.change(tmp_path / "in", "mp_rank_02", name, flip)
    message = refused(shardwright, tmp_path)
    if name == QKV:
        why = "encoder_tensor_model_parallel_size says" if named else "the bytes of vision_model."
        assert f"tensor {QKV}: found 4 different shards of it in 4 tensor ranks" in message
        assert f"expected 2, so that ranks t and t+2 hold the same, as {why}" in message
    else:
        assert f"tensor {name}: its replicas" in message and "mp_rank_02" in message, message


def test_what_is_told_is_proven(shardwright, dense, tmp_path):
    """The arguments say 1, the tensors 2; and the other way round."""
    for told, true in ((1, 2), (2, 1), (4, 2), (2, 4), (3, 2)):
        folder = tmp_path / f"{told}_{true}"
        layout = Layout(tp=4, encoder_tp=true, named=False)
        settings = dict(encoder_tp=told)
        staggered.save(folder / "in", dense.canonical, layout, **settings)
        message = refused(shardwright, folder)
        assert "SW0313" in message, message
        if told != 3:
            assert f"found {true} different shards of it in 4 tensor ranks" in message
            assert f"expected {told}, so that" in message and "tensor vision_model." in message
        else:
            assert "vision_model: found" in message and "divisor of the 4" in message


def constant_tower(tensors):
    return {
        name: torch.full_like(tensor, 0.5) if name.startswith("vision_model.") else tensor
        for name, tensor in tensors.items()
    }


@pytest.mark.parametrize("encoder_tp", [1, 2, 4])
def test_constants_leave_it_to_shapes(shardwright, dense, tmp_path, encoder_tp):
    """Bytes that are alike everywhere are no evidence that shards repeat."""
    tensors = constant_tower(dense.canonical)
    layout = Layout(tp=4, encoder_tp=encoder_tp, named=False)
    staggered.save(tmp_path / "in", tensors, layout)
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist")
    made = staggered.unstacked(checkpoints.load_dcp(tmp_path / "out" / "release"))
    checkpoints.assert_same(made, tensors)


def test_a_second_embedding_must_be_the_first(shardwright, dense, tmp_path):
    staggered.save(tmp_path / "in", dense.canonical, LAYOUTS["merged"])
    staggered.change(tmp_path / "in", "mp_rank_03", staggered.MERGED_EMBEDDING, flip)
    assert f"tensor {staggered.EMBEDDING}: its replicas" in refused(shardwright, tmp_path)


def test_a_replica_among_shards_is_still_refused(shardwright, dense, tmp_path):
    """One linear of the tower is whole on each rank, the others are cut."""
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2))
    name = "vision_model.decoder.layers.2.mlp.linear_fc2.weight"
    for rank in range(4):
        whole = dense.canonical[name]
        staggered.change(tmp_path / "in", f"mp_rank_{rank:02d}", name, lambda _: whole.clone())
    assert f"tensor {name}: found the same bytes in all 2" in refused(shardwright, tmp_path)


def test_a_late_difference_is_found(shardwright, dense, tmp_path):
    """Only some weights are asked for the size; all of them are compared."""
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2, named=False))
    name = "vision_model.decoder.layers.2.mlp.linear_fc2.weight"
    staggered.change(tmp_path / "in", "mp_rank_03", name, flip)
    message = refused(shardwright, tmp_path)
    assert f"tensor {name}: its replicas" in message and "mp_rank_03" in message, message


def test_shards_of_a_language_model_do_not_repeat(shardwright, dense, tmp_path):
    """Whoever wrote ranks twice wrote no model of that many ranks."""
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2))
    name = "language_model.decoder.layers.0.self_attention.linear_proj.weight"
    for rank in range(4):
        half = dense.canonical[name].chunk(4, dim=1)[rank % 2]
        staggered.change(tmp_path / "in", f"mp_rank_{rank:02d}", name, lambda _: half.clone())
    message = refused(shardwright, tmp_path)
    assert f"tensor {name}: found shards that repeat with period 2" in message, message


def test_plan_tells(shardwright, dense, tmp_path):
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2, named=False))
    done = shardwright("plan", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", "--json")
    (note,) = [note for note in json.loads(done.stdout)["notes"] if "period" in note]
    assert note.startswith("vision_model is shared out over 2 tensor ranks, the language model over 4")
    assert "the bytes of vision_model." in note


@pytest.mark.parametrize("merged", [False, True])
@pytest.mark.parametrize("numbers", [2, 3])
def test_leftovers_and_longer_names(shardwright, dense, tmp_path, merged, numbers):
    """`mp_rank_TT_000` where nothing asks for a second number, and what crashed tools leave."""
    layout = Layout(tp=4, encoder_tp=2, numbers=numbers, merged=merged)
    staggered.save(tmp_path / "in", dense.canonical, layout)
    release = tmp_path / "in" / "release"
    stray = release / "tmp" / "mp_rank_00"
    stray.mkdir(parents=True)
    (stray / "model_optim_rng.pt").write_bytes(b"half a copy")
    (tmp_path / "in" / "dones").mkdir()
    (tmp_path / "in" / "dones" / "0.done").touch()
    (release / "dones").mkdir()
    assert_is_model(shardwright, tmp_path / "in", tmp_path, dense)


def files_of(out):
    root = checkpoints.iteration_folder(out)
    return {path.parent.name: path for path in sorted(root.glob("mp_rank_*/model_optim_rng.pt"))}


def assert_is_layout(out, tensors, layout):
    """Every rank's file holds what LoongForge's rules give it."""
    files = files_of(out)
    assert len(files) == layout.tp * layout.pp * layout.ep
    for t in range(layout.tp):
        for p in range(layout.pp):
            for e in range(layout.ep):
                path = files[staggered.folder_of(layout, t, p, e)]
                state = torch.load(path, weights_only=False)  # our own file
                assert state["args"].encoder_tensor_model_parallel_size == layout.encoder_tp
                keys = ["model"] if layout.vpp == 1 else [f"model{v}" for v in range(layout.vpp)]
                for v, key in enumerate(keys):
                    own = {k: x for k, x in state[key].items() if "_extra_state" not in k}
                    expected = staggered.stage(tensors, layout, t, p, e, v)
                    expected = {k: x for k, x in expected.items() if x is not None}
                    checkpoints.assert_same(own, expected)


SIZES = {
    "whole": Layout(tp=4, encoder_tp=1),
    "half": Layout(tp=4, encoder_tp=2),
    "same": Layout(tp=4, encoder_tp=4),
    "virtual": Layout(tp=4, encoder_tp=2, pp=2, vpp=2),
}


@pytest.mark.parametrize("name", SIZES)
def test_is_written(shardwright, dense, tmp_path, name):
    layout = SIZES[name]
    flags = ["--tp", layout.tp, "--pp", layout.pp, "--vpp", layout.vpp]
    flags += ["--encoder-tensor-model-parallel-size", layout.encoder_tp]
    shardwright("convert", dense.hf, tmp_path / "out", "--to", "legacy", *flags)
    assert_is_layout(tmp_path / "out", dense.canonical, layout)
    assert_is_model(shardwright, tmp_path / "out", tmp_path, dense)
    # To another size and back again: the same files.
    more = ("--to", "legacy", "--tp", 2, "--encoder-tp", 1)
    shardwright("convert", tmp_path / "out", tmp_path / "other", *more)
    shardwright("convert", tmp_path / "other", tmp_path / "again", "--to", "legacy", *flags)
    for folder, path in files_of(tmp_path / "out").items():
        assert path.read_bytes() == files_of(tmp_path / "again")[folder].read_bytes()


def test_experts_are_written(shardwright, sparse, tmp_path):
    layout = Layout(tp=2, encoder_tp=1, pp=2, ep=2)
    flags = ("--tp", 2, "--pp", 2, "--ep", 2, "--encoder_tensor_model_parallel_size", 1)
    shardwright("convert", sparse.hf, tmp_path / "out", "--to", "legacy", *flags)
    for path in files_of(tmp_path / "out").values():
        own = torch.load(path, weights_only=False)["model"]  # our own file
        assert ("vision_model.pre_layernorm.weight" in own) == ("_000_" in path.parent.name)
    assert_is_model(shardwright, tmp_path / "out", tmp_path, sparse)


@pytest.mark.parametrize(
    "flags, expected",
    [
        (("--to", "legacy", "--tp", 4, "--encoder-tp", 3), "ranks cannot share its 4 attention heads"),
        (("--to", "legacy", "--tp", 2, "--encoder-tp", 4), "--encoder-tp 4 must divide --tp 2"),
        (("--to", "legacy", "--tp", 4, "--encoder-tp", 0), "--encoder-tp"),
        (("--to", "torch_dist", "--tp", 4, "--encoder-tp", 2), "does not apply to"),
    ],
)
def test_sizes_that_do_not_fit(shardwright, dense, tmp_path, flags, expected):
    done = shardwright("convert", dense.hf, tmp_path / "out", *flags, expect=2)
    assert expected in done.stderr
    assert not (tmp_path / "out").exists()


def test_heads_are_not_cut(shardwright, dense, tmp_path):
    """Rows would divide by 8, but the encoder's four heads do not; the language model's eight do."""
    flags = ("--to", "legacy", "--tp", 8, "--make-vocab-size-divisible-by", 1)
    done = shardwright("convert", dense.hf, tmp_path / "no", *flags, "--encoder-tp", 8, expect=2)
    assert "8 tensor parallel ranks cannot share its 4 attention heads" in done.stderr
    assert "--encoder-tp" in done.stderr and not (tmp_path / "no").exists()
    shardwright("convert", dense.hf, tmp_path / "out", *flags, "--encoder-tp", 4)
    assert_is_model(shardwright, tmp_path / "out", tmp_path, dense)


def test_a_language_model_has_no_encoder(shardwright, tmp_path):
    golden = checkpoints.GOLDEN / "hf" / "llama3" / "hf"
    flags = ("--to", "legacy", "--tp", 2, "--encoder-tp", 1)
    done = shardwright("convert", golden, tmp_path / "out", *flags, expect=2)
    assert "--encoder-tp 1: this model is a language model alone and has no encoder" in done.stderr


def diagnosed(shardwright, folder, *flags, expect=0):
    done = shardwright("diagnose", folder, *flags, "--json", expect=expect)
    found = json.loads(done.stdout)
    found["codes"] = [finding["code"] for finding in found["findings"]]
    return found


def component(name, **sizes):
    keys = ("tp", "pp", "cp", "dp", "ep", "etp", "rank_offset", "tensors")
    return dict(name=name, **{key: sizes.get(key) for key in keys})


@pytest.mark.parametrize("named", [True, False], ids=["told", "found"])
@pytest.mark.parametrize("layout", ["whole", "half", "stages", "merged_stages", "cut_patch"])
def test_is_diagnosed(shardwright, dense, tmp_path, layout, named):
    layout = Layout(**{**vars(LAYOUTS[layout]), "named": named})
    staggered.save(tmp_path / "in", dense.canonical, layout)
    for flags in ((), ("--check-replicas",)):
        found = diagnosed(shardwright, tmp_path / "in", *flags)
        assert found["codes"] == ["L25"], found["findings"]
        (finding,) = found["findings"]
        assert finding["severity"] == "info"
        size = layout.encoder_tp
        assert finding["message"] == (
            f"Encoder TP={size} differs from language TP=4; shards repeat with period {size}."
        )
        assert found["sizes"]["tp"] == 4
        assert found["components"] == [
            component("language", tp=4, pp=layout.pp, ep=1, etp=1),
            component("vision_model", tp=size),
        ]
    done = shardwright("diagnose", tmp_path / "in", "--lang", "zh")
    assert f"编码器 TP={size} 与语言模型 TP=4 不同，分片以 {size} 为周期重复。" in done.stdout
    assert f"vision_model: tp={size}\n" in done.stdout


@pytest.mark.parametrize("patch", ["cut", "replicated"])
def test_a_usual_encoder_is_no_finding(shardwright, dense, tmp_path, patch):
    layout = Layout(tp=4, encoder_tp=4, patch=patch)
    staggered.save(tmp_path / "in", dense.canonical, layout)
    for flags in ((), ("--check-replicas",)):
        found = diagnosed(shardwright, tmp_path / "in", *flags)
        assert (found["codes"], found["components"]) == ([], [])


def test_an_argument_without_an_encoder_is_no_finding(shardwright, dense, tmp_path):
    text = {k: v for k, v in dense.canonical.items() if k.startswith("language_model.")}
    staggered.save(tmp_path / "in", text, Layout(tp=4, encoder_tp=2))
    assert diagnosed(shardwright, tmp_path / "in")["codes"] == []


def test_damage_is_diagnosed(shardwright, dense, tmp_path):
    staggered.save(tmp_path / "in", dense.canonical, Layout(tp=4, encoder_tp=2, named=False))
    late = "vision_model.decoder.layers.2.mlp.linear_fc2.weight"
    staggered.change(tmp_path / "in", "mp_rank_03", late, flip)
    assert diagnosed(shardwright, tmp_path / "in")["codes"] == ["L25"]
    found = diagnosed(shardwright, tmp_path / "in", "--check-replicas", expect=1)
    assert found["codes"] == ["L21", "L25"]
    assert f"{late} must be identical across tp (mp_rank_01, mp_rank_03)" in found["findings"][0]["message"]
    staggered.change(tmp_path / "in", "mp_rank_02", QKV, flip)
    found = diagnosed(shardwright, tmp_path / "in", expect=1)
    assert found["codes"] == ["L39"]
    assert f"tensor {QKV}: found 4 different shards" in found["findings"][0]["message"]
