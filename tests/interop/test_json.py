# SPDX-License-Identifier: Apache-2.0
"""What `--json` prints, against the schemas of docs/schemas.

A schema allows keys that it does not name, because a later version may add some. Here it does not: what
is printed is described. And what is described is printed by one of these commands, so that no schema
goes stale.
"""
import copy
import json
import pathlib
import re
import shutil
import subprocess
import sys

import jsonschema
import pytest
from checkpoints import GOLDEN

SCHEMAS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
LLAMA = GOLDEN / "hf" / "llama3" / "hf"
VISION = GOLDEN / "hf" / "qwen3_vl" / "hf"
MAKE_ADAPTER = SCHEMAS.parents[1] / "tests" / "cli" / "make_adapter.py"
MALICIOUS = GOLDEN / "malicious"
PARTS = [
    word
    for name in ("language", "images", "adapter")
    for word in ("--component", f"{name}=parts/{name}")
]


def schema_of(name):
    return json.loads((SCHEMAS / f"{name}.json").read_text())


def closed(schema):
    """The schema, with no keys but those that it names."""
    schema = copy.deepcopy(schema)
    for node in nodes_of(schema):
        if "properties" in node:
            node.setdefault("additionalProperties", False)
    return schema


def nodes_of(value):
    if isinstance(value, dict):
        yield value
        for child in value.values():
            yield from nodes_of(child)
    elif isinstance(value, list):
        for child in value:
            yield from nodes_of(child)


def properties_of(schema):
    return {key for node in nodes_of(schema) for key in node.get("properties", {})}


def keys_of(document):
    return {key for node in nodes_of(document) for key in node}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, shardwright):
    folder = tmp_path_factory.mktemp("json")
    shutil.copytree(LLAMA, folder / "indexed")
    shardwright("split", VISION, folder / "parts")
    shutil.copytree(folder / "parts", folder / "broken")
    (folder / "broken" / "adapter" / "model.safetensors").unlink()
    shutil.copy(LLAMA / "model.safetensors", folder / "broken" / "adapter")
    shardwright("convert", LLAMA, folder / "td", "--to", "torch_dist", "--tp", "2")
    shutil.copytree(LLAMA.parent / "legacy_tp2pp2ep1", folder / "lost")
    shutil.rmtree(sorted(folder.glob("lost/**/mp_rank_01_001"))[0])
    shutil.copytree(folder / "td", folder / "damaged")
    data = folder / file_of(folder / "damaged", "__0_0.distcp", folder)
    data.write_bytes(data.read_bytes()[:-1] + b"?")
    mapping = json.loads((SCHEMAS.parents[1] / "models" / "llama.json").read_text())
    mapping.update(family="short", architectures=["Short"], model_types=["short"])
    mapping["groups"]["layer"].remove({"use": "mlp"})
    (folder / "short.json").write_text(json.dumps(mapping))
    (folder / ".out.partial-4194305-0").mkdir()
    target = [LLAMA, folder / "published", "--to", "torch_dist", "--tp", "2"]
    shardwright("plan", *target, "--save", folder / "td.plan")
    shardwright("convert", "--plan", folder / "td.plan", "--part", "1/1")
    for model, adapter in ((LLAMA, "adapter"), (VISION, "vision adapter")):
        subprocess.run([sys.executable, MAKE_ADAPTER, model, folder / adapter], check=True)
        shutil.copytree(model, folder / f"other {'llama' if model == LLAMA else 'vision'}")
    return folder


def file_of(folder, pattern, base):
    found = sorted(folder.rglob(pattern))
    assert found, f"no {pattern} in {folder}"
    return found[0].relative_to(base)


