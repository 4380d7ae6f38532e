# SPDX-License-Identifier: Apache-2.0
"""Optimizer states of legacy files, between Megatron-Core's own optimizer and itself."""
import argparse
import io
import re

import pytest
import shardwright as package
import torch

import checkpoints

GOLDEN_HF = checkpoints.GOLDEN / "hf"


def trained(megatron, family, spec, root, kind="adam"):
    """A model after two steps, saved with its optimizer."""
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / family / "hf")
    model = megatron.build(hf, spec)
    megatron.fill(model, checkpoints.truth(family))
    optimizer = megatron_optimizer.build(model, kind)
    for seed in (1, 2):
        megatron_optimizer.step(optimizer, seed)
    # That some parameters have fewer states than others is right of this one only.
    named = {
        "lion_beside": {"optimizer": "lion"},
        "mup": {"use_mup": True},
        "qk_decay": {"no_weight_decay_cond_type": "qwen3_next"},
    }.get(kind, {})
    megatron.save_legacy(model, root, hf, optimizer=optimizer.state_dict(), more_arguments=named)
    return model, optimizer


FAMILIES = ("llama3", "qwen2", "qwen3_moe")
ADAM = [(family, spec, "adam") for family in FAMILIES for spec in ("te", "local")]
# States of each parameter: those of SGD with momentum and without, of Lion, of Muon and of Lion
# beside Adam.
OTHERS = {
    "sgd": {"master", "momentum_buffer"},
    "plain_sgd": {"master"},
    "lion": {"master", "exp_avg"},
    "muon": {"master", "momentum_buffer", "exp_avg", "exp_avg_sq", "step"},
    "lion_beside": {"master", "exp_avg", "exp_avg_sq", "step"},
}


@pytest.mark.parametrize(
    "family, spec, kind",
    ADAM
    + [("llama3", "te", kind) for kind in OTHERS]
    + [("qwen3_moe", "te", "muon"), ("qwen3_moe", "local", "qk_decay")],
)
def test_training_goes_on(shardwright, megatron, tmp_path, family, spec, kind):
    """Through other layouts and formats and back: the next step is the same, bit by bit."""
    import megatron_optimizer

    model, optimizer = trained(megatron, family, spec, tmp_path / "in", kind)
    keep = ("--optimizer", "keep", "--spec", spec)
    shardwright("convert", tmp_path / "in", tmp_path / "tp2", "--to", "legacy", "--tp", 2, *keep)
    shardwright("convert", tmp_path / "tp2", tmp_path / "dist", "--to", "torch_dist", *keep)
    shardwright("convert", tmp_path / "dist", tmp_path / "out", "--to", "legacy", *keep)

    other = megatron.build(megatron.read_config(GOLDEN_HF / family / "hf"), spec)
    resumed = megatron_optimizer.build(other, kind)
    state = megatron.load_legacy(other, checkpoints.iteration_folder(tmp_path / "out"))
    resumed.load_state_dict(state["optimizer"])
    expected = megatron_optimizer.tensors(optimizer)
    assert len(expected) > 20
    checkpoints.assert_same(megatron_optimizer.tensors(resumed), expected)
    states = {name.rsplit(".", 1)[1] for name in expected}
    assert states == OTHERS.get(kind, {"master", "exp_avg", "exp_avg_sq", "step"})
    assert {float(v) for k, v in expected.items() if k.endswith(".step")} <= {2.0}

    for each in (optimizer, resumed):
        megatron_optimizer.step(each, 3)
    checkpoints.assert_same(
        megatron_optimizer.tensors(resumed), megatron_optimizer.tensors(optimizer)
    )
    weights = dict(model.named_parameters())
    for name, parameter in other.named_parameters():
        assert torch.equal(parameter, weights[name]), name


