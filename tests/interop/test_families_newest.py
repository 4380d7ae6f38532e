# SPDX-License-Identifier: Apache-2.0
"""Families whose layers are of no form that Megatron-Core computes as yet, or that read and write:
there and back by torch_dist, legacy and MIMO, with a config.json alone and from arguments."""
import copy
import json
import shutil

import pytest
import torch
import transformers
from safetensors.torch import save_file

import checkpoints
import family_rounds
import hf_models
import hf_sizes

TEXT = dict(
    vocab_size=510,
    hidden_size=72,
    intermediate_size=104,
    num_hidden_layers=4,
    num_attention_heads=6,
    max_position_embeddings=256,
    pad_token_id=1,
    bos_token_id=1,
    eos_token_id=2,
)
HEADS = dict(num_key_value_heads=2, head_dim=20)
LATENT = dict(q_lora_rank=28, kv_lora_rank=24, qk_nope_head_dim=14, v_head_dim=18)
INDEXED = dict(
    n_routed_experts=6,
    n_shared_experts=1,
    num_experts_per_tok=2,
    moe_intermediate_size=40,
    index_n_heads=2,
    index_head_dim=16,
    hc_mult=3,
    mlp_layer_types=["dense", "sparse", "sparse", "sparse"],
)
TOWER = dict(
    depth=2, hidden_size=48, intermediate_size=52, num_heads=6, out_hidden_size=72, patch_size=4
)

# name: model type, class, configuration
CASES = {
    "hy_v4": (
        "hy_v4",
        "HYV4ForCausalLM",
        dict(
            TEXT,
            **LATENT,
            **INDEXED,
            qk_rope_head_dim=8,
            indexer_types=["full", "full", "shared", "shared"],
        ),
    ),
    "glm5_next": (
        "glm5_next",
        "Glm5NextForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT,
                **LATENT,
                **INDEXED,
                num_key_value_heads=6,
                qk_rope_head_dim=0,
                index_topk=32,
                index_kpool=4,
                linear_num_heads=4,
                linear_head_dim=10,
                linear_conv_kernel_dim=3,
                layer_types=[*["linear_attention"] * 2, *["indexed_attention"] * 2],
                indexer_types=["full", "full", "full", "shared"],
            ),
            vision_config=dict(TOWER, projection_intermediate_size=44),
        ),
    ),
    "qwen4_exp": (
        "qwen4_exp",
        "Qwen4ExpForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT,
                **HEADS,
                **hf_sizes.LINEAR_ATTENTION,
                num_experts=6,
                num_experts_per_tok=2,
                moe_intermediate_size=40,
                shared_expert_intermediate_size=28,
                layer_types=["linear_attention", "indexed_attention"] * 2,
                hc_count=3,
                hc_lowrank=10,
                ple_layer_ids=[1],
                ple_embed_dim=16,
                ngram_size=3,
                heads_per_ngram=2,
                ngram_vocab_size_base=30,
                make_ngram_vocab_size_divisible_by=4,
                split_ngram_parts=2,
                indexer_n_heads=2,
                indexer_kv_heads=1,
                indexer_head_dim=16,
                indexer_budget=8,
                indexer_compress_ratio=2,
                rope_parameters=dict(
                    rope_type="default",
                    rope_theta=5000.0,
                    partial_rotary_factor=0.5,
                    mrope_section=[2, 2, 1],
                ),
            ),
            vision_config=dict(TOWER, num_position_embeddings=49),
        ),
    ),
    "granitemoe_swa": (
        "granitemoe_swa",
        "GraniteMoeSWAForCausalLM",
        dict(
            TEXT,
            **HEADS,
            num_local_experts=6,
            num_experts_per_tok=2,
            shared_intermediate_size=28,
            sliding_window=16,
        ),
    ),
    "muse_glimmer": (
        "muse_glimmer",
        "MuseGlimmerForConditionalGeneration",
        dict(
            text_config=dict(TEXT, **HEADS),
            vision_config=dict(
                patch_size=4,
                pos_emb_height=4,
                pos_emb_width=5,
                num_attention_heads=6,
                num_hidden_layers=2,
                hidden_size=48,
                intermediate_size=52,
            ),
            out_hidden_size=192,
            projector_hidden_size=60,
        ),
    ),
    "minicpmv4_6": (
        "minicpmv4_6",
        "MiniCPMV4_6ForConditionalGeneration",
        dict(
            text_config=dict(
                TEXT,
                **HEADS,
                **hf_sizes.LINEAR_ATTENTION,
                model_type="qwen3_5_text",
                layer_types=["linear_attention", "full_attention"] * 2,
            ),
            vision_config=dict(hf_sizes.VIT),
            insert_layer_id=1,
        ),
    ),
    "opt_post_norm": (  # the form of the 350M alone
        "opt",
        "OPTForCausalLM",
        dict(
            vocab_size=510,
            hidden_size=72,
            ffn_dim=104,
            num_hidden_layers=4,
            num_attention_heads=6,
            max_position_embeddings=62,
            word_embed_proj_dim=36,
            do_layer_norm_before=False,
        ),
    ),
    "megatron_bert": (
        "megatron-bert",
        "MegatronBertForPreTraining",
        dict({**TEXT, "max_position_embeddings": 64}),
    ),
}
CASES["qwen4_exp_text"] = (
    "qwen4_exp_text", "Qwen4ExpForCausalLM", CASES["qwen4_exp"][2]["text_config"]
)  # fmt: skip
T5 = dict(hf_sizes.T5_SIZES, num_layers=4)
HAVE_EXPERTS = ("hy_v4", "glm5_next", "qwen4_exp", "qwen4_exp_text", "granitemoe_swa", "kimi_k3")
TOWERS = ("glm5_next", "qwen4_exp", "muse_glimmer", "minicpmv4_6", "ovis2_5")


