# SPDX-License-Identifier: Apache-2.0
"""The rest of the package's functions, and what Python users expect of names, errors and devices."""
import copy
import inspect
import json
import pathlib
import pickle
import re
import shutil
import subprocess

import numpy
import pytest
import torch
from checkpoints import GOLDEN
from safetensors import safe_open
from safetensors.torch import save_file

import shardwright
from shardwright import _keywords

LLAMA = GOLDEN / "hf" / "llama3" / "hf"
VISION = GOLDEN / "hf" / "qwen3_vl" / "hf"


@pytest.fixture
def program(request):
    return request.getfixturevalue("shardwright")


def test_keywords_are_the_flags_of_the_program(program):
    for command, keywords in _keywords.KEYWORDS.items():
        page = program(command.replace("_", "-"), "--help").stdout
        own = page.partition("\nFlags:\n")[2].partition("\nEvery command:\n")[0]
        flags = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", own, re.MULTILINE))
        # What a function has as an argument, or for no reader.
        flags -= {"json", "verbose", "stat", "tree", "to", "config", "output"}
        flags -= {"merge": {"component"}, "average": {"weights"}}.get(command, set())
        flags -= {"help"}
        # Of all commands; these have texts in both languages.
        if command in {"diagnose", "explain", "plan", "report", "verify"}:
            flags.add("lang")
        given = {name.rstrip("_").replace("_", "-") for name in keywords}
        assert given == flags, command


def test_signatures_say_what_may_be_given():
    for command, keywords in _keywords.KEYWORDS.items():
        parameters = inspect.signature(getattr(shardwright, command)).parameters
        assert set(keywords) <= set(parameters), command
        assert not any(one.kind is one.VAR_KEYWORD for one in parameters.values())


def test_exceptions_are_english_in_every_locale(monkeypatch):
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    with pytest.raises(shardwright.MissingError, match="/nowhere: cannot open this folder: No such file"):
        shardwright.inspect("/nowhere")
    with pytest.raises(shardwright.Error) as refused:
        shardwright.open(LLAMA, names="stored", dtype="float32")
    assert str(refused.value).isascii()


def test_inspect_tells_what_a_checkpoint_holds(tmp_path):
    found = shardwright.inspect(LLAMA, tensors="*norm*")
    assert found.format == "hf" and found.totals["tensors"] == 30
    names = [tensor.name for tensor in found.tensors]
    assert names and all("norm" in name for name in names)
    assert found.tensors[0].dtype == "bfloat16" and found.counts is None
    torch.save({"step": 3, "w": torch.ones(2)}, tmp_path / "state.pt")
    one = shardwright.inspect(tmp_path / "state.pt", depth=3, limit=50)
    assert one.counts["storages"] == 1 and one.container is None and one.values[0]["kind"] == "dict"
    assert "Inspection(path=" in repr(one) and "state.pt" in one._repr_html_()


def test_a_report_is_a_page(tmp_path):
    page = tmp_path / "page.html"
    found = shardwright.report(LLAMA, output=page, lang="zh")
    assert found and found.equal is None and found.tensors == 30
    assert found.bytes == page.stat().st_size and b'lang="zh' in page.read_bytes()[:200]
    with pytest.raises(FileExistsError):
        shardwright.report(LLAMA, output=page, overwrite=False)
    other = GOLDEN / "hf" / "mistral" / "hf"
    differs = shardwright.report(LLAMA, other, output=page, overwrite=True)
    assert differs.equal is False and not differs
    plan = tmp_path / "plan.html"
    assert shardwright.plan(LLAMA, tmp_path / "to", to="torch_dist", html=plan, lang="en")
    assert plan.read_bytes().startswith(b"<!doctype html>")


def test_show_is_a_tensor():
    found = shardwright.show(LLAMA, "model.norm.weight")
    with safe_open(LLAMA / "model.safetensors", "pt") as reference:
        tensor = reference.get_tensor("model.norm.weight").double()
    assert found.values == tensor[: len(found.values)].tolist()
    assert found.mean == pytest.approx(tensor.mean().item())
    assert found.max == tensor.max().item() and found.shape == [64]


def test_show_has_numbers_for_the_largest_of_each_type(tmp_path):
    most = torch.iinfo(torch.int64).max
    tensors = {
        "f": torch.tensor([1e308, 1e308], dtype=torch.float64),
        "i": torch.tensor([most, -most, 2**53 + 1]),
        "u": torch.tensor([2**64 - 1, 2**53 + 1], dtype=torch.uint64),
        "n": torch.tensor([float("nan"), -float("nan")]),
    }
    save_file(tensors, tmp_path / "model.safetensors")
    shown = {name: shardwright.show(tmp_path, name) for name in tensors}
    assert (shown["f"].mean, shown["f"].std) == (1e308, 0)
    assert shown["i"].values == tensors["i"].tolist()
    assert shown["u"].values == [2**64 - 1, 2**53 + 1]
    assert shown["n"].values == ["nan", "nan"] and shown["n"].mean is None


