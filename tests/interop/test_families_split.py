# SPDX-License-Identifier: Apache-2.0
"""Families each of whose layers is two in Megatron. DeepSeek-V4.1: tensors of the published names and shapes, there
and back, also as they are released, by the names that Megatron-Bridge's mappings have for them. DeepSeek-V4: what
Megatron-Bridge makes of it, back."""
import json
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file

import checkpoints
import family_rounds
import packed
import quantised
import test_families_prediction

HIDDEN, HEADS, WIDE, QUERY, GROUPS, RANK = 96, 4, 24, 40, 2, 16
EXPERTS, DRAFT_EXPERTS, FFN, STREAMS, VOCABULARY, MARKOV = 6, 4, 64, 3, 510, 20
INDEX_HEADS, INDEX = 2, 16
LAYERS, DRAFTS, TOWER = 4, 2, 48
MIXES = STREAMS * STREAMS + 2 * STREAMS
KEYS, QUERIES, TABLES = {1: 2, 2: 1}, (1, 2, 3), (1,)  # keys: the layers and their ratios
LAYOUT = ("--tp", 2, "--pp", 2, "--ep", 2, "--make-vocab-size-divisible-by", 1)

CONFIG = {
    "architectures": ["DeepseekV41ForCausalLM"],
    "model_type": "deepseek_v41",
    "image_token_id": 500,
    "torch_dtype": "bfloat16",
    "text_config": {
        "model_type": "deepseek_v41_text",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "moe_intermediate_size": FFN,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": HEADS,
        "num_key_value_heads": 1,
        "head_dim": WIDE,
        "qk_rope_head_dim": 8,
        "q_lora_rank": QUERY,
        "o_lora_rank": RANK,
        "o_groups": GROUPS,
        "hidden_act": "silu",
        "swiglu_limit": 10.0,
        "rms_norm_eps": 1e-20,
        "tie_word_embeddings": False,
        "max_position_embeddings": 256,
        "rope_theta": 10000,
        "rope_scaling": {
            "rope_type": "yarn",
            "factor": 16,
            "beta_fast": 32,
            "beta_slow": 1,
            "original_max_position_embeddings": 64,
        },
        "n_routed_experts": EXPERTS,
        "n_shared_experts": 1,
        "num_experts_per_tok": 2,
        "scoring_func": "sqrtsoftplus",
        "topk_method": "noaux_tc",
        "norm_topk_prob": True,
        "routed_scaling_factor": 1.5,
        "sliding_window": 7,
        "compress_ratios": [0, 2, 1, 1, 0, 0],
        "compress_rope_theta": 160000,
        "kv_source_layer_ids": list(KEYS),
        "index_source_layer_ids": list(QUERIES),
        "index_n_heads": INDEX_HEADS,
        "index_head_dim": INDEX,
        "index_topk": 8,
        "candidate_source_layer_id": 2,
        "candidate_topk_blocks": 4,
        "candidate_block_size": 2,
        "hc_mult": STREAMS,
        "hc_sinkhorn_iters": 20,
        "hc_eps": 1e-6,
        "engram_layer_ids": list(TABLES),
        "engram_num_embeddings": [37],
        "engram_max_ngram_size": 3,
        "engram_vocab_size": 7,
        "engram_n_heads": 2,
        "engram_head_dim": 64,
        "engram_pad_token_id": 2,
        "engram_compressed_vocab_size": 99,
        "num_nextn_predict_layers": DRAFTS,
        "dspark_block_size": 5,
        "dspark_noise_token_id": 501,
        "dspark_target_layer_ids": [2, 3],
        "dspark_markov_rank": MARKOV,
        "dspark_n_routed_experts": DRAFT_EXPERTS,
        "dspark_num_experts_per_tok": 2,
    },
    "vision_config": {
        "model_type": "deepseek_v41_vision",
        "num_hidden_layers": 2,
        "hidden_size": TOWER,
        "num_attention_heads": 4,
        "intermediate_size": 56,
        "patch_size": 4,
        "rope_theta": 10000,
        "downsample_ratio": 3,
        "max_image_tokens": 16,
        "min_pixels": 16,
        "max_wh_ratio": None,
    },
}


def mixes(prefix):
    yield f"{prefix}_fn", (MIXES, STREAMS * HIDDEN)
    yield f"{prefix}_base", (MIXES,)
    yield f"{prefix}_scale", (3,)


