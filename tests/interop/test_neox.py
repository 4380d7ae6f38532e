# SPDX-License-Identifier: Apache-2.0
"""Layer files of GPT-NeoX and of Megatron-DeepSpeed's BLOOM as sources, against transformers' model of
the same weights."""
import argparse
import json

import pytest
import torch
import transformers
from checkpoints import assert_same, load_hf

CUT_ROWS = ("query_key_value.weight", "query_key_value.bias", "mlp.dense_h_to_4h.weight",
            "mlp.dense_h_to_4h.bias", "word_embeddings.weight", "final_linear.weight")  # fmt: skip
CUT_COLUMNS = ("attention.dense.weight", "mlp.dense_4h_to_h.weight")
SUMMED = ("attention.dense.bias", "mlp.dense_4h_to_h.bias")


def model_of(folder, tied=False, **more):
    torch.manual_seed(0)
    config = transformers.GPTNeoXConfig(
        vocab_size=64, hidden_size=16, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, rotary_pct=0.5, tie_word_embeddings=tied,
        architectures=["GPTNeoXForCausalLM"], **more,
    )  # fmt: skip
    model = transformers.GPTNeoXForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    model.save_pretrained(folder)
    return model


def parts_of(name, tensor, ranks, summed):
    if name.endswith(CUT_ROWS):
        return tensor.chunk(ranks, 0)
    if name.endswith(CUT_COLUMNS):
        return tensor.chunk(ranks, 1)
    return [tensor / ranks if summed and name.endswith(SUMMED) else tensor] * ranks


def save(folder, model, ranks=1, configs=None, args=None, rename=(), summed=False):
    """As GPT-NeoX's pipeline saves it: a file a layer and tensor-parallel rank, and the run's
    configuration beside. With gpt_j_residual the ranks' biases are `summed`."""
    state, config = model.state_dict(), model.config
    layers = config.num_hidden_layers
    head = state.get("embed_out.weight", state.get("lm_head.weight"))
    files = {0: {"word_embeddings.weight": state["gpt_neox.embed_in.weight"]},
             layers + 3: {f"norm.{leaf}": state[f"gpt_neox.final_layer_norm.{leaf}"] for leaf in ("weight", "bias")}}  # fmt: skip
    if not config.tie_word_embeddings:
        files[layers + 4] = {"final_linear.weight": head}
    for i in range(layers):
        prefix = f"gpt_neox.layers.{i}."
        files[i + 2] = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
        files[i + 2]["attention.rotary_emb.inv_freq"] = torch.ones(2)
    folder.mkdir(parents=True)
    saved = dict(num_layers=layers, hidden_size=16, num_attention_heads=4, max_position_embeddings=32,
                 make_vocab_size_divisible_by=1, padded_vocab_size=64, tokenizer_type="HFTokenizer",
                 model_parallel_size=ranks, **(args or {}))  # fmt: skip
    for rank in range(ranks):
        for number, tensors in files.items():
            own = {n: parts_of(n, t, ranks, summed)[rank].clone() for n, t in tensors.items()}
            for old, new in rename:
                own = {n.replace(old, new): t for n, t in own.items()}
            torch.save(own, folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
        torch.save({"module": None, "args": saved, "iteration": 5, "global_steps": 5},
                   folder / f"mp_rank_{rank:02d}_model_states.pt")  # fmt: skip
    if configs is not None:
        (folder / "configs").mkdir()
        (folder / "configs/model.yml").write_text(f"# a run\n{json.dumps({'num_layers': layers, **configs})}\n")
    return folder


def refused(shardwright, run, config, out, *words, code="SW0301"):
    for command in (("convert", run, out, "--to", "hf", "--hf-config", config),
                    ("convert", run, out, "--to", "torch_dist"), ("convert", run, out, "--to", "dcp"),
                    ("verify", run), ("diff", run, config)):  # fmt: skip
        is_finding = command[0] == "verify" and code != "SW0301"
        done = shardwright(*command, expect=1 if is_finding else 2)
        told = done.stdout + done.stderr
        for word in (code, *words):
            assert word in told, (command, told)
    assert not out.exists()


PARALLEL = {"pos_emb": "rotary", "rotary-pct": 0.5, "no_weight_tying": True, "gpt-j-residual": True}
ONE_AFTER_ANOTHER = {**PARALLEL, "gpt-j-residual": False}


@pytest.mark.parametrize("bias", SUMMED)
def test_biases_that_ranks_add_up(shardwright, tmp_path, bias):
    """Each rank's bias is a part of the model's: no one of them is it."""
    model = model_of(tmp_path / "hf")
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith(SUMMED) and not name.endswith(bias):
                parameter.zero_()
    run = save(tmp_path / "run", model, 2, PARALLEL, summed=True)
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", f"layer_02-model_00-model_states.pt: tensor {bias}",
            "the run had gpt_j_residual", "convert_neox_to_hf.py")  # fmt: skip
    run = save(tmp_path / "told", model, 2, args={"gpt_j_residual": True}, summed=True)
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", bias, "the run had gpt_j_residual")


