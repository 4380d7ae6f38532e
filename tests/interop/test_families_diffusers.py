# SPDX-License-Identifier: Apache-2.0
"""Transformers of diffusers' pipelines: found where the pipeline is given, there and back by
torch_dist and legacy, under the names and in the order that Megatron-Bridge publishes. The names
and shapes of both models are those of diffusers 0.42."""
import json
import re
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import checkpoints

HEADS, DIM, LAYERS, SINGLE = 4, 6, 4, 3
HIDDEN = HEADS * DIM
FFN = 4 * HIDDEN

# architecture: configuration; the shapes of its tensors are made below
CONFIGS = {
    "FluxTransformer2DModel": dict(
        attention_head_dim=DIM,
        axes_dims_rope=[2, 2, 2],
        guidance_embeds=True,
        in_channels=8,
        joint_attention_dim=20,
        num_attention_heads=HEADS,
        num_layers=LAYERS,
        num_single_layers=SINGLE,
        out_channels=None,
        patch_size=1,
        pooled_projection_dim=14,
    ),
    "WanTransformer3DModel": dict(
        added_kv_proj_dim=None,
        attention_head_dim=DIM,
        cross_attn_norm=True,
        eps=1e-06,
        ffn_dim=40,
        freq_dim=10,
        image_dim=None,
        in_channels=3,
        num_attention_heads=HEADS,
        num_layers=LAYERS,
        out_channels=5,
        patch_size=[1, 2, 2],
        qk_norm="rms_norm_across_heads",
        rope_max_seq_len=1024,
        text_dim=18,
    ),
}
FLUX, WAN = CONFIGS


def linear(name, rows, columns):
    return {f"{name}.weight": (rows, columns), f"{name}.bias": (rows,)}


def shapes_of_flux():
    shapes = linear("x_embedder", HIDDEN, 8) | linear("context_embedder", HIDDEN, 20)
    for part, columns in (("timestep", 256), ("guidance", 256), ("text", 14)):
        embedder = f"time_text_embed.{part}_embedder.linear_"
        shapes |= linear(embedder + "1", HIDDEN, columns) | linear(embedder + "2", HIDDEN, HIDDEN)
    for number in range(LAYERS):
        block = f"transformer_blocks.{number}."
        for norm in ("norm1", "norm1_context"):
            shapes |= linear(f"{block}{norm}.linear", 6 * HIDDEN, HIDDEN)
        for norm in ("norm_q", "norm_k", "norm_added_q", "norm_added_k"):
            shapes[f"{block}attn.{norm}.weight"] = (DIM,)
        for part in ("to_q", "to_k", "to_v", "to_out.0", "add_q_proj", "add_k_proj", "add_v_proj",
                     "to_add_out"):  # fmt: skip
            shapes |= linear(f"{block}attn.{part}", HIDDEN, HIDDEN)
        for part in ("ff", "ff_context"):
            shapes |= linear(f"{block}{part}.net.0.proj", FFN, HIDDEN)
            shapes |= linear(f"{block}{part}.net.2", HIDDEN, FFN)
    for number in range(SINGLE):
        block = f"single_transformer_blocks.{number}."
        shapes |= linear(block + "norm.linear", 3 * HIDDEN, HIDDEN)
        shapes |= linear(block + "proj_mlp", FFN, HIDDEN)
        shapes |= linear(block + "proj_out", HIDDEN, HIDDEN + FFN)
        for norm in ("norm_q", "norm_k"):
            shapes[f"{block}attn.{norm}.weight"] = (DIM,)
        for part in ("to_q", "to_k", "to_v"):
            shapes |= linear(f"{block}attn.{part}", HIDDEN, HIDDEN)
    return shapes | linear("norm_out.linear", 2 * HIDDEN, HIDDEN) | linear("proj_out", 8, HIDDEN)


