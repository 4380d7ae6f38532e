# SPDX-License-Identifier: Apache-2.0
"""Small models of the real transformers library, with sizes that no golden file has."""
import os

# A test that needs the network is a test of the network.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
import transformers  # noqa: E402

transformers.utils.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()

# Nothing here is a power of two or a multiple of what else there is: heads are not hidden / heads
# wide, three layers, a vocabulary that only 7 and 73 divide.
SIZES = dict(
    vocab_size=511,
    hidden_size=72,
    intermediate_size=104,
    num_hidden_layers=3,
    num_attention_heads=6,
    num_key_value_heads=3,
    head_dim=20,
    max_position_embeddings=256,
    # Neither transformers' default nor Megatron's, and large enough to be seen in the outputs.
    rms_norm_eps=1e-3,
    rope_parameters={"rope_type": "default", "rope_theta": 5000.0},
)
MOE_SIZES = dict(SIZES, num_experts_per_tok=2, moe_intermediate_size=40)
MLA_SIZES = dict(
    MOE_SIZES,
    num_key_value_heads=6,
    kv_lora_rank=28,
    q_lora_rank=44,
    qk_nope_head_dim=12,
    qk_rope_head_dim=8,
    v_head_dim=20,
    n_routed_experts=6,
    n_shared_experts=2,
    first_k_dense_replace=1,
    routed_scaling_factor=1.7,
    # transformers gives the norms inside the attention this one, whatever the configuration says.
    rms_norm_eps=1e-6,
)
del MLA_SIZES["head_dim"]  # it is qk_rope_head_dim there

FAMILY_SIZES = {
    "mixtral": dict(SIZES, num_local_experts=6),
    "qwen3_moe": dict(MOE_SIZES, num_experts=6, norm_topk_prob=True),
    "deepseek_v2": MLA_SIZES,
    # As real ones have it, two experts count for each group that is chosen.
    "deepseek_v3": dict(MLA_SIZES, n_group=2, topk_group=1, num_nextn_predict_layers=0),
}
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
            values = torch.randn(tensor.shape, generator=generator)
            if tensor.dim() > 1:
                values *= 1.5 * tensor.shape[-1] ** -0.5
            elif "norm" in name:
                values = 1 + 0.25 * values
            elif "correction" in name:
                values *= 0.1
            else:
                values *= 0.5
            tensor.copy_(values)


def create(folder, model_type, dtype=torch.float32, packed=False, **settings):
    """Saves a new model in `folder`; returns it as it was saved, but computing in float32."""
    sizes = {**FAMILY_SIZES.get(model_type, SIZES), **settings}
    config = transformers.AutoConfig.for_model(model_type, **sizes)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, **EAGER)
    fill(model)
    # Several files, as models that are downloaded have; experts one by one or packed.
    model.save_pretrained(folder, max_shard_size="300KB", save_original_format=not packed)
    return model.float().eval()


def load(folder):
    """The model of a folder, by its own config.json."""
    auto = transformers.AutoModelForCausalLM
    config = transformers.AutoConfig.from_pretrained(folder)
    weights = auto.from_pretrained(folder, dtype=torch.float32).state_dict()
    # A second model, because from_pretrained starts from tensors without memory, and the stand-ins
    # for CUDA keep it from computing the rotary frequencies.
    model = auto.from_config(config, dtype=torch.float32, **EAGER)
    model.load_state_dict(weights)
    return model.eval()
