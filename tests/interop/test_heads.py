# SPDX-License-Identifier: Apache-2.0
"""Reward, value and classification models: their heads in every format, and as trainers have them."""
import copy
import json
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
import transformers
from safetensors.torch import load_file, save_file, save_model

import hf_models
import hf_sizes
from checkpoints import GOLDEN, assert_same, load_dcp, load_hf
from test_families_hybrid import CASES

SEQUENCE = transformers.AutoModelForSequenceClassification
TOKEN = transformers.AutoModelForTokenClassification
EARLY = dict(vocab_size=510, hidden_size=72, pad_token_id=0)
# Another head each: with a bias, of another name, beneath a tied embedding, of one row and of many.
MODELS = {
    "llama": ("llama", SEQUENCE, 1, dict(tie_word_embeddings=False)),
    "qwen2_tied": ("qwen2", SEQUENCE, 3, dict(tie_word_embeddings=True)),
    "qwen3_moe": ("qwen3_moe", SEQUENCE, 4, {}),
    "mistral_tokens": ("mistral", TOKEN, 6, {}),
    "gemma2": ("gemma2", SEQUENCE, 2, {}),
    "gpt2": ("gpt2", SEQUENCE, 1, dict(n_embd=72, n_layer=3, n_head=6, n_positions=64)),
    "gpt2_tokens": ("gpt2", TOKEN, 5, dict(n_embd=72, n_layer=3, n_head=6, n_positions=64)),
    "bloom_tokens": ("bloom", TOKEN, 5, dict(n_layer=3, n_head=6)),
    "gpt_neox": ("gpt_neox", SEQUENCE, 2, dict(num_hidden_layers=3, num_attention_heads=6, intermediate_size=120)),
}  # fmt: skip


def create(folder, model_type, auto, labels, settings):
    early = model_type in ("gpt2", "bloom", "gpt_neox")
    sizes = EARLY if early else {**hf_sizes.FAMILY_SIZES.get(model_type, hf_sizes.SIZES)}
    sizes = {**sizes, "vocab_size": 510, "pad_token_id": 0, **settings}
    if not early:
        sizes["intermediate_size"] = 120
    config = transformers.AutoConfig.for_model(model_type, num_labels=labels, **sizes)
    model = auto.from_config(config, dtype=torch.float32, **hf_models.EAGER)
    hf_models.fill(model)
    model.save_pretrained(folder)
    return model


def read_config(folder):
    return json.loads((folder / "config.json").read_text())


def test_a_head_that_is_said_to_be_the_embedding(shardwright, tmp_path):
    """transformers 5 computes with the stored head where it differs; others compute with the embedding."""
    sizes = dict(hf_sizes.SIZES, vocab_size=510, intermediate_size=120, tie_word_embeddings=False)
    hf_models.create(tmp_path / "hf", "llama", **sizes)
    shardwright("verify", tmp_path / "hf")
    config = read_config(tmp_path / "hf") | {"tie_word_embeddings": True}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    stored = load_hf(tmp_path / "hf")
    assert torch.equal(model.lm_head.weight, stored["lm_head.weight"])
    warning = "config.json says by tie_word_embeddings that lm_head.weight is model.embed_tokens.weight"
    assert warning in shardwright("verify", tmp_path / "hf").stdout
    # A copy is no contradiction.
    stored["lm_head.weight"] = stored["model.embed_tokens.weight"].clone()
    for file in (tmp_path / "hf").glob("*.safetensors*"):
        file.unlink()
    save_file(stored, tmp_path / "hf" / "model.safetensors", metadata={"format": "pt"})
    assert warning not in shardwright("verify", tmp_path / "hf").stdout


@pytest.mark.parametrize("chosen", [0, 5])
def test_experts_that_no_token_can_go_to(shardwright, tmp_path, chosen):
    hf_models.create(tmp_path / "hf", "mixtral", **{**hf_sizes.SIZES, "num_local_experts": 4})
    shardwright("verify", tmp_path / "hf")
    config = read_config(tmp_path / "hf") | {"num_experts_per_tok": chosen}
    (tmp_path / "hf" / "config.json").write_text(json.dumps(config))
    words = f"num_experts_per_tok is {chosen}, but each token goes to some of 4 experts"
    assert words in shardwright("verify", tmp_path / "hf").stdout
    shardwright("convert", tmp_path / "hf", tmp_path / "out", "--to", "torch_dist")  # all tensors are right