def test_biases_of_ranks_that_nothing_tells_of(shardwright, tmp_path):
    run = save(tmp_path / "run", model_of(tmp_path / "hf"), 2)
    words = ("attention.dense.bias", "nothing says whether", "gpt_j_residual", "run/configs")
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", *words)
    for file in run.glob("mp_rank_*"):
        file.unlink()
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", *words)


@pytest.mark.parametrize("ranks, configs, zero", [(2, ONE_AFTER_ANOTHER, False), (2, PARALLEL, True),
                                                  (2, None, True), (1, PARALLEL, False), (1, None, False)])  # fmt: skip
def test_biases_that_are_the_models(shardwright, tmp_path, ranks, configs, zero):
    model = model_of(tmp_path / "hf", use_parallel_residual=configs is not ONE_AFTER_ANOTHER)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if zero and name.endswith(SUMMED):
                parameter.zero_()
    model.save_pretrained(tmp_path / "hf")
    run = save(tmp_path / "run", model, ranks, configs, summed=zero)
    shardwright("convert", run, tmp_path / "made", "--to", "hf", "--hf-config", tmp_path / "hf")
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))
    shardwright("verify", run)


def test_an_output_layer_that_is_missing(shardwright, tmp_path):
    model = model_of(tmp_path / "hf")
    run = save(tmp_path / "run", model, 1, PARALLEL)
    (run / "layer_06-model_00-model_states.pt").unlink()
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", "file with the output layer", code="SW0330")
    run = save(tmp_path / "unknown", model)
    (run / "layer_06-model_00-model_states.pt").unlink()
    told = shardwright("convert", run, tmp_path / "made", "--to", "torch_dist").stderr
    assert "no arguments say whether the run had one" in told


def test_a_tied_embedding(shardwright, tmp_path):
    model = model_of(tmp_path / "hf", tied=True)
    run = save(tmp_path / "run", model, 2, {**ONE_AFTER_ANOTHER, "no_weight_tying": False})
    told = shardwright("convert", run, tmp_path / "made", "--to", "hf", "--hf-config", tmp_path / "hf").stderr
    assert "say whether the run had one" not in told
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))


def test_arguments_are_megatrons(shardwright, tmp_path):
    run = save(tmp_path / "run", model_of(tmp_path / "hf"), 1, {**PARALLEL, "norm": "te_layernorm"})
    told = shardwright("convert", run, tmp_path / "made", "--to", "torch_dist").stderr
    assert told.count("Megatron-Core has no argument for these settings of GPT-NeoX: "
                      "gpt_j_residual, tokenizer_type: HFTokenizer") == 1  # fmt: skip
    common = next((tmp_path / "made").glob("iter*/common.pt"))
    args = vars(torch.load(common, weights_only=False)["args"])
    for name, value in dict(rotary_percent=0.5, position_embedding_type="rope", normalization="LayerNorm",
                            untie_embeddings_and_output_weights=True, padded_vocab_size=64).items():  # fmt: skip
        assert args[name] == value, name
    for name in ("pos_emb", "rotary_pct", "norm", "no_weight_tying", "gpt_j_residual", "model_parallel_size"):
        assert name not in args, name