def build(folder, name):
    """Saves a random model of a case in `folder` and returns its tensors."""
    model_type, architecture, settings = copy.deepcopy(CASES[name])  # transformers changes them
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = getattr(transformers, architecture)._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    # What transformers writes of Hy4 as published names, it does not read again.
    model.save_pretrained(folder, save_original_format=name != "hy_v4")
    return checkpoints.load_hf(folder)


def kimi_k3(folder):
    """Tensors of the published names: the second layer attends to latent keys, the first is dense."""
    shapes = {
        "model.embed_tokens.weight": (510, 72),
        "model.norm.weight": (72,),
        "lm_head.weight": (510, 72),
        "model.output_attn_res_norm.weight": (72,),
        "model.output_attn_res_proj.weight": (1, 72),
    }
    for number in range(3):
        layer = f"model.layers.{number}."
        for part in ("input_layernorm", "post_attention_layernorm"):
            shapes[f"{layer}{part}.weight"] = (72,)
        for part in ("self_attention", "mlp"):
            shapes[f"{layer}{part}_res_norm.weight"] = (72,)
            shapes[f"{layer}{part}_res_proj.weight"] = (1, 72)
        attention = layer + "self_attn."
        if number == 1:
            parts = dict(q_a_proj=(28, 72), q_a_layernorm=(28,), q_b_proj=(6 * 22, 28))
            parts.update(kv_a_proj_with_mqa=(32, 72), kv_a_layernorm=(24,), kv_b_proj=(6 * 32, 24))
            parts.update(g_proj=(6 * 18, 72), o_proj=(72, 6 * 18))
        else:
            parts = {f"{part}_proj": (40, 72) for part in "qkvg"}
            parts.update({f"{part}_conv1d": (40, 1, 3) for part in "qkv"})
            parts.update(f_a_proj=(10, 72), f_b_proj=(40, 10), b_proj=(4, 72))
            parts.update(o_norm=(10,), o_proj=(72, 40))
            shapes.update({attention + "A_log": (4,), attention + "dt_bias": (40,)})
        shapes.update({f"{attention}{part}.weight": shape for part, shape in parts.items()})
        wide = dict(gate_proj=(104, 72), up_proj=(104, 72), down_proj=(72, 104))
        if number == 0:
            shapes.update({f"{layer}mlp.{part}.weight": wide[part] for part in wide})
            continue
        moe = layer + "block_sparse_moe."
        shapes[moe + "gate.weight"] = (6, 72)
        shapes[moe + "gate.e_score_correction_bias"] = (6,)
        shapes[moe + "routed_expert_down_proj.weight"] = (44, 72)
        shapes[moe + "routed_expert_norm.weight"] = (44,)
        shapes[moe + "routed_expert_up_proj.weight"] = (72, 44)
        for part, shape in dict(gate_proj=(40, 72), up_proj=(40, 72), down_proj=(72, 40)).items():
            shapes[f"{moe}shared_experts.{part}.weight"] = shape
        for expert in range(6):
            for part, shape in dict(w1=(40, 44), w3=(40, 44), w2=(44, 40)).items():
                shapes[f"{moe}experts.{expert}.{part}.weight"] = shape
    generator = torch.Generator().manual_seed(5)
    tensors = {}
    for name, shape in shapes.items():
        values = torch.randn(shape, generator=generator)
        is_float = name.endswith(("A_log", "dt_bias", "e_score_correction_bias"))
        tensors["language_model." + name] = values if is_float else values.bfloat16()
        if name.endswith("A_log"):  # with room for heads that are not there
            padded = torch.cat([values, torch.zeros(3)])
            tensors["language_model." + name] = padded
    for name in ("vision_tower.encoder.blocks.0.wqkv.weight", "mm_projector.proj.0.weight"):
        tensors[name] = torch.randn((24, 36), generator=generator).bfloat16()
    text = dict(
        {**{key: TEXT[key] for key in TEXT if not key.endswith("token_id")}, "num_hidden_layers": 3},
        **LATENT,
        qk_rope_head_dim=8,
        num_key_value_heads=6,
        moe_intermediate_size=40,
        routed_expert_hidden_size=44,
        num_experts=6,
        num_shared_experts=1,
        num_experts_per_token=2,
        num_expert_group=1,
        topk_group=1,
        first_k_dense_replace=1,
        moe_layer_freq=1,
        moe_router_activation_func="sigmoid",
        hidden_act="situ",
        rms_norm_eps=1e-5,
        attn_res_block_size=2,
        linear_attn_config=dict(
            kda_layers=[1, 3],
            full_attn_layers=[2],
            num_heads=4,
            head_dim=10,
            short_conv_kernel_size=3,
            gate_lower_bound=-5.0,
        ),
    )
    config = dict(
        architectures=["KimiK3ForConditionalGeneration"],
        model_type="kimi_k3",
        text_config=text,
        vision_config=dict(hidden_size=36),
        tie_word_embeddings=False,
        torch_dtype="bfloat16",
    )
    hf = folder
    hf.mkdir(parents=True)
    (hf / "config.json").write_text(json.dumps(config))
    save_file(tensors, hf / "model.safetensors", metadata={"format": "pt"})
    return tensors


