# SPDX-License-Identifier: Apache-2.0
"""MLite's checkpoints become Hugging Face's, Megatron's and rank files: the same tensors."""
import json
import shutil

import hf_models
import pytest
import torch
import torch.distributed.checkpoint as dcp
from checkpoints import GOLDEN, assert_same, load_dcp, load_hf
from mlite_models import mlite_of

# MLite's model, where its Hugging Face model comes from, and what of that MLite does not save.
CASES = {
    "qwen3_moe": ("qwen3_moe", set()),
    "deepseek_v3": ("kimi_k2", {"e_score_correction_bias"}),
    "deepseek_v3_mtp": ("kimi_k2", {"e_score_correction_bias"}),
    "glm_moe_dsa": ("glm5", {"e_score_correction_bias"}),
    "qwen3_5_moe": ("qwen3_5", set()),
    "deepseek_v4": ("deepseek_v4", {"bias", "tid2eid"}),
}

# As released, and as transformers writes them.
OTHER_NAMES = ("qwen3_5_moe", "deepseek_v4")


def save(state, path):
    step = {f"model.{name}": tensor.clone() for name, tensor in state.items()}
    dcp.save({"step": 3, **step}, checkpoint_id=path, no_dist=True)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """`made(name)`: a folder with `hf` and what MLite saves of it in `step_3`."""
    known = {}

    def make(name):
        if name not in known:
            folder = known[name] = tmp_path_factory.mktemp(name)
            if (GOLDEN / "hf" / name).exists():
                shutil.copytree(GOLDEN / "hf" / name / "hf", folder / "hf")
            elif name == "qwen3_5_moe":
                import test_families_hybrid

                test_families_hybrid.build(folder / "hf", name)
            else:
                hf_models.create(folder / "hf", name)
            config = json.loads((folder / "hf" / "config.json").read_text())
            model, unsaved = CASES[name]
            state, left = mlite_of(load_hf(folder / "hf"), config, model)
            assert {name.rsplit(".", 1)[1] for name in left} <= unsaved, left.keys()
            assert bool(left) == bool(unsaved)
            save(state, folder / "step_3")
        return known[name]

    return make


@pytest.mark.parametrize("name", CASES)
def test_the_same_tensors_in_every_format(shardwright, made, tmp_path, name):
    root = made(name)
    config = ("--hf-config", root / "hf")
    shardwright("convert", root / "hf", tmp_path / "truth", "--to", "torch_dist")
    shardwright("convert", root / "step_3", tmp_path / "dist", "--to", "torch_dist", *config)
    truth = {n: t for n, t in load_dcp(tmp_path / "truth").items() if not n.startswith("hf_extra.")}
    assert_same(load_dcp(tmp_path / "dist"), truth)
    shardwright("verify", tmp_path / "dist")
    shardwright("diff", root / "step_3", tmp_path / "dist", *config)
    shardwright("verify", tmp_path / "dist", "--against", root / "step_3", *config)
    shardwright("convert", root / "step_3", tmp_path / "hf", "--to", "hf", *config)
    shardwright("diff", tmp_path / "hf", root / "step_3", *config)
    found, expected = load_hf(tmp_path / "hf"), load_hf(root / "hf")
    for key, tensor in expected.items():
        if key.endswith("linear_attn.norm.weight"):  # MLite keeps w - 1, rounded
            expected[key] = ((tensor - 1).float() + 1).to(tensor.dtype)
    if name in OTHER_NAMES:
        shardwright("convert", tmp_path / "hf", tmp_path / "back", "--to", "torch_dist")
        found = {n: t for n, t in load_dcp(tmp_path / "back").items() if n in truth}
        expected = truth
    assert_same(found, expected)
    sizes = ("--tp", 2, "--pp", 2) if name == "qwen3_moe" else ()
    shardwright("convert", root / "step_3", tmp_path / "legacy", "--to", "legacy", *config, *sizes)
    shardwright("convert", tmp_path / "legacy", tmp_path / "again", "--to", "hf", *config)
    assert_same(load_hf(tmp_path / "again"), load_hf(tmp_path / "hf"))


def test_megatron_loads_what_is_made_of_one(shardwright, made, megatron_job, tmp_path):
    root = made("qwen3_moe")
    config = ("--hf-config", root / "hf", "--tp", 2)
    shardwright("convert", root / "step_3", tmp_path / "dist", "--to", "torch_dist", *config)
    megatron_job("load", "qwen3_moe", tmp_path / "dist", tp=2)


def test_by_hugging_faces_names_without_converting(made):
    import shardwright

    root = made("qwen3_moe")
    expected = load_hf(root / "hf")
    with shardwright.open(root / "step_3", "pt", names="hf", hf_config=root / "hf") as checkpoint:
        assert sorted(checkpoint.keys()) == sorted(expected)
        assert_same({n: checkpoint.get_tensor(n) for n in expected}, expected)


def test_sizes_that_are_told_must_be_those_of_the_shapes(shardwright, made, tmp_path):
    root = made("qwen3_moe")
    config = ("--to", "hf", "--hf-config", root / "hf")
    shardwright("convert", root / "step_3", tmp_path / "one", *config, "--source-ep", 1)
    assert_same(load_hf(tmp_path / "one"), load_hf(root / "hf"))
    told = refused(shardwright, root / "step_3", tmp_path / "two", *config, "--source-ep", 2)
    assert "--source-ep" in told