def layer(at, experts):
    """What layers of the model and drafts have alike."""
    yield f"{at}attn_norm.weight", (HIDDEN,)
    yield f"{at}attn.wq_a.weight", (QUERY, HIDDEN)
    yield f"{at}attn.q_norm.weight", (QUERY,)
    yield f"{at}attn.wq_b.weight", (HEADS * WIDE, QUERY)
    yield f"{at}attn.wkv.weight", (WIDE, HIDDEN)
    yield f"{at}attn.kv_norm.weight", (WIDE,)
    yield f"{at}attn.wo_a.weight", (GROUPS * RANK, HEADS * WIDE // GROUPS)
    yield f"{at}attn.wo_b.weight", (HIDDEN, GROUPS * RANK)
    yield f"{at}attn.attn_sink", (HEADS,)
    yield from mixes(at + "hc_attn")
    yield f"{at}ffn_norm.weight", (HIDDEN,)
    yield f"{at}ffn.gate.weight", (experts, HIDDEN)
    yield f"{at}ffn.gate.bias", (experts,)
    yield f"{at}ffn.gate.bias_vl", (experts,)
    for module in (*(f"experts.{expert}" for expert in range(experts)), "shared_experts"):
        yield f"{at}ffn.{module}.w1.weight", (FFN, HIDDEN)
        yield f"{at}ffn.{module}.w2.weight", (HIDDEN, FFN)
        yield f"{at}ffn.{module}.w3.weight", (FFN, HIDDEN)
    yield from mixes(at + "hc_ffn")


def text():
    yield "embed.weight", (VOCABULARY, HIDDEN)
    yield "norm.weight", (HIDDEN,)
    yield "head.weight", (VOCABULARY, HIDDEN)
    for number in range(LAYERS):
        at = f"layers.{number}."
        yield from layer(at, EXPERTS)
        if number in KEYS:
            yield f"{at}attn.compressor.wkv.weight", (WIDE, HIDDEN)
            yield f"{at}attn.compressor.norm.weight", (WIDE,)
            yield f"{at}attn.indexer.wk.weight", (INDEX, WIDE)
            yield f"{at}attn.indexer.k_norm.weight", (INDEX,)
        if KEYS.get(number) == 2:
            yield f"{at}attn.compressor.wgate.weight", (WIDE, HIDDEN)
        if number in QUERIES:
            yield f"{at}attn.indexer.wq_b.weight", (INDEX_HEADS * INDEX, QUERY)
            yield f"{at}attn.indexer.weights_proj.weight", (INDEX_HEADS, HIDDEN)
        if number in TABLES:
            yield f"{at}engram.embed.weight", (37, 64)
            yield f"{at}engram.wkv.weight", ((STREAMS + 1) * HIDDEN, 4 * 64)
            yield f"{at}engram.q_weight", (STREAMS, HIDDEN)
            yield f"{at}engram.k_weight", (STREAMS, HIDDEN)
    for number in range(DRAFTS):
        yield from layer(f"mtp.{number}.", DRAFT_EXPERTS)
    yield "mtp.0.main_proj.weight", (HIDDEN, 2 * HIDDEN)
    yield "mtp.0.main_norm.weight", (HIDDEN,)
    last = f"mtp.{DRAFTS - 1}."
    yield f"{last}norm.weight", (HIDDEN,)
    yield f"{last}markov_head.embed.weight", (VOCABULARY, MARKOV)
    yield f"{last}markov_head.head.weight", (VOCABULARY, MARKOV)
    yield f"{last}confidence_head.proj.weight", (1, HIDDEN + MARKOV)


def vision():
    for mark in ("start", "end", "newline"):
        yield f"image_{mark}", (HIDDEN,)
    yield "vision.patch_embed.proj.weight", (TOWER, 48)
    yield "vision.patch_embed.proj.bias", (TOWER,)
    yield "vision.norm.weight", (TOWER,)
    for number, (rows, columns) in ((1, (HIDDEN, 9 * TOWER)), (2, (HIDDEN, HIDDEN))):
        yield f"aligner.w{number}.weight", (rows, columns)
        yield f"aligner.w{number}.bias", (rows,)
    for number in range(2):
        at = f"vision.blocks.{number}."
        yield f"{at}norm1.weight", (TOWER,)
        yield f"{at}attn.wqkv.weight", (3 * TOWER, TOWER)
        yield f"{at}attn.wqkv.bias", (3 * TOWER,)
        yield f"{at}attn.wo.weight", (TOWER, TOWER)
        yield f"{at}attn.wo.bias", (TOWER,)
        yield f"{at}norm2.weight", (TOWER,)
        yield f"{at}mlp.w1.weight", (112, TOWER)
        yield f"{at}mlp.w2.weight", (TOWER, 56)


def filled(shapes):
    generator = torch.Generator().manual_seed(41)
    tensors = {}
    for name, shape in shapes:
        values = torch.randn(shape, generator=generator)
        is_float = ".hc_" in name or "gate.bias" in name or name.endswith("attn_sink")
        tensors[name] = values if is_float else values.bfloat16()
    return tensors


def write(folder, tensors, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    tensors = filled([*text(), *vision()])
    return write(tmp_path_factory.mktemp("v41") / "hf", tensors, CONFIG), tensors


@pytest.fixture(scope="module")
def imported(shardwright, tmp_path_factory, model):
    out = tmp_path_factory.mktemp("v41") / "out"
    done = shardwright("convert", model[0], out, "--to", "torch_dist", *LAYOUT)
    assert "hf_extra" in done.stdout + done.stderr
    return out


PARTS = {
    "attn_norm.weight": "inner_layer.input_layernorm.weight",
    "attn.wq_a.weight": "inner_layer.self_attention.linear_q_down_proj.weight",
    "attn.q_norm.weight": "inner_layer.self_attention.q_layernorm.weight",
    "attn.wq_b.weight": "inner_layer.self_attention.linear_q_up_proj.weight",
    "attn.wkv.weight": "inner_layer.self_attention.linear_kv_proj.weight",
    "attn.kv_norm.weight": "inner_layer.self_attention.kv_layernorm.weight",
    "attn.wo_a.weight": "inner_layer.self_attention.linear_o_group_proj",
    "attn.wo_b.weight": "inner_layer.self_attention.linear_proj.weight",
    "attn.attn_sink": "inner_layer.self_attention.core_attention.attn_sink",
    "attn.compressor.wkv.weight": "inner_layer.self_attention.core_attention.compressor.linear_wkv.weight",
    "attn.compressor.wgate.weight": "inner_layer.self_attention.core_attention.compressor.linear_wgate.weight",
    "attn.compressor.norm.weight": "inner_layer.self_attention.core_attention.compressor.norm.weight",
    "attn.indexer.wq_b.weight": "inner_layer.self_attention.core_attention.indexer.linear_wq_b.weight",
    "attn.indexer.weights_proj.weight": "inner_layer.self_attention.core_attention.indexer.linear_weights_proj.weight",
    "attn.indexer.wk.weight": "inner_layer.self_attention.core_attention.indexer.linear_wk.weight",
    "attn.indexer.k_norm.weight": "inner_layer.self_attention.core_attention.indexer.k_norm.weight",
    "hc_attn_fn": "hyper_connection.mapping_proj.weight",
    "hc_attn_base": "hyper_connection.bias",
    "engram.embed.weight": "engram.embed.tables.0.weight",
    "engram.wkv.weight": "engram.wkv.weight",
    "engram.q_weight": "engram.q_weight",
    "engram.k_weight": "engram.k_weight",
}
MLP_PARTS = {
    "ffn_norm.weight": "inner_layer.pre_mlp_layernorm.weight",
    "ffn.gate.weight": "inner_layer.mlp.router.weight",
    "ffn.shared_experts.w2.weight": "inner_layer.mlp.shared_experts.linear_fc2.weight",
    "hc_ffn_fn": "hyper_connection.mapping_proj.weight",
    "hc_ffn_base": "hyper_connection.bias",
}
ENDS = {
    "embed.weight": "embedding.word_embeddings.weight",
    "head.weight": "output_layer.weight",
    "norm.weight": "decoder.final_norm.weight",
    "mtp.0.main_proj.weight": "dspark.main_proj.weight",
    "mtp.0.main_norm.weight": "dspark.main_norm.weight",
    "mtp.1.norm.weight": "dspark.norm.weight",
    "mtp.1.markov_head.embed.weight": "dspark.markov_embed.weight",
    "mtp.1.markov_head.head.weight": "dspark.markov_head.weight",
    "mtp.1.confidence_head.proj.weight": "dspark.confidence_head.weight",
}


def in_megatron(source, sees):
    """All tensors of the model by Megatron-Bridge's names."""
    made = {ours: source[theirs] for theirs, ours in ENDS.items()}
    made.update({name: source[name] for name, _ in vision() if name in source})
    for stem, stack, count, experts in (
        ("layers.", "decoder.layers.", LAYERS, EXPERTS),
        ("mtp.", "dspark.decoder.layers.", DRAFTS, DRAFT_EXPERTS),
    ):
        for number in range(count):
            theirs = f"{stem}{number}."
            both = ((PARTS, f"{stack}{2 * number}.", "attn"), (MLP_PARTS, f"{stack}{2 * number + 1}.", "ffn"))
            for parts, ours, kind in both:
                for part, name in parts.items():
                    if theirs + part in source:
                        made[ours + name] = source[theirs + part]
                scales = source[f"{theirs}hc_{kind}_scale"]
                for i, way in enumerate(("pre", "post", "res")):
                    made[f"{ours}hyper_connection.alpha_{way}"] = scales[i : i + 1]
            mlp, ffn = f"{stack}{2 * number + 1}.inner_layer.mlp.", theirs + "ffn."
            bias, image = source[ffn + "gate.bias"], source.get(ffn + "gate.bias_vl")
            if sees and stem == "layers.":
                made[mlp + "router.text_balance.expert_bias"] = bias
                made[mlp + "router.image_balance.expert_bias"] = image
            else:
                made[mlp + "router.expert_bias"] = bias
                if image is not None:
                    made[f"hf_extra.{ffn}gate.bias_vl"] = image
            shared = [source[f"{ffn}shared_experts.w{part}.weight"] for part in (1, 3)]
            made[mlp + "shared_experts.linear_fc1.weight"] = torch.cat(shared)
            each = [[source[f"{ffn}experts.{e}.w{part}.weight"] for part in (1, 3)] for e in range(experts)]
            made[mlp + "experts.experts.linear_fc1.weight"] = torch.stack([torch.cat(pair) for pair in each])
            downs = [source[f"{ffn}experts.{e}.w2.weight"] for e in range(experts)]
            made[mlp + "experts.experts.linear_fc2.weight"] = torch.stack(downs)
    return made


def test_names_of_megatron_bridge(model, imported):
    checkpoints.assert_same(checkpoints.load_dcp(imported), in_megatron(model[1], sees=True))


def test_there_and_back(shardwright, tmp_path, model, imported):
    shardwright("convert", imported, tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model[1])
    assert json.loads((tmp_path / "back/config.json").read_text()) == CONFIG
    shardwright("verify", imported)
    shardwright("diff", imported, model[0])
    family_rounds.of_local_modules(shardwright, model[0], tmp_path)


def test_through_legacy_with_a_config_alone(shardwright, tmp_path, model):
    hf, source = model
    shardwright("convert", hf, tmp_path / "legacy", "--to", "legacy", *LAYOUT)
    family_rounds.as_it_was(shardwright, tmp_path / "legacy", source)
    (tmp_path / "config").mkdir()
    shutil.copy(hf / "config.json", tmp_path / "config")
    config = ("--hf-config", tmp_path / "config")
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", *config)
    kept = {key: value for key, value in source.items() if not is_inert(key)}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), kept)


