# SPDX-License-Identifier: Apache-2.0
"""Legacy `mp_rank_*` checkpoints: ours in Megatron-Core's models, theirs read by us."""
import pytest
import torch

import checkpoints

GOLDEN_HF = checkpoints.GOLDEN / "hf"

# What Megatron-LM's check_checkpoint_args compares and reads without a default.
CHECKED_ARGUMENTS = (
    "num_layers hidden_size num_attention_heads add_position_embedding max_position_embeddings "
    "make_vocab_size_divisible_by tokenizer_type padded_vocab_size tensor_model_parallel_size "
    "pipeline_model_parallel_size"
).split()


@pytest.mark.parametrize("spec", ["te", "local"])
@pytest.mark.parametrize("family", ["llama3", "qwen2", "qwen3", "qwen3_moe", "mixtral"])
def test_a_model_takes_it_strictly(shardwright, megatron, tmp_path, family, spec):
    source, out = GOLDEN_HF / family / "hf", tmp_path / "out"
    shardwright("convert", source, out, "--to", "legacy", "--spec", spec)
    model = megatron.build(megatron.read_config(source), spec)
    state = megatron.load_legacy(model, checkpoints.iteration_folder(out))
    truth = checkpoints.truth(family)
    assert megatron.assert_holds(model, truth) == truth.keys()
    assert state["checkpoint_version"] == 3.0
    assert state["iteration"] == 0
    for name in CHECKED_ARGUMENTS:
        assert hasattr(state["args"], name), name
    assert state["args"].num_layers == model.config.num_layers
    assert state["args"].padded_vocab_size == model.vocab_size


@pytest.mark.parametrize("spec", ["te", "local"])
@pytest.mark.parametrize("family", ["llama3", "qwen3_moe"])
def test_a_model_takes_what_becomes_torch_dist(shardwright, megatron, tmp_path, family, spec):
    """Without a word of the spec, which the run's arguments tell."""
    source, out = GOLDEN_HF / family / "hf", tmp_path / "out"
    shardwright("convert", source, tmp_path / "ranks", "--to", "legacy", "--tp", 2, "--spec", spec)
    shardwright("convert", tmp_path / "ranks", out, "--to", "torch_dist")
    model = megatron.build(megatron.read_config(source), spec)
    megatron.load(model, checkpoints.iteration_folder(out), "assume_ok_unexpected")
    truth = checkpoints.truth(family)
    assert megatron.assert_holds(model, truth) == truth.keys()


def rewrite_rank(run, rank, edit):
    file = checkpoints.iteration_folder(run) / f"mp_rank_{rank:02d}" / "model_optim_rng.pt"
    state = torch.load(file, weights_only=False)
    edit(state)
    torch.save(state, file)
    return file


@pytest.mark.parametrize(
    "key, value", [("checkpoint_version", 3.0), ("bf16", True), ("fp16", False)]
)
def test_a_rank_of_another_save(shardwright, tmp_path, key, value):
    """With the same shapes; the message names both files."""
    run = tmp_path / "run"
    shardwright("convert", GOLDEN_HF / "llama3" / "hf", run, "--to", "legacy", "--tp", 2)

    def say(rank, said):
        def edit(state):
            if key in state:
                state[key] = said
            else:
                setattr(state["args"], key, said)

        rewrite_rank(run, rank, edit)

    for rank in (0, 1):
        say(rank, value)
    folder = checkpoints.iteration_folder(run)
    shardwright("verify", folder)
    say(1, 2.0 if key == "checkpoint_version" else not value)
    told = shardwright("convert", folder, tmp_path / "out", "--to", "torch_dist", expect=2).stderr
    assert f"mp_rank_01/model_optim_rng.pt: found {key} " in told and " as in mp_rank_00/" in told, told
    assert not (tmp_path / "out").exists()
    assert f"found {key} " in shardwright("verify", folder, expect=1).stdout


def test_what_a_fork_keeps_beside_its_model_is_named(shardwright, tmp_path):
    run = tmp_path / "run"
    shardwright("convert", GOLDEN_HF / "llama3" / "hf", run, "--to", "legacy", "--tp", 2)

    def add(**entries):
        return rewrite_rank(run, 1, lambda state: state.update(entries))

    add(rng_state=[{"torch_rng_state": torch.get_rng_state()}])
    for command in ("verify", "inspect"):
        assert "are left out: no rule says" not in shardwright(command, run).stdout
    add(ema={"decoder.final_layernorm.weight": torch.ones(3)})
    note = "tensors under ema are left out"
    for command in ("verify", "inspect"):
        assert note in shardwright(command, run).stdout
    assert note in shardwright("convert", run, tmp_path / "out", "--to", "torch_dist").stderr


