# SPDX-License-Identifier: Apache-2.0
"""What the tests of families do with each model: made, converted, compared with what comes back."""
import json
import shutil

import torch

import checkpoints
import hf_models


def imports(shardwright, tmp_path_factory, cases, finish):
    """Makes the folder of a case on demand, with the model in hf/ and its conversion in megatron/;
    where the model's experts are packed, it is in unpacked/ too, one by one. A case is a model type
    and settings; what `finish` has of its name changes the model's files."""
    made = {}

    def convert(name):
        if name not in made:
            root = tmp_path_factory.mktemp(name)
            model_type, settings = cases[name]
            settings = {"dtype": torch.bfloat16, **settings}
            base = "qwen2" if model_type == "mimo" else model_type
            hf_models.create(root / "hf", base, **settings)
            if settings.pop("packed", False):
                hf_models.create(root / "unpacked", base, **settings)
            if name in finish:
                finish[name](root / "hf")
            parallel = ("--tp", 2, "--pp", 2, "--ep", 2 if has_experts(root) else 1)
            vocabulary = ("--make-vocab-size-divisible-by", 1)
            flags = ("--to", "torch_dist", *parallel, *vocabulary)
            shardwright("convert", root / "hf", root / "megatron", *flags)
            made[name] = root
        return made[name]

    return convert


def in_forms(tmp_path_factory, cases, written=None):
    """Makes the folder of a case in one form on demand, and loads its tensors: `published`, or as
    transformers' `modules` have them. Cases: hf_models.create_form(); what `written` has of a name
    writes the files itself."""
    made = {}

    def make(name, form):
        if (name, form) not in made:
            folder = tmp_path_factory.mktemp(name) / "hf"
            if written and name in written:
                written[name](folder)
            else:
                hf_models.create_form(folder, cases[name], form)
            made[name, form] = folder, checkpoints.load_hf(folder)
        return made[name, form]

    return make


def both_forms(shardwright, models, tmp_path, name):
    """They are one model of Megatron's."""
    made = []
    for form in ("published", "modules"):
        shardwright("convert", models(name, form)[0], tmp_path / form, "--to", "torch_dist")
        made.append(checkpoints.load_dcp(tmp_path / form))
    checkpoints.assert_same(made[1], made[0])


def has_experts(root):
    return any("expert" in name for name in checkpoints.load_hf(root / "hf"))


def without_hf(source, target):
    shutil.copytree(source, target)
    shutil.rmtree(checkpoints.iteration_folder(target) / "hf")


def without_masks(tensors):
    """GPT-2's, which its code computes; nothing else is left out of any model."""
    return {name: tensor for name, tensor in tensors.items() if not name.endswith(".attn.bias")}


FLOAT32_BIASES = ("e_score_correction_bias", ".expert_bias", ".ffn.gate.bias")


def released_name(name):
    """DeepSeek-V4's, of a name under which transformers saves it."""
    name = name.removeprefix("model.").replace("embed_tokens.", "embed.").replace("hc_head.hc_", "hc_head_")
    return name.replace(".attn.norm.", ".attn.kv_norm.")


def known_form(root):
    """The tensors as a conversion writes them that does not know how they were imported."""
    folder = root / "unpacked" if (root / "unpacked").exists() else root / "hf"
    tensors = without_masks(checkpoints.load_hf(folder))
    if "wte.weight" in tensors:
        tensors = {"transformer." + name: tensor for name, tensor in tensors.items()}
    if "model.hc_head.hc_fn" in tensors:
        tensors = {released_name(name): tensor for name, tensor in tensors.items()}
    # transformers saves Kimi Linear's dense MLP under the name of its experts.
    for part in ("gate_proj", "up_proj", "down_proj"):
        tensors = {
            name.replace(f".block_sparse_moe.{part}.", f".mlp.{part}."): tensor
            for name, tensor in tensors.items()
        }
    # Megatron holds it as float32 always; transformers saves it in the model's dtype.
    return {
        name: tensor.float() if name.endswith(FLOAT32_BIASES) else tensor
        for name, tensor in tensors.items()
    }


