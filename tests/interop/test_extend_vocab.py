# SPDX-License-Identifier: Apache-2.0
"""Vocabularies that grow: each new row is the mean of the rows that are there, as numpy makes it."""
import json
import re
import shutil

import numpy
import pytest
import torch
import transformers
from safetensors.torch import save_file

import checkpoints
import hf_models
import packed
from hf_models import tensors_of
from test_families_further_towers import CASES as TOWERS

SIZES = dict(vocab_size=500, intermediate_size=128)
ROWS = 513
EMBEDDING, HEAD = "model.embed_tokens.weight", "lm_head.weight"


def extended(table, rows=ROWS):
    """Sums in float64, row by row, one rounding."""
    total = numpy.zeros(table.shape[1])
    for row in table.double().numpy():
        total += row
    mean = torch.from_numpy(total / len(table)).to(table.dtype)
    return torch.cat([table, mean.expand(rows - len(table), -1)])


def assert_extended(got, model):
    assert set(got) == set(model)
    for name, tensor in model.items():
        expected = extended(tensor) if name in (EMBEDDING, HEAD) else tensor
        assert got[name].dtype == expected.dtype and torch.equal(got[name], expected), name


@pytest.fixture(params=[(False, torch.float32), (True, torch.bfloat16)], ids=["apart", "tied"])
def llama(request, tmp_path):
    tied, dtype = request.param
    hf_models.create(tmp_path / "base", "llama", dtype, tie_word_embeddings=tied, **SIZES)
    return tmp_path / "base"


def test_hugging_face_to_hugging_face(llama, tmp_path, shardwright):
    said = shardwright("convert", llama, tmp_path / "out", "--to", "hf", "--extend-vocab", ROWS)
    assert f"the vocabulary gets {ROWS} rows instead of 500" in said.stderr
    assert_extended(tensors_of(tmp_path / "out"), tensors_of(llama))
    assert json.loads((tmp_path / "out" / "config.json").read_text())["vocab_size"] == ROWS
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert loaded.get_input_embeddings().weight.shape[0] == ROWS


def test_a_tied_models_head_of_its_own(tmp_path, shardwright):
    """transformers takes it for what it is, where its values are others than the embedding's."""
    hf_models.create(tmp_path / "made", "llama", torch.bfloat16, tie_word_embeddings=True, **SIZES)
    base = tmp_path / "base"
    base.mkdir()
    shutil.copy(tmp_path / "made" / "config.json", base)
    model = tensors_of(tmp_path / "made")
    model[HEAD] = model[EMBEDDING] * 2
    save_file(model, base / "model.safetensors", metadata={"format": "pt"})
    grow = ("--extend-vocab", ROWS)
    shardwright("convert", base, tmp_path / "out", "--to", "hf", *grow)
    assert_extended(tensors_of(tmp_path / "out"), model)
    loaded = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    assert loaded.lm_head.weight.shape[0] == ROWS
    shardwright("convert", base, tmp_path / "megatron", "--to", "torch_dist", *grow)
    shardwright("convert", tmp_path / "megatron", tmp_path / "back", "--to", "hf")
    assert_extended(tensors_of(tmp_path / "back"), model)


# 513 rows are padded to 768: rows behind the new ones are zero, and are no part of the model.
def test_to_megatron_within_and_back(llama, tmp_path, shardwright):
    pad = ["--tp", 2, "--make-vocab-size-divisible-by", 128]
    grow = ["--extend-vocab", ROWS]
    steps = {
        "grown at once": [llama, [*pad, *grow]],
        "as it is": [llama, pad],
        "grown later": [tmp_path / "as it is", [*pad, *grow]],
    }
    for name, (source, flags) in steps.items():
        shardwright("convert", source, tmp_path / name, "--to", "torch_dist", *flags)
    for name in ("grown at once", "grown later"):
        shardwright("convert", tmp_path / name, tmp_path / f"{name} hf", "--to", "hf")
        assert_extended(tensors_of(tmp_path / f"{name} hf"), tensors_of(llama))
        config = json.loads((tmp_path / f"{name} hf" / "config.json").read_text())
        assert config["vocab_size"] == ROWS, name
    shardwright("convert", tmp_path / "as it is", tmp_path / "grown hf", "--to", "hf", *grow)
    assert_extended(tensors_of(tmp_path / "grown hf"), tensors_of(llama))


def test_legacy_files_too(llama, tmp_path, shardwright):
    pad = ["--tp", 2, "--make-vocab-size-divisible-by", 128]
    shardwright("convert", llama, tmp_path / "mp", "--to", "legacy", *pad)
    shardwright("convert", tmp_path / "mp", tmp_path / "grown", "--to", "legacy", *pad,
                "--extend-vocab", ROWS)  # fmt: skip
    config = json.loads((llama / "config.json").read_text())
    config["vocab_size"] = ROWS
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.json").write_text(json.dumps(config))
    shardwright("convert", tmp_path / "grown", tmp_path / "hf", "--to", "hf", "--hf-config",
                tmp_path / "config")  # fmt: skip
    assert_extended(tensors_of(tmp_path / "hf"), tensors_of(llama))