@pytest.mark.parametrize(
    "family, layout, sizes",
    [
        ("llama3", ("--tp", 2), {"tp": 2}),
        ("llama3_4l", ("--pp", 2), {"pp": 2}),
        ("qwen2", ("--pp", 3), {"pp": 3}),
        ("qwen3_moe", ("--ep", 2), {"ep": 2}),
    ],
)
def test_ranks_take_their_files(shardwright, megatron_job, tmp_path, family, layout, sizes):
    out = tmp_path / "out"
    shardwright("convert", GOLDEN_HF / family / "hf", out, "--to", "legacy", *layout)
    megatron_job("load_legacy", family, out, **sizes)


@pytest.mark.parametrize(
    "family, spec, sizes",
    [
        ("llama3", "local", {"tp": 2}),
        ("qwen2", "te", {"pp": 3}),
        ("qwen3_moe", "local", {"ep": 2}),
        ("mixtral", "te", {"tp": 2, "ep": 2}),
    ],
)
def test_theirs_is_read(shardwright, megatron, megatron_job, tmp_path, family, spec, sizes):
    megatron_job("save_legacy", family, tmp_path / "in", spec=spec, **sizes)
    shardwright("convert", tmp_path / "in", tmp_path / "out", "--to", "torch_dist", "--tp", 2)
    truth, tensors = checkpoints.truth(family), checkpoints.load_dcp(tmp_path / "out")
    named = {megatron.truth_name(key, truth): tensor for key, tensor in tensors.items()}
    checkpoints.assert_same(named, truth)
    source = GOLDEN_HF / family / "hf"
    shardwright("convert", tmp_path / "in", tmp_path / "hf", "--to", "hf", "--hf-config", source)
    checkpoints.assert_same(checkpoints.load_hf(tmp_path / "hf"), checkpoints.load_hf(source))


def test_states_of_fp8_go_with_a_word(shardwright, tmp_path):
    """Transformer Engine saves scales as bytes, in a tensor or, before that, in a BytesIO."""
    import io

    import torch.distributed.checkpoint as dcp

    lost = "hold scales and amax histories of fp8, or what ModelOpt's quantizers are, which is left out"
    shardwright("convert", GOLDEN_HF / "llama3" / "hf", tmp_path / "ranks", "--to", "legacy", "--spec", "te")
    file = next((tmp_path / "ranks").rglob("model_optim_rng.pt"))
    state = torch.load(file, weights_only=False)
    name = "decoder.layers.1.mlp.linear_fc1._extra_state"
    assert state["model"][name].numel() == 0
    assert lost not in shardwright("convert", tmp_path / "ranks", tmp_path / "out", "--to", "torch_dist").stderr
    for number, saved in enumerate((torch.arange(9, dtype=torch.uint8), io.BytesIO(b"amax"))):
        state["model"][name] = saved
        torch.save(state, file)
        done = shardwright("convert", tmp_path / "ranks", tmp_path / f"out{number}", "--to", "torch_dist")
        assert f"model_optim_rng.pt: {name} and others {lost}" in done.stderr
    state["modelopt_state"] = {"modelopt_version": "0.29"}
    torch.save(state, file)
    done = shardwright("convert", tmp_path / "ranks", tmp_path / "modelopt", "--to", "torch_dist")
    assert "model_optim_rng.pt/modelopt_state says which modules ModelOpt has changed" in done.stderr
    run = checkpoints.load_dcp(tmp_path / "out")
    folder = tmp_path / "run" / "iter_0000003"
    for name, saved, is_told in (("empty", b"", False), ("full", b"amax", True)):
        entry = {"decoder.layers.mlp.linear_fc1._extra_state/shard_1_3": io.BytesIO(saved)}
        dcp.save(run | entry, storage_writer=dcp.FileSystemWriter(str(folder)), no_dist=True)
        (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist", "sharded_backend_version": 1}')
        (folder / "common.pt").write_bytes(next((tmp_path / "out").rglob("common.pt")).read_bytes())
        done = shardwright("convert", folder, tmp_path / name, "--to", "legacy", "--spec", "te")
        assert (f"linear_fc1._extra_state/shard_1_3 and others {lost}" in done.stderr) == is_told
