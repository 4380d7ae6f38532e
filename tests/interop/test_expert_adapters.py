# SPDX-License-Identifier: Apache-2.0
"""Adapters of routed experts: one for each, as Megatron-Bridge and ms-swift save them, and PEFT's."""
import json
import warnings

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

import hf_models
from checkpoints import assert_same, load_dcp
from hf_models import tensors_of
from peft_adapters import adapt, by_peft, difference, load, one_by_one
from test_run_adapters import SECTION, SWIFT, halves_first, save_run

RANK, EXPERTS, FFN, HIDDEN, LAYERS = 6, 4, 24, 72, 2
PROJECTIONS = {"gate_proj": (FFN, HIDDEN), "up_proj": (FFN, HIDDEN), "down_proj": (HIDDEN, FFN)}
BRIDGE = ".adapter{}.linear_in.weight .adapter{}.linear_out.weight"


@pytest.fixture(scope="module")
def moe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moe") / "base"
    hf_models.create(folder, "qwen3_moe", tie_word_embeddings=False, vocab_size=510, num_experts=EXPERTS,
                     num_experts_per_tok=2, moe_intermediate_size=FFN, hidden_size=HIDDEN,
                     num_hidden_layers=LAYERS)  # fmt: skip
    return folder


def stem_of(layer, expert, projection):
    return f"base_model.model.model.layers.{layer}.mlp.experts.{expert}.{projection}"


def random_experts(fused, rank=RANK):
    """A and B of each expert as PEFT has them; where `fused`, gate and up have one A."""
    generator = torch.Generator().manual_seed(5)
    made = {}
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            for projection, (rows, columns) in PROJECTIONS.items():
                stem = stem_of(layer, expert, projection)
                a = torch.randn(rank, columns, generator=generator)
                if fused and projection == "up_proj":
                    a = made[stem_of(layer, expert, "gate_proj") + ".lora_A.weight"].clone()
                made[stem + ".lora_A.weight"] = a
                made[stem + ".lora_B.weight"] = torch.randn(rows, rank, generator=generator)
    return made


def as_megatron(adapters, fused, spelling=BRIDGE, ranks=1):
    """Stacked as torch_dist has them: layers, experts, and the matrix."""
    name_in, name_out = spelling.split()
    stem = "decoder.layers.mlp.experts.experts."

    def stack(projections, end, order=lambda rows: rows):
        return torch.stack([
            torch.stack([
                order(torch.cat([adapters[f"{stem_of(layer, e, p)}.{end}.weight"] for p in projections]))
                for e in range(EXPERTS)
            ]) for layer in range(LAYERS)
        ])  # fmt: skip

    made = {stem + "linear_fc2" + name_in.format(""): stack(["down_proj"], "lora_A"),
            stem + "linear_fc2" + name_out.format(""): stack(["down_proj"], "lora_B")}  # fmt: skip
    if fused:
        made[stem + "linear_fc1" + name_in.format("")] = stack(["gate_proj"], "lora_A")
        made[stem + "linear_fc1" + name_out.format("")] = stack(["gate_proj", "up_proj"], "lora_B")
        return made
    for part in ("gate", "up"):
        name = stem + "linear_fc1"
        made[name + name_in.format(f".adapter_{part}")] = stack([f"{part}_proj"], "lora_A")
        order = (lambda rows: halves_first(rows, ranks)) if ranks > 1 else (lambda rows: rows)
        made[name + name_out.format(f".adapter_{part}")] = stack([f"{part}_proj"], "lora_B", order)
    return made


def as_peft(folder, adapters, **settings):
    folder.mkdir()
    save_file(adapters, folder / "adapter_model.safetensors", metadata={"format": "pt"})
    config = {"peft_type": "LORA", "r": RANK, "lora_alpha": 6, "target_modules": list(PROJECTIONS), **settings}
    (folder / "adapter_config.json").write_text(json.dumps(config))
    return folder


FORMS = {
    "bridge": (True, BRIDGE, []),
    "canonical": (False, BRIDGE, []),
    "swift": (True, SWIFT, ["--adapter-names", "ms-swift"]),
}
KINDS = {"bridge": "lora.LoRA", "canonical": "canonical_lora.CanonicalLoRA"}