def is_inert(name):
    """Drafts see no images: legacy has no place for what Megatron has none for."""
    return name.startswith("mtp.") and name.endswith("bias_vl")


def test_from_arguments_alone(shardwright, tmp_path, model, imported):
    shutil.copytree(imported, tmp_path / "out")
    shutil.rmtree(checkpoints.iteration_folder(tmp_path / "out") / "hf")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    now = json.loads((tmp_path / "back/config.json").read_text())
    assert now["architectures"] == CONFIG["architectures"]
    was = CONFIG["text_config"]
    kept = {key: now["text_config"][key] for key in was if key in now["text_config"]}
    assert kept == {key: was[key] for key in kept}
    assert was.keys() - kept.keys() == set()
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), model[1])


def test_hash_tables_that_megatron_makes(shardwright, tmp_path, model, imported):
    """A run's checkpoint has them beside its weights; Hugging Face has no names for them."""
    tensors = checkpoints.load_dcp(imported)
    for part in ("token_map", "primes", "offsets", "multipliers"):
        tensors[f"engram_hash.{part}"] = torch.arange(12).reshape(3, 4)
    tensors = {key: value for key, value in tensors.items() if not key.startswith("hf_extra.")}
    made = checkpoints.iteration_folder(imported)
    run = tmp_path / "run"
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(run)), no_dist=True)
    for file in ("common.pt", "metadata.json"):
        shutil.copy(made / file, run)
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", model[0])
    kept = {key: value for key, value in model[1].items() if not is_inert(key)}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), kept)