@pytest.mark.parametrize("is_older", [True, False])
def test_groups_of_older_versions_stand_in_each_ranks_own_order(shardwright, megatron, tmp_path, is_older):
    """Up to Megatron-Core 0.15 by the rank's own parameters, of which a norm may be the first; that loads groups by
    their places. Since then they are sorted and say whether they have the usual settings."""
    trained(megatron, "llama3", "local", tmp_path / "in")
    file = megatron.rank_file(tmp_path / "in" / "iter_0000010")
    state = torch.load(file, weights_only=False)
    for group in state["optimizer"]["optimizer"]["param_groups"] if is_older else ():
        del group["default_config"]
    torch.save(state, file)
    keep = ("--optimizer", "keep", "--spec", "local")
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "legacy", "--pp", 2, *keep)
    found = []
    for rank in range(2):
        folder = checkpoints.iteration_folder(tmp_path / "out") / f"mp_rank_00_{rank:03d}"
        dicts = torch.load(folder / "model_optim_rng.pt", weights_only=False)["optimizer"]
        groups = dicts["optimizer"]["param_groups"]
        assert [n for group in groups for n in group["params"]] == list(range(len(dicts["optimizer"]["state"])))
        for group, masters in zip(groups, dicts["fp32_from_fp16_params"], strict=True):
            assert len(masters) == len(group["params"])
            assert all((master.dim() > 1) == (group["wd_mult"] > 0) for master in masters)
        found.append([group["wd_mult"] > 0 for group in groups])
    assert found == ([[True, False], [False, True]] if is_older else [found[0], found[0]])
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "legacy", *keep)
    back = torch.load(megatron.rank_file(checkpoints.iteration_folder(tmp_path / "back")), weights_only=False)
    for one, other in zip(back["optimizer"]["fp32_from_fp16_params"], state["optimizer"]["fp32_from_fp16_params"]):
        assert [m.shape for m in one] == [m.shape for m in other] or is_older


def settings_of(folder):
    """What an fsdp_dtensor checkpoint says of each parameter, by names without their wrappers."""
    found, checkpoint = {}, package.open(folder)
    root = "optimizer.param_to_group_meta."
    for key in checkpoint.object_keys():
        if key.startswith(root):
            name, _, setting = key[len(root) :].rpartition(".")
            value = torch.load(io.BytesIO(checkpoint.get_object(key)), weights_only=True)
            found.setdefault(name.replace("module.", ""), {})[setting] = value
    return found


def test_learning_rates_of_matrices_alone(shardwright, megatron, tmp_path):
    """Megatron-Core 0.16 cannot load groups that only rates tell apart, so files are compared."""
    model, _ = trained(megatron, "llama3", "te", tmp_path / "in", "mup")
    keep = ("--optimizer", "keep", "--spec", "te")
    shardwright("convert", tmp_path / "in", tmp_path / "dist", "--to", "torch_dist", *keep)
    shardwright("convert", tmp_path / "dist", tmp_path / "out", "--to", "legacy", *keep)
    before, after = (
        torch.load(megatron.rank_file(tmp_path / folder), weights_only=False)["optimizer"]
        for folder in ("in/iter_0000010", "out/iter_0000010")
    )
    groups = before["optimizer"]["param_groups"]
    assert [group["params"] for group in after["optimizer"]["param_groups"]] == [g["params"] for g in groups]
    assert sorted(len(group["params"]) for group in groups if group["wd_mult"]) == [2, 12]
    for group, same in zip(before["fp32_from_fp16_params"], after["fp32_from_fp16_params"], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(group, same, strict=True))
    shardwright("convert", tmp_path / "dist", tmp_path / "fsdp", "--to", "fsdp_dtensor", "--optimizer", "keep")
    rates = {name: settings["max_lr"] for name, settings in settings_of(tmp_path / "fsdp").items()}
    assert len(rates) == len(dict(model.named_parameters()))
    for name, rate in rates.items():
        is_matrix = "linear_" in name and "layer_norm" not in name
        assert rate == (5e-4 if is_matrix else 1e-3), name