# By command: command lines and their exit statuses.
RUNS = {
    "inspect": [
        (["inspect", LLAMA], 0),
        (["inspect", "td"], 0),
        (["inspect", LLAMA / "model.safetensors"], 0),
        (["inspect", "td/COMMON", "--limit", "20"], 0),
        (["inspect", GOLDEN / "torch_save" / "malicious" / "FIRST"], 0),
    ],
    "plan": [
        (["plan", LLAMA, "out", "--to", "torch_dist", "--tp", "2", "--dp", "4"], 0),
        (["plan", VISION, "out", "--to", "mimo"]
         + ["--component", "language=tp=2", "--component", "images=tp=1"], 0),
        (["convert", LLAMA, "td", "--to", "torch_dist", "--overwrite", "--dry-run"], 0),
    ],
    "convert": [
        (["convert", LLAMA, "fresh", "--to", "torch_dist", "--tp", "2"], 0),
        (["convert", VISION, "mimo", "--to", "mimo"]
         + ["--component", "language=tp=2", "--component", "images=tp=1"], 0),
        (["convert", "--plan", "td.plan", "--part", "1/1"], 0),
    ],
    "publish": [(["publish", "td.plan"], 0), (["publish", "td.plan"], 2)],
    "diagnose": [(["diagnose", "td"], 0), (["diagnose", "lost"], 1), (["diagnose", "mimo"], 0)],
    "verify": [(["verify", "td"], 0), (["verify", "damaged"], 1)],
    "diff": [(["diff", LLAMA, "td"], 0), (["diff", LLAMA, GOLDEN / "hf" / "mistral" / "hf"], 1)],
    "hash": [
        (["hash", "td"], 0),
        (["hash", LLAMA], 0),
        (["hash", GOLDEN / "mcore" / "dense_te" / "v0.16.1" / "tp2pp2-torch_dist-full"], 0),
    ],
    "show": [(["show", "td", "decoder.layers.1.mlp.linear_fc1.weight"], 0)],
    "locality": [(["locality", "td", "--tp", "2"], 0)],
    "report": [
        (["report", "td", "-o", "page.html"], 0),
        (["report", LLAMA, GOLDEN / "hf" / "mistral" / "hf", "-o", "two.html"], 1),
        (["report", "lost", "-o", "lost.html"], 1),
    ],
    "index": [(["index", "rebuild", "indexed"], 0)],
    "clean": [(["clean", "."], 0), (["clean", ".", "--remove"], 0)],
    "explain": [(["explain", "307"], 0), (["explain", "L07", "--lang", "zh"], 0)],
    "map": [
        (["map", "list"], 0),
        (["map", "check", "short.json", "--hf", LLAMA], 1),
    ],
    "merge": [
        (["merge", "whole", *PARTS, "--config", "parts/model"], 0),
        (["merge", "dry", *PARTS, "--config", "parts/model", "--dry-run"], 0),
        (["merge", "no", *(word.replace("parts/a", "broken/a") for word in PARTS)]
         + ["--config", "parts/model"], 1),
    ],
    "split": [(["split", VISION, "again"], 0)],
    "merge-adapter": [
        (["merge-adapter", LLAMA, "adapter", "merged"], 0),
        (["merge-adapter", VISION, "vision adapter", "merged-mimo", "--to", "mimo"]
         + ["--component", "language=tp=2", "--component", "images=tp=1"], 0),
    ],
    "average": [
        (["average", LLAMA, "other llama", "mean"], 0),
        (["average", VISION, "other vision", "mean-mimo", "--to", "mimo"]
         + ["--component", "language=tp=2", "--component", "images=tp=1"], 0),
    ],
    "demo": [(["demo"], 0)],
}  # fmt: skip


def words_of(folder, words):
    common = str(file_of(folder / "td", "common.pt", folder))
    first = sorted((GOLDEN / "torch_save" / "malicious").glob("*.pt*"))[0].name
    return [str(word).replace("td/COMMON", common).replace("FIRST", first) for word in words]


@pytest.fixture(scope="module")
def run(folder):
    import os

    def run(words, *more):
        return subprocess.run(
            [os.environ["SHARDWRIGHT_BIN"], *words, *more],
            cwd=folder, capture_output=True, text=True, timeout=120,
        )  # fmt: skip

    return run