def test_without_drafts(shardwright, tmp_path, model, imported):
    hf, source = model
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", "--mtp", "drop", *LAYOUT)
    full = in_megatron(source, sees=True)
    rest = {key: value for key, value in full.items() if not key.startswith(("dspark.", "hf_extra."))}
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), rest)
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    kept = {key: value for key, value in source.items() if not key.startswith("mtp.")}
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), kept)
    # What was kept beside them is of no use then.
    shardwright("convert", imported, tmp_path / "later", "--to", "hf", "--mtp", "drop")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "later"), kept)


@pytest.mark.parametrize("has_image_bias", (True, False))
def test_without_a_tower(shardwright, tmp_path, has_image_bias):
    """Then routers have one bias each, and what a file may have for images is kept beside them."""
    source = filled([entry for entry in text() if has_image_bias or not entry[0].endswith("bias_vl")])
    hf = write(tmp_path / "hf", source, {**CONFIG, "vision_config": None})
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *LAYOUT)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), in_megatron(source, sees=False))
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), source)
    # Without drafts only what is kept beside these goes.
    shardwright("convert", hf, tmp_path / "fewer", "--to", "torch_dist", "--mtp", "drop", *LAYOUT)
    left = in_megatron(source, sees=False)
    left = {key: value for key, value in left.items() if not key.startswith(("dspark.", "hf_extra.mtp."))}
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "fewer"), left)