def test_a_difference_that_is_no_number_is_one_in_python(tmp_path):
    for name, value in (("a", 1.0), ("b", float("nan"))):
        (tmp_path / name).mkdir()
        save_file({"w": torch.full((2,), value)}, tmp_path / name / "model.safetensors")
    found = shardwright.diff(tmp_path / "a", tmp_path / "b", own_names=True)
    assert not found and isinstance(found.max_delta, float)


def test_split_and_merge_make_the_same_model(tmp_path):
    done = shardwright.split(VISION, tmp_path / "parts")
    parts = {part.name: tmp_path / "parts" / part.name for part in done.parts}
    assert set(parts) == {"language", "images", "adapter"}
    config = tmp_path / "parts" / "model"
    dry = shardwright.merge(tmp_path / "whole", parts, config=config, dry_run=True)
    assert dry and not dry.written and dry.output is None and not (tmp_path / "whole").exists()
    whole = shardwright.merge(tmp_path / "whole", parts, config=config)
    assert whole.written and whole.output == str(tmp_path / "whole")
    assert shardwright.diff(VISION, tmp_path / "whole")
    misfit = shardwright.merge(tmp_path / "no", {**parts, "adapter": LLAMA}, config=config)
    assert not misfit and misfit.findings and not (tmp_path / "no").exists()


def test_index_and_explain(tmp_path):
    shutil.copytree(LLAMA, tmp_path / "m")
    done = shardwright.index(tmp_path / "m")
    assert done.written and (tmp_path / "m" / "model.safetensors.index.json").exists()
    assert not shardwright.index(tmp_path / "m").written
    page = shardwright.explain("307", lang="en")
    assert page.code == "SW0307" and str(page).startswith("SW0307 A hole\n\nNo chunk holds")
    assert shardwright.explain("L07", lang="zh").language == "zh"
    with pytest.raises(ValueError, match="unknown code"):
        shardwright.explain("SW9")


def test_errors_are_also_those_of_python(tmp_path):
    taken = tmp_path / "taken"
    taken.mkdir()
    (taken / "x").write_text("mine")
    cases = [
        (FileNotFoundError, lambda: shardwright.open(tmp_path / "nothing")),
        (FileExistsError, lambda: shardwright.convert(LLAMA, taken, to="hf")),
        (ValueError, lambda: shardwright.convert(LLAMA, tmp_path / "x", to="nonsense")),
        (ValueError, lambda: shardwright.verify(taken)),
        (ValueError, lambda: shardwright.convert(LLAMA, tmp_path / "x", to="torch_dist", tp=7)),
        (KeyError, lambda: shardwright.open(LLAMA)["model.nrom.weight"]),
        (KeyError, lambda: shardwright.open(LLAMA).get_object("rng")),
        (ValueError, lambda: shardwright.open(LLAMA, framework="jax")),
    ]
    for kind, call in cases:
        with pytest.raises(kind) as caught:
            call()
        error = caught.value
        assert isinstance(error, shardwright.Error) and error.code.startswith("SW")
        assert str(error) == f"error[{error.code}]: {error.message}"
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) == str(copy.copy(error))
    with pytest.raises(OSError) as caught:
        shardwright.open(tmp_path / "nothing")
    assert caught.value.errno == 2


def test_errors_speak_of_arguments(tmp_path):
    def message(*arguments, **keywords):
        with pytest.raises(shardwright.Error) as caught:
            shardwright.convert(*arguments, **keywords)
        return caught.value.message

    shardwright.convert(LLAMA, tmp_path / "a", to="hf")
    assert "overwrite=True" in message(LLAMA, tmp_path / "a", to="hf")
    assert message(LLAMA, tmp_path / "b", to="hf", overwite=True) == (
        "convert: unknown argument overwite; did you mean overwrite=True?"
    )
    assert message(LLAMA, tmp_path / "b", to="torch_dist", tp=0).startswith("tp: found '0'")
    assert "--" not in message(LLAMA, tmp_path / "b", to="hf", tp=2)


def test_notes_speak_of_arguments(tmp_path):
    model = GOLDEN / "hf" / "llama3" / "hf"
    plan = shardwright.plan(model, tmp_path / "x", to="dcp", hf_config=model)
    assert 'no use is made of hf_config: to="dcp" keeps the names that are stored' in plan.notes
    plan = shardwright.plan(model, tmp_path / "x", to="torch_dist", tp=2, etp=1)
    assert "no use is made of etp=1: the model has no experts" in plan.notes