@pytest.mark.parametrize("configs", [ONE_AFTER_ANOTHER, PARALLEL])
def test_a_run_is_known_by_its_configuration(shardwright, tmp_path, configs):
    parallel = configs is PARALLEL
    model = model_of(tmp_path / "hf", use_parallel_residual=parallel)
    run = save(tmp_path / "run", model, 1, {**configs, "layernorm-epsilon": 1e-3, "rotary_emb_base": 500000})
    told = shardwright("convert", run, tmp_path / "made", "--to", "hf").stderr
    assert f"family gpt_neox is inferred from 28 tensors and the training arguments (use_parallel_residual = {parallel})" in told
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))
    made = transformers.AutoConfig.from_pretrained(tmp_path / "made")
    assert (made.use_parallel_residual, made.layer_norm_eps) == (parallel, 1e-3)
    assert made.rope_parameters["rope_theta"] == 500000
    assert made.rope_parameters["partial_rotary_factor"] == 0.5


NEWER = (("mlp.dense_h_to_4h.", "mlp.linear1."), ("mlp.dense_4h_to_h.", "mlp.linear2."))


@pytest.mark.parametrize("ranks", [1, 2])
def test_newer_names_of_the_mlp(shardwright, tmp_path, ranks):
    model = model_of(tmp_path / "hf", use_parallel_residual=False)
    run = save(tmp_path / "run", model, ranks, ONE_AFTER_ANOTHER, rename=NEWER)
    shardwright("convert", run, tmp_path / "made", "--to", "hf", "--hf-config", tmp_path / "hf")
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))
    shardwright("verify", run, "--against", tmp_path / "hf")


@pytest.mark.parametrize("name, renamed", [
    ("mlp.dense_h_to_4h.", "mlp.w1."), ("attention.dense.", "attention.proj."),
    ("input_layernorm.weight", "ln_1.weight"),
])  # fmt: skip
def test_names_without_a_rule(shardwright, tmp_path, name, renamed):
    run = save(tmp_path / "run", model_of(tmp_path / "hf"), 2, ONE_AFTER_ANOTHER, rename=((name, renamed),))
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", "layer_02-model_00", f"tensor {renamed}",
            "no rule says", code="SW0330")  # fmt: skip