def ovis2_5(folder):
    """Qwen 3 by Ovis' names, and some tensors of a visual tokenizer."""
    settings = dict({**TEXT, **HEADS}, tie_word_embeddings=False)
    config = transformers.AutoConfig.for_model("qwen3", **settings)
    model = transformers.Qwen3ForCausalLM._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    tensors = {"llm." + key: value.contiguous() for key, value in model.state_dict().items()}
    generator = torch.Generator().manual_seed(6)
    vit = "visual_tokenizer.vit.vision_model.encoder.layers.0."
    for name in (vit + "mlp.fc1.weight", vit + "self_attn.out_proj.weight",
                 "visual_tokenizer.head.0.weight", "vte.weight"):  # fmt: skip
        tensors[name] = torch.randn((24, 72), generator=generator).bfloat16()
    text = dict(json.loads(config.to_json_string()), architectures=["Qwen3ForCausalLM"])
    written = dict(
        architectures=["Ovis2_5"],
        model_type="ovis2_5",
        llm_config=text,
        vit_config=dict(model_type="siglip2_navit", hidden_size=72),
        visual_vocab_size=24,
        tie_word_embeddings=False,
        torch_dtype="bfloat16",
    )
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(written))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return tensors


def t5(folder):
    hf_models.t5_with_a_head(folder, T5, torch.bfloat16)
    return checkpoints.load_hf(folder)


WRITTEN = {"kimi_k3": kimi_k3, "ovis2_5": ovis2_5, "t5": t5}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """The folder of a case and its tensors."""
    made = {}

    def make(name):
        if name not in made:
            folder = tmp_path_factory.mktemp(name) / "hf"
            tensors = build(folder, name) if name in CASES else WRITTEN[name](folder)
            made[name] = folder, tensors
        return made[name]

    return make


ALL = [*CASES, *WRITTEN]