def refused(shardwright, source, target, *flags):
    done = shardwright("convert", source, target, *flags, expect=2)
    assert not target.exists()
    return done.stderr


def test_what_is_not_known_is_refused(shardwright, made, tmp_path):
    root, out = made("qwen3_moe"), tmp_path / "out"
    told = refused(shardwright, root / "step_3", out, "--to", "hf")
    assert "MLite saves no config.json" in told and "--hf-config" in told
    other = GOLDEN / "hf" / "llama3" / "hf"
    told = refused(shardwright, root / "step_3", out, "--to", "hf", "--hf-config", other)
    assert "names in MLite are not known" in told and "qwen3_moe" in told
    config = ("--hf-config", root / "hf")
    keep = ("--to", "torch_dist", "--optimizer", "keep")
    told = refused(shardwright, root / "step_3", out, *keep, *config)
    assert "SW0311" in told
    state = dcp_state(root)
    state["layers.1.attn.extra.weight"] = torch.ones(3)
    save(state, tmp_path / "more" / "step_3")
    told = refused(shardwright, tmp_path / "more" / "step_3", out, "--to", "hf", *config)
    assert "layers.1.attn.extra.weight" in told
    verified = shardwright("verify", tmp_path / "more" / "step_3", *config, expect=1)
    assert "layers.1.attn.extra.weight" in verified.stdout
    assert "those of a qwen3_moe" in shardwright("verify", root / "step_3", *config).stdout
    del state["layers.1.attn.extra.weight"], state["norm.weight"]
    save(state, tmp_path / "less" / "step_3")
    told = refused(shardwright, tmp_path / "less" / "step_3", out, "--to", "hf", *config)
    assert "final_layernorm" in told
    verified = shardwright("verify", tmp_path / "less" / "step_3", *config, expect=1)
    assert "final_layernorm" in verified.stdout


def dcp_state(root):
    return {name.removeprefix("model."): t for name, t in load_dcp(root / "step_3").items()}


def test_buffers_that_mlite_does_not_save_are_the_models(shardwright, made, tmp_path):
    root, out = made("deepseek_v3"), tmp_path / "out"
    (tmp_path / "config").mkdir()
    shutil.copy(root / "hf" / "config.json", tmp_path / "config")
    bare = ("--to", "hf", "--hf-config", tmp_path / "config")
    told = refused(shardwright, root / "step_3", out, *bare)
    assert "expert_bias" in told and "weights included" in told
    # That is no defect of the checkpoint, but what could not be looked at.
    verified = shardwright("verify", root / "step_3", "--hf-config", tmp_path / "config")
    assert "expert_bias" in verified.stdout
    done = shardwright("convert", root / "step_3", out, "--to", "hf", "--hf-config", root / "hf")
    assert "2 buffers that MLite does not save" in done.stdout + done.stderr


@pytest.mark.parametrize(
    "name, tp, ep, etp",
    [
        ("deepseek_v3", 1, 2, 1),
        ("deepseek_v3", 2, 1, 1),
        ("deepseek_v3", 2, 1, 2),
        ("qwen3_moe", 1, 1, 2),
        ("qwen3_5_moe", 2, 1, 1),
        ("qwen3_5_moe", 1, 1, 2),
    ],
)
def test_saved_by_several_ranks(shardwright, ranks, made, tmp_path, name, tp, ep, etp):
    """MLite stacks experts of EP ranks, and has gate and up of each TP or ETP rank."""
    root = made(name)
    torch.save(dcp_state(root), tmp_path / "state.pt")
    path = tmp_path / "step_3"
    text = json.loads((root / "hf" / "config.json").read_text())
    net = text.get("text_config", text)
    key, value, heads = 0, 0, net.get("linear_num_value_heads", 0)
    if heads:
        key = net["linear_num_key_heads"] * net["linear_key_head_dim"]
        value = heads * net["linear_value_head_dim"]
    ranks("mlite_jobs", "save", 2, state=tmp_path / "state.pt", path=path, tp=tp, ep=ep, etp=etp,
          key=key, value=value, heads=heads)  # fmt: skip
    config = ("--hf-config", root / "hf")
    told = shardwright("convert", path, tmp_path / "ranks", "--to", "torch_dist", *config).stderr
    assert "stay in the order of the tensor-parallel ranks" not in told
    told = shardwright("convert", path, tmp_path / "kept", "--to", "dcp").stderr
    assert ("stay in the order of the tensor-parallel ranks" in told) == (tp * etp > 1)
    shardwright("diff", path, tmp_path / "ranks", *config)
    shardwright("convert", root / "step_3", tmp_path / "one", "--to", "torch_dist", *config)
    assert_same(load_dcp(tmp_path / "ranks"), load_dcp(tmp_path / "one"))


def test_rows_that_ranks_cannot_share_out(shardwright, ranks, made, tmp_path):
    root = made("deepseek_v3")
    state = dcp_state(root)
    name = next(name for name in state if name.endswith("gate_up.linear.weight"))
    state[name] = torch.ones(66, state[name].shape[1])
    torch.save(state, tmp_path / "state.pt")
    path = tmp_path / "step_3"
    ranks("mlite_jobs", "save", 2, state=tmp_path / "state.pt", path=path, tp=2, ep=1, etp=1,
          key=0, value=0, heads=0)  # fmt: skip
    told = refused(shardwright, path, tmp_path / "out", "--to", "hf", "--hf-config", root / "hf")
    assert name in told and "a part of 33 rows" in told and "2 tensor ranks" in told