@pytest.mark.parametrize("form", FORMS)
def test_experts_of_a_run_become_pefts(shardwright, tmp_path, moe, form):
    fused, spelling, _ = FORMS[form]
    expected = random_experts(fused)
    section = SECTION.format(KINDS[form], 6).replace("dim: 9", f"dim: {RANK}") if form in KINDS else None
    arguments = None if form in KINDS else dict(lora_rank=RANK, lora_alpha=6)
    run = save_run(tmp_path / "run", as_megatron(expected, fused, spelling), section, arguments)
    out = tmp_path / "out"
    told = shardwright("convert", run, out, "--to", "hf", "--hf-config", moe).stderr
    assert ("lora_dropout is 0, not the run's 0.1" in told) == (form in KINDS)
    assert_same(load_file(out / "adapter_model.safetensors"), expected)
    config = json.loads((out / "adapter_config.json").read_text())
    assert (config["r"], config["target_modules"]) == (RANK, sorted(PROJECTIONS))
    assert "rank_pattern" not in config
    # And added to the base: each expert's product, and what PEFT makes of it.
    shardwright("merge-adapter", moe, out, tmp_path / "merged")
    base, merged = tensors_of(moe), tensors_of(tmp_path / "merged")
    name = "model.layers.1.mlp.experts.3.up_proj"
    product = expected[f"base_model.model.{name}.lora_B.weight"] @ expected[f"base_model.model.{name}.lora_A.weight"]
    assert torch.allclose(merged[name + ".weight"], base[name + ".weight"] + product, atol=1e-5)
    assert difference(merged, one_by_one(by_peft(moe, out))) < 1e-5


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("form", FORMS)
def test_experts_of_peft_become_a_runs(shardwright, tmp_path, moe, form, ranks):
    fused, spelling, flags = FORMS[form]
    adapters = random_experts(fused)
    source = as_peft(tmp_path / "adapter", adapters)
    run = tmp_path / "run"
    shardwright("convert", source, run, "--to", "torch_dist", "--tp", 1, "--etp", ranks, "--ep", 2,
                "--hf-config", moe, *flags)  # fmt: skip
    assert_same(load_dcp(run), as_megatron(adapters, fused, spelling, ranks))
    if form == "swift":
        settings = json.loads((run / "args.json").read_text())
        assert settings["target_modules"] == ["experts.linear_fc1", "experts.linear_fc2"]
    else:
        text = (run / "iter_0000000" / "run_config.yaml").read_text()
        assert "  share_expert_adapters: false\n" in text
        firsts = ["linear_fc1"] if form == "bridge" else ["linear_fc1_gate", "linear_fc1_up"]
        listed = "".join(f"  - '*.experts.{module}'\n" for module in [*firsts, "linear_fc2"])
        assert "  target_modules:\n" + listed in text
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", moe)
    assert_same(load_file(tmp_path / "back" / "adapter_model.safetensors"), adapters)
    shardwright("verify", run)
    # Rows of CanonicalLoRA's first linear keep the order of their ranks.
    again = ["convert", run, tmp_path / "again", "--to", "torch_dist", "--tp", 1, "--ep", 4, "--etp"]
    if form == "canonical" and ranks == 2:
        assert "in the order of 2 tensor ranks" in shardwright(*again, 1, expect=2).stderr
    shardwright(*again, ranks)
    assert_same(load_dcp(tmp_path / "again"), load_dcp(run))


@pytest.mark.parametrize("case", ["whole", "outer"])
def test_what_all_experts_share(shardwright, tmp_path, moe, case):
    """One tensor for all: Bridge's first form of share_expert_adapters, and experts_shared_outer_loras."""
    expected = random_experts(True)
    shared = {"gate_proj": "AB", "up_proj": "AB", "down_proj": "AB"}
    if case == "outer":
        shared = {"gate_proj": "A", "up_proj": "A", "down_proj": "B"}
    for layer in range(LAYERS):
        for expert in range(EXPERTS):
            for projection, ends in shared.items():
                for end in ends:
                    own, first = (f"{stem_of(layer, e, projection)}.lora_{end}.weight" for e in (expert, 0))
                    expected[own] = expected[first].clone()
    tensors = as_megatron(expected, True)
    one = {"whole": ("fc1.adapter.linear_in", "fc1.adapter.linear_out", "fc2.adapter.linear_in", "fc2.adapter.linear_out"),
           "outer": ("fc1.adapter.linear_in", "fc2.adapter.linear_out")}[case]  # fmt: skip
    tensors = {name: t[:, 0].clone() if name.endswith(tuple(f"{end}.weight" for end in one)) else t
               for name, t in tensors.items()}  # fmt: skip
    assert sum(t.dim() == 3 for t in tensors.values()) == len(one)
    run = save_run(tmp_path / "run", tensors, SECTION.format("lora.LoRA", 6).replace("dim: 9", f"dim: {RANK}"))
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", moe)
    assert_same(load_file(tmp_path / "out" / "adapter_model.safetensors"), expected)