def test_a_learning_rate_of_nobody_knows_whom(shardwright, megatron, tmp_path):
    trained(megatron, "llama3", "te", tmp_path / "in", "mup")
    file = megatron.rank_file(tmp_path / "in" / "iter_0000010")
    state = torch.load(file, weights_only=False)
    state["args"].use_mup = False
    torch.save(state, file)
    done = shardwright("convert", tmp_path / "in", tmp_path / "fsdp", "--to", "fsdp_dtensor", expect=2)
    assert "neither --decoupled-lr nor --use-mup" in done.stderr
    assert not (tmp_path / "fsdp").exists()


@pytest.mark.parametrize("kind", ["lion", "sgd"])
def test_other_states_go_through_megatron_fsdps_format(shardwright, megatron, tmp_path, kind):
    """And back, with weights of float32: there they are the master weights."""
    trained(megatron, "llama3", "te", tmp_path / "in", kind)
    keep = ("--optimizer", "keep")
    for source, name in (("in", "dist"), ("dist", "fsdp"), ("fsdp", "back")):
        to = "fsdp_dtensor" if name == "fsdp" else "torch_dist"
        shardwright("convert", tmp_path / source, tmp_path / name, "--to", to, *keep)
    before, there, after = (
        checkpoints.load_dcp(tmp_path / name) for name in ("dist", "fsdp", "back")
    )
    assert not [name for name in there if name.endswith(".step")], "neither counts steps"
    states = [name for name in before if "optimizer.state." in name]
    assert len(states) > 10
    checkpoints.assert_same({n: after[n] for n in states}, {n: before[n] for n in states})
    assert {n for n in after if "optimizer.state." in n} == set(states)


@pytest.mark.parametrize("kind", OTHERS)
def test_other_states_in_targets_that_keep_names(shardwright, megatron, tmp_path, kind):
    """DCP and plain safetensors hold any state; a Hugging Face model holds none, and that is said."""
    trained(megatron, "llama3", "te", tmp_path / "in", kind)
    keep = ("--optimizer", "keep")
    shardwright("convert", tmp_path / "in", tmp_path / "dist", "--to", "torch_dist", *keep)
    states = {n: t for n, t in checkpoints.load_dcp(tmp_path / "dist").items() if "optimizer.state." in n}
    assert len(states) > 8
    for to, load in (("dcp", checkpoints.load_dcp), ("safetensors", checkpoints.load_hf)):
        shardwright("convert", tmp_path / "dist", tmp_path / to, "--to", to, *keep)
        made = load(tmp_path / to)
        checkpoints.assert_same({n: t for n, t in made.items() if "optimizer.state." in n}, states)
    done = shardwright("convert", tmp_path / "dist", tmp_path / "hf", "--to", "hf")
    assert f"{len(states)} optimizer tensors are dropped" in done.stdout + done.stderr
    done = shardwright("convert", tmp_path / "dist", tmp_path / "no", "--to", "hf", *keep, expect=2)
    assert "a Hugging Face checkpoint has no optimizer state" in done.stderr
    assert not (tmp_path / "no").exists()


@pytest.mark.parametrize("kind", ["muon", "lion_beside"])
def test_adam_beside_another_makes_neither_distributed(shardwright, megatron, tmp_path, kind):
    """So Megatron-Core 0.19 asks for the master weights of both by the name that it has for its own."""
    trained(megatron, "llama3", "te", tmp_path / "in", kind)
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", "--optimizer", "keep")
    kinds = {key.split(".")[2] for key in checkpoints.load_dcp(tmp_path / "out") if key.startswith("optimizer.state.")}
    assert "fp32_param" in kinds and "param" not in kinds
    common = torch.load(checkpoints.iteration_folder(tmp_path / "out") / "common.pt", weights_only=False)
    parts = common["optimizer"].values()
    assert not any("param_state_sharding_type" in part for part in parts)
    # torch's Adam takes its parameters' steps from there; the other optimizer, the first, has none.
    steps = [part["optimizer"].get("state", {}).get("common_step") for part in parts]
    assert steps == [None, common["optimizer"][1]["optimizer"]["param_groups"][0]["step"]]
    for part in parts:
        for group in part["optimizer"]["param_groups"]:
            group.pop("step", None)
    common["optimizer"][1]["optimizer"]["state"]["common_step"] = torch.tensor(7.0)
    torch.save(common, checkpoints.iteration_folder(tmp_path / "out") / "common.pt")
    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "legacy", "--optimizer", "keep")
    file = next((tmp_path / "back").rglob("model_optim_rng.pt"))
    adam = torch.load(file, weights_only=False)["optimizer"][1]["optimizer"]["state"].values()
    assert {state["step"].item() for state in adam} == {7.0}