@pytest.mark.parametrize("name", ALL)
def test_there_and_back(shardwright, tmp_path, models, name):
    """By one layout and by another, which hold the same tensors."""
    hf, source = models(name)
    experts = ("--ep", 2) if name in HAVE_EXPERTS else ()
    stages = 3 if name == "kimi_k3" else 2
    made = []
    for number, layout in enumerate(((), ("--tp", 2, "--pp", stages, *experts))):
        out = tmp_path / str(number)
        pad = ("--make-vocab-size-divisible-by", 1)
        shardwright("convert", hf, out, "--to", "torch_dist", *layout, *pad)
        made.append(checkpoints.load_dcp(out))
        shardwright("convert", out, tmp_path / f"back{number}", "--to", "hf")
        checkpoints.assert_same(checkpoints.load_hf(tmp_path / f"back{number}"), source)
    checkpoints.assert_same(made[1], made[0])
    family_rounds.of_local_modules(shardwright, hf, tmp_path)


def as_written_anew(name, source):
    """What a folder with nothing but config.json gives: a buffer that Megatron has as float32, norms
    that it keeps as w - 1, rounded, and nothing that legacy has no place for."""
    made = {}
    for key, value in source.items():
        if name == "kimi_k3" and not key.startswith("language_model."):
            continue
        if key.endswith("e_score_correction_bias"):
            value = value.float()
        made[key] = family_rounds.by_difference(key, value)
    return made


@pytest.mark.parametrize("name", ALL)
def test_through_legacy_with_a_config_alone(shardwright, tmp_path, models, name):
    hf, source = models(name)
    stages = ("--pp", 2) if name != "kimi_k3" else ()
    flags = ("--tp", 2, *stages, "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "legacy", "--to", "legacy", *flags)
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", checkpoints.load_hf(hf))
    (tmp_path / "config").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    back = checkpoints.load_hf(tmp_path / "back")
    checkpoints.assert_same(back, as_written_anew(name, source))


@pytest.mark.parametrize("name", ALL)
def test_from_arguments_alone(shardwright, tmp_path, models, name):
    hf, source = models(name)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist")
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    was, now = (json.loads((at / "config.json").read_text()) for at in (hf, tmp_path / "back"))
    assert now["architectures"] == was["architectures"]
    back = checkpoints.load_hf(tmp_path / "back")
    assert back.keys() == source.keys()
    assert all(back[key].shape == source[key].shape for key in source)


@pytest.mark.parametrize("name", TOWERS)
def test_parts_with_ranks_of_their_own(shardwright, tmp_path, models, name):
    hf, source = models(name)
    flags = ("--to", "mimo", "--component", "language=tp=2", "--component", "images=tp=1")
    shardwright("convert", hf, tmp_path / "mimo", *flags, "--make-vocab-size-divisible-by", 1)
    held = checkpoints.load_dcp(tmp_path / "mimo")
    roots = ("language_model.", "modality_submodules.images.", "hf_extra.")
    assert all(key.startswith(roots) for key in held)
    assert any(key.startswith(roots[1]) for key in held)
    shardwright("convert", tmp_path / "mimo", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)


def test_a_head_that_is_the_embedding_is_refused(shardwright, tmp_path):
    """Megatron-Core does not scale the logits as the first T5 does."""
    config = transformers.AutoConfig.for_model("t5", **T5)
    transformers.T5ForConditionalGeneration._from_config(config).save_pretrained(tmp_path / "hf")
    done = shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "scale_decoder_outputs" in done.stderr
    assert not (tmp_path / "out").exists()


def test_t5_1_1_as_transformers_saves_it_again(shardwright, tmp_path, models):
    """It says that head and embedding are one, whatever they are, and that logits are not scaled."""
    hf, source = models("t5")
    model = transformers.T5ForConditionalGeneration.from_pretrained(hf, dtype=torch.bfloat16)
    model.save_pretrained(tmp_path / "hf")
    config = json.loads((tmp_path / "hf" / "config.json").read_text())
    assert config["tie_word_embeddings"] and not config["scale_decoder_outputs"]
    saved = checkpoints.load_hf(tmp_path / "hf")
    assert not torch.equal(saved["lm_head.weight"], saved["shared.weight"])
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), saved)
    shardwright("convert", hf, tmp_path / "first", "--to", "torch_dist", "--tp", 2)
    made = [checkpoints.load_dcp(tmp_path / name) for name in ("out", "first")]
    checkpoints.assert_same(*made)


