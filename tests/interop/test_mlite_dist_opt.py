# SPDX-License-Identifier: Apache-2.0
"""What MLite's usual optimizer, dist_opt, saves by Megatron-Core: its names, cut as its ranks hold
them, with the optimizer's states."""
import json
import re
import shutil

import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import assert_same, iteration_folder, load_dcp, load_hf
from mlite_jobs import EXPERT, ROWS, local_rows
from mlite_models import mlite_of
from test_mlite_names import CASES, dcp_state, made, refused  # noqa: F401

KINDS = ("exp_avg", "exp_avg_sq", "param")
LAYER = re.compile(r"((?:model\.)?layers\.)(\d+)\.(.*)")
SETTINGS = dict(lr=3e-4, max_lr=3e-4, min_lr=1e-5, betas=(0.9, 0.95), eps=1e-8, bias_correction=True,
                lr_mult=1.0, is_decoupled_lr=False, step=7)  # fmt: skip


def pieces_of(name, tensor, count, sizes):
    """The name on its rank, and (values, place, pieces, axis) of each rank's share."""
    expert = EXPERT.fullmatch(name)
    if expert:
        local = count // sizes["ep"]
        rank, ranks = int(expert[3]) // local, sizes["ep"] * sizes["etp"]
        own = f"{expert[1]}{int(expert[3]) % local}"
        for t in range(sizes["etp"]):
            if expert[2] == "1":
                rows = local_rows(tensor, len(tensor) // 2, t) if sizes["etp"] == 2 else tensor
                yield own, rows, ((0, rank * sizes["etp"] + t, ranks),)
            else:
                cut = tensor.chunk(sizes["etp"], 1)[t]
                yield own, cut, ((0, rank, sizes["ep"]), (1, t, sizes["etp"]))
        return
    for t in range(sizes["tp"]):
        if sizes["tp"] == 1:
            yield name, tensor, ()
        elif "gate_up.linear.weight" in name:
            yield name, local_rows(tensor, len(tensor) // 2, t), ((0, t, 2),)
        elif any(end in name for end in ROWS):
            yield name, tensor.chunk(2, 1)[t], ((1, t, 2),)
        elif any(part in name for part in ("qkv.linear.weight", "up_proj.linear.weight", "embed", "head")):
            yield name, tensor.chunk(2)[t], ((0, t, 2),)
        else:
            yield name, tensor, ((),) if t else ()


def chunk_of(name, layers, stages, chunks):
    """The chunk whose name the tensor's begins with, and the tensor's name in it."""
    layer = LAYER.fullmatch(name)
    if stages * chunks == 1:
        return "", name
    each = -(-layers // (stages * chunks))  # of those that are left, the last has none
    virtual = stages * chunks - 1
    if layer:
        virtual = int(layer[2]) // each
        name = f"{layer[1]}{int(layer[2]) % each}.{layer[3]}"
    elif "embed" in name:
        virtual = 0
    stage, chunk = virtual % stages, virtual // stages
    if stages == 1:
        return f"model{chunk}.", name
    if "embed" in name or chunks == 1:
        return f"model_pp{stage}.", name
    return f"model_pp{stage}_vpp{chunk}.", name


def save(path, state, *, states=None, groups=None, layers=0, pp=1, vpp=1, tp=1, ep=1, etp=1):
    """All ranks' pieces by one process: they say themselves where they lie."""
    from megatron.core import dist_checkpointing
    from megatron.core.dist_checkpointing import ShardedTensor

    count = 1 + max(int(found[3]) for name in state if (found := EXPERT.fullmatch(name)))
    written = {"step": 7}

    def add(tensors, prefix):
        for name, tensor in tensors.items():
            chunk, inside = chunk_of(name, layers, pp, vpp)
            for own, values, offsets in pieces_of(inside, tensor, count, dict(tp=tp, ep=ep, etp=etp)):
                if offsets == ((),):
                    continue  # a copy, which is not written
                written[f"{prefix}{name}{offsets}"] = ShardedTensor.from_rank_offsets(
                    f"{prefix}{chunk}{own}", values.contiguous(), *offsets
                )

    add(state, "")
    for kind, tensors in (states or {}).items():
        add(tensors, f"optimizer.state.{kind}.")
    if groups:
        written["optimizer"] = groups
    path.mkdir(parents=True)
    metadata = {"distrib_optim_sharding_type": "fully_reshardable",
                "distrib_optim_fully_reshardable_mem_efficient": False,
                "chained_optim_avoid_prefix": True}  # fmt: skip
    dist_checkpointing.save(
        written, str(path), validate_access_integrity=False, content_metadata=metadata
    )


def layers_of(root):
    config = json.loads((root / "hf" / "config.json").read_text())
    return config.get("text_config", config)["num_hidden_layers"]


@pytest.mark.parametrize("name", CASES)
def test_it_is_the_model(shardwright, megatron, made, tmp_path, name):  # noqa: F811
    root = made(name)
    config = ("--hf-config", root / "hf")
    save(tmp_path / "step_7", dcp_state(root))
    assert json.loads(shardwright("diagnose", tmp_path / "step_7", "--json").stdout)["format"] == "mlite_dist_opt"
    for to in ("torch_dist", "hf"):
        shardwright("convert", root / "step_3", tmp_path / f"{to}-truth", "--to", to, *config)
        shardwright("convert", tmp_path / "step_7", tmp_path / to, "--to", to, *config)
        load = load_hf if to == "hf" else load_dcp
        assert_same(load(tmp_path / to), load(tmp_path / f"{to}-truth"))
    shardwright("verify", tmp_path / "step_7")
    shardwright("diff", tmp_path / "step_7", root / "step_3")
    shardwright("diff", tmp_path / "step_7", root / "hf", *config)


def test_names_of_later_versions(shardwright, megatron, made, tmp_path):  # noqa: F811
    """DeepSeek-V4's once had `model.` before them."""
    root = made("deepseek_v4")
    config = ("--to", "torch_dist", "--hf-config", root / "hf")
    state = dcp_state(root)
    later = {name.removeprefix("model."): tensor for name, tensor in state.items()}
    assert later.keys() != state.keys()
    save(tmp_path / "step_7", later)
    dcp.save({f"model.{n}": t for n, t in later.items()}, checkpoint_id=tmp_path / "step_8", no_dist=True)
    shardwright("convert", root / "step_3", tmp_path / "truth", *config)
    for step in ("step_7", "step_8"):
        shardwright("convert", tmp_path / step, tmp_path / f"{step}-out", *config)
        assert_same(load_dcp(tmp_path / f"{step}-out"), load_dcp(tmp_path / "truth"))


@pytest.mark.parametrize(
    "name, sizes",
    [
        ("qwen3_moe", dict(pp=2)),
        ("qwen3_moe", dict(vpp=2)),
        ("qwen3_moe", dict(pp=2, vpp=2, ep=2)),
        ("qwen3_moe", dict(tp=2, ep=2)),
        ("deepseek_v3", dict(tp=2, ep=2, etp=2)),
    ],
)
def test_whatever_the_layout(shardwright, megatron, made, tmp_path, name, sizes):  # noqa: F811
    root = made(name)
    save(tmp_path / "step_7", dcp_state(root), layers=layers_of(root), **sizes)
    config = ("--to", "torch_dist", "--hf-config", root / "hf")
    shardwright("convert", root / "step_3", tmp_path / "truth", *config)
    shardwright("convert", tmp_path / "step_7", tmp_path / "out", *config)
    assert_same(load_dcp(tmp_path / "out"), load_dcp(tmp_path / "truth"))


def test_what_was_trained_of_buffers_is_kept(shardwright, megatron, made, tmp_path):  # noqa: F811
    """This writer saves them, as others of MLite don't."""
    root = made("deepseek_v3")
    state = dcp_state(root)
    routers = [name for name in state if name.endswith("moe.router.gate.weight")]
    for name in routers:
        at = name.removesuffix("gate.weight")
        state[f"{at}expert_bias"] = torch.randn(len(state[name]))
        state[f"{at}local_tokens_per_expert"] = torch.ones(len(state[name]))
    save(tmp_path / "step_7", state)
    config = ("--hf-config", root / "hf")
    done = shardwright("convert", tmp_path / "step_7", tmp_path / "out", "--to", "torch_dist", *config)
    assert "that MLite does not save" not in done.stderr
    out = load_dcp(tmp_path / "out")
    for name in routers:
        number = LAYER.fullmatch(name)[2]
        bias = out[f"decoder.layers.{number}.mlp.router.expert_bias"]
        assert torch.equal(bias, state[name.replace("gate.weight", "expert_bias")])


def test_the_optimizer_goes_along(shardwright, megatron, made, tmp_path):  # noqa: F811
    root = made("qwen3_moe")
    config = ("--hf-config", root / "hf")
    state = dcp_state(root)
    states = {kind: {name: tensor.float() * (number + 2) for name, tensor in state.items()}
              for number, kind in enumerate(KINDS)}  # fmt: skip
    groups = {
        part: {
            "optimizer": {
                "param_groups": [
                    dict(SETTINGS, wd_mult=wd, weight_decay=0.1 * wd, is_expert_parallel=part == 1)
                    for wd in ((1.0, 0.0) if part == 0 else (1.0,))
                ]
            },
            "param_state_sharding_type": "fully_reshardable",
        }
        for part in (0, 1)
    }
    save(tmp_path / "step_7", state, states=states, groups=groups, ep=2, pp=2, layers=layers_of(root))
    for flags in (("--to", "torch_dist", "--ep", 2), ("--to", "torch_dist", "--tp", 2)):
        out = tmp_path / flags[2].strip("-")
        shardwright("convert", tmp_path / "step_7", out, *flags, "--optimizer", "keep", *config)
        shardwright("verify", out)
        made_states = load_dcp(out)
        common = torch.load(iteration_folder(out) / "common.pt", weights_only=False)
        assert common["iteration"] == 7
        plain = tmp_path / f"run-{flags[2].strip('-')}"  # whose name tells no step
        shutil.copytree(tmp_path / "step_7", plain)
        shardwright("convert", plain, out / "plain", *flags, *config)
        common = torch.load(iteration_folder(out / "plain") / "common.pt", weights_only=False)
        assert common["iteration"] == 7
        for kind in KINDS:
            values = {f"model.{name}": tensor for name, tensor in states[kind].items()}
            dcp.save({"step": 3, **values}, checkpoint_id=tmp_path / kind, no_dist=True)
            shardwright("convert", tmp_path / kind, out / kind, *flags[:2], *config)
            truth = load_dcp(out / kind)
            start = f"optimizer.state.{kind}."
            found = {n.removeprefix(start): t for n, t in made_states.items() if n.startswith(start)}
            assert_same(found, truth)
    # Experts that are numbered anew take their states along, under MLite's names too.
    shardwright("convert", tmp_path / "step_7", tmp_path / "dcp", "--to", "dcp", "--optimizer", "keep")
    kept = load_dcp(tmp_path / "dcp")
    for kind in KINDS:
        for name, tensor in states[kind].items():
            assert torch.equal(kept[f"optimizer.state.{kind}.model.{name}"], tensor), name