@pytest.mark.parametrize("kind", ["muon", "lion_beside"])
def test_adam_beside_another_over_float32_has_no_master_weights(shardwright, megatron, tmp_path, kind):
    """Megatron-Core's FP32Optimizer asks for none, and for torch's own dict."""
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / "qwen3_moe" / "hf")

    def trained_in_float32(seeds):
        model = megatron.build(hf, "te").float()
        megatron.fill(model, checkpoints.truth("qwen3_moe"))
        optimizer = megatron_optimizer.build(model, kind, bf16=False)
        for seed in seeds:
            generator = torch.Generator().manual_seed(seed)
            for leaf in megatron_optimizer.leaves(optimizer):
                for group in leaf.optimizer.param_groups:
                    group["lr"] = 1e-3
                    for weight in group["params"]:
                        weight.grad = torch.randn(weight.shape, generator=generator)
                leaf.optimizer.step()
        return model, optimizer

    def states(optimizer):
        found = {}
        for part, leaf in enumerate(megatron_optimizer.leaves(optimizer)):
            weights = [weight for group in leaf.optimizer.param_groups for weight in group["params"]]
            for i, weight in enumerate(weights):
                found[f"{part}.{i}"] = weight.detach()
                found |= {f"{part}.{i}.{k}": v for k, v in leaf.optimizer.state[weight].items()}
        return found

    model, optimizer = trained_in_float32((1, 2))
    named = {"bf16": False, "optimizer": kind.split("_")[0], "moe_ffn_hidden_size": model.config.moe_ffn_hidden_size}
    megatron.save_legacy(model, tmp_path / "in", hf, optimizer=optimizer.state_dict(), more_arguments=named)
    keep = ("--optimizer", "keep")
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", *keep)
    # The experts of a layer are one.
    count = len({re.sub(r"local_experts\.\d+|weight\d+$", "", name) for name, _ in model.named_parameters()})
    first = "embedding.word_embeddings.weight the first"
    assert f"note: {count} parameters (float32), {first}, have no master weight" in done.stderr

    other, resumed = trained_in_float32((7,))
    state = {"model": megatron.sharded(other)}
    # As Megatron-LM asks for what it saves.
    state["optimizer"] = resumed.sharded_state_dict(
        state["model"], is_loading=True, metadata={"chained_optim_avoid_prefix": True}
    )
    with torch.serialization.safe_globals([argparse.Namespace]):
        state = megatron.dist_checkpointing.load(
            state, str(checkpoints.iteration_folder(tmp_path / "out")), strict="raise_all"
        )
    other.load_state_dict(state["model"], strict=False)
    resumed.load_state_dict(state["optimizer"])
    checkpoints.assert_same(states(resumed), states(optimizer))

    shardwright("convert", tmp_path / "out", tmp_path / "back", "--to", "legacy", *keep)
    back = torch.load(megatron.rank_file(checkpoints.iteration_folder(tmp_path / "back")), weights_only=False)
    assert [set(part) for part in back["optimizer"]] == [{"state", "param_groups"}] * 2