def test_a_layer_that_lost_its_experts_is_refused(shardwright, tmp_path, model):
    hf, source = model
    lost = {key: value for key, value in source.items() if not key.startswith("layers.3.ffn")}
    broken = write(tmp_path / "hf", lost, CONFIG)
    done = shardwright("convert", broken, tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "layers.3.ffn.gate.weight" in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "part", ("attn.compressor.wgate.weight", "attn.indexer.wk.weight", "attn.indexer.", "attn.compressor.", "engram.")
)
def test_what_a_layer_must_have_by_the_configuration(shardwright, tmp_path, model, part):
    lost = {key: value for key, value in model[1].items() if not key.startswith("layers.1." + part)}
    assert len(lost) < len(model[1])
    broken = write(tmp_path / "hf", lost, CONFIG)
    done = shardwright("convert", broken, tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "layers.1." + part in done.stderr
    # Where the configuration lists nothing, the tensors tell.
    text = {key: value for key, value in CONFIG["text_config"].items() if not key.endswith(("layer_ids", "ratios"))}
    hf = write(tmp_path / "other", model[1], {**CONFIG, "text_config": text})
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", *LAYOUT)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), in_megatron(model[1], sees=True))


class Released(packed.DeepSeekV4):
    """As V4, in blocks of 32 x 32; tables have blocks within their rows."""

    method = {
        "quant_method": "fp8",
        "activation_scheme": "dynamic",
        "weight_block_size": [32, 32],
        "scale_fmt": "ue8m0",
        "expert_dtype": "fp4",
    }

    def store(self, name, weight):
        if ".experts." in name:
            return super().store(name, weight)
        block = (1, 32) if name.endswith("embed.weight") else (32, 32)
        seed = torch.Generator().manual_seed(len(name))
        grid = tuple(-(-extent // step) for extent, step in zip(weight.shape, block))
        codes = torch.randint(110, 130, grid, generator=seed, dtype=torch.uint8)
        values = (weight.float() * 100).to(torch.float8_e4m3fn)
        plain = values.float() * quantised.spread(torch.exp2(codes.float() - 127), block, weight.shape)
        return {"weight": values, "scale": codes.view(torch.float8_e8m0fnu)}, plain.bfloat16()


QUANTISED = (".wq_a.", ".wq_b.", "attn.wkv.", ".wo_a.", ".wo_b.", "experts.", "engram.wkv.", "engram.embed.", ".main_proj.")


def test_as_it_is_released(shardwright, tmp_path, model):
    maker = Released()
    stored, plain = {}, {}
    for name, tensor in model[1].items():
        if not any(part in name for part in QUANTISED):
            stored[name] = plain[name] = tensor
            continue
        parts, plain[name] = maker.store(name, tensor)
        for ending, part in parts.items():
            stored[name.removesuffix("weight") + ending] = part.contiguous()
    assert stored["layers.1.engram.embed.scale"].shape == (37, 2)
    assert stored["layers.1.engram.wkv.scale"].shape == (12, 8)
    assert stored["layers.0.ffn.experts.0.w1.weight"].dtype == torch.int8
    release = write(tmp_path / "release", stored, {**CONFIG, "quantization_config": maker.method})
    shardwright("verify", release)
    shardwright("convert", release, tmp_path / "out", "--to", "torch_dist", *LAYOUT)
    checkpoints.assert_same(checkpoints.load_dcp(tmp_path / "out"), in_megatron(plain, sees=True))
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "hf")
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), plain)