def llama_of_neox(folder, ranks, config, state):
    """As GPT-NeoX's MLP forward takes them apart: `x, gate = linear1(h).chunk(2)`."""
    folder.mkdir()
    heads, layers = config.num_attention_heads, config.num_hidden_layers
    for rank in range(ranks):
        def part(name, axis=0, rank=rank):
            return state[name].chunk(ranks, axis)[rank]

        files = {0: {"word_embeddings.weight": part("model.embed_tokens.weight")},
                 layers + 3: {"norm.scale": state["model.norm.weight"]},
                 layers + 4: {"final_linear.weight": part("lm_head.weight")}}  # fmt: skip
        for i in range(layers):
            own = f"model.layers.{i}."
            qkv = [part(f"{own}self_attn.{n}_proj.weight").unflatten(0, (heads // ranks, -1)) for n in "qkv"]
            files[i + 2] = {
                "input_layernorm.scale": state[own + "input_layernorm.weight"],
                "post_attention_layernorm.scale": state[own + "post_attention_layernorm.weight"],
                "attention.query_key_value.weight": torch.cat(qkv, 1).flatten(0, 1),
                "attention.dense.weight": part(own + "self_attn.o_proj.weight", 1),
                "mlp.linear1.weight": torch.cat([part(f"{own}mlp.{n}_proj.weight") for n in ("up", "gate")]),
                "mlp.linear2.weight": part(own + "mlp.down_proj.weight", 1),
            }
        for number, tensors in files.items():
            torch.save({n: t.clone() for n, t in tensors.items()},
                       folder / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")  # fmt: skip
        args = dict(num_layers=layers, hidden_size=config.hidden_size, num_attention_heads=heads,
                    max_position_embeddings=32, padded_vocab_size=config.vocab_size, model_parallel_size=ranks,
                    tokenizer_type="HFTokenizer", make_vocab_size_divisible_by=1)  # fmt: skip
        torch.save({"module": None, "args": args, "iteration": 5}, folder / f"mp_rank_{rank:02d}_model_states.pt")
    return folder


@pytest.mark.parametrize("ranks", [1, 2])
def test_gates_that_lie_behind(shardwright, tmp_path, ranks):
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        vocab_size=64, hidden_size=16, intermediate_size=24, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=32, architectures=["LlamaForCausalLM"],
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    model.save_pretrained(tmp_path / "hf")
    run = llama_of_neox(tmp_path / "run", ranks, config, model.state_dict())
    shardwright("convert", run, tmp_path / "made", "--to", "hf", "--hf-config", tmp_path / "hf")
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))


def test_heads_that_share_a_key(shardwright, tmp_path):
    run = save(tmp_path / "run", model_of(tmp_path / "hf"), 1, PARALLEL)
    for file in (run / f"layer_{i:02d}-model_00-model_states.pt" for i in (2, 3)):
        tensors = torch.load(file)
        for leaf in ("weight", "bias"):
            tensors[f"attention.query_key_value.{leaf}"] = tensors[f"attention.query_key_value.{leaf}"][:32]
        torch.save(tensors, file)
    refused(shardwright, run, tmp_path / "hf", tmp_path / "out", "layer_02-model_00", "num_kv_heads")


@pytest.mark.parametrize("ranks", [1, 2])
def test_bloom(shardwright, tmp_path, ranks):
    """BigScience's Megatron-DeepSpeed normalises the embedding within its module."""
    torch.manual_seed(0)
    config = transformers.BloomConfig(vocab_size=64, hidden_size=16, n_layer=2, n_head=4,
                                      architectures=["BloomForCausalLM"])  # fmt: skip
    model = transformers.BloomForCausalLM(config)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape))
    model.save_pretrained(tmp_path / "hf")
    state = {n.removeprefix("transformer."): t for n, t in model.state_dict().items()}
    files = {1: {"word_embeddings.weight": state["word_embeddings.weight"],
                 **{f"word_embeddings.norm.{n}": state[f"word_embeddings_layernorm.{n}"] for n in ("weight", "bias")}},
             6: {n: state[f"ln_f.{n}"] for n in ("weight", "bias")}}  # fmt: skip
    for i in range(2):
        files[i + 3] = {n.removeprefix(f"h.{i}."): t for n, t in state.items() if n.startswith(f"h.{i}.")}
    (tmp_path / "run").mkdir()
    for rank in range(ranks):
        for number, tensors in files.items():
            own = {n: parts_of(n.replace("self_attention.dense", "attention.dense"), t, ranks, False)[rank].clone()
                   for n, t in tensors.items()}  # fmt: skip
            torch.save(own, tmp_path / "run" / f"layer_{number:02d}-model_{rank:02d}-model_states.pt")
        args = argparse.Namespace(
            num_layers=2, hidden_size=16, ffn_hidden_size=64, num_attention_heads=4, kv_channels=4,
            padded_vocab_size=64, max_position_embeddings=32, seq_length=32, position_embedding_type="alibi",
            tensor_model_parallel_size=ranks, pipeline_model_parallel_size=1, layernorm_epsilon=1e-5,
        )  # fmt: skip
        state = {"module": None, "args": args, "checkpoint_version": 3.0, "iteration": 5}
        torch.save(state, tmp_path / "run" / f"mp_rank_{rank:02d}_model_states.pt")
    shardwright("convert", tmp_path / "run", tmp_path / "made", "--to", "hf", "--hf-config", tmp_path / "hf")
    assert_same(load_hf(tmp_path / "made"), load_hf(tmp_path / "hf"))