def shapes_of_wan():
    shapes = {"scale_shift_table": (1, 2, HIDDEN)}
    shapes |= {"patch_embedding.weight": (HIDDEN, 3, 1, 2, 2), "patch_embedding.bias": (HIDDEN,)}
    for part, columns in (("time", 10), ("text", 18)):
        embedder = f"condition_embedder.{part}_embedder.linear_"
        shapes |= linear(embedder + "1", HIDDEN, columns) | linear(embedder + "2", HIDDEN, HIDDEN)
    shapes |= linear("condition_embedder.time_proj", 6 * HIDDEN, HIDDEN)
    for number in range(LAYERS):
        block = f"blocks.{number}."
        shapes[block + "scale_shift_table"] = (1, 6, HIDDEN)
        for attention in ("attn1", "attn2"):
            for part in ("to_q", "to_k", "to_v", "to_out.0"):
                shapes |= linear(f"{block}{attention}.{part}", HIDDEN, HIDDEN)
            for norm in ("norm_q", "norm_k"):
                shapes[f"{block}{attention}.{norm}.weight"] = (HIDDEN,)
        shapes |= {f"{block}norm2.{part}": (HIDDEN,) for part in ("weight", "bias")}
        shapes |= linear(block + "ffn.net.0.proj", 40, HIDDEN)
        shapes |= linear(block + "ffn.net.2", HIDDEN, 40)
    return shapes | linear("proj_out", 5 * 4, HIDDEN)


SHAPES = {FLUX: shapes_of_flux(), WAN: shapes_of_wan()}


def write_transformer(folder, name, **changes):
    folder.mkdir(parents=True)
    config = dict(_class_name=name, _diffusers_version="0.42.1", **{**CONFIGS[name], **changes})
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    generator = torch.Generator().manual_seed(len(name))
    tensors = {}
    for key, shape in SHAPES[name].items():
        # Wan's tables and norms are not rounded with the rest.
        is_whole = name == WAN and ("scale_shift" in key or "norm2" in key)
        values = torch.randn(shape, generator=generator)
        tensors[key] = values if is_whole else values.bfloat16()
    file = folder / "diffusion_pytorch_model.safetensors"
    save_file(tensors, file, metadata={"format": "pt"})
    return tensors


def write_pipeline(folder, name):
    """With an autoencoder that has weights of its own, and parts that have none."""
    tensors = write_transformer(folder / "transformer", name)
    (folder / "model_index.json").write_text(json.dumps({"_class_name": "SomePipeline"}))
    for part in ("vae", "scheduler", "text_encoder"):
        (folder / part).mkdir()
        (folder / part / "config.json").write_text("{}")
    weights = {"encoder.conv_in.weight": torch.ones(4)}
    save_file(weights, folder / "vae" / "diffusion_pytorch_model.safetensors")
    return tensors


@pytest.fixture(scope="module")
def pipelines(tmp_path_factory):
    """The folder of a pipeline and its transformer's tensors."""
    made = {}
    for name in CONFIGS:
        folder = tmp_path_factory.mktemp(name) / "pipeline"
        made[name] = folder, write_pipeline(folder, name)
    return made


def grouped(parts, rows):
    """Rows of several tensors dealt out by heads: those of the first head of each, and so on."""
    return torch.cat([part[head * rows : (head + 1) * rows]
                      for head in range(HEADS) for part in parts])  # fmt: skip