@pytest.mark.parametrize("name", ["llama", "qwen2_tied", "mistral_tokens", "gpt2"])
@pytest.mark.parametrize("form", ["verl", "dcp", "trl"])
def test_a_head_in_what_a_job_saved(shardwright, tmp_path, name, form):
    """Whose files have names of all kinds; trl's wrapper has a head beside the model in it."""
    model = create(tmp_path / "model", *MODELS[name])
    tensors = load_hf(tmp_path / "model")
    heads = {key for key in tensors if key.startswith(("score.", "classifier."))}
    source = tmp_path / "run"
    source.mkdir()
    model.config.save_pretrained(source)
    if form == "verl":
        # A critic's config is that of the language model that it was made of.
        config = read_config(source)
        family = config["architectures"][0].split("For")[0]
        config["architectures"] = [family + ("LMHeadModel" if name == "gpt2" else "ForCausalLM")]
        (source / "config.json").write_text(json.dumps(config))
        torch.save(tensors, source / "model_world_size_1_rank_0.pt")
    elif form == "dcp":
        dcp.save({"model": tensors}, checkpoint_id=source, no_dist=True)
    else:
        named = {key if key in heads else f"pretrained_model.{key}": tensors[key] for key in tensors}
        dcp.save(named, checkpoint_id=source, no_dist=True)
    for target in ("hf", "torch_dist"):
        told = shardwright("convert", source, tmp_path / target, "--to", target).stderr
        assert "left out: " not in told, told
    shardwright("convert", tmp_path / "torch_dist", tmp_path / "back", "--to", "hf")
    for made in (tmp_path / "hf", tmp_path / "back"):
        assert_same(load_hf(made), tensors)
        assert read_config(made)["architectures"] == read_config(tmp_path / "model")["architectures"]
    assert "PROVEN" in shardwright("verify", source).stdout


@pytest.mark.parametrize("name", MODELS)
def test_a_head_is_kept_in_every_format(shardwright, tmp_path, name):
    source = tmp_path / "model"
    create(source, *MODELS[name])
    truth = load_hf(source)
    heads = {key for key in truth if key.startswith(("score.", "classifier."))}
    assert heads
    back = tmp_path / "back"
    for target, flags in {
        "torch_dist": ("--tp", 2, "--pp", 3),
        "legacy": ("--tp", 2, "--pp", 3),
        "fsdp_dtensor": (),
    }.items():
        there = tmp_path / target
        shardwright("convert", source, there, "--to", target, *flags)
        shardwright("convert", there, back, "--to", "hf")
        assert_same(load_hf(back), truth)
        assert read_config(back) == read_config(source)
        assert "PROVEN" in shardwright("verify", back, "--against", source).stdout
        shardwright("diff", there, source)
        shutil.rmtree(back)
    # The real class finds all that it needs in what comes back.
    shardwright("convert", tmp_path / "legacy", back, "--to", "hf", "--dtype", "bfloat16")
    loaded, told = MODELS[name][1].from_pretrained(back, output_loading_info=True)
    assert not told["missing_keys"] and not told["unexpected_keys"], told
    assert loaded.config.num_labels == MODELS[name][2]


