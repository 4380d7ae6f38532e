# SPDX-License-Identifier: Apache-2.0
"""Vision-language models of every family compute from our Megatron tensors what they compute in
transformers.

Language models are Megatron-Core's own GPTModel. Megatron-Core has no towers of these families:
their layers are computed here as its layers compute (queries, keys and values of one head after
another in one tensor, norms that belong to the linear behind them), or, where a checkpoint has a
tower as it is, by the tower of transformers.
"""
import argparse

import pytest
import torch
import torch.nn.functional as F

import checkpoints
from test_families_hybrid import CASES
from test_vision_towers import NOTICED, TOLERANCE, saved


@pytest.fixture
def converted(shardwright, tmp_path):
    def convert(name):
        hf = saved(tmp_path / "hf", name)
        shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
        return hf, checkpoints.load_dcp(tmp_path / "out")

    return convert


def part(tensors, prefix):
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def random(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(3))


def linear(x, tensors, name):
    return F.linear(x, tensors[f"{name}.weight"], tensors.get(f"{name}.bias"))


def norm(x, tensors, names, eps=1e-6):
    """Of the first name that the tensors have: an RMS norm where it has no bias."""
    weight, bias = next(pair for pair in names if pair[0] in tensors)
    width = (x.shape[-1],)
    if bias not in tensors:
        return F.rms_norm(x, width, tensors[weight], eps)
    return F.layer_norm(x, width, tensors[weight], tensors[bias], eps)


def norm_names(module, linear_name):
    fused = f"{linear_name}.layer_norm"
    return [(f"{fused}_weight", f"{fused}_bias"), (f"{module}.weight", f"{module}.bias")]


def turned(x, rotary):
    """The rotary embedding of a tower, its heads next to last."""
    if rotary is None:
        return x
    cos, sin = (part.unsqueeze(-2) for part in rotary)
    one, two = x.chunk(2, dim=-1)
    return x * cos + torch.cat((-two, one), dim=-1) * sin


def attention(x, layer, heads, rotary=None):
    """One image's."""
    fused = linear(x, layer, "self_attention.linear_qkv").unflatten(-1, (heads, 3, -1))
    query, key, value = fused.unbind(-2)
    for of, name in ((query, "q"), (key, "k")):
        weight = layer.get(f"self_attention.{name}_layernorm.weight")
        if weight is not None:
            flat = F.rms_norm(of.flatten(-2), weight.shape, weight, 1e-6)
            of.copy_(flat.unflatten(-1, (heads, -1)))
    parts = (turned(query, rotary), turned(key, rotary), value)
    out = F.scaled_dot_product_attention(*(p.transpose(-2, -3) for p in parts))
    return linear(out.transpose(-2, -3).flatten(-2), layer, "self_attention.linear_proj")


def vision_layer(x, layer, heads, activation, rotary=None):
    first = norm(x, layer, norm_names("input_layernorm", "self_attention.linear_qkv"))
    x = x + layer.get("ls1", 1) * attention(first, layer, heads, rotary)
    second = norm(x, layer, norm_names("pre_mlp_layernorm", "mlp.linear_fc1"))
    inner = activation(linear(second, layer, "mlp.linear_fc1"))
    return x + layer.get("ls2", 1) * linear(inner, layer, "mlp.linear_fc2")


def layers_of(tower):
    """Its layers, which a checkpoint stacks."""
    stacked = part(tower, "decoder.layers.")
    count = next(iter(stacked.values())).shape[0]
    return [{key: value[i] for key, value in stacked.items()} for i in range(count)]


def notices(compare, tensors, names):
    """That the comparison sees mistakes in each of these tensors; keys for values first of all."""
    for name in names:
        original = tensors[name].clone()
        if "linear_qkv.weight" in name:
            parts = original.unflatten(1, (6, 3, -1))
            tensors[name] = parts[:, :, [0, 2, 1]].flatten(1, 3).contiguous()
        else:
            tensors[name] = original.roll(1, dims=-1)
        assert compare() > NOTICED, name
        tensors[name] = original