def test_values_that_are_none_begin_nothing(tmp_path, monkeypatch):
    """True or nothing for what takes a value took the word behind it for one."""
    monkeypatch.chdir(tmp_path)
    for flags in ({"family": True}, {"hf_config": True}, {"tp": True}, {"include": ""}, {"family": ""}):
        with pytest.raises(shardwright.Error) as caught:
            shardwright.convert(LLAMA, "out", to="torch_dist", **flags)
        assert "json" not in caught.value.message, caught.value.message
        assert not any(tmp_path.iterdir()), flags
    with pytest.raises(shardwright.UsageError, match="a list of two or more"):
        shardwright.average(LLAMA, "out")
    shardwright.convert(LLAMA, "out", to="torch_dist", overwrite=True)


def test_a_checkpoint_is_a_mapping():
    with shardwright.open(LLAMA, framework="pt") as ckpt, safe_open(
        LLAMA / "model.safetensors", "pt"
    ) as reference:
        assert ckpt.offset_keys() == reference.offset_keys()
        assert sorted(ckpt) == sorted(reference.keys()) == sorted(dict(ckpt.items()))
        assert torch.equal(ckpt["lm_head.weight"], reference.get_tensor("lm_head.weight"))
        every = ckpt.get_tensors()
        assert list(every) == reference.offset_keys()
        assert all(torch.equal(every[name], reference.get_tensor(name)) for name in every)
        html = ckpt._repr_html_()
        assert "30 tensors" in html and "lm_head.weight" in html and "bfloat16" in html
    assert "closed" in ckpt._repr_html_()


def test_names_in_html_are_escaped(tmp_path):
    save_file({"<b>&": torch.ones(1)}, tmp_path / "model.safetensors")
    html = shardwright.open(tmp_path)._repr_html_()
    assert "&lt;b&gt;&amp;" in html and "<b>" not in html


def test_offset_keys_follow_the_files(tmp_path):
    shardwright.convert(LLAMA, tmp_path / "td", to="torch_dist", tp=2)
    with shardwright.open(tmp_path / "td") as ckpt:
        assert sorted(ckpt.offset_keys()) == ckpt.keys()
        places = {}
        for tensor in shardwright.inspect(tmp_path / "td").tensors:
            places[tensor.name] = min((one["file"], one["offset"]) for one in tensor.chunks)
        in_files = [places[name] for name in ckpt.offset_keys()]
        assert in_files == sorted(in_files)


DTYPES = {
    "bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32,
    "float64": torch.float64, "int8": torch.int8, "uint8": torch.uint8, "int16": torch.int16,
    "int32": torch.int32, "int64": torch.int64, "bool": torch.bool,
}  # fmt: skip


def test_dlpack_hands_on_every_dtype(tmp_path):
    tensors = {
        name: (torch.arange(24).reshape(2, 3, 4) % 2).to(dtype) for name, dtype in DTYPES.items()
    }
    tensors["scalar"] = torch.tensor(2.5, dtype=torch.bfloat16)
    tensors["empty"] = torch.zeros((0, 3), dtype=torch.bfloat16)
    save_file(tensors, tmp_path / "model.safetensors")
    with shardwright.open(tmp_path, framework="dlpack") as ckpt:
        for name, expected in tensors.items():
            found = torch.from_dlpack(ckpt.get_tensor(name))
            assert found.dtype == expected.dtype and torch.equal(found, expected), name
        part = torch.from_dlpack(ckpt.get_slice("bfloat16")[1, ::2, 1:3])
        assert torch.equal(part, tensors["bfloat16"][1, ::2, 1:3])
        assert numpy.array_equal(numpy.from_dlpack(ckpt["int32"]), tensors["int32"].numpy())
        kept = ckpt["float32"]
    assert torch.equal(torch.from_dlpack(kept), tensors["float32"])


def test_dlpack_says_what_it_lacks(tmp_path):
    save_file({"w": torch.zeros(2).to(torch.float8_e8m0fnu)}, tmp_path / "model.safetensors")
    with shardwright.open(tmp_path, framework="dlpack") as ckpt:
        with pytest.raises(TypeError, match="float8_e8m0fnu.*framework='pt'"):
            ckpt.get_tensor("w")