# What Megatron-Bridge calls what it takes as it is.
FLUX_NAMES = (
    (r"^x_embedder", "img_embed"),
    (r"^context_embedder", "txt_embed"),
    (r"^time_text_embed.timestep_embedder", "timestep_embedding.time_embedder"),
    (r"^time_text_embed.guidance_embedder", "guidance_embedding"),
    (r"^time_text_embed.text_embedder", "vector_embedding"),
    (r"^norm_out.linear", "norm_out.adaLN_modulation.1"),
    (r"^transformer_blocks", "double_blocks"),
    (r"^single_transformer_blocks", "single_blocks"),
    (r"linear_1\.", "in_layer."),
    (r"linear_2\.", "out_layer."),
    (r"\.norm(1)?\.linear", ".adaln.linear"),
    (r"\.norm1_context", ".adaln_context"),
    (r"\.attn.norm_added_(.)", r".self_attention.added_\1_layernorm"),
    (r"\.attn.norm_(.)", r".self_attention.\1_layernorm"),
    (r"\.attn.to_out.0", ".self_attention.linear_proj"),
    (r"\.attn.to_add_out", ".self_attention.added_linear_proj"),
    (r"\.ff_context.", ".context_mlp."),
    (r"\.ff\.", ".mlp."),
    (r"net.0.proj", "linear_fc1"),
    (r"net.2", "linear_fc2"),
    (r"\.proj_mlp", ".mlp.linear_fc1"),
    (r"(single_blocks.\d+).proj_out", r"\1.mlp.linear_fc2"),
)
WAN_NAMES = (
    (r"^scale_shift_table", "head.modulation"),
    (r"^proj_out", "head.head"),
    (r"^condition_embedder.text_embedder.linear_1", "text_embedding.0"),
    (r"^condition_embedder.text_embedder.linear_2", "text_embedding.2"),
    (r"^condition_embedder.", ""),
    (r"^blocks", "decoder.layers"),
    (r"scale_shift_table", "adaLN.modulation"),
    (r"norm2", "norm3"),
    (r"attn1.", "full_self_attention."),
    (r"attn2.", "cross_attention."),
    (r"norm_([qk])", r"\1_layernorm"),
    (r"to_out.0", "linear_proj"),
    (r"cross_attention.to_q", "cross_attention.linear_q"),
    (r"ffn.net.0.proj", "mlp.linear_fc1"),
    (r"ffn.net.2", "mlp.linear_fc2"),
)


def renamed(key, names):
    for pattern, instead in names:
        key = re.sub(pattern, instead, key)
    return key


def take(tensors, *keys):
    return [tensors.pop(key) for key in keys]


def published(name, source):
    """The tensors of Megatron-Bridge's model, a layer each."""
    left, made = dict(source), {}
    attentions = {
        FLUX: [(f"transformer_blocks.{i}.attn.", f"double_blocks.{i}.self_attention.")
               for i in range(LAYERS)]
        + [(f"single_transformer_blocks.{i}.attn.", f"single_blocks.{i}.self_attention.")
           for i in range(SINGLE)],
        WAN: [(f"blocks.{i}.attn1.", f"decoder.layers.{i}.full_self_attention.")
              for i in range(LAYERS)],
    }  # fmt: skip
    for theirs, ours in attentions[name]:
        for part in ("weight", "bias"):
            keys = [f"{theirs}to_{role}.{part}" for role in "qkv"]
            made[f"{ours}linear_qkv.{part}"] = grouped(take(left, *keys), DIM)
            if ours.startswith("double"):
                keys = [f"{theirs}add_{role}_proj.{part}" for role in "qkv"]
                made[f"{ours}added_linear_qkv.{part}"] = grouped(take(left, *keys), DIM)
    for number in range(LAYERS if name == WAN else 0):
        for part in ("weight", "bias"):
            keys = [f"blocks.{number}.attn2.to_{role}.{part}" for role in "kv"]
            at = f"decoder.layers.{number}.cross_attention.linear_kv.{part}"
            made[at] = grouped(take(left, *keys), DIM)
    for number in range(SINGLE if name == FLUX else 0):
        (whole,) = take(left, f"single_transformer_blocks.{number}.proj_out.weight")
        block = f"single_blocks.{number}."
        made[block + "self_attention.linear_proj.weight"] = whole[:, :HIDDEN]
        made[block + "mlp.linear_fc2.weight"] = whole[:, HIDDEN:]
    names = FLUX_NAMES if name == FLUX else WAN_NAMES
    made.update({renamed(key, names): value for key, value in left.items()})
    return made


