# SPDX-License-Identifier: Apache-2.0
"""Jobs of torch and transformers load checkpoints of the other side, with nothing converted."""
import json
import shutil

import hf_models  # noqa: F401  keeps transformers off the network
import pytest
import torch
import transformers
from any_names_jobs import bytes_read
from checkpoints import GOLDEN, load_dcp, load_hf, same_bits

import shardwright
from shardwright.torch import StorageReader
from shardwright.transformers import from_pretrained

TOKENS = torch.tensor([[1, 5, 9, 200, 33, 7, 91, 4], [3, 2, 400, 77, 12, 8, 6, 500]])


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A model of tensors larger than what is read around them, and its TP2xPP2 checkpoint."""
    folder = tmp_path_factory.mktemp("wide")
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=2000, hidden_size=256, intermediate_size=688, num_hidden_layers=4,
        num_attention_heads=8, num_key_value_heads=4, max_position_embeddings=64, dtype="bfloat16",
    )  # fmt: skip
    transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder / "hf")
    shardwright.convert(folder / "hf", folder / "td", to="torch_dist", tp=2, pp=2)
    return folder


@pytest.mark.parametrize("world", [2, 4])
def test_fsdp2_loads_a_megatron_checkpoint(ranks, wide, world):
    ranks(
        "any_names_jobs", "load_by_hf_names", world, path=wide / "td", folder=wide / "hf",
        options={}, counts=True,
    )  # fmt: skip


def test_fsdp2_loads_what_megatron_saved(ranks, megatron_job, tmp_path):
    """At TP2xPP2, and under Megatron's names alone, where nothing tells the model's config.json."""
    megatron_job("save", "llama3_4l", tmp_path / "saved", tp=2, pp=2)
    shardwright.convert(tmp_path / "saved", tmp_path / "bare", to="safetensors")
    folder = GOLDEN / "hf" / "llama3_4l" / "hf"
    ranks(
        "any_names_jobs", "load_by_hf_names", 2, path=tmp_path / "saved", folder=folder, options={},
        counts=False,
    )  # fmt: skip
    ranks(
        "any_names_jobs", "load_by_hf_names", 2, path=tmp_path / "bare", folder=folder,
        options=dict(hf_config=str(folder)), counts=False,
    )  # fmt: skip


def test_a_megatron_job_loads_a_hugging_face_model(ranks, wide, tmp_path):
    stacked = load_dcp(wide / "td")
    torch.save(stacked, tmp_path / "truth.pt")
    ranks(
        "any_names_jobs", "load_by_megatron_names", 2, path=wide / "hf",
        expected=tmp_path / "truth.pt",
    )  # fmt: skip


def test_a_box_reads_what_it_needs(wide):
    with shardwright.open(wide / "td", names="hf", framework="pt") as checkpoint:
        for name in checkpoint.keys():
            shape = checkpoint.shape_of(name)
            rows = max(1, shape[0] // 3)
            needed = 2 * rows * (shape[1] if len(shape) > 1 else 1)
            if needed < 40_000:  # beside which the count of the count is large
                continue
            before = bytes_read()
            checkpoint.read_box(name, [shape[0] // 4] + [0] * (len(shape) - 1), [rows, *shape[1:]])
            read = bytes_read() - before
            assert needed <= read <= 1.05 * needed, f"{name}: read {read}, needed {needed}"


# qwen2 is tied and has biases; all of them group their queries.
FAMILIES = ["llama3", "qwen2", "qwen3", "qwen3_moe", "mixtral"]


def logits_of(model):
    with torch.no_grad():
        return model(TOKENS).logits


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """`models(family)`: its torch_dist checkpoint, and the Hugging Face model made of that."""
    made = {}

    def make(family):
        if family not in made:
            folder = tmp_path_factory.mktemp(family)
            source = GOLDEN / "hf" / family / "hf"
            shardwright.convert(source, folder / "td", to="torch_dist", tp=2, pp=2)
            shardwright.convert(folder / "td", folder / "hf", to="hf")
            made[family] = folder
        return made[family]

    return make


@pytest.mark.parametrize("family", FAMILIES)
def test_a_model_of_transformers(models, family):
    folder = models(family)
    expected = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf")
    model = from_pretrained(folder / "td")
    assert type(model) is type(expected) and model.config.dtype == expected.config.dtype
    assert not model.training
    assert torch.equal(logits_of(model), logits_of(expected))
    for (name, one), (other_name, other) in zip(
        sorted({**dict(model.named_parameters()), **dict(model.named_buffers())}.items()),
        sorted({**dict(expected.named_parameters()), **dict(expected.named_buffers())}.items()),
    ):
        assert name == other_name and same_bits(one.detach(), other.detach()), name
    head, embedding = model.get_output_embeddings(), model.get_input_embeddings()
    tied = model.config.tie_word_embeddings
    assert (head.weight.data_ptr() == embedding.weight.data_ptr()) == tied
    assert model.generation_config.to_dict() == expected.generation_config.to_dict()


def test_a_model_in_another_dtype(models):
    folder = models("llama3")
    expected = transformers.AutoModelForCausalLM.from_pretrained(folder / "hf", dtype=torch.float32)
    model = from_pretrained(folder / "td", dtype=torch.float32, device="cpu")
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    assert torch.equal(logits_of(model), logits_of(expected))


def test_a_model_of_another_class(models):
    model = from_pretrained(
        models("llama3") / "td", model_class=transformers.LlamaForCausalLM,
        attn_implementation="eager",
    )  # fmt: skip
    assert model.config._attn_implementation == "eager"
    assert model.config.name_or_path == str(models("llama3") / "td")




@pytest.mark.parametrize("auto", [transformers.AutoModelForCausalLM, transformers.AutoModelForSequenceClassification])
def test_a_model_of_the_class_that_an_auto_class_picks(models, tmp_path, auto):
    """As the auto class does itself with what a conversion writes."""
    source = models("llama3") / "hf"
    if auto is not transformers.AutoModelForCausalLM:
        config = transformers.AutoConfig.from_pretrained(source)
        auto.from_config(config).save_pretrained(tmp_path / "hf")
        source = tmp_path / "hf"
    expected = auto.from_pretrained(source)
    model = from_pretrained(source, model_class=auto)
    assert type(model) is type(expected)
    for name, tensor in expected.state_dict().items():
        assert same_bits(model.state_dict()[name], tensor), name


def test_what_does_not_fit_is_refused(models, tmp_path):
    source = models("llama3") / "hf"
    for number, (options, code, words) in enumerate([
        (dict(model_class=transformers.LlamaModel), "SW0403", "has no place for lm_head"),
        (dict(num_hidden_layers=4), "SW0404", "model.layers.3"),
        (dict(intermediate_size=128), "SW0405", "expected (64, 128)"),
        (dict(model_class=transformers.AutoModelForImageClassification), "SW0400", "knows no such model"),
        (dict(model_class="LlamaForCausalLM"), "SW0900", "model_class: found 'LlamaForCausalLM'"),
        (dict(model_class=torch.nn.Linear), "SW0900", "expected a class of transformers"),
        (dict(architectures=["Nobody"]), "SW0400", "none of the classes Nobody"),
        (dict(model_type="nobody"), "SW0400", "takes it for no model of its own"),
    ]):  # fmt: skip
        path = tmp_path / str(number)
        shutil.copytree(source, path)
        kind = options.pop("model_class", None)
        config = json.loads((source / "config.json").read_text())
        (path / "config.json").write_text(json.dumps({**config, **options}))
        with pytest.raises(shardwright.Error, match=code) as refused:
            from_pretrained(path, model_class=kind)
        assert words in str(refused.value)
    (path / "config.json").unlink()
    with pytest.raises(shardwright.Error, match="SW0406.*hf_config="):
        from_pretrained(path)


def test_damage_that_is_met_while_tensors_stream_in_is_the_error(models, tmp_path):
    folder = tmp_path / "td"
    shutil.copytree(models("llama3") / "td", folder)
    norm = load_hf(models("llama3") / "hf")["model.norm.weight"].view(torch.uint8).numpy().tobytes()
    (file,) = [file for file in folder.rglob("*.distcp") if norm in file.read_bytes()]
    bytes_ = bytearray(file.read_bytes())
    bytes_[bytes_.index(norm) + 5] ^= 1
    file.write_bytes(bytes_)
    with pytest.raises(shardwright.FormatError, match="SW0314.*decoder.final_layernorm.weight"):
        from_pretrained(folder)


def test_a_config_that_names_no_type_has_the_tensors(models, tmp_path):
    folder = tmp_path / "hf"
    shutil.copytree(models("llama3") / "hf", folder)
    config = json.loads((folder / "config.json").read_text())
    del config["dtype"]
    (folder / "config.json").write_text(json.dumps(config))
    model = from_pretrained(folder)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.bfloat16}


def test_prediction_layers_that_the_class_has_no_place_for(tmp_path):
    source = GOLDEN / "hf" / "deepseek_v3_mtp" / "hf"
    shardwright.convert(source, tmp_path / "td", to="torch_dist")
    shardwright.convert(tmp_path / "td", tmp_path / "hf", to="hf", mtp="drop")
    with pytest.raises(shardwright.ModelError, match='SW0403.*mtp="drop" leaves prediction layers'):
        from_pretrained(tmp_path / "td")
    expected = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "hf")
    model = from_pretrained(tmp_path / "td", mtp="drop")
    tokens = TOKENS % model.config.vocab_size
    with torch.no_grad():
        assert torch.equal(model(tokens).logits, expected(tokens).logits)


def test_ranks_share_out_stored_names_only(tmp_path):
    with pytest.raises(shardwright.UsageError, match="locality=False"):
        StorageReader(tmp_path, names="hf", locality=True)