def test_experts_of_a_lower_rank(shardwright, tmp_path, moe):
    """normalize_moe_lora: alpha is divided by that rank, which is what PEFT does by rank_pattern."""
    expected = random_experts(True, rank=3)
    tensors = as_megatron(expected, True)
    stem = "decoder.layers.self_attention.linear_proj.adapter.linear_"
    heads = json.loads((moe / "config.json").read_text())
    inner = heads["num_attention_heads"] * heads["head_dim"]
    tensors[stem + "in.weight"] = torch.ones(LAYERS, RANK, inner)
    tensors[stem + "out.weight"] = torch.ones(LAYERS, HIDDEN, RANK)
    section = SECTION.format("lora.LoRA", 6).replace("dim: 9", f"dim: {RANK}")
    run = save_run(tmp_path / "plain", tensors, section)
    told = shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", moe, expect=2).stderr
    assert f"found adapters of rank 3, expected {RANK}" in told and not (tmp_path / "out").exists()
    run = save_run(tmp_path / "run", tensors, section + "  normalize_moe_lora: true\n")
    shardwright("convert", run, tmp_path / "out", "--to", "hf", "--hf-config", moe)
    config = json.loads((tmp_path / "out" / "adapter_config.json").read_text())
    assert config["r"] == RANK and len(config["rank_pattern"]) == LAYERS * EXPERTS * 3
    # And a run's again, for a token goes to two experts and three is half the rank.
    flags = ["--to", "torch_dist", "--hf-config", moe]
    shardwright("convert", tmp_path / "out", tmp_path / "again", *flags)
    assert_same(load_dcp(tmp_path / "again"), tensors)
    again = (tmp_path / "again" / "iter_0000000" / "run_config.yaml").read_text()
    assert f"  dim: {RANK}\n" in again and "  normalize_moe_lora: true\n" in again
    for case, changed in {
        "swift": {},
        "rslora": {"use_rslora": True},
        "dense": {"rank_pattern": {**config["rank_pattern"], "o_proj": 3}},
        "alpha": {"alpha_pattern": {"down_proj": 12}},
        "other": {"r": 9},
    }.items():
        settings = dict(config, **changed)
        source = as_peft(tmp_path / case, load_file(tmp_path / "out" / "adapter_model.safetensors"), **settings)
        if case in ("dense", "other"):  # the tensors of the linears that are no experts
            stored = load_file(source / "adapter_model.safetensors")
            for layer in range(LAYERS):
                stem = f"base_model.model.model.layers.{layer}.self_attn.o_proj.lora_"
                rank = 3 if case == "dense" else 9
                stored[stem + "A.weight"], stored[stem + "B.weight"] = torch.ones(rank, inner), torch.ones(HIDDEN, rank)
            save_file(stored, source / "adapter_model.safetensors", metadata={"format": "pt"})
        more = ["--adapter-names", "ms-swift"] if case == "swift" else []
        told = shardwright("convert", source, tmp_path / "no", *flags, *more, expect=2).stderr
        assert "a rank or alpha of model.layers." in told and not (tmp_path / "no").exists(), case
    shardwright("merge-adapter", moe, tmp_path / "out", tmp_path / "merged")
    base, merged = tensors_of(moe), tensors_of(tmp_path / "merged")
    name = "model.layers.0.mlp.experts.1.down_proj"
    a, b = (expected[f"base_model.model.{name}.lora_{end}.weight"] for end in "AB")
    assert torch.allclose(merged[name + ".weight"], base[name + ".weight"] + 2 * (b @ a), atol=1e-5)


BOTH = ["experts.gate_up_proj", "experts.down_proj"]


