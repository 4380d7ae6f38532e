# SPDX-License-Identifier: Apache-2.0
"""Small models of the real transformers library, with sizes that no golden file has."""
import copy
import json
import os

# A test that needs the network is a test of the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from hf_further_sizes import FURTHER_SIZES  # noqa: E402
from hf_newer_sizes import NEWER_SIZES  # noqa: E402
from hf_sizes import FAMILY_SIZES, SIZES  # noqa: E402

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# With these values no token of the tests is nearer than 7e-5 to the choice of another expert, so
# rounding, which differs between processors, decides nothing.
SEED = 34
EAGER = dict(attn_implementation="eager", experts_implementation="eager")


def fill(model):
    """Random values that all matter: norms away from 1, biases away from 0, decided attention,
    and experts that are all chosen by some token."""
    generator = torch.Generator().manual_seed(SEED)
    with torch.no_grad():
        for name, tensor in model.state_dict().items():
            if name.endswith((".slope_rate", "_decay")):
                continue  # a table that the model computes
            if not tensor.is_floating_point():
                # Which experts a token has: two different ones of the first six.
                tensor.copy_(torch.arange(tensor.numel()).view(tensor.shape) % 6)
                continue
            values = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                values *= 1.5 * tensor.shape[-1] ** -0.5
            elif "norm" in name:
                values = 1 + 0.25 * values
            elif "correction" in name or "expert_bias" in name:
                values *= 0.1
            else:
                values *= 0.5
            tensor.copy_(values)


def t5_with_a_head(folder, settings, dtype=torch.float32):
    """T5 1.1 as it is published: its head is not the embedding, which transformers 5 believes only
    where it finds one. Returns the model, whose configuration lacks what that made of it."""
    config = transformers.AutoConfig.for_model("t5", **settings, tie_word_embeddings=False)
    config._attn_implementation = "eager"
    model = transformers.T5ForConditionalGeneration._from_config(config, dtype=dtype).eval()
    model.lm_head.weight = torch.nn.Parameter(model.lm_head.weight.detach().clone())
    fill(model)
    folder.mkdir(parents=True)
    written = dict(json.loads(config.to_json_string(use_diff=False)), tie_word_embeddings=False)
    written.update(architectures=["T5ForConditionalGeneration"], torch_dtype=str(dtype)[6:])
    del written["scale_decoder_outputs"]
    (folder / "config.json").write_text(json.dumps(written))
    tensors = {
        key: value.contiguous()
        for key, value in model.state_dict().items()
        if not key.endswith("embed_tokens.weight")
    }
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return model


INTERNLM2_NAMES = (
    ("embed_tokens.", "tok_embeddings."),
    ("lm_head.", "output."),
    ("self_attn.o_proj.", "attention.wo."),
    ("input_layernorm.", "attention_norm."),
    ("post_attention_layernorm.", "ffn_norm."),
    ("mlp.gate_proj.", "feed_forward.w1."),
    ("mlp.up_proj.", "feed_forward.w3."),
    ("mlp.down_proj.", "feed_forward.w2."),
)