def in_torch_dist(name, tensors):
    """Wan's layers are one tensor, and all names begin as those of the wrapped module."""
    if name == FLUX:
        return tensors
    stacked = {}
    for key, value in tensors.items():
        stacked.setdefault(re.sub(r"\.layers\.\d+", ".layers", key), []).append(value)
    return {
        "module." + key: torch.stack(values) if ".layers." in key else values[0]
        for key, values in stacked.items()
    }


@pytest.mark.parametrize("name", CONFIGS)
def test_there_and_back(shardwright, tmp_path, pipelines, name):
    pipeline, source = pipelines[name]
    expected = in_torch_dist(name, published(name, source))
    stages = ("--pp", 2) if name == WAN else ()
    for number, layout in enumerate(((), ("--tp", 2, *stages))):
        out, back = tmp_path / f"out{number}", tmp_path / f"back{number}"
        done = shardwright("convert", pipeline, out, "--to", "torch_dist", *layout)
        assert "scheduler, text_encoder, vae are left where they are" in done.stdout + done.stderr
        checkpoints.assert_same(checkpoints.load_dcp(out), expected)
        shardwright("convert", out, back, "--to", "hf")
        files = {file.name for file in back.iterdir()}
        assert files == {"config.json", "diffusion_pytorch_model.safetensors"}
        checkpoints.assert_same(checkpoints.load_hf(back), source)
        config = (pipeline / "transformer" / "config.json").read_bytes()
        assert (back / "config.json").read_bytes() == config
        shardwright("diff", out, pipeline)
    again = tmp_path / "again"
    shardwright("convert", tmp_path / "out1", again, "--to", "torch_dist")
    checkpoints.assert_same(checkpoints.load_dcp(again), expected)


def extra_states(folder):
    """Modules that have one, and for how many layers."""
    reader = dcp.FileSystemReader(str(checkpoints.iteration_folder(folder)))
    states = [key for key in reader.read_metadata().state_dict_metadata if "_extra_state" in key]
    modules = [re.fullmatch(r"(.*)\._extra_state/shard_\d+_(\d+)", key).groups() for key in states]
    return {module: (modules.count((module, of)), int(of)) for module, of in modules}


@pytest.mark.parametrize("name", CONFIGS)
def test_states_of_the_modules_that_have_one(shardwright, tmp_path, pipelines, name):
    """Those of Transformer Engine and Megatron-Core; what is torch's own has none."""
    pipeline, _ = pipelines[name]
    shardwright("convert", pipeline, tmp_path / "out", "--to", "torch_dist")
    attention = ["linear_qkv", "linear_proj", "q_layernorm", "k_layernorm"]
    mlp = ["linear_fc1", "linear_fc2"]
    if name == WAN:
        parts = {"full_self_attention": attention, "mlp": mlp}
        parts["cross_attention"] = ["linear_q", "linear_kv", *attention[1:]]
        layers = {"module.decoder.layers.": (LAYERS, parts)}
    else:
        added = [f"added_{part}" for part in attention]
        joint = {"self_attention": attention + added, "mlp": mlp, "context_mlp": mlp}
        joint |= {"adaln": ["linear"], "adaln_context": ["linear"]}
        single = {"self_attention": attention, "mlp": mlp, "adaln": ["linear"]}
        layers = {f"double_blocks.{number}.": (1, joint) for number in range(LAYERS)}
        layers |= {f"single_blocks.{number}.": (1, single) for number in range(SINGLE)}
    expected = {
        f"{layer}{part}.{module}": (count, count)
        for layer, (count, parts) in layers.items()
        for part, modules in parts.items()
        for module in modules
    }
    assert extra_states(tmp_path / "out") == expected