@pytest.mark.parametrize(
    "case, architecture",
    [
        ("qwen3_5_vl", "Qwen3_5ForTokenClassification"),
        ("qwen3_5_vl", "Qwen3_5ForSequenceClassification"),
        ("qwen3_5", "Qwen3_5TextForSequenceClassification"),
    ],
)
def test_classifiers_of_qwen3_5(shardwright, tmp_path, case, architecture):
    """One word names the vision-language model and its language model."""
    model_type, _, settings = copy.deepcopy(CASES[case])
    config = transformers.AutoConfig.for_model(model_type, **settings, num_labels=5)
    config.get_text_config().pad_token_id = 0
    model = getattr(transformers, architecture)._from_config(config, dtype=torch.bfloat16)
    hf_models.fill(model)
    source, back = tmp_path / "model", tmp_path / "back"
    model.save_pretrained(source)
    truth = load_hf(source)
    prefix = "language_model." if case == "qwen3_5_vl" else ""
    extras = set()
    for target in ("torch_dist", "legacy"):
        there = tmp_path / target
        done = shardwright("convert", source, there, "--to", target, "--tp", 2, "--pp", 2, "--json")
        assert json.loads(done.stdout)["family"] == case
        shardwright("convert", there, back, "--to", "hf")
        same = load_hf(back)
        if target == "torch_dist":
            made = load_dcp(there)
            extras = {name.removeprefix("hf_extra.") for name in made if name.startswith("hf_extra.")}
        else:  # files of ranks have no place for norms that Megatron rounds
            same = {name: truth[name] if name in extras else tensor for name, tensor in same.items()}
        assert_same(same, truth)
        assert not any(name.startswith("score") for name in extras)
        assert read_config(back) == read_config(source)
        shutil.rmtree(back)
    for part in ("weight", "bias") if architecture.endswith("TokenClassification") else ("weight",):
        assert torch.equal(made[f"{prefix}output_layer.{part}"], truth[f"score.{part}"])
    if case == "qwen3_5_vl":  # on ranks of its own, as every part of such a model
        flags = ("--component", "language=tp=2", "--component", "images=tp=1")
        shardwright("convert", source, tmp_path / "mimo", "--to", "mimo", *flags)
        head = load_dcp(tmp_path / "mimo")["language_model.output_layer.weight"]
        assert torch.equal(head, truth["score.weight"])
        shardwright("convert", tmp_path / "mimo", back, "--to", "hf")
        assert_same(load_hf(back), truth)
        shutil.rmtree(back)
    # Of a language model's config the class becomes the one with this head.
    (tmp_path / "config").mkdir()
    plain = {**read_config(source), "architectures": [CASES[case][1]]}
    plain.pop("id2label"), plain.pop("label2id")
    (tmp_path / "config" / "config.json").write_text(json.dumps(plain))
    shardwright("convert", tmp_path / "legacy", back, "--to", "hf", "--hf-config", tmp_path / "config")
    assert read_config(back)["architectures"] == [architecture]


@pytest.fixture(scope="module")
def reward_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reward") / "model"
    create(folder, *MODELS["llama"])
    return folder


def with_tensors(source, folder, change):
    shutil.copytree(source, folder)
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def test_every_rank_has_the_whole_head_behind_the_last_layer(shardwright, reward_model, tmp_path):
    shardwright("convert", reward_model, tmp_path / "legacy", "--to", "legacy", "--tp", 2, "--pp", 3)
    score = load_file(reward_model / "model.safetensors")["score.weight"]
    folder = tmp_path / "legacy" / "iter_0000000"
    for rank in range(2):
        states = [
            torch.load(folder / f"mp_rank_{rank:02d}_{stage:03d}" / "model_optim_rng.pt", weights_only=False)
            for stage in range(3)
        ]  # fmt: skip
        assert not any("output_layer.weight" in state["model"] for state in states[:2])
        last = states[2]["model"]
        assert torch.equal(last["output_layer.weight"], score)
        # A linear of torch's keeps nothing beside its weight.
        assert "output_layer._extra_state" not in last
    assert states[0]["args"].untie_embeddings_and_output_weights is True


@pytest.fixture(scope="module")
def classifiers(shardwright, tmp_path_factory):
    """Megatron checkpoints of two models that differ in how many classes they have."""
    folder = tmp_path_factory.mktemp("classifiers")
    for labels in (3, 6):
        create(folder / f"hf_{labels}", "llama", SEQUENCE, labels, MODELS["llama"][3])
        shardwright("convert", folder / f"hf_{labels}", folder / str(labels), "--to", "torch_dist")
    return folder


def test_heads_of_other_classes_have_no_mean(shardwright, classifiers, tmp_path):
    """The last classes of one are no padding of a vocabulary."""
    for models in ((3, 6), (6, 3)):
        folders = [classifiers / str(labels) for labels in models]
        told = shardwright("average", *folders, tmp_path / "mean", "--to", "torch_dist", expect=2).stderr
        assert "output_layer.weight: found shape" in told
        assert not (tmp_path / "mean").exists()


@pytest.mark.parametrize("model", ["6", "hf_6"])
def test_a_head_has_no_padding_rows(shardwright, classifiers, tmp_path, model):
    shardwright("hash", classifiers / model, "--vocab-size", 4, "--manifest", tmp_path / "manifest.json")
    tensors = json.loads((tmp_path / "manifest.json").read_text())["tensors"]
    shapes = {tensor["name"]: tensor["shape"] for tensor in tensors}
    assert shapes["embedding.word_embeddings.weight"] == [4, 72]
    assert shapes["output_layer.weight"] == [6, 72]


