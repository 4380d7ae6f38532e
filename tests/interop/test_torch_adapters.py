# SPDX-License-Identifier: Apache-2.0
"""Adapters whose tensors torch.save wrote (adapter_model.bin), against PEFT, which reads them too."""
import json
import shutil

import pytest
import torch
from safetensors.torch import load_file

import hf_models
from hf_models import tensors_of
from peft_adapters import LLAMA, adapt, by_peft, difference, load

FILE = "adapter_model.bin"


@pytest.fixture
def llama(tmp_path):
    hf_models.create(tmp_path / "base", "llama", **LLAMA)
    return tmp_path / "base"


def both_forms(base, tmp_path, **settings):
    """The same adapter as safetensors and as PEFT's own torch file."""
    adapted = adapt(load(base), tmp_path / "adapter", **settings)
    adapted.save_pretrained(tmp_path / "pickled", safe_serialization=False)
    assert not (tmp_path / "pickled" / "adapter_model.safetensors").exists()
    return tmp_path / "adapter", tmp_path / "pickled"


CASES = {
    "lora": dict(use_rslora=True, rank_pattern={"down_proj": 8}),
    "whole modules": dict(modules_to_save=["lm_head", "norm"]),
    "rows of the embedding": dict(trainable_token_indices=[300, 3, 7]),
    "dora": dict(use_dora=True),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_merged_is_what_peft_merges(case, llama, tmp_path, shardwright):
    plain, pickled = both_forms(llama, tmp_path, **CASES[case])
    shardwright("merge-adapter", llama, pickled, tmp_path / "merged")
    got = tensors_of(tmp_path / "merged")
    assert any(not tensor.equal(got[name]) for name, tensor in tensors_of(llama).items())
    assert difference(got, by_peft(llama, pickled)) <= (1e-6 if case == "dora" else 0.0)
    shardwright("merge-adapter", llama, plain, tmp_path / "same")
    shardwright("diff", tmp_path / "merged", tmp_path / "same")


@pytest.mark.parametrize("names", ["bridge", "ms-swift"])
def test_they_become_a_megatron_runs(names, llama, tmp_path, shardwright):
    plain, pickled = both_forms(llama, tmp_path)
    flags = ["--to", "torch_dist", "--tp", 2, "--hf-config", llama, "--adapter-names", names]
    if names == "ms-swift":  # which has one A for what Megatron fuses
        for folder in (plain, pickled):
            shutil.rmtree(folder)
        plain, pickled = both_forms(llama, tmp_path, target_modules=["o_proj", "down_proj"])
    for folder in (plain, pickled):
        shardwright("convert", folder, tmp_path / f"run of {folder.name}", *flags)
    shardwright("diff", tmp_path / "run of adapter", tmp_path / "run of pickled")
    shardwright("convert", tmp_path / "run of pickled", tmp_path / "back", "--to", "hf", "--hf-config", llama)
    made, expected = (load_file(folder / "adapter_model.safetensors") for folder in (tmp_path / "back", plain))
    assert difference(made, expected) == 0.0


def test_every_command_reads_them(llama, tmp_path, shardwright):
    plain, pickled = both_forms(llama, tmp_path)
    for command in ("inspect", "verify", "hash"):
        done = shardwright(command, pickled)
        assert "merge-adapter BASE ADAPTER OUT" in done.stdout + done.stderr, command
    told = json.loads(shardwright("diagnose", pickled, "--json").stdout)
    assert told["format"] == "peft" and "merge-adapter" in told["reason"]
    shardwright("diff", plain, pickled)
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight"
    tensors = torch.load(pickled / FILE)
    stored = tensors[name]
    tensors[name] = stored + 1
    torch.save(tensors, pickled / FILE)
    assert name in shardwright("diff", plain, pickled, expect=1).stdout
    # torch stores a matrix as it lies in memory; the form of before 1.6 is a stream.
    tensors[name] = stored.t().contiguous().t()
    for is_archive in (True, False):
        torch.save(tensors, pickled / FILE, _use_new_zipfile_serialization=is_archive)
        assert not torch.load(pickled / FILE)[name].is_contiguous()
        shardwright("diff", plain, pickled)


def test_of_two_files_the_one_that_peft_reads(llama, tmp_path, shardwright):
    plain, pickled = both_forms(llama, tmp_path)
    tensors = {name: tensor + 1 for name, tensor in torch.load(pickled / FILE).items()}
    torch.save(tensors, plain / FILE)
    told = "adapter_model.safetensors is read, as PEFT does; adapter_model.bin beside it is left out"
    assert told in shardwright("inspect", plain).stdout
    assert told in shardwright("merge-adapter", llama, plain, tmp_path / "merged").stderr
    assert difference(tensors_of(tmp_path / "merged"), by_peft(llama, plain)) == 0.0


def test_experts_in_a_parameter_that_is_stored_turned(tmp_path, shardwright):
    hf_models.create(tmp_path / "base", "mixtral", tie_word_embeddings=False)
    plain, pickled = both_forms(tmp_path / "base", tmp_path, target_modules=["q_proj"],
                                target_parameters=["experts.gate_up_proj", "experts.down_proj"])  # fmt: skip
    tensors = {name: t.t().contiguous().t() if t.dim() == 2 else t for name, t in torch.load(pickled / FILE).items()}
    torch.save(tensors, pickled / FILE)
    for folder in (plain, pickled):
        shardwright("merge-adapter", tmp_path / "base", folder, tmp_path / f"merged of {folder.name}")
    shardwright("diff", tmp_path / "merged of adapter", tmp_path / "merged of pickled")


class Harmful:
    def __reduce__(self):
        return eval, ("1 + 1",)


def test_files_that_are_broken(llama, tmp_path, shardwright):
    _, pickled = both_forms(llama, tmp_path)
    whole = (pickled / FILE).read_bytes()
    tensors = torch.load(pickled / FILE)

    def refused():
        done = shardwright("merge-adapter", llama, pickled, tmp_path / "no", expect=2)
        assert FILE in done.stderr and not (tmp_path / "no").exists()
        shardwright("convert", pickled, tmp_path / "no", "--to", "torch_dist", "--hf-config", llama, expect=2)
        assert not (tmp_path / "no").exists()
        return done.stderr

    (pickled / FILE).write_bytes(whole[: len(whole) // 2])
    assert "SW0210" in refused()
    shardwright("verify", pickled, expect=1)
    (pickled / FILE).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n")
    assert "Git LFS pointer" in refused()
    torch.save([1, 2], pickled / FILE)
    assert "its value is not a dict of tensors" in refused()
    # A bit of a tensor, which its record's CRC-32 finds wherever the tensor is read.
    begin = whole.index(tensors["base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"].numpy().tobytes())
    (pickled / FILE).write_bytes(whole[:begin] + bytes([whole[begin] ^ 1]) + whole[begin + 1 :])
    assert "SW0314" in refused()
    shardwright("verify", pickled, expect=1)
    # What a loader would run is told, and is not run.
    torch.save({**tensors, "x": Harmful()}, pickled / FILE)
    done = shardwright("merge-adapter", llama, pickled, tmp_path / "merged")
    assert "eval" in done.stderr and "left out: x" in done.stderr
    (pickled / FILE).unlink()
    assert "nor adapter_model.bin" in refused()