@pytest.mark.parametrize("name", CONFIGS)
def test_each_tensor_rank_has_its_part(shardwright, tmp_path, pipelines, name):
    pipeline, source = pipelines[name]
    shardwright("convert", pipeline, tmp_path / "out", "--to", "legacy", "--tp", 2)
    ranks = [
        torch.load(file, weights_only=False)["model"]
        for file in sorted((tmp_path / "out" / "iter_0000000").glob("mp_rank_*/*.pt"))
    ]
    whole = published(name, source)
    first = ("linear_qkv", "linear_q.", "linear_kv", "linear_fc1", "adaln.linear",
             "adaln_context.linear")  # fmt: skip
    for key, value in whole.items():
        axis = 0 if any(part in key for part in first) else None
        if key.endswith(("linear_proj.weight", "linear_fc2.weight")):
            axis = 1
        parts = [value, value] if axis is None else value.chunk(2, axis)
        for rank, part in zip(ranks, parts, strict=True):
            assert checkpoints.same_bits(rank[key], part), key
    (tmp_path / "config").mkdir()
    shutil.copy(pipeline / "transformer" / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", *config)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


def test_the_last_stage_has_wans_head(shardwright, tmp_path, pipelines):
    pipeline, source = pipelines[WAN]
    shardwright("convert", pipeline, tmp_path / "out", "--to", "legacy", "--pp", 2)
    folder = tmp_path / "out" / "iter_0000000"
    stages = [
        torch.load(next(folder.glob(f"mp_rank_00_{stage:03}/*.pt")), weights_only=False)["model"]
        for stage in range(2)
    ]
    head = {"head.modulation", "head.head.weight", "head.head.bias"}
    assert [head & stage.keys() for stage in stages] == [set(), head]
    # Each stage computes anew what time and text are to its layers; patches come in at the first.
    parts = ("text_embedding.", "time_embedder.", "time_proj.")
    of_all = [{key for key in stage if key.startswith(parts)} for stage in stages]
    assert len(of_all[0]) == 10 and of_all[0] == of_all[1]
    assert all(torch.equal(stages[0][key], stages[1][key]) for key in of_all[0])
    assert ["patch_embedding.weight" in stage for stage in stages] == [True, False]
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf", "--hf-config",
                pipeline / "transformer")  # fmt: skip
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


@pytest.mark.parametrize("name", CONFIGS)
def test_from_arguments_alone(shardwright, tmp_path, pipelines, name):
    pipeline, source = pipelines[name]
    shardwright("convert", pipeline, tmp_path / "out", "--to", "torch_dist")
    iteration = checkpoints.iteration_folder(tmp_path / "out")
    shutil.rmtree(iteration / "hf")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    written = json.loads((tmp_path / "back" / "config.json").read_text())
    said = {key: value for key, value in CONFIGS[name].items() if value is not None}
    assert {key: written.get(key) for key in said} == said
    assert written["_class_name"] == name
    assert not {"architectures", "model_type"} & written.keys()
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