def test_tensors_go_to_their_device():
    with shardwright.open(LLAMA, framework="pt", device="meta") as ckpt:
        assert ckpt["model.norm.weight"].device.type == "meta"
        assert ckpt.get_slice("model.norm.weight")[:3].device.type == "meta"
    with shardwright.open(LLAMA, framework="pt", device=torch.device("cpu")) as ckpt:
        assert ckpt["model.norm.weight"].device.type == "cpu"
    for framework in ("np", "dlpack"):
        shardwright.open(LLAMA, framework=framework, device="cpu")
        with pytest.raises(ValueError, match="needs framework='pt'"):
            shardwright.open(LLAMA, framework=framework, device="cuda:0")


def test_clean(tmp_path):
    left = tmp_path / ".out.partial-4194305-0"
    left.mkdir()
    (left / "x").write_bytes(b"123")
    (found,) = shardwright.clean(tmp_path).outputs
    assert (found["state"], found["bytes"], found["removed"]) == ("abandoned", 3, False)
    assert left.exists()
    assert shardwright.clean(tmp_path, remove=True).outputs[0]["removed"] and not left.exists()
    assert shardwright.clean(tmp_path).outputs == []


def test_digests(tmp_path):
    shardwright.convert(LLAMA, tmp_path / "m", to="hf", digests=True, sha256=True)
    said = json.loads((tmp_path / "m" / "integrity.json").read_text())
    assert said["algorithm"] == "sha256"
    assert {"config.json", "model.safetensors", "shardwright-digests.jsonl"} <= set(said["files"])
    assert shardwright.verify(tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    config.write_text(config.read_text() + " ")
    found = shardwright.verify(tmp_path / "m").findings
    assert [finding.code for finding in found] == ["SW0315", "SW0315"]
    assert all("config.json" in finding.message for finding in found)


def test_signatures(tmp_path):
    private, public = tmp_path / "key.pem", tmp_path / "key.pub"
    make = ["openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", private]
    subprocess.run(make, check=True)
    subprocess.run(["openssl", "pkey", "-in", private, "-pubout", "-out", public], check=True)
    shardwright.convert(LLAMA, tmp_path / "m", to="hf", sign=private)
    checks = shardwright.verify(tmp_path / "m", public_key=public).checks
    assert any("was signed" in said for said in checks)
    (tmp_path / "m" / "model.sig").unlink()
    (found,) = shardwright.verify(tmp_path / "m", public_key=public).findings
    assert found.code == "SW0324"


def test_schema_and_results_agree():
    """Each result has the fields of its command's document."""
    schemas = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
    for command, kind in {
        "inspect": shardwright.Inspection, "show": shardwright.TensorReport,
        "merge": shardwright.Merge, "split": shardwright.Split, "index": shardwright.Index,
        "explain": shardwright.Page, "clean": shardwright.Leftovers,
    }.items():  # fmt: skip
        documents = json.loads((schemas / f"{command}.json").read_text())["anyOf"]
        keys = {key for one in documents for key in one["properties"]} - {"schema", "error"}
        assert set(kind.__dataclass_fields__) == keys, command


def test_nothing_is_written_to_a_folder_called_s3(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for call in (
        lambda: shardwright.plan(LLAMA, "hf://org/out", to="hf"),
        lambda: shardwright.convert(LLAMA, "hf://org/model", to="hf"),
        lambda: shardwright.split(VISION, "https://server/out"),
    ):
        with pytest.raises(shardwright.UsageError, match="written on this machine"):
            call()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError, match="hf download meta-llama/Llama-3.1-8B"):
        shardwright.open("meta-llama/Llama-3.1-8B")


def test_parts_of_a_saved_plan_become_what_one_process_writes(tmp_path):
    saved, target = tmp_path / "p.plan", tmp_path / "out"
    shardwright.plan(LLAMA, target, to="torch_dist", tp=2, save=saved)
    with pytest.raises(shardwright.StorageError, match="SW0118"):
        shardwright.publish(saved)
    parts = [shardwright.convert(plan=saved, part=f"{number}/2") for number in (2, 1)]
    assert [one.part["number"] for one in parts] == [2, 1] and not target.exists()
    again = shardwright.convert(plan=saved, part="1/2", threads=1)
    assert again.bytes_written == 0 and parts[1].bytes_written > 0
    done = shardwright.publish(saved)
    assert done.output == str(target)
    assert done.bytes_checked == sum(one.bytes_written for one in parts)
    shardwright.convert(LLAMA, tmp_path / "alone", to="torch_dist", tp=2)
    files = {path.relative_to(target): path.read_bytes() for path in target.rglob("*.*")}
    assert files == {
        path.relative_to(tmp_path / "alone"): path.read_bytes()
        for path in (tmp_path / "alone").rglob("*.*")
    }
    with pytest.raises(shardwright.UsageError, match="part: found '3/2'"):
        shardwright.convert(plan=saved, part="3/2")
