# SPDX-License-Identifier: Apache-2.0
"""Adapters of Megatron runs become PEFT's, and PEFT's those of a run: names, rows and settings."""
import argparse
import json
import math
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, save_file

import hf_models
from checkpoints import assert_same, load_dcp
from hf_models import tensors_of
from peft_adapters import LINEARS, LLAMA, SEED, by_peft, difference, steps_apart


def save_run(folder, tensors, peft_section, arguments=None):
    """What a run of Megatron-Bridge leaves of its adapters: torch_dist, and run_config.yaml."""
    iteration = folder / "iter_0000010"
    iteration.mkdir(parents=True)
    dcp.save(tensors, checkpoint_id=iteration, no_dist=True)
    (iteration / "metadata.json").write_text(
        json.dumps({"sharded_backend": "torch_dist", "sharded_backend_version": 1,
                    "common_backend": "torch", "common_backend_version": 1})
    )  # fmt: skip
    common = {"iteration": 10, "checkpoint_version": 3.0}
    if arguments is not None:
        common["args"] = argparse.Namespace(**arguments)
    torch.save(common, iteration / "common.pt")
    if peft_section is not None:
        (iteration / "run_config.yaml").write_text("model:\n  num_layers: 3\n" + peft_section)
    (folder / "latest_checkpointed_iteration.txt").write_text("10")
    return folder


SECTION = "peft:\n  _target_: megatron.bridge.peft.{}\n  dim: 9\n  alpha: {}\n  dropout: 0.1\n"
# A rank that three tensor ranks share out, and a whole square root.
HEADS, GROUPS, SIZE, HIDDEN, FFN, LAYERS, RANK = 6, 3, 20, 72, 120, 3, 9


def in_groups(q, k, v):
    """Rows as Megatron's fused attention has them: of each group its queries, then key, then value."""
    parts = [t.view(GROUPS, -1, *t.shape[1:]) for t in (q, k, v)]
    return torch.cat(parts, dim=1).reshape(-1, *q.shape[1:])


def random_adapters(fused):
    """For each module of each layer its A and B as PEFT has them."""
    generator = torch.Generator().manual_seed(SEED)
    rows = {"q_proj": HEADS * SIZE, "k_proj": GROUPS * SIZE, "v_proj": GROUPS * SIZE, "o_proj": HIDDEN,
            "gate_proj": FFN, "up_proj": FFN, "down_proj": HIDDEN}  # fmt: skip
    columns = {"o_proj": HEADS * SIZE, "down_proj": FFN}
    adapters = {}
    for layer in range(LAYERS):
        for module, count in rows.items():
            parent = "mlp" if module in ("gate_proj", "up_proj", "down_proj") else "self_attn"
            stem = f"base_model.model.model.layers.{layer}.{parent}.{module}"
            shared = {"k_proj": "q_proj", "v_proj": "q_proj", "up_proj": "gate_proj"}.get(module)
            a = torch.randn(RANK, columns.get(module, HIDDEN), generator=generator)
            if fused and shared:
                a = adapters[stem.replace(module, shared) + ".lora_A.weight"].clone()
            adapters[stem + ".lora_A.weight"] = a
            adapters[stem + ".lora_B.weight"] = torch.randn(count, RANK, generator=generator)
    return adapters


def as_megatron(adapters, fused, spelling=".adapter{}.linear_in.weight .adapter{}.linear_out.weight"):
    """The same as Megatron's stacked tensors, in the form that the names say."""
    name_in, name_out = spelling.split()
    parts = {
        "self_attention.linear_qkv": ("self_attn", ["q_proj", "k_proj", "v_proj"], in_groups),
        "self_attention.linear_proj": ("self_attn", ["o_proj"], None),
        "mlp.linear_fc1": ("mlp", ["gate_proj", "up_proj"], lambda *b: torch.cat(b)),
        "mlp.linear_fc2": ("mlp", ["down_proj"], None),
    }
    own = {"q_proj": "q", "k_proj": "k", "v_proj": "v", "gate_proj": "gate", "up_proj": "up"}
    tensors = {}
    for module, (parent, names, join) in parts.items():
        get = lambda layer, name, end: adapters[  # noqa: E731
            f"base_model.model.model.layers.{layer}.{parent}.{name}.{end}.weight"
        ]
        stack = lambda make: torch.stack([make(layer) for layer in range(LAYERS)])  # noqa: E731
        if len(names) > 1 and not fused:
            for name in names:
                inner = f".adapter_{own[name]}"
                stem = f"decoder.layers.{module}"
                tensors[stem + name_in.format(inner)] = stack(lambda n: get(n, name, "lora_A"))
                tensors[stem + name_out.format(inner)] = stack(lambda n: get(n, name, "lora_B"))
            continue
        stem = f"decoder.layers.{module}"
        tensors[stem + name_in.format("")] = stack(lambda n: get(n, names[0], "lora_A"))
        join = join or (lambda b: b)
        tensors[stem + name_out.format("")] = stack(
            lambda n: join(*(get(n, name, "lora_B") for name in names))
        )
    return tensors


@pytest.fixture(scope="module")
def run_base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run") / "base"
    hf_models.create(folder, "llama", **LLAMA)
    return folder


SWIFT = ".lora_A.default.weight .lora_B.default.weight"