def test_megatron_fsdp_has_one_optimizer(shardwright, megatron, tmp_path):
    trained(megatron, "llama3", "te", tmp_path / "in", "muon")
    flags = ("--to", "fsdp_dtensor", "--optimizer", "keep")
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", *flags, expect=2)
    assert "SW0311" in done.stderr and "no second one" in done.stderr
    assert not (tmp_path / "out").exists()


def test_layer_wise_muon_has_experts_groups_among_the_others(shardwright, megatron, tmp_path):
    """But rank files are gone on with by an optimizer that does not share out whole layers."""
    trained(megatron, "qwen3_moe", "te", tmp_path / "in", "muon")
    keep = ("--optimizer", "keep", "--ep", 2)
    shardwright("convert", tmp_path / "in", tmp_path / "dist", "--to", "torch_dist", "--optimizer", "keep")
    common = checkpoints.iteration_folder(tmp_path / "dist") / "common.pt"
    state = torch.load(common, weights_only=False)
    state["args"].use_layer_wise_distributed_optimizer = True
    torch.save(state, common)

    def groups_of(parts):
        groups = [part["optimizer"]["param_groups"] for part in parts]
        return [[group["is_expert_parallel"] for group in each] for each in groups]

    shardwright("convert", tmp_path / "dist", tmp_path / "out", "--to", "torch_dist", *keep)
    made = torch.load(checkpoints.iteration_folder(tmp_path / "out") / "common.pt", weights_only=False)
    assert groups_of(made["optimizer"].values()) == [[False, True], [False, False]]
    shardwright("convert", tmp_path / "out", tmp_path / "ranks", "--to", "legacy", *keep)
    for file in (tmp_path / "ranks").rglob("model_optim_rng.pt"):
        parts = torch.load(file, weights_only=False)["optimizer"]
        assert groups_of(parts) == [[False], [True], [False, False]]


def test_a_loss_scale_is_told_of(shardwright, megatron, tmp_path):
    """It is a tensor, which torch_dist keeps and rank files have no place for."""
    trained(megatron, "llama3", "te", tmp_path / "in", "sgd")
    keep = ("--optimizer", "keep")
    shardwright("convert", tmp_path / "in", tmp_path / "dist", "--to", "torch_dist", *keep)
    common = checkpoints.iteration_folder(tmp_path / "dist") / "common.pt"
    state = torch.load(common, weights_only=False)
    state["optimizer"]["grad_scaler"] = {"scale": torch.tensor([4096.0]), "growth_tracker": 3}
    torch.save(state, common)
    for to in ("legacy", "fsdp_dtensor"):
        done = shardwright("convert", tmp_path / "dist", tmp_path / to, "--to", to, *keep)
        assert "the loss scale is not carried" in done.stdout + done.stderr
    shardwright("convert", tmp_path / "dist", tmp_path / "out", "--to", "torch_dist", *keep)
    out = checkpoints.iteration_folder(tmp_path / "out") / "common.pt"
    kept = torch.load(out, weights_only=False)["optimizer"]["grad_scaler"]
    assert kept["scale"].tolist() == [4096.0] and kept["growth_tracker"] == 3


def test_muon_of_experts_is_apart_where_they_are(shardwright, megatron, tmp_path):
    """As get_megatron_muon_optimizer chains them; Adam beside it stays one."""
    trained(megatron, "qwen3_moe", "te", tmp_path / "in", "muon")
    keep = ("--to", "torch_dist", "--optimizer", "keep")
    shardwright("convert", tmp_path / "in", tmp_path / "dist", *keep)
    shardwright("convert", tmp_path / "dist", tmp_path / "out", *keep, "--ep", 2)
    shardwright("convert", tmp_path / "out", tmp_path / "back", *keep)

    def parts_of(name):
        common = checkpoints.iteration_folder(tmp_path / name) / "common.pt"
        parts = torch.load(common, weights_only=False)["optimizer"]
        return [parts[i]["optimizer"]["param_groups"] for i in range(len(parts))]

    apart = [[False], [True], [False, False]]
    for name, experts in (("dist", apart[::2]), ("out", apart), ("back", apart[::2])):
        parts = parts_of(name)
        assert [[g["is_expert_parallel"] for g in groups] for groups in parts] == experts, name
        for groups in parts[:-1]:
            assert not any("betas" in group or "step" in group for group in groups)
        assert all("betas" in group and "step" in group for group in parts[-1])
    # Nor does it have a distributed optimizer's names.
    for name in ("dist", "out"):
        kinds = {key.split(".")[2] for key in checkpoints.load_dcp(tmp_path / name)
                 if key.startswith("optimizer.state.")}  # fmt: skip
        assert "fp32_param" in kinds and "param" not in kinds


