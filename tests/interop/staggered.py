# SPDX-License-Identifier: Apache-2.0
"""Legacy checkpoints of vision-language models as LoongForge and LLaVA-OneVision 2 lay them out,
cut and saved with torch alone.

Folders count the language model's tensor ranks; encoder shard e of E lies in every rank t with
t mod E = e, on the first pipeline stage (`model0` with virtual ones) and in each expert rank.
"""
import argparse
import dataclasses
import re

import torch

MERGED_NAMES = (
    ("vision_model.", "encoder_model.image_encoder."),
    ("adapter.", "encoder_model.image_projector."),
    ("language_model.", "foundation_model."),
)
EMBEDDING = "language_model.embedding.word_embeddings.weight"
MERGED_EMBEDDING = "encoder_model.text_encoder.word_embeddings.weight"
PATCH = "vision_model.patch_embed.proj.weight"
FIRST_ROWS = (
    "word_embeddings.weight",
    "output_layer.weight",
    "linear_qkv.weight",
    "linear_qkv.bias",
    "linear_fc1.weight",
    "linear_fc1.bias",
)
LAST_COLUMNS = ("linear_proj.weight", "linear_fc2.weight")
GATED = re.compile(r"language_model\..*linear_fc1\.weight")


@dataclasses.dataclass
class Layout:
    tp: int = 1
    encoder_tp: int = 1
    pp: int = 1
    vpp: int = 1
    ep: int = 1
    merged: bool = False  # LoongForge's names, with a second embedding
    patch: str = "replicated"  # or "cut": a column-parallel linear
    flat_patch: bool = False  # [O, C·H·W]
    named: bool = True  # the arguments tell the encoder's size
    numbers: int = 0  # at least so many in a folder's name


def unstacked(tensors):
    """One tensor for each layer, of the tensors of a torch_dist directory."""
    single = {}
    for name, tensor in tensors.items():
        stack, found, rest = name.partition("decoder.layers.")
        if not found or rest[0].isdigit():
            single[name] = tensor
            continue
        for layer, part in enumerate(tensor):
            single[f"{stack}decoder.layers.{layer}.{rest}"] = part
    return single


def cut(name, tensor, rank, size, layout):
    if name.startswith("adapter."):
        return tensor
    if name == PATCH:
        if layout.flat_patch:
            tensor = tensor.flatten(1)
        return tensor.chunk(size)[rank] if layout.patch == "cut" else tensor
    if GATED.fullmatch(name):
        return torch.cat([half.chunk(size)[rank] for half in tensor.chunk(2)])
    if name.endswith(FIRST_ROWS):
        return tensor.chunk(size)[rank]
    return tensor.chunk(size, dim=-1)[rank] if name.endswith(LAST_COLUMNS) else tensor


def layers_of(layout, layers, p, v):
    """The decoder layers of a virtual stage."""
    each = layers // (layout.pp * layout.vpp)
    first = (v * layout.pp + p) * each
    return range(first, first + each)


def stage(tensors, layout, t, p, e, v):
    """The state dict of one virtual stage of a rank."""
    layers = 1 + max(int(n.split(".")[3]) for n in tensors if n.startswith("language_model.decoder.layers."))
    own = layers_of(layout, layers, p, v)
    first, last = (p, v) == (0, 0), (p, v) == (layout.pp - 1, layout.vpp - 1)
    state = {}
    for name, tensor in tensors.items():
        if not name.startswith("language_model."):
            if first:
                state[name] = cut(name, tensor, t % layout.encoder_tp, layout.encoder_tp, layout)
            continue
        if name.startswith("language_model.decoder.layers."):
            words = name.split(".")
            if int(words[3]) not in own:
                continue
            name = ".".join([*words[:3], str(int(words[3]) - own[0]), *words[4:]])
        elif not (first if "embedding." in name else last):
            continue
        stem, expert, leaf = name.partition(".mlp.experts.experts.")
        if not expert:
            state[name] = cut(name, tensor, t, layout.tp, layout)
            continue
        each = len(tensor) // layout.ep
        for i, one in enumerate(tensor[e * each : (e + 1) * each]):
            piece = cut(f"{stem}.{leaf}", one, t, layout.tp, layout)
            state[f"{stem}.mlp.experts.{leaf}{i}"] = piece
    # Storages of their own, as whoever converts has them.
    state = {name: tensor.clone() for name, tensor in state.items()}
    for module in ("layernorm", "linear_fc1", "linear_fc2"):
        if first:
            state[f"adapter.{module}._extra_state"] = None
    if not layout.merged:
        return state
    if EMBEDDING in state:
        state[MERGED_EMBEDDING] = state[EMBEDDING]
    renamed = {}
    for name, tensor in state.items():
        for old, new in MERGED_NAMES:
            if name.startswith(old):
                name = new + name.removeprefix(old)
        renamed[name] = tensor
    return renamed


def arguments(layout, settings):
    """Those of the AIAK converters, which are their own and not a run's."""
    values = dict(
        load_platform="huggingface",
        save_platform="mcore",
        common_config_path="config.json",
        tensor_model_parallel_size=layout.tp,
        pipeline_model_parallel_size=layout.pp,
        expert_parallel_size=layout.ep if layout.ep > 1 else None,
        expert_tensor_parallel_size=None,
        num_virtual_stages_per_pipeline_rank=layout.vpp if layout.vpp > 1 else None,
        encoder_tensor_model_parallel_size=layout.encoder_tp if layout.named else None,
        untie_embeddings_and_output_weights=True,
        **settings,
    )
    return argparse.Namespace(**values)


def folder_of(layout, t, p, e):
    numbers = [(p, 3)] * (layout.pp > 1) + [(e, 3)] * (layout.ep > 1)
    numbers += [(0, 3)] * max(0, layout.numbers - 1 - len(numbers))
    return f"mp_rank_{t:02d}" + "".join(f"_{number:0{width}d}" for number, width in numbers)


def save(root, tensors, layout, **settings):
    """Writes the model whose global tensors these are; see unstacked()."""
    release = root / "release"
    for t in range(layout.tp):
        for p in range(layout.pp):
            for e in range(layout.ep):
                stages = [stage(tensors, layout, t, p, e, v) for v in range(layout.vpp)]
                keys = ["model"] if layout.vpp == 1 else [f"model{v}" for v in range(layout.vpp)]
                state = dict(zip(keys, stages))
                state.update(args=arguments(layout, settings), checkpoint_version=3.0, iteration=0)
                folder = release / folder_of(layout, t, p, e)
                folder.mkdir(parents=True)
                torch.save(state, folder / "model_optim_rng.pt")
    (root / "latest_checkpointed_iteration.txt").write_text("release")


def change(root, folder, name, function):
    """Rewrites one tensor of one rank's file."""
    path = root / "release" / folder / "model_optim_rng.pt"
    state = torch.load(path, weights_only=False)  # our own file
    models = [state[key] for key in state if key.startswith("model")]
    model = next(model for model in models if name in model)
    model[name] = function(model[name].clone())
    torch.save(state, path)