@pytest.mark.parametrize(
    "kind", ["bridge_fused", "bridge_canonical", "ms_swift", "ms_swift_rslora"]
)
def test_adapters_of_megatron_runs_become_pefts(shardwright, tmp_path, run_base, kind):
    fused = kind != "bridge_canonical"
    expected = random_adapters(fused)
    if kind.startswith("bridge"):
        tensors = as_megatron(expected, fused)
        section = SECTION.format("lora.LoRA" if fused else "canonical_lora.CanonicalLoRA", 6)
        run = save_run(tmp_path / "run", tensors, section)
    else:
        arguments = dict(lora_rank=9, lora_alpha=6, use_rslora=kind.endswith("rslora"))
        run = save_run(tmp_path / "run", as_megatron(expected, True, SWIFT), None, arguments)
    out = tmp_path / "adapter"
    following = json.loads(shardwright("diagnose", run, "--json").stdout)["next"]
    assert following == f"shardwright convert {run}/iter_0000010 OUT --to hf --hf-config BASE"
    told = shardwright("convert", run, out, "--to", "hf", "--hf-config", run_base).stderr
    assert "a low-rank adapter of rank 9 is written as PEFT's files" in told
    assert sorted(file.name for file in out.iterdir()) == [
        "adapter_config.json", "adapter_model.safetensors",
    ]  # fmt: skip
    made = load_file(out / "adapter_model.safetensors")
    assert difference(made, expected) == 0
    config = json.loads((out / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (9, 6)
    assert config["use_rslora"] == kind.endswith("rslora")
    assert config["target_modules"] == sorted(LINEARS)
    # PEFT merges them, and so does merge-adapter, to the same bits.
    shardwright("merge-adapter", run_base, out, tmp_path / "merged")
    assert difference(tensors_of(tmp_path / "merged"), by_peft(run_base, out)) == 0
    # As Megatron's module computes: the fused product, by its own rows.
    scale = 6 / math.sqrt(9) if kind.endswith("rslora") else 6 / 9
    base, merged = tensors_of(run_base), tensors_of(tmp_path / "merged")
    stem = "model.layers.1.self_attn.{}_proj.weight"
    if fused:
        tensors = as_megatron(expected, True)
        a, b = (tensors[f"decoder.layers.self_attention.linear_qkv.adapter.linear_{end}.weight"][1] for end in ("in", "out"))
        whole = in_groups(*(base[stem.format(part)] for part in "qkv")) + scale * (b @ a)
        assert torch.equal(whole, in_groups(*(merged[stem.format(part)] for part in "qkv")))


def test_what_lies_beside_an_adapter_of_ms_swift_is_named(shardwright, tmp_path, run_base):
    """A preference is measured against `ref_adapter`, which is no tensor of the base model."""
    expected = random_adapters(True)
    tensors = as_megatron(expected, True, SWIFT)
    first = next(iter(tensors)).replace(".default.", ".ref_adapter.")
    tensors |= {name.replace(".default.", ".ref_adapter."): 0 * t for name, t in tensors.items()}
    tensors["decoder.final_layernorm.weight"] = torch.ones(HIDDEN)
    run = save_run(tmp_path / "run", tensors, None, dict(lora_rank=9, lora_alpha=6))
    told = shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", run_base).stderr
    assert f"8 tensors of adapters with other names are left out, {first} the first" in told
    assert "1 tensors beside the adapters are left out: they are the base model's" in told
    assert difference(load_file(tmp_path / "out" / "adapter_model.safetensors"), expected) == 0


NEMO_YAML = """\
_target_: nemo.collections.llm.gpt.model.llama.LlamaModel
config: {{num_layers: 3, hidden_size: 72, normalization: RMSNorm, gated_linear_unit: true}}
model_transform:
  _target_: nemo.collections.llm.peft.{}
  target_modules: [linear_qkv, linear_proj, linear_fc1, linear_fc2]
  {}
  dim: {}
  dropout: 0.1
"""


def save_nemo(folder, tensors, *transform):
    """What NeMo 2 leaves of adapters: its names, and their settings among the model's."""
    weights = save_run(folder, {f"module.{name}": t for name, t in tensors.items()}, None)
    (folder / "latest_checkpointed_iteration.txt").unlink()
    (weights / "iter_0000010").rename(folder / "weights")
    (folder / "context").mkdir()
    (folder / "context" / "model.yaml").write_text(NEMO_YAML.format(*transform))
    return folder


def test_adapters_of_nemo_2_become_pefts(shardwright, tmp_path, run_base):
    expected = random_adapters(True)
    run = save_nemo(tmp_path / "run", as_megatron(expected, True), "lora.LoRA", "alpha: 6", 9)
    out = tmp_path / "adapter"
    told = shardwright("convert", run, out, "--to", "hf", "--hf-config", run_base).stderr
    assert "its alpha is that of context/model.yaml's model_transform section" in told
    assert difference(load_file(out / "adapter_model.safetensors"), expected) == 0
    config = json.loads((out / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (9, 6, 0.1)


@pytest.mark.parametrize(
    "transform, message",
    [
        (("lora.LoRA", "scale: 6", 9), "a model_transform section with them in context/model.yaml"),
        (("lora.LoRA", "alpha: 6", 8), "found adapters of rank 9, expected 8 as context/model.yaml's"),
        (("ia3.IA3", "alpha: 6", 9), "context/model.yaml: found peft of the kind IA3"),
        (("dora.DoRA", "alpha: 6", 9), "found no magnitudes of DoRA, expected some"),
    ],
)
def test_adapters_of_nemo_2_that_are_refused(shardwright, tmp_path, run_base, transform, message):
    run = save_nemo(tmp_path / "run", as_megatron(random_adapters(True), True), *transform)
    flags = ["--to", "hf", "--hf-config", run_base]
    assert message in shardwright("convert", run, tmp_path / "out", *flags, expect=2).stderr


def test_magnitudes_of_gate_and_up_rank_by_rank(shardwright, tmp_path, run_base):
    """Bridge saves what each tensor rank has of them as one run."""
    expected = {name: t for name, t in random_adapters(True).items() if "gate_proj" in name or "up_proj" in name}
    generator = torch.Generator().manual_seed(SEED)
    for name in [name for name in expected if name.endswith("lora_B.weight")]:
        length = 1 + torch.rand(FFN, generator=generator)
        expected[name.replace("lora_B.weight", "lora_magnitude_vector")] = length
    tensors = {name: t for name, t in as_megatron(expected | random_adapters(True), True).items() if "fc1" in name}
    stem = "base_model.model.model.layers.{}.mlp.{}_proj.lora_magnitude_vector"
    tensors["decoder.layers.mlp.linear_fc1.adapter.weight_magnitude"] = torch.stack([
        rank_by_rank(torch.cat([expected[stem.format(n, part)] for part in ("gate", "up")]), 3)
        for n in range(LAYERS)
    ])  # fmt: skip
    run = save_run(tmp_path / "run", tensors, SECTION.format("dora.DoRA", 6), dict(tensor_model_parallel_size=3))
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", run_base)
    assert difference(load_file(tmp_path / "out" / "adapter_model.safetensors"), expected) == 0
    shardwright("convert", tmp_path / "out", tmp_path / "again", "--to", "torch_dist", "--tp", 3, "--hf-config", run_base)
    assert_same(load_dcp(tmp_path / "again"), tensors)
    told = shardwright("convert", run, tmp_path / "td", "--to", "torch_dist", "--tp", 2, expect=2).stderr
    assert "weight_magnitude: its rows are in the order of 3 tensor ranks" in told


def test_dora_of_a_megatron_run(shardwright, tmp_path, run_base):
    expected = random_adapters(True)
    tensors = as_megatron(expected, True)
    generator = torch.Generator().manual_seed(SEED)
    lengths = {}
    for layer in range(LAYERS):
        for part, count in (("q", HEADS * SIZE), ("k", GROUPS * SIZE), ("v", GROUPS * SIZE)):
            name = f"base_model.model.model.layers.{layer}.self_attn.{part}_proj.lora_magnitude_vector"
            lengths[name] = 1 + torch.rand(count, generator=generator)
    tensors = {name: t for name, t in tensors.items() if "linear_qkv" in name}
    expected = {name: t for name, t in expected.items() if any(f".{p}_proj." in name for p in "qkv")}
    tensors["decoder.layers.self_attention.linear_qkv.adapter.weight_magnitude"] = torch.stack([
        in_groups(*(lengths[f"base_model.model.model.layers.{n}.self_attn.{p}_proj.lora_magnitude_vector"] for p in "qkv"))
        for n in range(LAYERS)
    ])  # fmt: skip
    run = save_run(tmp_path / "run", tensors, SECTION.format("dora.DoRA", 6))
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", run_base)
    made = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert difference(made, {**expected, **lengths}) == 0
    shardwright("merge-adapter", run_base, tmp_path / "out", tmp_path / "merged")
    peft_made = by_peft(run_base, tmp_path / "out")
    merged = tensors_of(tmp_path / "merged")
    assert max(steps_apart(merged[name], peft_made[name]) for name in merged) <= 8
    # And what PEFT holds is a run's again, for any number of ranks.
    for ranks in (1, 3):
        again = tmp_path / f"again{ranks}"
        shardwright("convert", tmp_path / "out", again, "--to", "torch_dist", "--tp", ranks, "--hf-config", run_base)
        assert_same(load_dcp(again), tensors)
        text = (again / "iter_0000000" / "run_config.yaml").read_text()
        assert "_target_: megatron.bridge.peft.dora.DoRA\n" in text
        shardwright("convert", again, tmp_path / f"back{ranks}", "--to", "hf", "--hf-config", run_base)
        assert difference(tensors_of(tmp_path / f"back{ranks}"), made) == 0


@pytest.mark.parametrize(
    "fault, message",
    [
        ("no_alpha", "nothing that tells their alpha"),
        ("other_rank", "found adapters of rank 9, expected 8"),
        ("no_out", "self_attention.linear_proj.adapter.linear_out.weight"),
        ("ranks", "found rank 2, expected 9"),
        ("other_model", "experts"),
        ("kind", "found peft of the kind IA3"),
        ("no_config", "--hf-config"),
    ],
)
def test_adapters_that_are_refused(shardwright, tmp_path, run_base, fault, message):
    tensors = as_megatron(random_adapters(True), True)
    section = SECTION.format("lora.LoRA", 6)
    stem = "decoder.layers.self_attention.linear_proj.adapter."
    if fault == "no_alpha":
        section = None
    elif fault == "other_rank":
        section = section.replace("dim: 9", "dim: 8")
    elif fault == "no_out":
        # In its second layer only: the others are whole.
        for end in ("in", "out"):
            whole = tensors.pop(f"{stem}linear_{end}.weight")
            for layer in range(LAYERS):
                name = f"decoder.layers.{layer}.self_attention.linear_proj.adapter.linear_{end}.weight"
                if (end, layer) != ("out", 1):
                    tensors[name] = whole[layer].clone()
    elif fault == "ranks":
        tensors[stem + "linear_in.weight"] = tensors[stem + "linear_in.weight"][:, :2].clone()
        tensors[stem + "linear_out.weight"] = tensors[stem + "linear_out.weight"][..., :2].clone()
    elif fault == "other_model":
        tensors["decoder.layers.0.mlp.experts.linear_fc1.adapter.linear_in.weight"] = torch.ones(9, 72)
    elif fault == "kind":
        section = section.replace("lora.LoRA", "ia3.IA3")
    run = save_run(tmp_path / "run", tensors, section)
    flags = [] if fault == "no_config" else ["--hf-config", run_base]
    told = shardwright("convert", run, tmp_path / "out", "--to", "hf", *flags, expect=2).stderr
    assert message in told
    assert not (tmp_path / "out").exists()


def as_peft(folder, adapters, **settings):
    folder.mkdir()
    save_file(adapters, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 6, "target_modules": LINEARS, **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


def rank_by_rank(rows, ranks):
    """What ranks that each hold a part of gate and of up save as one run of rows (ms-swift)."""
    halves = rows.chunk(2)
    return torch.cat([part for pair in zip(*(half.chunk(ranks) for half in halves)) for part in pair])


def halves_first(rows, ranks):
    """What Megatron-Core's swiglu factory makes of one projection that it takes for two (CanonicalLoRA)."""
    parts = [part.chunk(2) for part in rows.chunk(ranks)]
    return torch.cat([first for first, _ in parts] + [second for _, second in parts])


def in_order_of(tensors, ranks):
    """Stacked tensors as a job of so many tensor ranks saves them."""
    orders = {
        "mlp.linear_fc1.lora_B.default.weight": rank_by_rank,
        "mlp.linear_fc1.adapter.adapter_gate.linear_out.weight": halves_first,
        "mlp.linear_fc1.adapter.adapter_up.linear_out.weight": halves_first,
    }
    made = {}
    for name, stacked in tensors.items():
        order = next((order for end, order in orders.items() if name.endswith(end)), None)
        made[name] = torch.stack([order(rows, ranks) for rows in stacked]) if order else stacked
    return made


FORMS = {
    "bridge": (True, ".adapter{}.linear_in.weight .adapter{}.linear_out.weight", []),
    "canonical": (False, ".adapter{}.linear_in.weight .adapter{}.linear_out.weight", []),
    "swift": (True, SWIFT, ["--adapter-names", "ms-swift"]),
}


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_pefts_adapters_become_a_megatron_runs(shardwright, tmp_path, run_base, form, ranks):
    fused, spelling, flags = FORMS[form]
    adapters = random_adapters(fused)
    source = as_peft(tmp_path / "adapter", adapters)
    run = tmp_path / "run"
    shardwright("convert", source, run, "--to", "torch_dist", "--tp", ranks, "--hf-config", run_base, *flags)
    expected = in_order_of(as_megatron(adapters, fused, spelling), ranks)
    assert_same(load_dcp(run), expected)
    if form == "swift":
        settings = json.loads((run / "args.json").read_text())
        assert (settings["tuner_type"], settings["lora_rank"], settings["lora_alpha"]) == ("lora", 9, 6)
        assert settings["target_modules"] == ["linear_fc1", "linear_fc2", "linear_proj", "linear_qkv"]
    else:
        text = (run / "iter_0000000" / "run_config.yaml").read_text()
        assert "dim: 9" in text and "alpha: 6" in text
        wanted = "canonical_lora.CanonicalLoRA" if form == "canonical" else "lora.LoRA"
        assert f"_target_: megatron.bridge.peft.{wanted}" in text
    args = torch.load(run / "iter_0000000" / "common.pt", weights_only=False)["args"]
    assert args.tensor_model_parallel_size == ranks
    # And back: the same values under the same names.
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(tmp_path / "back" / "adapter_model.safetensors"), adapters)
    assert json.loads((tmp_path / "back" / "adapter_config.json").read_text())["lora_alpha"] == 6
    for command in ("inspect", "verify", "hash"):
        done = shardwright(command, run)
        assert "low-rank adapters of a Megatron run" in done.stdout + done.stderr, command
    assert "low-rank adapters of a Megatron run" in shardwright("diagnose", run).stdout


ROW_PARALLEL = ("linear_proj", "linear_fc2")


def part_of_rank(name, adapters, stacked, layer, rank, ranks):
    """A layer's tensor as the trainer's own module has it on one tensor rank."""
    whole = stacked[layer]
    is_row = any(f".{module}." in name for module in ROW_PARALLEL)
    if ".lora_" in name:
        if ".lora_A." in name:
            return whole.chunk(ranks, 1)[rank] if is_row else whole
        if is_row:
            return whole
    elif ".linear_in." in name:
        return whole.chunk(ranks, 1 if is_row else 0)[rank]
    if ".linear_fc1." in name:
        get = lambda part: adapters[  # noqa: E731
            f"base_model.model.model.layers.{layer}.mlp.{part}_proj.lora_B.weight"
        ].chunk(ranks)[rank]
        for part in ("gate", "up"):
            if f"adapter_{part}." in name:
                return get(part)
        return torch.cat([get("gate"), get("up")])
    return whole.chunk(ranks)[rank]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("form", FORMS)
def test_legacy_files_of_a_runs_adapters(shardwright, tmp_path, run_base, form, ranks):
    """Each rank's file has what that rank's modules have, and all of them are the checkpoint again."""
    fused, spelling, flags = FORMS[form]
    adapters = random_adapters(fused)
    source = as_peft(tmp_path / "adapter", adapters)
    run = tmp_path / "run"
    shardwright("convert", source, run, "--to", "torch_dist", "--tp", ranks, "--hf-config", run_base, *flags)
    shardwright("convert", run, tmp_path / "legacy", "--to", "legacy", "--tp", ranks)
    shardwright("convert", source, tmp_path / "at_once", "--to", "legacy", "--tp", ranks,
                "--hf-config", run_base, *flags)  # fmt: skip
    canonical = as_megatron(adapters, fused, spelling)
    for folder in ("legacy", "at_once"):
        for rank in range(ranks):
            file = tmp_path / folder / "iter_0000000" / f"mp_rank_{rank:02d}" / "model_optim_rng.pt"
            model = torch.load(file, weights_only=False)["model"]
            expected = {
                name.replace("layers.", f"layers.{layer}."): part_of_rank(name, adapters, stacked, layer, rank, ranks)
                for name, stacked in canonical.items() for layer in range(LAYERS)
            }  # fmt: skip
            assert_same({name: t for name, t in model.items() if t is not None}, expected)
        shardwright("verify", tmp_path / folder)
        shardwright("diff", run, tmp_path / folder)
        back = tmp_path / f"{folder}_back"
        shardwright("convert", tmp_path / folder, back, "--to", "torch_dist", "--tp", ranks)
        assert_same(load_dcp(back), load_dcp(run))
    again = tmp_path / "peft"
    shardwright("convert", tmp_path / "at_once", again, "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(again / "adapter_model.safetensors"), adapters)


def test_rows_that_nothing_tells_the_ranks_of(shardwright, tmp_path):
    """Whether each rank has gate and up of a fused B shows in linear_fc2 only."""
    tensors = {name: t for name, t in as_megatron(random_adapters(True), True).items() if "fc2" not in name}
    run = save_run(tmp_path / "run", tensors, SECTION.format("lora.LoRA", 6))
    told = shardwright("convert", run, tmp_path / "out", "--to", "legacy", "--tp", 3, expect=2).stderr
    assert "mlp.linear_fc1.adapter.linear_out.weight" in told and "keep it in torch_dist" in told
    assert not (tmp_path / "out").exists()
    shardwright("convert", run, tmp_path / "whole", "--to", "legacy")
    shardwright("diff", run, tmp_path / "whole")


def test_adapters_of_the_first_layers_and_pipeline_stages(shardwright, tmp_path, run_base):
    """Stages share out the model's layers, of which such an adapter has not all."""
    adapters = {name: t for name, t in random_adapters(True).items() if ".layers.2." not in name}
    source = as_peft(tmp_path / "adapter", adapters)
    flags = ["--to", "legacy", "--hf-config", run_base]
    told = shardwright("convert", source, tmp_path / "out", *flags, "--pp", 2, expect=2).stderr
    assert "adapters up to layer 1, expected 3 layers" in told and not (tmp_path / "out").exists()
    shardwright("convert", source, tmp_path / "out", *flags)


def test_adapters_of_some_layers(shardwright, tmp_path, run_base):
    """PEFT's layers_to_transform, Bridge's wildcards: every command takes such a run as it is."""
    adapters = {name: t for name, t in random_adapters(True).items() if ".layers.1." not in name}
    source = as_peft(tmp_path / "adapter", adapters)
    run = tmp_path / "run"
    flags = ["--to", "torch_dist", "--hf-config"]
    gap = "lacks modules in layers 1 that it has in others"
    assert gap in shardwright("convert", source, run, *flags, run_base).stderr
    (tmp_path / "config").mkdir()  # without the base's files
    shutil.copy(run_base / "config.json", tmp_path / "config")
    assert gap in shardwright("convert", source, tmp_path / "again", *flags, tmp_path / "config").stderr
    for command in (["verify"], ["hash"], ["inspect"], ["diff", run]):
        done = shardwright(command[0], run, *command[1:])
        if command[0] in ("verify", "inspect"):
            assert "low-rank adapters of a Megatron run" in done.stdout and "(layers 1 have none)" in done.stdout
    for target in ("torch_dist", "legacy", "dcp"):
        shardwright("convert", run, tmp_path / target, "--to", target)
    assert_same(load_dcp(tmp_path / "torch_dist"), load_dcp(run))
    shardwright("convert", tmp_path / "legacy", tmp_path / "back", "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(tmp_path / "back" / "adapter_model.safetensors"), adapters)


def test_a_module_of_one_layer_that_is_missing(shardwright, tmp_path, run_base):
    """A run that adapts each layer's attention and MLP, and has lost both factors of one module."""
    tensors, apart = as_megatron(random_adapters(True), True), {}
    for name, stacked in tensors.items():
        for layer, tensor in enumerate(stacked):
            apart[name.replace(".layers.", f".layers.{layer}.")] = tensor.clone()
    section = SECTION.format("lora.LoRA", 6)
    whole = save_run(tmp_path / "whole", apart, section)
    lost = "decoder.layers.1.self_attention.linear_proj.adapter."
    some = save_run(tmp_path / "some", {n: t for n, t in apart.items() if not n.startswith(lost)}, section)
    gap = "no adapter of self_attention.linear_proj of layers 1, where most layers have one"
    flags = ["--to", "hf", "--hf-config", run_base]
    for run, is_told in ((whole, False), (some, True)):
        for command in ("verify", "inspect"):
            assert (gap in shardwright(command, run).stdout) == is_told
        told = shardwright("convert", run, tmp_path / "out", *flags, "--overwrite").stderr
        assert (gap in told) == is_told, told


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_numbers_of_an_adapter_that_are_none(shardwright, tmp_path, run_base, number):
    """What they are added to would be none either."""
    adapters = random_adapters(True)
    name = "base_model.model.model.layers.1.mlp.down_proj.lora_A.weight"
    sound = as_peft(tmp_path / "sound", adapters)
    adapters[name][2, 3] = number
    broken = as_peft(tmp_path / "broken", adapters)
    run = save_run(tmp_path / "run", as_megatron(adapters, True), SECTION.format("lora.LoRA", 6))
    shardwright("verify", sound)
    told = shardwright("verify", broken, expect=1).stdout
    assert "SW0314" in told and f"tensor {name}: 1 of its numbers are NaN or infinite" in told
    told = shardwright("verify", run, expect=1).stdout
    assert "tensor decoder.layers.mlp.linear_fc2.adapter.linear_in.weight: 1 of its numbers" in told
    told = shardwright("merge-adapter", run_base, broken, tmp_path / "merged", expect=2).stderr
    assert name in told and not (tmp_path / "merged").exists()


def test_an_alpha_of_0_beside_what_is_trained_whole(shardwright, tmp_path, run_base):
    """The whole tensor changes the model, so that nobody would miss what the factors do."""
    head = {"base_model.model.lm_head.weight": tensors_of(run_base)["lm_head.weight"].float() + 1}
    settings = dict(modules_to_save=["lm_head"])
    sound = as_peft(tmp_path / "sound", random_adapters(True) | head, **settings)
    shardwright("merge-adapter", run_base, sound, tmp_path / "merged")
    shardwright("verify", sound)
    nothing = as_peft(tmp_path / "nothing", random_adapters(True) | head, lora_alpha=0, **settings)
    told = shardwright("merge-adapter", run_base, nothing, tmp_path / "out", expect=2).stderr
    assert "lora_alpha is 0, so nothing would become of model.layers.0.mlp.down_proj" in told
    assert not (tmp_path / "out").exists()
    assert "lora_alpha is 0" in shardwright("verify", nothing).stdout
    alone = as_peft(tmp_path / "alone", head, lora_alpha=0, target_modules=[], **settings)
    shardwright("merge-adapter", run_base, alone, tmp_path / "of_head")


def test_half_of_an_adapters_module(shardwright, tmp_path, run_base):
    adapters = random_adapters(True)
    del adapters["base_model.model.model.layers.1.mlp.down_proj.lora_B.weight"]
    half = as_peft(tmp_path / "half", adapters)
    assert "model.layers.1.mlp.down_proj" in shardwright("verify", half, expect=1).stdout


def test_rows_of_ranks_that_nothing_but_their_chunks_tells(shardwright, tmp_path, run_base):
    """Run arguments of other sizes contradict the chunks; the order would be a guess."""
    tensors = in_order_of(as_megatron(random_adapters(True), True, SWIFT), 3)
    arguments = dict(lora_rank=9, lora_alpha=6, tensor_model_parallel_size=3)
    run = save_run(tmp_path / "run", tensors, None, arguments)
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", run_base)
    made = load_file(tmp_path / "out" / "adapter_model.safetensors")
    assert difference(made, random_adapters(True)) == 0
    # Another layout keeps the rows where they are, which its ranks would misread.
    told = shardwright("convert", run, tmp_path / "td", "--to", "torch_dist", "--tp", 2, expect=2).stderr
    assert "in the order of 3 tensor ranks" in told and not (tmp_path / "td").exists()
    shardwright("convert", run, tmp_path / "td", "--to", "torch_dist", "--tp", 3)
    assert_same(load_dcp(tmp_path / "td"), tensors)


@pytest.mark.parametrize("part", ["q_proj", "v_proj"])
def test_some_of_the_modules_that_megatron_fuses(shardwright, tmp_path, run_base, part):
    """PEFT's usual target modules: Bridge has an adapter for each, ms-swift one for all or none."""
    adapters = {name: t for name, t in random_adapters(False).items() if f".{part}." in name}
    source = as_peft(tmp_path / "adapter", adapters)
    told = shardwright("convert", source, tmp_path / "run", "--to", "torch_dist", "--hf-config", run_base).stderr
    others = [name for name in LINEARS if name != part]  # its config lists all of them
    assert f"has nothing of {', '.join(others[:3])}" in told and "lists in target_modules" in told
    made = load_dcp(tmp_path / "run")
    stem = f"decoder.layers.self_attention.linear_qkv.adapter.adapter_{part[0]}."
    assert set(made) == {stem + "linear_in.weight", stem + "linear_out.weight"}
    text = (tmp_path / "run" / "iter_0000000" / "run_config.yaml").read_text()
    assert f"  target_modules:\n  - linear_{part[0]}\n" in text
    told = shardwright(
        "convert", source, tmp_path / "out", "--to", "torch_dist", "--hf-config", run_base,
        "--adapter-names", "ms-swift", expect=2,
    ).stderr  # fmt: skip
    assert "ms-swift has one adapter for modules that Megatron fuses" in told


def test_alpha_of_an_rslora(shardwright, tmp_path, run_base):
    source = as_peft(tmp_path / "adapter", random_adapters(True), use_rslora=True)
    told = shardwright("convert", source, tmp_path / "run", "--to", "torch_dist", "--hf-config", run_base).stderr
    assert "alpha is 18 where it was 6" in told
    assert "alpha: 18\n" in (tmp_path / "run" / "iter_0000000" / "run_config.yaml").read_text()
    shardwright("convert", source, tmp_path / "swift", "--to", "torch_dist", "--hf-config", run_base,
                "--adapter-names", "ms-swift")  # fmt: skip
    settings = json.loads((tmp_path / "swift" / "args.json").read_text())
    assert (settings["lora_alpha"], settings["use_rslora"]) == (6, True)


@pytest.mark.parametrize(
    "fault, flags, message",
    [
        ("none", ["--to", "hf"], "merge-adapter BASE ADAPTER OUT"),
        ("none", ["--to", "fsdp_dtensor"], "--to torch_dist makes it one"),
        ("none", ["--to", "torch_dist", "--upcycle", "experts=4"], "--upcycle change nothing"),
        ("no_config", ["--to", "torch_dist"], "--hf-config"),
        ("values", ["--to", "torch_dist", "--adapter-names", "ms-swift"], "expected one lora_A for all of them"),
        ("saved", ["--to", "torch_dist"], "a whole tensor, lm_head.weight, which Megatron-Bridge's"),
        ("not_saved", ["--to", "torch_dist", "--adapter-names", "ms-swift"], "found nothing of lm_head"),
        ("embedding", ["--to", "torch_dist"], "the adapter of an embedding, model.embed_tokens"),
        ("embedding", ["--to", "torch_dist", "--adapter-names", "ms-swift"], "the adapter of an embedding"),
        ("not_saved", ["--to", "torch_dist"], "modules_to_save in adapter_config.json: lm_head"),
        ("pattern", ["--to", "torch_dist"], "a rank or alpha of"),
        ("shape", ["--to", "torch_dist"], "linear_proj.adapter.linear_out.weight"),
        ("unknown", ["--to", "torch_dist"], "model.layers.0.mlp.other_proj"),
        ("ranks", ["--to", "torch_dist", "--tp", "7", "--adapter-names", "ms-swift"], "7"),
    ],
)
def test_pefts_adapters_that_are_refused(shardwright, tmp_path, run_base, fault, flags, message):
    adapters = random_adapters(fault != "values")
    settings = {}
    stem = "base_model.model.model.layers.0."
    if fault == "saved":
        adapters["base_model.model.lm_head.weight"] = torch.ones(510, HIDDEN)
        settings["modules_to_save"] = ["lm_head"]
    elif fault == "embedding":
        adapters["base_model.model.model.embed_tokens.lora_embedding_A"] = torch.ones(RANK, 510)
        adapters["base_model.model.model.embed_tokens.lora_embedding_B"] = torch.ones(HIDDEN, RANK)
    elif fault == "not_saved":
        settings["modules_to_save"] = ["lm_head"]
    elif fault == "pattern":
        settings["alpha_pattern"] = {"q_proj": 9}
    elif fault == "shape":
        adapters[stem + "self_attn.o_proj.lora_B.weight"] = torch.ones(HIDDEN + 1, RANK)
    elif fault == "unknown":
        adapters[stem + "mlp.other_proj.lora_A.weight"] = torch.ones(RANK, HIDDEN)
        adapters[stem + "mlp.other_proj.lora_B.weight"] = torch.ones(FFN, RANK)
    source = as_peft(tmp_path / "adapter", adapters, **settings)
    config = [] if fault == "no_config" else ["--hf-config", run_base]
    told = shardwright("convert", source, tmp_path / "out", *flags, *config, expect=2).stderr
    assert message in told
    assert not (tmp_path / "out").exists()


VOCABULARY = 510


# The mark in front of the last word, or of the last two: ms-swift's all-embedding.
@pytest.mark.parametrize("embedding", ["word_embeddings.modules_to_save.default.weight",
                                       "modules_to_save.default.word_embeddings.weight"])  # fmt: skip
def test_whole_tensors_of_ms_swift(shardwright, tmp_path, run_base, embedding):
    """modules_to_save: embedding, head and a norm are trained beside the adapters."""
    adapters = random_adapters(True)
    generator = torch.Generator().manual_seed(SEED)
    whole = {
        f"embedding.{embedding}": ("model.embed_tokens.weight", (VOCABULARY, HIDDEN)),
        "output_layer.modules_to_save.default.weight": ("lm_head.weight", (VOCABULARY, HIDDEN)),
        "decoder.final_layernorm.modules_to_save.default.weight": ("model.norm.weight", (HIDDEN,)),
    }
    tensors = as_megatron(adapters, True, SWIFT)
    for name, (own, shape) in whole.items():
        adapters[f"base_model.model.{own}"] = torch.randn(shape, generator=generator)
        # Padded as a run of several tensor ranks has it.
        rows = [torch.zeros(18, HIDDEN)] if shape[0] == VOCABULARY else []
        tensors[name] = torch.cat([adapters[f"base_model.model.{own}"], *rows])
    run = save_run(tmp_path / "run", tensors, None, dict(lora_rank=9, lora_alpha=6))
    out = tmp_path / "out"
    told = shardwright("convert", run, out, "--to", "hf", "--hf-config", run_base).stderr
    assert "left out" not in told
    assert_same(load_file(out / "adapter_model.safetensors"), adapters)
    config = json.loads((out / "adapter_config.json").read_text())
    assert config["modules_to_save"] == ["lm_head", "model.embed_tokens", "model.norm"]
    shardwright("merge-adapter", run_base, out, tmp_path / "merged")
    assert difference(tensors_of(tmp_path / "merged"), by_peft(run_base, out)) == 0
    # And back: for two tensor ranks, without the padding that nobody asks for.
    back = tmp_path / "back"
    shardwright("convert", out, back, "--to", "torch_dist", "--tp", 3, "--hf-config", run_base,
                "--adapter-names", "ms-swift")  # fmt: skip
    made = load_dcp(back)
    expected = {"embedding.word_embeddings" if "embed" in name else name.split(".modules")[0]: own
                for name, (own, _) in whole.items()}  # fmt: skip
    for module, own in expected.items():
        name = f"{module}.modules_to_save.default.weight"
        assert made[name].equal(adapters[f"base_model.model.{own}"]), name
    settings = json.loads((back / "args.json").read_text())
    assert settings["modules_to_save"] == ["decoder.final_layernorm", "embedding.word_embeddings", "output_layer"]
    shardwright("convert", back, tmp_path / "again", "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(tmp_path / "again" / "adapter_model.safetensors"), adapters)


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_head_with_an_adapter(shardwright, tmp_path, run_base, ranks):
    """Megatron-Bridge can adapt output_layer, which is a linear; its B has the vocabulary's rows."""
    generator = torch.Generator().manual_seed(SEED)
    stem = "base_model.model.lm_head."
    adapters = {stem + "lora_A.weight": torch.randn(RANK, HIDDEN, generator=generator),
                stem + "lora_B.weight": torch.randn(VOCABULARY, RANK, generator=generator)}  # fmt: skip
    source = as_peft(tmp_path / "adapter", adapters, target_modules=["lm_head"])
    run = tmp_path / "run"
    shardwright("convert", source, run, "--to", "torch_dist", "--tp", ranks, "--hf-config", run_base)
    made = load_dcp(run)
    assert made["output_layer.adapter.linear_in.weight"].equal(adapters[stem + "lora_A.weight"])
    assert made["output_layer.adapter.linear_out.weight"].equal(adapters[stem + "lora_B.weight"])
    assert "  - output_layer\n" in (run / "iter_0000000" / "run_config.yaml").read_text()
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(tmp_path / "back" / "adapter_model.safetensors"), adapters)
    # Rows that pad the vocabulary are cut.
    padded = {"output_layer.adapter.linear_in.weight": adapters[stem + "lora_A.weight"],
              "output_layer.adapter.linear_out.weight": torch.cat([adapters[stem + "lora_B.weight"], torch.ones(2, RANK)])}
    run = save_run(tmp_path / "padded", padded, SECTION.format("lora.LoRA", 6))  # fmt: skip
    shardwright("convert", run, tmp_path / "cut", "--to", "hf", "--hf-config", run_base)
    assert_same(load_file(tmp_path / "cut" / "adapter_model.safetensors"), adapters)


def test_pefts_files_are_named_for_what_they_are(shardwright, tmp_path, run_base):
    source = as_peft(tmp_path / "adapter", random_adapters(True))
    for command in ("inspect", "verify", "hash"):
        done = shardwright(command, source)
        assert "merge-adapter BASE ADAPTER OUT" in done.stdout + done.stderr, command
    told = json.loads(shardwright("diagnose", source, "--json").stdout)
    assert told["format"] == "peft" and "merge-adapter" in told["reason"]
    shutil.copytree(source, tmp_path / "other")
    shardwright("diff", source, tmp_path / "other")
    weights = tmp_path / "other" / "adapter_model.safetensors"
    data = bytearray(weights.read_bytes())
    data[-1] ^= 1
    weights.write_bytes(data)
    shardwright("diff", source, tmp_path / "other", expect=1)
    weights.write_bytes(data[:-8])
    shardwright("verify", tmp_path / "other", expect=1)


def test_a_flag_of_adapters_for_a_model(shardwright, tmp_path, run_base):
    told = shardwright("convert", run_base, tmp_path / "out", "--to", "torch_dist", "--adapter-names", "bridge",
                       expect=2).stderr  # fmt: skip
    assert "--adapter-names is about an adapter in PEFT's files" in told