@pytest.mark.parametrize("name", ["internvl", "internvl_norms"])
def test_internvit(converted, name):
    hf, made = converted(name)
    tower, projection = part(made, "vision_model."), part(made, "vision_projection.encoder.")
    image = random(2, 3, 28, 28)

    def difference():
        with torch.no_grad():
            x = F.conv2d(image, tower["conv1.weight"], tower["conv1.bias"], stride=14)
            x = x.flatten(2).transpose(1, 2)
            x = torch.cat((tower["class_token"].expand(2, 1, -1), x), dim=1)
            x = x + tower["position_embeddings.weight"]
            for layer in layers_of(tower):
                x = vision_layer(x, layer, 6, F.gelu)
            theirs = hf.model.vision_tower(image).last_hidden_state
            return (x - theirs).abs().max().item()

    assert difference() < TOLERANCE
    stem = "decoder.layers."
    changed = [f"{stem}self_attention.linear_qkv.weight", f"{stem}ls1", f"{stem}mlp.linear_fc1.bias"]
    norms = [f"{stem}self_attention.k_layernorm.weight"] if name == "internvl_norms" else []
    notices(difference, tower, [*changed, *norms, "position_embeddings.weight", "conv1.bias"])

    features = random(5, 4 * 36)

    def projected():
        with torch.no_grad():
            x = norm(features, projection, norm_names("", "linear_fc1"), 1e-5)
            x = linear(F.gelu(linear(x, projection, "linear_fc1")), projection, "linear_fc2")
            return (x - hf.model.multi_modal_projector(features)).abs().max().item()

    assert projected() < TOLERANCE
    notices(projected, projection, ["linear_fc1.layer_norm_weight", "linear_fc2.weight"])


class OfMegatron(torch.nn.Module):
    """Takes the place of a module of transformers, and computes from Megatron's tensors."""

    def __init__(self, compute):
        super().__init__()
        self.compute = compute

    def forward(self, x, *_, **named):
        return self.compute(x, **named)


def merged(x, tensors, after):
    """Four patches become one; the norm comes before that, or `after`."""
    width = tensors["linear_fc1.weight"].shape[0]
    names = [("patch_norm.weight", "patch_norm.bias")]
    x = norm(x.view(-1, width) if after else x, tensors, names).view(-1, width)
    return linear(F.gelu(linear(x, tensors, "linear_fc1")), tensors, "linear_fc2")


@pytest.mark.parametrize("name", ["qwen3_vl", "qwen3_vl_moe", "qwen3_5_vl"])
def test_qwen_towers(converted, name):
    """What lies where, and its rotation, is left to the tower of transformers."""
    hf, made = converted(name)
    theirs, tower = hf.model.visual, part(made, "vision_model.")
    grid = torch.tensor([[1, 4, 6]])
    patches = random(24, 3 * 2 * 4 * 4)
    with torch.no_grad():
        expected = theirs(patches, grid)
    deepstack = part(tower, "decoder.deepstack_merger_list.")
    tower = {key: value for key, value in tower.items() if "deepstack" not in key}

    def gelu(x):
        return F.gelu(x, approximate="tanh")

    def block(i):
        return lambda x, position_embeddings, **_: vision_layer(
            x, layers_of(tower)[i], 6, gelu, position_embeddings
        )

    def embed(x):
        weight = tower["patch_embed.proj.weight"]
        return F.linear(x, weight.flatten(1), tower["patch_embed.proj.bias"])

    theirs.patch_embed = OfMegatron(embed)
    theirs.blocks = torch.nn.ModuleList(OfMegatron(block(i)) for i in range(3))
    theirs.merger = OfMegatron(lambda x: merged(x, part(tower, "merger."), after=False))
    if deepstack:
        theirs.deepstack_merger_list = torch.nn.ModuleList(
            OfMegatron(lambda x, i=i: merged(x, {k: v[i] for k, v in deepstack.items()}, True))
            for i in range(2)
        )

    def difference():
        with torch.no_grad():
            theirs.pos_embed.weight.copy_(tower["pos_embed.weight"])
            ours = theirs(patches, grid)
        pairs = [(ours.pooler_output, expected.pooler_output)]
        if deepstack:
            pairs += zip(ours.deepstack_features, expected.deepstack_features, strict=True)
        return max((one - other).abs().max().item() for one, other in pairs)

    assert difference() < TOLERANCE
    stem = "decoder.layers."
    changed = [f"{stem}self_attention.linear_qkv.weight", f"{stem}mlp.linear_fc1.bias"]
    changed += ["merger.linear_fc2.bias", "pos_embed.weight", "patch_embed.proj.weight"]
    notices(difference, tower, changed)
    notices(difference, deepstack, ["patch_norm.weight"] if deepstack else [])