def test_what_stands_beside_a_language_model_keeps_its_name(shardwright, tmp_path):
    """trl's value head; the weights of a model whose output layer is still that of tokens."""
    source = tmp_path / "model"
    hf_models.create(source, "llama", vocab_size=510, intermediate_size=120, tie_word_embeddings=False)
    tensors = load_hf(source)
    tensors["v_head.summary.weight"] = torch.randn(1, 72)
    tensors["v_head.summary.bias"] = torch.randn(1)
    for file in source.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
    for target in ("torch_dist", "legacy"):
        there, back = tmp_path / target, tmp_path / f"{target}_back"
        shardwright("convert", source, there, "--to", target, "--tp", 2, "--pp", 3)
        shardwright("convert", there, back, "--to", "hf")
        assert_same(load_hf(back), tensors)
        assert read_config(back) == read_config(source)
    assert "v_head.summary.weight" in load_dcp(tmp_path / "torch_dist")
    state = torch.load(
        tmp_path / "legacy/iter_0000000/mp_rank_01_002/model_optim_rng.pt", weights_only=False
    )
    assert torch.equal(state["model"]["v_head.summary.bias"], tensors["v_head.summary.bias"])


def test_a_head_of_several_layers_keeps_its_names(shardwright, reward_model, tmp_path):
    """That of Qwen2.5's process reward models."""

    def change(tensors):
        del tensors["score.weight"]
        tensors["score.0.weight"], tensors["score.0.bias"] = torch.randn(72, 72), torch.randn(72)
        tensors["score.2.weight"], tensors["score.2.bias"] = torch.randn(2, 72), torch.randn(2)

    source = with_tensors(reward_model, tmp_path / "model", change)
    shardwright("convert", source, tmp_path / "there", "--to", "legacy", "--tp", 2)
    shardwright("convert", tmp_path / "there", tmp_path / "back", "--to", "hf")
    assert_same(load_hf(tmp_path / "back"), load_hf(source))


@pytest.mark.parametrize("sizes", [dict(tp=1), dict(tp=2, pp=2)], ids=["one", "tp2_pp2"])
@pytest.mark.parametrize("layout", ["torch_dist", "legacy"])
@pytest.mark.parametrize("bias", [False, True], ids=["verl", "slime"])
def test_the_critic_of_a_megatron_run(shardwright, ranks, reward_model, tmp_path, layout, sizes, bias):
    """A GPTModel whose output layer is a linear of one row. Its config.json is a language model's."""
    config_folder = tmp_path / "config"
    config_folder.mkdir()
    config = {**read_config(reward_model), "architectures": ["LlamaForCausalLM"],
              "num_hidden_layers": 4, "num_key_value_heads": 2}  # fmt: skip
    for key in ("id2label", "label2id"):
        config.pop(key)
    (config_folder / "config.json").write_text(json.dumps(config))
    world = sizes["tp"] * sizes.get("pp", 1)
    arguments = dict(folder=str(tmp_path / "run"), config=str(config_folder), layout=layout, bias=bias, sizes=sizes)
    ranks("head_jobs", "save", world, **arguments)
    told = shardwright(
        "convert", tmp_path / "run", tmp_path / "hf", "--to", "hf", "--hf-config", config_folder
    ).stderr
    made = load_hf(tmp_path / "hf")
    assert "lm_head.weight" not in made and made["score.weight"].shape == (1, 72)
    assert ("score.bias" in made) == bias
    wanted = f"LlamaFor{'Token' if bias else 'Sequence'}Classification"
    assert read_config(tmp_path / "hf")["architectures"] == [wanted]
    assert read_config(tmp_path / "hf")["id2label"] == {"0": "LABEL_0"}
    assert "is no language model's head" in told
    auto = TOKEN if bias else SEQUENCE
    _, loading = auto.from_pretrained(tmp_path / "hf", output_loading_info=True)
    assert not loading["missing_keys"] and not loading["unexpected_keys"], loading
    # And back into the model that it came from, in another layout.
    shardwright("convert", tmp_path / "hf", tmp_path / "again", "--to", layout, "--tp", sizes["tp"],
                "--pp", sizes.get("pp", 1), "--dtype", "bfloat16")  # fmt: skip
    ranks("head_jobs", "load", world, **{**arguments, "folder": str(tmp_path / "again")})