def internlm2_tensors(tensors, groups):
    """Llama's tensors as InternLM 2 publishes them: by each group's queries, key and value."""
    made = {}
    for name, tensor in tensors.items():
        if ".q_proj." in name:
            parts = [tensors[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            by_group = [part.unflatten(0, (groups, -1)) for part in parts]
            tensor = torch.cat(by_group, dim=1).flatten(0, 1)
            name = name.replace("self_attn.q_proj.", "attention.wqkv.")
        elif ".k_proj." in name or ".v_proj." in name:
            continue
        for old, new in INTERNLM2_NAMES:
            name = name.replace(old, new)
        made[name] = tensor
    return made


def as_internlm2(tensors, config):
    config["bias"] = config.pop("attention_bias")
    for unknown in ("head_dim", "mlp_bias"):
        del config[unknown]
    return internlm2_tensors(tensors, config["num_key_value_heads"])


def as_internlm3(tensors, config):
    biases = {name.split(".")[-2] for name in tensors if name.endswith(".bias")}
    config["qkv_bias"], config["bias"] = "q_proj" in biases, "up_proj" in biases
    return tensors


def without_bias(tensors, config):
    for key in ("routed_scaling_factor", "n_group", "topk_group", "use_qk_norm", "partial_rotary_factor"):
        config.pop(key, None)
    config["rope_parameters"].pop("partial_rotary_factor", None)
    config["norm_topk_prob"] = False
    return {name: tensors[name] for name in tensors if not name.endswith("correction_bias")}


BAILING_NAMES = (
    ("embed_tokens.", "word_embeddings."),
    ("self_attn.q_proj.", "attention.query_key_value."),
    ("self_attn.o_proj.", "attention.dense."),
)


def as_bailing_moe(tensors, config):
    """Ling's names: queries, keys and values in one tensor."""
    made = {}
    for name, tensor in without_bias(tensors, config).items():
        if ".k_proj." in name or ".v_proj." in name:
            continue
        if ".q_proj." in name:
            parts = [tensors[name.replace("q_proj", f"{part}_proj")] for part in "qkv"]
            tensor = torch.cat(parts)
        for old, new in BAILING_NAMES:
            name = name.replace(old, new)
        made[name] = tensor
    config.update(
        num_experts=config.pop("n_routed_experts"),
        num_shared_experts=config.pop("n_shared_experts"),
        norm_topk_prob=True,
        use_qkv_bias=False,
        use_bias=False,
        norm_head=False,
    )
    return made


def as_minicpm(tensors, config):
    for unknown in ("head_dim", "mlp_bias", "attention_bias"):
        del config[unknown]
    config.update(scale_emb=12, scale_depth=1.4, dim_model_base=36)
    return tensors


# Models that transformers lacks compute what one of its own does: its type, how files differ.
REWRITTEN = {
    "internlm2": ("llama", as_internlm2),
    "internlm3": ("llama", as_internlm3),
    "deepseek_moe": ("glm4_moe", without_bias),
    "minicpm": ("llama", as_minicpm),
    "bailing_moe": ("glm4_moe", as_bailing_moe),
}
ARCHITECTURES = {
    "deepseek_moe": "DeepseekForCausalLM",
    "bailing_moe": "BailingMoeForCausalLM",
    "minicpm": "MiniCPMForCausalLM",
}


def rewrite(folder, model_type, change):
    config = json.loads((folder / "config.json").read_text())
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
        file.unlink()
    (folder / "model.safetensors.index.json").unlink(missing_ok=True)
    tensors = change(tensors, config)
    name = model_type.replace("internlm", "InternLM") + "ForCausalLM"
    architecture = ARCHITECTURES.get(model_type, name)
    config.update(model_type=model_type.replace("deepseek_moe", "deepseek"))
    config.update(architectures=[architecture])
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def auto_class(config):
    """transformers has Mistral 4's text model among those that see."""
    if type(config) in transformers.AutoModelForCausalLM._model_mapping:
        return transformers.AutoModelForCausalLM
    return transformers.AutoModelForImageTextToText


def create(folder, model_type, dtype=torch.float32, packed=False, **settings):
    """Saves a new model in `folder`; returns it as it was saved, but computing in float32."""
    wanted = model_type
    model_type, change = REWRITTEN.get(wanted, (wanted, None))
    # A copy, because transformers adds to what it is given.
    known = {**NEWER_SIZES, **FURTHER_SIZES, **FAMILY_SIZES}.get(model_type, SIZES)
    sizes = copy.deepcopy({**known, **settings})
    config = transformers.AutoConfig.for_model(model_type, **sizes)
    model = auto_class(config).from_config(config, dtype=dtype, **EAGER)
    fill(model)
    # Several files, as models that are downloaded have; experts one by one or packed.
    model.save_pretrained(folder, max_shard_size="300KB", save_original_format=not packed)
    if change is not None:
        rewrite(folder, wanted, change)
    return model.float().eval()


def create_form(folder, case, form):
    """Writes a model as it was `published`, or as transformers' `modules` have it. A case: a model
    type, a class, settings of the config."""
    model_type, architecture, settings = copy.deepcopy(case)
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = getattr(transformers, architecture)._from_config(config, dtype=torch.bfloat16)
    fill(model)
    model.save_pretrained(folder, save_original_format=form == "published")


def tensors_of(folder):
    """All tensors of a model, by name."""
    tensors = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors.update(load_file(file))
    return tensors


def load(folder):
    """The model of a folder, by its own config.json."""
    config = transformers.AutoConfig.from_pretrained(folder)
    auto = auto_class(config)
    # Its default is a token of the real model, beyond the few that there are here.
    config.pad_token_id = None
    weights = auto.from_pretrained(folder, config=config, dtype=torch.float32).state_dict()
    # A second model, because from_pretrained starts from tensors without memory, and the stand-ins
    # for CUDA keep it from computing the rotary frequencies.
    model = auto.from_config(config, dtype=torch.float32, **EAGER)
    model.load_state_dict(weights)
    return model.eval()


def tokens(vocab_size):
    """Enough positions for slow rotations to be seen, and for every expert to be chosen."""
    generator = torch.Generator().manual_seed(2)
    return torch.randint(0, vocab_size, (2, 150), generator=generator)


def logits(model, vocab_size):
    with torch.no_grad():
        return model(tokens(vocab_size)).logits[..., :vocab_size]