def test_every_command_has_a_schema(shardwright):
    overview = shardwright("--help").stdout
    commands = set(re.findall(r"^  ([\w-]+) +\S", overview.split("Commands:")[1], re.MULTILINE))
    commands.discard("shardwright")
    without = {"completion", "man"}  # what they print is for a shell and for man
    assert commands - without == {path.stem for path in SCHEMAS.glob("*.json")} - {"progress"}
    assert commands - without == set(RUNS)


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_schemas_are_schemas(path):
    jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text()))


@pytest.mark.parametrize("command", RUNS)
def test_documents_are_what_the_schema_says(command, folder, run):
    schema = schema_of(command)
    validator = jsonschema.Draft202012Validator(closed(schema))
    seen = set()
    runs = [*RUNS[command], ([command, "--no-such-flag"], 2)]
    for words, status in runs:
        done = run(words_of(folder, words), "--json")
        assert done.returncode == status, f"{words}: {done.stderr}"
        document = json.loads(done.stdout, parse_constant=pytest.fail)
        validator.validate(document)
        assert document["schema"] == f"shardwright/{command}/1"
        seen |= keys_of(document)
    assert properties_of(schema) - seen <= RARE.get(command, set()), "described, never printed"


# What only an older layout or a larger machine prints.
RARE = {
    "inspect": {"left_out"},
    "plan": {"encoder_tp"},
    "convert": {"encoder_tp"},
    "publish": {"encoder_tp"},
    "merge-adapter": {"encoder_tp"},
    "average": {"encoder_tp"},
    "demo": {"encoder_tp"},
}


def test_numbers_are_numbers(folder, run):
    def document(*words):
        return json.loads(run(words_of(folder, words), "--json").stdout)

    values = document("show", "td", "decoder.layers.1.mlp.linear_fc1.weight")["values"]
    assert values and all(isinstance(value, (int, float)) for value in values)
    counts = document("inspect", "td/COMMON")["counts"]
    assert counts["records"] > 0 and counts["storages"] == 0
    tree = document("inspect", "td/COMMON")["values"]
    named = {node["label"]: node for node in nodes_of(tree) if "label" in node}
    assert named["num_layers"]["value"] == 3 and named["bf16"]["value"] is True


def test_progress_is_a_line_of_json_each(folder, run):
    validator = jsonschema.Draft202012Validator(closed(schema_of("progress")))
    done = run(["convert", str(LLAMA), "told", "--to", "hf"], "--progress", "json")
    again = run(["convert", str(LLAMA), "told", "--to", "hf"], "--progress", "json")
    note = run(["diff", str(LLAMA), "td"], "--progress", "json", "--hf-config", str(LLAMA))
    events = [json.loads(line) for each in (done, again, note) for line in each.stderr.splitlines()]
    for event in events:
        validator.validate(event)
    assert [event["phase"] for event in events if event["event"] == "phase"][:3] == [
        "plan", "copy", "publish",
    ]  # fmt: skip
    assert [event["code"] for event in events if event["event"] == "error"] == ["SW0107"]


def test_the_schemas_would_notice(folder, run):
    """A text for a number, and a key that nothing describes."""
    validator = jsonschema.Draft202012Validator(closed(schema_of("hash")))
    document = json.loads(run(["hash", "td", "--json"]).stdout)
    validator.validate(document)
    for change in ({"digest": 7}, {"more": 1}, {"tensors": [{"name": "w"}]}):
        with pytest.raises(jsonschema.ValidationError):
            validator.validate({**document, **change})


MAPPINGS = SCHEMAS.parents[1] / "models"


def test_mapping_files_are_what_their_schema_says():
    schema = json.loads((MAPPINGS / "schema.json").read_text())
    checks = jsonschema.validators.validator_for(schema)
    checks.check_schema(schema)
    files = [path for path in sorted(MAPPINGS.glob("*.json")) if path.name != "schema.json"]
    wrong = {path.name: error.message for path in files for error in checks(schema).iter_errors(json.loads(path.read_text()))}
    assert files and not wrong
    # As an editor tells whoever writes one: an unknown key is found.
    mapping = json.loads(files[0].read_text())
    assert [error.validator for error in checks(schema).iter_errors(mapping | {"famly": "x"})] == ["additionalProperties"]