def test_a_head_that_nobody_named_has_its_config_from_the_arguments(shardwright, reward_model, ranks, tmp_path):
    arguments = dict(folder=str(tmp_path / "run"), config=str(reward_model), layout="torch_dist", bias=False, sizes=dict(tp=1))
    ranks("head_jobs", "save", 1, **arguments)
    shardwright("convert", tmp_path / "run", tmp_path / "hf", "--to", "hf")
    config = read_config(tmp_path / "hf")
    assert config["architectures"] == ["LlamaForSequenceClassification"]
    assert config["id2label"] == {"0": "LABEL_0"}
    assert SEQUENCE.from_pretrained(tmp_path / "hf").config.num_labels == 1


def test_the_head_of_nemo_aligner(shardwright, reward_model, tmp_path):
    """`rm_head`, whose columns the tensor ranks share out."""
    shardwright("convert", reward_model, tmp_path / "there", "--to", "legacy", "--tp", 2)
    score = load_file(reward_model / "model.safetensors")["score.weight"]
    folder = tmp_path / "there" / "iter_0000000"
    for rank in range(2):
        file = folder / f"mp_rank_{rank:02d}" / "model_optim_rng.pt"
        state = torch.load(file, weights_only=False)
        whole = state["model"].pop("output_layer.weight")
        state["model"]["rm_head.weight"] = whole[:, rank * 36 : (rank + 1) * 36].contiguous()
        torch.save(state, file)
    (folder / "hf" / "source_keys.json").unlink()
    shardwright("convert", tmp_path / "there", tmp_path / "back", "--to", "hf")
    assert torch.equal(load_hf(tmp_path / "back")["score.weight"], score)
    assert_same(load_hf(tmp_path / "back"), load_hf(reward_model))