def logits(folder):
    model = hf_models.load(folder)
    # Longer than the windows and than what YaRN starts from.
    ids = torch.arange(1, 201).reshape(2, 100) * 7 % 500
    with torch.no_grad():
        return model(ids).logits


def of_local_modules(shardwright, hf, tmp_path, *flags):
    """Megatron-Core's own modules call some norms otherwise, which is one model and comes back."""
    source = without_masks(checkpoints.load_hf(hf))
    whole, legacy, back = (tmp_path / f"local_{name}" for name in ("whole", "legacy", "back"))
    shardwright("convert", hf, whole, "--to", "torch_dist", "--spec", "local", *flags)
    assert digest(shardwright, whole) == digest(shardwright, hf)
    shardwright("convert", whole, back, "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(back), source)
    shardwright("convert", hf, legacy, "--to", "legacy", "--spec", "local", *flags)
    shardwright("verify", legacy)
    as_it_was(shardwright, legacy, source)


def digest(shardwright, path):
    lines = shardwright("hash", path).stdout.splitlines()
    return next(line for line in lines if "(model: " in line)


def there_and_back(shardwright, root, tmp_path):
    shardwright("convert", root / "megatron", tmp_path / "back", "--to", "hf")
    original = without_masks(checkpoints.load_hf(root / "hf"))
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), original)
    of_local_modules(shardwright, root / "hf", tmp_path)


def by_difference(name, tensor):
    """Megatron keeps these norms as w - 1, and rank files have no place for what that rounds away."""
    if not name.endswith("linear_attn.norm.weight"):
        return tensor
    return ((tensor - 1).float() + 1).to(tensor.dtype)


def as_it_was(shardwright, legacy, original):
    """What lies beside rank files tells the form that a model had. Only what Megatron has no place
    for does not come back, and the export says so. Takes away what told it."""
    back = legacy.with_name(legacy.name + "-back")
    told = shardwright("convert", legacy, back, "--to", "hf").stderr
    found = checkpoints.load_hf(back)
    keys = json.loads((checkpoints.iteration_folder(legacy) / "hf" / "source_keys.json").read_text())
    # A copy with values of its own that a model has to have comes back as what it is a copy of.
    whole = {name: by_difference(name, tensor) for name, tensor in original.items()}
    there = [name for name in keys["left_out"] if name in found]
    repeated = [name for name in there if not torch.equal(found[name], whole[name])]
    lost = [name for name in whole if name not in found or name in repeated]
    assert set(lost) <= set(keys["left_out"])
    if lost:
        assert "which had no place for what only Hugging Face stores" in told and any(name in told for name in lost)
    checkpoints.assert_same({n: t for n, t in found.items() if n not in repeated},
                            {n: t for n, t in whole.items() if n not in lost})  # fmt: skip
    shutil.rmtree(checkpoints.iteration_folder(legacy) / "hf")
    return lost


def through_legacy(shardwright, root, tmp_path):
    """Leaves in back/ what a config.json alone lets come back."""
    parallel = ("--tp", 2, "--pp", 3, "--ep", 3 if has_experts(root) else 1)
    shardwright("convert", root / "megatron", tmp_path / "legacy", "--to", "legacy", *parallel)
    lost = as_it_was(shardwright, tmp_path / "legacy", without_masks(checkpoints.load_hf(root / "hf")))
    assert {f"hf_extra.{name}" for name in lost} <= checkpoints.load_dcp(root / "megatron").keys()
    (tmp_path / "config").mkdir()
    shutil.copy(root / "hf" / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)


def from_arguments(shardwright, root, tmp_path, *flags):
    """The config.json that is made up describes a model that computes the same."""
    without_hf(root / "megatron", tmp_path / "megatron")
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf", *flags)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), known_form(root))
    torch.testing.assert_close(logits(tmp_path / "back"), logits(root / "hf"))