def test_what_makes_no_sense_is_refused(llama, tmp_path, shardwright):
    for flags, message in (
        (["--to", "hf", "--extend-vocab", 500], "has 500 rows already"),
        (["--to", "hf", "--extend-vocab", 20], "has 500 rows already"),
        (["--to", "hf", "--extend-vocab", 0], "--extend-vocab"),
        (["--to", "safetensors", "--extend-vocab", ROWS], "does not apply to --to safetensors"),
        (["--to", "torch_dist", "--extend-vocab", ROWS, "--tp", 2], "error[SW0408]"),
        (["--to", "torch_dist", "--extend-vocab", ROWS, "--include", "*norm*"], "error["),
    ):
        done = shardwright("convert", llama, tmp_path / "no", *flags, expect=2)
        assert message in done.stderr, flags
        assert not (tmp_path / "no").exists()


# Nobody knows which experts a new token hashes to, or what Gemma 4's layers add for it; where Mllama's
# tokens of its own begin, new ones can't stand behind the others.
@pytest.mark.parametrize(
    "kind, hf_table, megatron_table",
    [
        ("deepseek_v4", "tid2eid", "tid2eid"),
        ("gemma4_text", "embed_tokens_per_layer.weight", "per_layer_embedding.weight"),
        ("mllama", "embed_tokens.weight", "word_embeddings.weight"),
    ],
)
def test_other_tables_of_tokens_are_refused(tmp_path, shardwright, kind, hf_table, megatron_table):
    base = tmp_path / "base"
    if kind == "mllama":
        hf_models.create_form(base, TOWERS[kind], "published")
    else:
        hf_models.create(base, kind, torch.bfloat16)
    shardwright("convert", base, tmp_path / "run", "--to", "torch_dist")
    for source in ("base", "run"):
        for to, table in (("hf", hf_table), ("torch_dist", megatron_table)):
            flags = ("--to", to, "--extend-vocab", 4096)
            said = shardwright("convert", tmp_path / source, tmp_path / "no", *flags, expect=2)
            assert re.search(rf"{re.escape(table)} of shape .* an entry for each token", said.stderr)
            assert not (tmp_path / "no").exists()


def test_a_prediction_layer_with_a_head_of_its_own_is_refused(tmp_path, shardwright):
    shutil.copytree(checkpoints.GOLDEN / "hf/deepseek_v3_mtp/hf", tmp_path / "base")
    rows = json.loads((tmp_path / "base/config.json").read_text())["vocab_size"] + 8
    flags = ("--to", "hf", "--extend-vocab", rows)
    shardwright("convert", tmp_path / "base", tmp_path / "out", *flags)
    tensors = tensors_of(tmp_path / "base")
    (head,) = (name for name in tensors if name.endswith("shared_head.head.weight"))
    assert len(tensors_of(tmp_path / "out")[head]) == rows, "a copy of the model's grows with it"
    tensors[head] = tensors[head] * 1.5
    for file in (tmp_path / "base").glob("*.safetensors*"):
        file.unlink()
    save_file(tensors, tmp_path / "base/model.safetensors", metadata={"format": "pt"})
    said = shardwright("convert", tmp_path / "base", tmp_path / "no", *flags, expect=2)
    assert f"{head} of shape" in said.stderr


# A packed head has no rows to add to, and config.json would say that it has.
def test_a_packed_head_is_refused(tmp_path, shardwright):
    base = tmp_path / "base"
    heads = dict(num_attention_heads=4, num_key_value_heads=2, head_dim=16)
    sizes = dict(vocab_size=512, hidden_size=64, intermediate_size=128, **heads)
    hf_models.create(base, "llama", torch.float16, tie_word_embeddings=False, **sizes)
    gptq = packed.Gptq(4, 32)
    model = packed.Packed(base, tmp_path / "gptq", gptq.method, gptq.store)

    def pack_head(tensors):
        stored, _ = gptq.store("lm_head.weight", tensors.pop("lm_head.weight"))
        tensors.update({f"lm_head.{key}": value for key, value in stored.items()})

    model.change(pack_head)
    flags = ("--to", "hf", "--extend-vocab", ROWS)
    done = shardwright("convert", model.quantised, tmp_path / "no", *flags, expect=2)
    assert "tensor lm_head.weight is stored quantised" in done.stderr
    shardwright("convert", model.quantised, tmp_path / "out", *flags, "--dtype", "bfloat16")
    assert tensors_of(tmp_path / "out")["lm_head.weight"].shape[0] == ROWS