def test_a_state_of_another_shape_is_refused(shardwright, megatron, tmp_path):
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / "llama3" / "hf")
    model, optimizer = trained(megatron, "llama3", "te", tmp_path / "first", "lion")
    for text, spoil in (
        ("float32 (1,)", lambda states: states[0].update(exp_avg=torch.ones(1))),
        ("the states", lambda states: states[0].update(more=states[0]["exp_avg"])),
        ("found no tensor as its exp_avg", lambda states: states[0].update(exp_avg=3)),
    ):  # fmt: skip
        state = optimizer.state_dict()
        states = state["optimizer"]["state"]
        states = {key: dict(value) for key, value in states.items()}
        spoil(states)
        state["optimizer"]["state"] = states
        root = tmp_path / f"in-{len(text)}"
        megatron.save_legacy(model, root, hf, optimizer=state)
        flags = ("--to", "torch_dist", "--optimizer", "keep")
        done = shardwright("convert", root, tmp_path / "out", *flags, expect=2)
        assert "SW0311" in done.stderr and text in done.stderr, done.stderr
        assert not (tmp_path / "out").exists()


def test_a_stale_optimizer_is_noticed(shardwright, megatron, tmp_path):
    """Weights of a later step than the states': refused, and nothing written."""
    import megatron_optimizer

    hf = megatron.read_config(GOLDEN_HF / "llama3" / "hf")
    model, optimizer = trained(megatron, "llama3", "te", tmp_path / "first")
    before = optimizer.state_dict()
    stale = torch.utils._pytree.tree_map(
        lambda value: value.clone() if isinstance(value, torch.Tensor) else value, before
    )
    megatron_optimizer.step(optimizer, 3)
    megatron.save_legacy(model, tmp_path / "in", hf, optimizer=stale)
    done = shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", expect=2)
    assert "SW0318" in done.stderr
    assert not (tmp_path / "out").exists()


def test_states_that_megatron_gave_to_others_are_told(shardwright, megatron, tmp_path):
    """By name they are whose they are; their values say otherwise."""
    trained(megatron, "llama3", "te", tmp_path / "in")
    shardwright("convert", tmp_path / "in", tmp_path / "dist", "--to", "torch_dist")
    done = shardwright("convert", tmp_path / "dist", tmp_path / "right", "--to", "torch_dist", "--tp", 2)
    assert "are not their weights" not in done.stderr
    state = checkpoints.load_dcp(tmp_path / "dist")
    name = "decoder.layers.mlp.linear_fc2.weight"
    state[f"optimizer.state.param.{name}"] += 1
    torch.distributed.checkpoint.save(
        state, checkpoint_id=checkpoints.iteration_folder(tmp_path / "dist"), no_dist=True
    )
    done = shardwright("convert", tmp_path / "dist", tmp_path / "wrong", "--to", "torch_dist", "--tp", 2)
    assert f"of 1 of {len([n for n in state if n.startswith('optimizer.state.param.')])} parameters" in done.stderr
    assert f"({name} the first)" in done.stderr and "--overlap-grad-reduce" in done.stderr
    done = shardwright("convert", tmp_path / "dist", tmp_path / "hf", "--to", "hf")
    assert "are not their weights" not in done.stderr