# Where the base's files hold the experts of a layer in one tensor, PEFT has what is trained of that tensor. Those of
# GPT-OSS alternate gate and up, those of Llama 4 are [inputs, outputs] in PEFT's eyes the wrong way round.
@pytest.mark.parametrize("form", ["bridge", "swift"])
@pytest.mark.parametrize(
    "kind, parameters",
    [("gpt_oss", BOTH), ("gpt_oss", BOTH[1:]), ("llama4_text", BOTH), ("qwen3_moe", BOTH), ("qwen3_moe", BOTH[:1])],
    ids=["gpt_oss", "gpt_oss down", "llama4", "qwen3_moe", "qwen3_moe gate_up"],
)
def test_experts_in_one_tensor(shardwright, tmp_path, kind, parameters, form):
    base, source = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, kind, packed=kind == "qwen3_moe")
    trained = adapt(load(base), source, target_modules=["o_proj"], target_parameters=parameters)
    sizes = ["--to", "torch_dist", "--hf-config", base, "--tp", 1]
    flags = ["--adapter-names", "ms-swift"] if form == "swift" else []
    run = tmp_path / "run"
    shardwright("convert", source, run, *sizes, "--ep", 2, *flags)
    shardwright("verify", run)
    # Whatever PEFT holds, the run adds to its experts what PEFT adds to its own.
    shardwright("convert", base, tmp_path / "before", *sizes)
    shardwright("merge-adapter", base, source, tmp_path / "after", *sizes)
    before, after, adapters = (load_dcp(tmp_path / name) for name in ("before", "after", "run"))
    ends = (".lora_A.default.weight", ".lora_B.default.weight") if form == "swift" else (
        ".adapter.linear_in.weight", ".adapter.linear_out.weight")  # fmt: skip
    stems = {name.removesuffix(ends[0]) for name in adapters if ".experts." in name and name.endswith(ends[0])}
    assert {stem.rpartition(".")[2] for stem in stems} == {
        "linear_fc1" if "gate_up" in name else "linear_fc2" for name in parameters
    }  # fmt: skip
    for stem in stems:
        product = adapters[stem + ends[1]] @ adapters[stem + ends[0]] * (6 / 4)
        assert torch.allclose(after[stem + ".weight"], before[stem + ".weight"] + product, atol=1e-5)
        assert not after[stem + ".weight"].equal(before[stem + ".weight"])
    # And back, to what PEFT itself has written.
    shardwright("convert", run, tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert_same(tensors_of(tmp_path / "back"), tensors_of(source))
    config = json.loads((tmp_path / "back" / "adapter_config.json").read_text())
    assert sorted(config["target_parameters"]) == sorted(
        f"{'feed_forward' if kind == 'llama4_text' else 'mlp'}.{name}" for name in parameters
    )
    assert config["target_modules"] == ["o_proj"]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        loaded = peft.PeftModel.from_pretrained(load(base), tmp_path / "back")
    assert not [text for text in map(str, told) if "adapter keys" in text]
    assert difference(dict(loaded.state_dict()), dict(trained.state_dict())) == 0.0


def test_layers_that_have_other_parameters(shardwright, tmp_path):
    """How deep PEFT's tensors of a layer lie says of which parameter they are, by what is targeted there."""
    base, source = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "gpt_oss")
    some = [f"0.mlp.{BOTH[0]}", f"0.mlp.{BOTH[1]}", f"1.mlp.{BOTH[0]}"]
    trained = adapt(load(base), source, target_modules=[], target_parameters=some)
    shardwright("convert", source, tmp_path / "run", "--to", "torch_dist", "--hf-config", base)
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf", "--hf-config", base)
    config = json.loads((tmp_path / "back" / "adapter_config.json").read_text())
    assert config["target_parameters"] == sorted(f"model.layers.{name}" for name in some)
    assert_same(tensors_of(tmp_path / "back"), tensors_of(source))
    loaded = peft.PeftModel.from_pretrained(load(base), tmp_path / "back")
    assert difference(dict(loaded.state_dict()), dict(trained.state_dict())) == 0.0
    for name in ("adapter", "back"):
        shardwright("merge-adapter", base, tmp_path / name, tmp_path / f"merged {name}")
    assert_same(tensors_of(tmp_path / "merged back"), tensors_of(tmp_path / "merged adapter"))


def test_square_experts(shardwright, tmp_path):
    """What A is over shows in the other parameter, else perhaps in PEFT's version."""
    base, source = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "gpt_oss", hidden_size=64, intermediate_size=64)
    flags = ["--to", "torch_dist", "--hf-config", base]
    adapt(load(base), source, target_modules=[], target_parameters=BOTH)
    shardwright("convert", source, tmp_path / "run", *flags)
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert_same(tensors_of(tmp_path / "back"), tensors_of(source))
    hf_models.create(tmp_path / "moe", "qwen3_moe", hidden_size=64, moe_intermediate_size=64)
    for model, version, is_told in ((base, "0.21.2", False), (base, "0.18.1", False),
                                    (tmp_path / "moe", "0.21.2", True), (tmp_path / "moe", "0.18.1", False)):  # fmt: skip
        down = tmp_path / f"{model.name} {version}"
        adapt(load(model), down, target_modules=[], target_parameters=BOTH[1:])
        config = json.loads((down / "adapter_config.json").read_text())
        (down / "adapter_config.json").write_text(json.dumps({**config, "peft_version": version}))
        said = shardwright("convert", down, tmp_path / f"run {down.name}", "--to", "torch_dist", "--hf-config", model,
                           expect=0 if is_told else 2).stderr  # fmt: skip
        assert is_told or "nothing tells whether lora_A is over the inputs" in said