def test_heads_of_t5_that_differ_are_not_one(shardwright, tmp_path, models):
    hf, _ = models("t5")
    flags = ("--to", "legacy", "--make-vocab-size-divisible-by", 1)
    shardwright("convert", hf, tmp_path / "legacy", *flags)
    (file,) = (tmp_path / "legacy").glob("iter_*/mp_rank_00*/*.pt")
    saved = torch.load(file, weights_only=False)
    saved["model"]["output_layer.weight"][5] += 1
    torch.save(saved, file)
    back = ("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf")
    done = shardwright(*back, expect=2)
    assert "error[SW0403]: tensor output_layer.weight" in done.stderr
    shardwright(*back, "--accept-loss")


def into_megatron(shardwright, models, tmp_path, name):
    hf, source = models(name)
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist")
    return source, checkpoints.load_dcp(tmp_path / "out")


def test_norms_and_gates_by_names_of_their_own(shardwright, tmp_path, models):
    source, made = into_megatron(shardwright, models, tmp_path, "muse_glimmer")
    ours = "language_model.decoder.layers."
    for layer in range(4):
        theirs = f"model.language_model.layers.{layer}."
        gates = source[theirs + "self_attn.gate_proj.weight"]
        assert torch.equal(made[ours + "self_attention.gate_proj.weight"][layer], gates)
        for kind in ("attention", "feedforward"):
            norm = f"post_{kind}_layernorm.weight"
            assert torch.equal(made[ours + norm][layer], source[theirs + norm])
        norm = made[ours + "mlp.linear_fc1.layer_norm_weight"][layer]
        assert torch.equal(norm, source[theirs + "pre_feedforward_layernorm.weight"])


PUBLISHED_HY4 = (
    (".self_attn.gate_proj.", ".self_attn.linear_gate."),
    (".sinks", ".learnable_sink_param"),
    (".attn_hc.", ".hc_attn_layer.hc_pre.hc_"),
    (".ffn_hc.", ".hc_mlp_layer.hc_pre.hc_"),
    (".hc_head.hc_", ".hc_head.hc_head_"),
)


def test_both_names_of_hyper_connections(shardwright, tmp_path, models):
    source, made = into_megatron(shardwright, models, tmp_path, "hy_v4")
    for ours, theirs in (("self_attention", "attn"), ("mlp", "ffn")):
        at, there = f"decoder.layers.2.{ours}_hyper_connection.", f"model.layers.2.{theirs}_hc."
        assert torch.equal(made[at + "mapping_proj.weight"], source[there + "fn"])
        assert torch.equal(made[at + "bias"], source[there + "base"])
        assert torch.equal(made[at + "alpha_post"], source[there + "scale"][1:])
    assert "decoder.layers.1.self_attention.core_attention.indexer.linear_wk.weight" in made
    assert "decoder.layers.2.self_attention.core_attention.indexer.linear_wk.weight" not in made
    hf, _ = models("hy_v4")
    published = {}
    for name, tensor in source.items():
        for held, file in PUBLISHED_HY4:
            name = name.replace(held, file)
        published[name] = tensor
    published["model.mtp_layers.0.eh_proj.weight"] = torch.ones((72, 144)).bfloat16()
    assert len(published.keys() - source.keys()) > 30
    (tmp_path / "published").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "published")
    save_file(published, tmp_path / "published/model.safetensors", metadata={"format": "pt"})
    shardwright("convert", tmp_path / "published", tmp_path / "other", "--to", "torch_dist")
    other = checkpoints.load_dcp(tmp_path / "other")
    extra = {key: other.pop(key) for key in list(other) if key.startswith("hf_extra.")}
    assert list(extra) == ["hf_extra.model.mtp_layers.0.eh_proj.weight"]
    checkpoints.assert_same(other, made)
    shardwright("convert", tmp_path / "other", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), published)


PREDICTION = {
    "glm5_next": "model.language_model.layers.45.eh_proj.weight",
    "qwen4_exp": "mtp.fc.weight",
}