PROVIDERS = {
    FLUX: ("flux.flux_provider.FluxProvider", dict(num_joint_layers=LAYERS, vec_in_dim=14)),
    WAN: ("wan.wan_provider.WanModelProvider", dict(num_layers=LAYERS, crossattn_emb_size=HIDDEN)),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_what_megatron_bridge_builds_it_of(shardwright, tmp_path, pipelines, name):
    yaml = pytest.importorskip("yaml")
    pipeline, _ = pipelines[name]
    shardwright("convert", pipeline, tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    file = checkpoints.iteration_folder(tmp_path / "out") / "run_config.yaml"
    model = yaml.safe_load(file.read_text())["model"]
    provider, values = PROVIDERS[name]
    assert model["_target_"] == "megatron.bridge.diffusion.models." + provider
    assert {key: model[key] for key in values} == values
    assert model["hidden_size"] == HIDDEN and model["tensor_model_parallel_size"] == 2
    assert not {"vocab_size", "rope_scaling", "should_pad_vocab"} & model.keys()


def test_several_files_and_their_index(shardwright, tmp_path, pipelines):
    pipeline, source = pipelines[FLUX]
    out = tmp_path / "out"
    shardwright("convert", pipeline, out, "--to", "hf", "--max-shard-size", "60kB")
    index = out / "diffusion_pytorch_model.safetensors.index.json"
    names = set(json.loads(index.read_text())["weight_map"].values())
    assert len(names) > 2
    assert all(re.fullmatch(r"diffusion_pytorch_model-\d{5}-of-\d{5}.safetensors", name)
               for name in names)  # fmt: skip
    checkpoints.assert_same(checkpoints.load_hf(out), source)
    shardwright("verify", out)
    was = index.read_bytes()
    index.unlink()
    shardwright("index", "rebuild", out)
    assert index.read_bytes() == was
    index.write_text(index.read_text().replace("x_embedder.bias", "y_embedder.bias"))
    done = shardwright("verify", out, expect=1)
    assert index.name in done.stdout + done.stderr
    shardwright("convert", pipeline, out, "--to", "hf", "--overwrite")
    checkpoints.assert_same(checkpoints.load_hf(out), source)


@pytest.mark.parametrize("files", [1, 2])
def test_torch_files_of_diffusers(shardwright, tmp_path, pipelines, files):
    """As older pipelines have them, in one file or in two and their index."""
    pipeline, source = pipelines[WAN]
    folder = tmp_path / "pipeline" / "transformer"
    folder.mkdir(parents=True)
    shutil.copy(pipeline / "model_index.json", folder.parent)
    shutil.copy(pipeline / "transformer" / "config.json", folder)
    stem, keys = "diffusion_pytorch_model", sorted(source)
    names = [f"{stem}.bin"] if files == 1 else [f"{stem}-0000{n}-of-00002.bin" for n in (1, 2)]
    for number, name in enumerate(names):
        torch.save({key: source[key] for key in keys[number::files]}, folder / name)
    if files == 2:
        places = {key: names[number % 2] for number, key in enumerate(keys)}
        index = {"metadata": {}, "weight_map": places}
        (folder / f"{stem}.bin.index.json").write_text(json.dumps(index))
    shardwright("convert", folder.parent, tmp_path / "out", "--to", "torch_dist")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    if files == 2:
        (folder / names[1]).unlink()
        done = shardwright("convert", folder, tmp_path / "no", "--to", "hf", expect=2)
        assert names[1] in done.stderr


def test_two_transformers_are_not_chosen_from(shardwright, tmp_path):
    pipeline = tmp_path / "pipeline"
    write_pipeline(pipeline, WAN)
    write_transformer(pipeline / "transformer_2", WAN)
    done = shardwright("convert", pipeline, tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "hf in transformer " in done.stderr and "hf in transformer_2 " in done.stderr
    shardwright("convert", pipeline / "transformer_2", tmp_path / "out", "--to", "torch_dist")


@pytest.mark.parametrize(
    "key, value",
    [("image_dim", 1280), ("added_kv_proj_dim", 5120), ("cross_attn_norm", False),
     ("qk_norm", "rms_norm"), ("patch_size", [2, 2, 2])],
)  # fmt: skip
def test_what_megatron_bridges_wan_has_not_is_refused(shardwright, tmp_path, key, value):
    """Wan 2.1 sees pictures by the first two."""
    write_transformer(tmp_path / "hf", WAN, **{key: value})
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert f"error[SW0400]: config.json: found {key} = " in done.stderr
    assert not (tmp_path / "out").exists()


def test_flux_has_no_stages_and_no_vocabulary(shardwright, tmp_path, pipelines):
    pipeline, _ = pipelines[FLUX]
    for flags, word in ((("--pp", 2), "--pp"), (("--extend-vocab", 9), "no vocabulary")):
        done = shardwright("convert", pipeline, tmp_path / "out", "--to", "torch_dist", *flags,
                           expect=2)  # fmt: skip
        assert word in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()


def test_commands_find_the_transformer(shardwright, pipelines):
    pipeline, source = pipelines[WAN]
    shown = json.loads(shardwright("inspect", pipeline, "--json").stdout)
    assert shown["totals"]["tensors"] == len(source)
    assert "model_index.json describes a pipeline" in shown["reasons"][0]
    assert "the data are in transformer" in shardwright("diagnose", pipeline).stdout