def test_experts_in_one_tensor_of_a_lower_rank(shardwright, tmp_path):
    """Each has the rank by as many as a token is routed to; and what Megatron has no place for."""
    base, source = tmp_path / "base", tmp_path / "adapter"
    hf_models.create(base, "gpt_oss", num_experts_per_tok=2)
    pattern = {"experts.gate_up_proj": 2, "experts.down_proj": 2}
    adapt(load(base), source, target_modules=["o_proj"], target_parameters=BOTH, rank_pattern=pattern,
          alpha_pattern={name: 3 for name in pattern})  # fmt: skip
    flags = ["--to", "torch_dist", "--hf-config", base]
    told = shardwright("convert", source, tmp_path / "no", *flags, expect=2).stderr
    assert "a rank or alpha of model.layers." in told and not (tmp_path / "no").exists()
    config = json.loads((source / "adapter_config.json").read_text())
    (source / "adapter_config.json").write_text(json.dumps({**config, "alpha_pattern": {}}))
    shardwright("convert", source, tmp_path / "run", *flags)
    shardwright("convert", tmp_path / "run", tmp_path / "back", "--to", "hf", "--hf-config", base)
    assert_same(tensors_of(tmp_path / "back"), tensors_of(source))
    config = json.loads((tmp_path / "back" / "adapter_config.json").read_text())
    assert config["rank_pattern"] == {f"mlp.{name}": 2 for name in pattern}
    for name in ("adapter", "back"):
        shardwright("merge-adapter", base, tmp_path / name, tmp_path / f"merged {name}")
    assert_same(tensors_of(tmp_path / "merged back"), tensors_of(tmp_path / "merged adapter"))
    assert difference(dict(by_peft(base, tmp_path / "back")), dict(by_peft(base, source))) == 0.0
    # CanonicalLoRA's two of gate and up are not one of both.
    section = SECTION.format("canonical_lora.CanonicalLoRA", 6).replace("dim: 9", "dim: 4")
    stem = "decoder.layers.mlp.experts.experts.linear_fc1.adapter.adapter_{}.linear_{}.weight"
    halves = {stem.format(half, end): torch.ones(3, 6, *shape)
              for half in ("gate", "up") for end, shape in (("in", (4, 72)), ("out", (104, 4)))}  # fmt: skip
    run = save_run(tmp_path / "halves", halves, section)
    told = shardwright("convert", run, tmp_path / "no", "--to", "hf", "--hf-config", base, expect=2).stderr
    assert "without a rule" in told and not (tmp_path / "no").exists()


def test_dora_of_an_expert_is_refused(shardwright, tmp_path, moe):
    tensors = random_experts(True)
    for name in [name for name in tensors if name.endswith("lora_B.weight")]:
        tensors[name.replace("lora_B.weight", "lora_magnitude_vector")] = torch.ones(len(tensors[name]))
    source = as_peft(tmp_path / "adapter", tensors)
    config = json.loads((source / "adapter_config.json").read_text())
    (source / "adapter_config.json").write_text(json.dumps({**config, "use_dora": True}))
    told = shardwright("convert", source, tmp_path / "no", "--to", "torch_dist", "--hf-config", moe, expect=2).stderr
    assert "the DoRA of an expert, model.layers.0.mlp.experts.0." in told and "merge-adapter" in told


def test_experts_that_are_refused(shardwright, tmp_path, moe):
    adapters = random_experts(False)
    source = as_peft(tmp_path / "adapter", adapters)
    flags = ["--to", "torch_dist", "--hf-config", moe]
    told = shardwright("convert", source, tmp_path / "no", *flags, "--adapter-names", "ms-swift", expect=2).stderr
    assert "ms-swift has one adapter for modules that Megatron fuses" in told
    # Megatron has one tensor for the experts of a layer.
    some = {name: t for name, t in adapters.items() if ".experts.2." not in name}
    source = as_peft(tmp_path / "some", some)
    told = shardwright("convert", source, tmp_path / "no", *flags, expect=2).stderr
    assert "found nothing for model.layers.0.mlp.experts.2.down_proj" in told and "for all 4 experts or none" in told
    told = shardwright("convert", tmp_path / "adapter", tmp_path / "no", "--to", "legacy", "--hf-config", moe, expect=2)
    assert "routed experts" in told.stderr and "keep it in that" in told.stderr
    assert not (tmp_path / "no").exists()