@pytest.mark.parametrize("name", PREDICTION)
def test_prediction_layers_are_kept(shardwright, tmp_path, models, name):
    hf, source = models(name)
    extra = {PREDICTION[name]: torch.ones((72, 144)).bfloat16()}
    (tmp_path / "more").mkdir()
    config = json.loads((hf / "config.json").read_text())
    config["text_config"]["num_nextn_predict_layers"] = 42  # layer 45 of the published model's 45
    (tmp_path / "more/config.json").write_text(json.dumps(config))
    file = tmp_path / "more/model.safetensors"
    save_file({**source, **extra}, file, metadata={"format": "pt"})
    done = shardwright("convert", tmp_path / "more", tmp_path / "out", "--to", "torch_dist")
    assert "hf_extra" in done.stdout + done.stderr
    assert f"hf_extra.{PREDICTION[name]}" in checkpoints.load_dcp(tmp_path / "out")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), {**source, **extra})


def test_convolutions_of_delta_attention(shardwright, tmp_path, models):
    """Three in published files and in Megatron, one in transformers."""
    source, made = into_megatron(shardwright, models, tmp_path, "glm5_next")
    theirs, ours = "model.language_model.layers.1.self_attn.", "language_model.decoder.layers.1.self_attention."
    for part in "qkv":
        assert torch.equal(made[f"{ours}{part}_conv1d.weight"], source[f"{theirs}{part}_conv1d.weight"])
    hf, _ = models("glm5_next")
    held = {}
    for name, tensor in source.items():
        if "q_conv1d" in name:
            parts = [source[name.replace("q_conv1d", f"{part}_conv1d")] for part in "qkv"]
            held[name.replace("q_conv1d", "conv1d")] = torch.cat(parts)
        elif "conv1d" not in name:
            held[name] = tensor
    (tmp_path / "held").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "held")
    save_file(held, tmp_path / "held/model.safetensors", metadata={"format": "pt"})
    shardwright("convert", tmp_path / "held", tmp_path / "other", "--to", "torch_dist")
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "other"), made)
    shardwright("convert", tmp_path / "other", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), held)


def test_padded_decays(shardwright, tmp_path, models):
    """Kimi K3's Megatron model has those of its heads; without the rest it is read as well."""
    source, made = into_megatron(shardwright, models, tmp_path, "kimi_k3")
    name = "language_model.model.layers.2.self_attn.A_log"
    assert torch.equal(made["decoder.layers.2.self_attention.A_log"], source[name][:4])
    assert torch.equal(made["decoder.layers.2.self_attention.A_log_padding"], torch.zeros(3))
    assert made["decoder.layers.2.mlp.experts.experts.linear_fc1.weight"].shape == (6, 80, 44)
    assert "decoder.layers.2.output_attn_res_proj.weight" in made
    hf, _ = models("kimi_k3")
    plain = {key: value[:4] if key.endswith("A_log") else value for key, value in source.items()}
    plain = {key: value.clone() for key, value in plain.items()}
    (tmp_path / "plain").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "plain")
    save_file(plain, tmp_path / "plain/model.safetensors", metadata={"format": "pt"})
    shardwright("convert", tmp_path / "plain", tmp_path / "other", "--to", "torch_dist")
    other = checkpoints.load_dcp(tmp_path / "other")
    kept = {key: value for key, value in made.items() if not key.endswith("A_log_padding")}
    checkpoints.assert_same(other, kept)


def test_projections_of_narrow_embeddings(shardwright, tmp_path, models):
    source, made = into_megatron(shardwright, models, tmp_path, "opt_post_norm")
    assert torch.equal(made["decoder.project_in.weight"], source["model.decoder.project_in.weight"])
    norm = made["decoder.layers.final_layer_norm.weight"][3]
    assert torch.equal(norm, source["model.decoder.layers.3.final_layer_norm.weight"])


def test_streams_in_place_of_norms(shardwright, tmp_path, models):
    source, made = into_megatron(shardwright, models, tmp_path, "qwen4_exp")
    theirs = "model.language_model.layers.1."
    ours = "language_model.decoder.layers.1."
    for part in ("attn_hyper_connection.hc_norm", "mlp_hyper_connection.input_mix_weight_up"):
        assert torch.equal(made[f"{ours}{part}.weight"], source[f"{theirs}{part}.weight"])
    indexer = "indexer.index_qk_proj.weight"
    at = f"{ours}self_attention.{indexer}"
    assert torch.equal(made[at], source[f"{theirs}self_attn.{indexer}"])