def in_two(name):
    """DeepSeek-V4's in Megatron-Bridge's hybrid form, of a name in Megatron-Core's GPT."""
    if name == "decoder.final_layernorm.weight":
        return "decoder.final_norm.weight"
    for stem, place in (("decoder.layers.", "{}{}."), ("mtp.layers.", "{}{}.mtp_model_layer.layers.{}.")):
        if not name.startswith(stem):
            continue
        number, rest = name.removeprefix(stem).split(".", 1)
        if stem == "mtp.layers." and not rest.startswith("transformer_layer."):
            return name
        rest = rest.removeprefix("transformer_layer.")
        half = int(rest.startswith(("mlp", "pre_mlp")))
        numbers = (2 * int(number) + half,) if stem == "decoder.layers." else (number, half)
        module, parameter = rest.split(".", 1)
        inner = parameter if module.endswith("_hyper_connection") else rest
        wrapper = "hyper_connection." if inner is parameter else "inner_layer."
        return place.format(stem, *numbers) + wrapper + inner
    return name


def test_deepseek_v4_as_megatron_bridge_has_it(shardwright, tmp_path):
    source = test_families_prediction.build(tmp_path, "deepseek_v4")
    hf = tmp_path / "hf"
    shardwright("convert", hf, tmp_path / "out", "--to", "torch_dist", "--make-vocab-size-divisible-by", 1)
    tensors = {in_two(name): tensor for name, tensor in checkpoints.load_dcp(tmp_path / "out").items()}
    names = (
        "decoder.layers.1.inner_layer.mlp.router.tid2eid",
        "decoder.layers.4.hyper_connection.alpha_post",
        "decoder.layers.7.inner_layer.mlp.experts.experts.linear_fc1.weight",
        "mtp.layers.0.mtp_model_layer.layers.0.inner_layer.self_attention.linear_proj.weight",
        "mtp.layers.0.mtp_model_layer.layers.1.hyper_connection.bias",
        "mtp.layers.0.hc_head_fn",
    )
    assert not [name for name in names if name not in tensors]
    # Its routers have a bias wherever a table chooses the experts, too.
    tensors["decoder.layers.1.inner_layer.mlp.router.expert_bias"] = torch.zeros(6)
    tensors = {name: tensor for name, tensor in tensors.items() if not name.startswith("hf_extra.")}
    run = tmp_path / "run"
    dcp.save(tensors, storage_writer=dcp.FileSystemWriter(str(run)), no_dist=True)
    shutil.copy(checkpoints.iteration_folder(tmp_path / "out") / "metadata.json", run)
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", hf)
    expected = {}
    for name, tensor in source.items():
        name = family_rounds.released_name(name)
        expected[name] = tensor.float() if name.endswith(".ffn.gate.bias") else tensor
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "back"), expected)
    lost = {name: tensor for name, tensor in tensors.items() if "layers.6.inner_layer.self_attention" not in name}
    dcp.save(lost, storage_writer=dcp.FileSystemWriter(str(tmp_path / "lost")), no_dist=True)
    shutil.copy(run / "metadata.json", tmp_path / "lost")
    refused = ("convert", tmp_path / "lost", tmp_path / "none", "--to", "hf", "--hf-config", hf)
    assert "error[SW" in shardwright(*refused, expect=2).stderr
    assert not (tmp_path / "none").exists()