GRID = (torch.tensor([[1, 4, 4]]),)
WHOLE_TOWERS = {
    "qwen2_vl": ("visual.", "visual", (16, 3 * 2 * 4 * 4), GRID),
    "qwen2_5_vl": ("visual.", "visual", (16, 3 * 2 * 4 * 4), GRID),
    "glm4_5v": ("visual.", "visual", (16, 3 * 2 * 4 * 4), GRID),
    "gemma3_vl": ("vision_tower.", "vision_tower", (2, 3, 28, 28), ()),
}


@pytest.mark.parametrize("name", WHOLE_TOWERS)
def test_towers_as_they_are(converted, name):
    """As Megatron-Bridge's model has them: the tower of transformers takes the tensors, strictly."""
    prefix, attribute, shape, rest = WHOLE_TOWERS[name]
    hf, made = converted(name)
    tower, pixels = getattr(hf.model, attribute), random(*shape)
    with torch.no_grad():
        expected = tower(pixels, *rest).last_hidden_state
        for parameter in tower.parameters():
            parameter.fill_(float("nan"))
        tower.load_state_dict(part(made, prefix), strict=True)
        assert torch.equal(tower(pixels, *rest).last_hidden_state, expected)


def test_projection_of_gemma(converted):
    hf, made = converted("gemma3_vl")
    projection = part(made, "multi_modal_projector.")
    features = random(2, 4, 36)
    with torch.no_grad():
        expected = hf.model.multi_modal_projector(features)
        weight = 1 + projection["mm_soft_embed_norm.weight"]
        x = F.rms_norm(features, weight.shape, weight, hf.config.vision_config.layer_norm_eps)
        ours = F.linear(x, projection["proj.weight"])
    assert (ours - expected).abs().max() < TOLERANCE
    assert expected.std() > NOTICED


@pytest.mark.parametrize("name", ["llava", "llava_next", "llava_onevision"])
def test_projections_of_llava(converted, name):
    hf, made = converted(name)
    projection, features = part(made, "vision_projection.encoder."), random(5, 36)

    def difference():
        with torch.no_grad():
            x = linear(F.gelu(linear(features, projection, "linear_fc1")), projection, "linear_fc2")
            return (x - hf.model.multi_modal_projector(features)).abs().max().item()

    assert difference() < TOLERANCE
    notices(difference, projection, ["linear_fc1.weight", "linear_fc2.bias"])


# Those whose language models Megatron-Core 0.16 builds; test_same_outputs_newer.py has the others. Text
# has the same place in all dimensions.
LANGUAGES = [
    name
    for name in CASES
    if "vision_config" in CASES[name][2] and not name.startswith(("qwen3_5", "gemma3", "exaone4_5"))
]
# Their types, which docs/families.md looks for.
TYPES = {
    "glm4v_moe", "internvl", "llava", "llava_next", "llava_onevision", "qwen2_5_vl", "qwen2_vl", "qwen3_vl",
    "qwen3_vl_moe",
}  # fmt: skip
assert TYPES == {CASES[name][0] for name in LANGUAGES}


@pytest.mark.parametrize("name", LANGUAGES)
def test_language_models(converted, megatron, tmp_path, name):
    import megatron_from_args

    hf, made = converted(name)
    args = megatron_from_args.read_arguments(checkpoints.iteration_folder(tmp_path / "out"))
    kind = {"mrope": "rope"}.get(args.position_embedding_type, args.position_embedding_type)
    args = argparse.Namespace(**{**vars(args), "position_embedding_type": kind})
    model, tensors = megatron_from_args.build(args), part(made, "language_model.")
    megatron.fill(model, tensors)
    assert megatron.assert_holds(model, tensors) == tensors.keys()
    ids = torch.randint(8, 500, (2, 60), generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = hf(input_ids=ids).logits
        ours = model(ids, torch.arange(60).expand_as(ids), None)
    assert expected.std() > 1
    assert (ours - expected).abs().max() < 4 * TOLERANCE