def test_a_head_that_contradicts_its_config(shardwright, reward_model, tmp_path):
    def two_rows(tensors):
        tensors["score.weight"] = torch.randn(2, 72)

    wrong = with_tensors(reward_model, tmp_path / "rows", two_rows)
    told = shardwright("convert", wrong, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert "score.weight" in told and "found 2 rows, expected 1" in told and "SW0405" in told
    assert not (tmp_path / "out").exists()

    def other_width(tensors):
        tensors["score.weight"] = torch.randn(1, 71)

    wrong = with_tensors(reward_model, tmp_path / "width", other_width)
    told = shardwright("convert", wrong, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert "score.weight" in told and "SW0405" in told

    def both(tensors):
        tensors["lm_head.weight"] = torch.randn(510, 72)

    wrong = with_tensors(reward_model, tmp_path / "both", both)
    told = shardwright("convert", wrong, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert "score.weight beside lm_head.weight" in told and "SW0403" in told

    def none(tensors):
        del tensors["score.weight"]

    wrong = with_tensors(reward_model, tmp_path / "none", none)
    told = shardwright("convert", wrong, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert "lm_head.weight" in told
    assert not (tmp_path / "out").exists()


def test_a_config_of_a_reward_model_for_a_language_model(shardwright, reward_model, tmp_path):
    model = tmp_path / "model"
    hf_models.create(model, "llama", vocab_size=510, intermediate_size=120, tie_word_embeddings=False)
    shardwright("convert", model, tmp_path / "there", "--to", "torch_dist")
    told = shardwright(
        "convert", tmp_path / "there", tmp_path / "out", "--to", "hf", "--hf-config", reward_model,
        expect=2,
    ).stderr  # fmt: skip
    assert "found architecture LlamaForSequenceClassification" in told
    assert not (tmp_path / "out").exists()


def test_ranks_that_hold_different_heads_are_refused(shardwright, reward_model, tmp_path):
    shardwright("convert", reward_model, tmp_path / "there", "--to", "legacy", "--tp", 2)
    file = tmp_path / "there/iter_0000000/mp_rank_01/model_optim_rng.pt"
    state = torch.load(file, weights_only=False)
    state["model"]["output_layer.weight"][0, 5] += 1
    torch.save(state, file)
    told = shardwright("convert", tmp_path / "there", tmp_path / "out", "--to", "hf", expect=2).stderr
    assert "output_layer.weight" in told
    assert not (tmp_path / "out").exists()


def test_a_stored_head_that_is_not_the_embedding_it_is_said_to_be(shardwright, tmp_path):
    """transformers 5 computes with it, Megatron's tied model can't."""
    model = tmp_path / "model"
    hf_models.create(model, "llama", vocab_size=510, intermediate_size=120, tie_word_embeddings=True)
    tensors = load_hf(model)
    embedding = tensors["model.embed_tokens.weight"]
    for file in model.glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    said = "config.json says that lm_head.weight is model.embed_tokens.weight, and it is not"
    for name, head in (("equal", embedding.clone()), ("other", embedding * 2)):
        stored = with_tensors(model, tmp_path / name, lambda tensors: tensors.update({"lm_head.weight": head}))
        for to in ("torch_dist", "legacy"):
            told = shardwright("convert", stored, tmp_path / f"{name}_{to}", "--to", to)
            assert (said in told.stdout + told.stderr) == (name == "other")
    config = json.loads((tmp_path / "other" / "config.json").read_text())
    config["tie_word_embeddings"] = False
    (tmp_path / "other" / "config.json").write_text(json.dumps(config))
    told = shardwright("convert", tmp_path / "other", tmp_path / "untied", "--to", "torch_dist")
    assert said not in told.stdout + told.stderr
    assert torch.equal(load_dcp(tmp_path / "untied")["output_layer.weight"], embedding * 2)


def test_a_head_that_is_stored_in_place_of_its_embedding(shardwright, tmp_path):
    """safetensors writes what shares memory once, under the first of its names."""
    model = tmp_path / "model"
    made = hf_models.create(model, "llama", vocab_size=510, intermediate_size=120, tie_word_embeddings=True)
    whole = load_hf(model)
    lone = tmp_path / "lone"
    lone.mkdir()
    shutil.copy(model / "config.json", lone)
    save_model(made, str(lone / "model.safetensors"))
    stored = load_hf(lone)
    assert "lm_head.weight" in stored and "model.embed_tokens.weight" not in stored
    shardwright("verify", lone)
    for to in ("torch_dist", "legacy", "hf"):
        done = shardwright("convert", lone, tmp_path / to, "--to", to)
        assert "lm_head.weight is taken for model.embed_tokens.weight" in done.stdout + done.stderr
        shardwright("verify", tmp_path / to, "--against", lone)
        shardwright("diff", lone, tmp_path / to)
        shardwright("diff", tmp_path / to, model)
    assert_same(load_hf(tmp_path / "hf"), whole)
    for key in (lone / "config.json", model / "config.json"):
        config = json.loads(key.read_text())
        config["tie_word_embeddings"] = False
        key.write_text(json.dumps(config))
    told = shardwright("convert", lone, tmp_path / "no", "--to", "torch_dist", expect=2).stderr
    assert "model.embed_tokens.weight" in told and "SW0404" in told


@pytest.mark.parametrize("root", ["backbone", "model"])
def test_an_embedding_of_another_name(shardwright, tmp_path, root):
    """Nemotron-H's has one of its own in each form. A copy of it beside it stands for nothing."""
    model = tmp_path / "model"
    shutil.copytree(GOLDEN / "hf/nemotron_h/hf", model)
    tensors = {name.replace("backbone.", f"{root}."): tensor for name, tensor in load_hf(model).items()}
    for file in model.glob("*.safetensors*"):
        file.unlink()
    config = read_config(model)
    config["tie_word_embeddings"] = True
    (model / "config.json").write_text(json.dumps(config))
    tensors["lm_head.weight"] = tensors[f"{root}.embeddings.weight"].clone()
    save_file(tensors, model / "model.safetensors", metadata={"format": "pt"})
    done = shardwright("convert", model, tmp_path / "whole", "--to", "torch_dist")
    assert "is taken for" not in done.stdout + done.stderr
    shardwright("convert", tmp_path / "whole", tmp_path / "back", "--to", "hf")
    assert_same(load_hf(tmp_path / "back"), tensors)

    lone = with_tensors(model, tmp_path / "lone", lambda tensors: tensors.pop(f"{root}.embeddings.weight"))
    done = shardwright("convert", lone, tmp_path / "from_lone", "--to", "torch_dist")
    assert f"lm_head.weight is taken for {root}.embeddings.weight" in done.stdout + done.stderr
    shardwright("diff", tmp_path / "from_lone", tmp_path / "whole")
