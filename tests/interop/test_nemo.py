# SPDX-License-Identifier: Apache-2.0
"""NeMo's checkpoints as sources: NeMo 2's folders, saved by Megatron-Core itself under NeMo's
names, and NeMo 1's archives of torch files, in each of their forms."""
import io
import json
import re
import shutil
import tarfile

import checkpoints
import megatron_optimizer
import pytest
import torch
from checkpoints import GOLDEN, assert_same, load_hf

LLAMA = GOLDEN / "hf" / "llama3" / "hf"

MODEL_YAML = """\
_target_: nemo.collections.llm.gpt.model.llama.LlamaModel
config:
  _target_: nemo.collections.llm.gpt.model.llama.Llama3Config8B
  activation_func: {{_call_: false, _target_: torch.nn.functional.silu}}
  add_bias_linear: false
  add_qkv_bias: false
  bf16: true
  ffn_hidden_size: {intermediate_size}
  gated_linear_unit: true
  hidden_size: {hidden_size}
  kv_channels: {head_dim}
  layernorm_epsilon: {rms_norm_eps}
  normalization: RMSNorm
  num_attention_heads: {num_attention_heads}
  num_layers: {num_hidden_layers}
  num_query_groups: {num_key_value_heads}
  position_embedding_type: rope
  rotary_base: 10000.0
  seq_length: {max_position_embeddings}
  share_embeddings_and_output_weights: false
optim: null
tokenizer: {{_target_: nemo.collections.common.tokenizers.AutoTokenizer}}
"""

MODEL_CONFIG = """\
activation: fast-swiglu
bias: false
encoder_seq_length: {max_position_embeddings}
ffn_hidden_size: {intermediate_size}
hidden_size: {hidden_size}
kv_channels: {head_dim}
layernorm_epsilon: {rms_norm_eps}
max_position_embeddings: {max_position_embeddings}
normalization: rmsnorm
num_attention_heads: {num_attention_heads}
num_layers: {num_hidden_layers}
num_query_groups: {num_key_value_heads}
position_embedding_type: rope
rotary_base: 10000.0
share_embeddings_and_output_weights: false
"""


def settings():
    config = json.loads((LLAMA / "config.json").read_text())
    config.setdefault("head_dim", config["hidden_size"] // config["num_attention_heads"])
    return config


def put_context(run):
    tokenizer = run / "context" / "nemo_tokenizer"
    tokenizer.mkdir(parents=True)
    (run / "context" / "io.json").write_text("{}")
    (run / "context" / "model.yaml").write_text(MODEL_YAML.format(**settings()))
    (tokenizer / "tokenizer.json").write_text('{"version": "1.0"}')
    (tokenizer / "special_tokens_map.json").write_text("{}")


# What Llama31Config has besides.
SCALED_YAML = """\
  high_freq_factor: 4.0
  low_freq_factor: 1.0
  old_context_len: 8192
  scale_factor: 32.0
"""


@pytest.fixture(scope="module")
def nemo2(megatron, tmp_path_factory):
    """As MegatronStrategy saves: Megatron-Core's torch_dist, `module.` before every name."""
    from megatron.core import dist_checkpointing, parallel_state

    run = tmp_path_factory.mktemp("nemo2") / "llama"
    (run / "weights").mkdir(parents=True)
    model = megatron.build(settings(), "te")
    megatron.fill(model, checkpoints.truth("llama3"))
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    state = model.sharded_state_dict(prefix="module.", metadata={"dp_cp_group": group})
    dist_checkpointing.save(
        {"sharded_state_dict": state, "global_step": 7, "epoch": 0}, str(run / "weights")
    )
    put_context(run)
    return run


def test_nemo2_is_the_model(shardwright, nemo2, tmp_path):
    shardwright("convert", nemo2, tmp_path / "hf", "--to", "hf")
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    assert (tmp_path / "hf" / "tokenizer.json").read_text() == '{"version": "1.0"}'
    assert (tmp_path / "hf" / "special_tokens_map.json").read_text() == "{}"
    assert json.loads(shardwright("diagnose", nemo2, "--json").stdout)["format"] == "nemo2"
    shardwright("diff", nemo2, LLAMA)
    shardwright("diff", nemo2 / "weights", LLAMA)


def test_nemo2_tells_a_save_that_was_not_finished(shardwright, nemo2, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(nemo2, run)
    said = "run-unfinished says that NeMo did not finish this save"
    assert said not in shardwright("convert", run, tmp_path / "hf", "--to", "hf").stderr
    (tmp_path / "run-unfinished").touch()
    assert said in shardwright("convert", run, tmp_path / "again", "--to", "hf").stderr


def test_nemo2_tells_how_positions_are_scaled(shardwright, nemo2, tmp_path):
    run = tmp_path / "run"
    shutil.copytree(nemo2, run)
    model = run / "context" / "model.yaml"
    text = model.read_text()
    model.write_text(text.replace("optim: null\n", SCALED_YAML + "optim: null\n"))
    shardwright("convert", run, tmp_path / "hf", "--to", "hf")
    scaling = json.loads((tmp_path / "hf" / "config.json").read_text())["rope_scaling"]
    assert scaling == {"rope_type": "llama3", "factor": 32.0, "low_freq_factor": 1.0,
                       "high_freq_factor": 4.0, "original_max_position_embeddings": 8192}  # fmt: skip

    # What MLPs of the same shapes compute is another model.
    model.write_text(text.replace("functional.silu", "functional.gelu"))
    done = shardwright("convert", run, tmp_path / "no", "--to", "hf", expect=2)
    assert "SW0406" in done.stderr and "MLPs use gelu" in done.stderr
    shardwright("convert", run, tmp_path / "given", "--to", "hf", "--hf-config", LLAMA)
    assert_same(load_hf(tmp_path / "given"), load_hf(LLAMA))


def test_nemo2_tells_its_configuration(shardwright, nemo2, tmp_path):
    shardwright("convert", nemo2, tmp_path / "hf", "--to", "hf")
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    made = json.loads((tmp_path / "hf" / "config.json").read_text())
    for key in ("hidden_size", "num_hidden_layers", "num_key_value_heads", "rms_norm_eps"):
        assert made[key] == settings()[key], key


def test_nemo2_to_megatron_has_megatrons_names(shardwright, nemo2, tmp_path):
    shardwright("convert", nemo2, tmp_path / "mcore", "--to", "torch_dist", "--tp", 2)
    names = checkpoints.load_dcp(tmp_path / "mcore").keys()
    assert names and not [name for name in names if name.startswith("module.")]
    shardwright("diff", tmp_path / "mcore", LLAMA)


def test_nemo2s_optimizer_goes_on_in_megatron(megatron, shardwright, tmp_path):
    """MegatronStrategy lists its optimizers, Megatron-LM has the only one of them."""
    from megatron.core import dist_checkpointing, parallel_state

    run = tmp_path / "llama"
    (run / "weights").mkdir(parents=True)
    model = megatron.build(settings(), "te")
    megatron.fill(model, checkpoints.truth("llama3"))
    optimizer = megatron_optimizer.build(model)
    megatron_optimizer.step(optimizer, 3)
    trained = {name: tensor.clone() for name, tensor in megatron_optimizer.tensors(optimizer).items()}
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    state = model.sharded_state_dict(prefix="module.", metadata={"dp_cp_group": group})
    top = {"sharded_state_dict": state, "optimizer": [optimizer.sharded_state_dict(state)]}
    dist_checkpointing.save({**top, "global_step": 7, "lr_schedulers": [{}]}, str(run / "weights"))
    put_context(run)

    shardwright("convert", run, tmp_path / "mcore", "--to", "torch_dist")
    shardwright("verify", tmp_path / "mcore")
    assert (tmp_path / "mcore" / "latest_checkpointed_iteration.txt").read_text().strip() == "7"
    megatron_optimizer.step(optimizer, 4)
    sharded = megatron.sharded(model)
    wanted = {"model": sharded, "optimizer": optimizer.sharded_state_dict(sharded, is_loading=True)}
    loaded = dist_checkpointing.load(wanted, str(next((tmp_path / "mcore").glob("iter_*"))))
    assert loaded["iteration"] == 7 and loaded["args"].num_layers == 3
    assert loaded["args"].tensor_model_parallel_size == 1 and loaded["checkpoint_version"] == 3.0
    optimizer.load_state_dict(loaded["optimizer"])
    found = megatron_optimizer.tensors(optimizer)
    assert found.keys() == trained.keys()
    for name, tensor in trained.items():
        assert torch.equal(found[name], tensor), name
    for to in ("fsdp_dtensor", "legacy"):
        shardwright("convert", run, tmp_path / to, "--to", to)
        shardwright("verify", tmp_path / to)

    (run / "weights" / "common.pt").unlink()
    told = shardwright("convert", run, tmp_path / "no", "--to", "torch_dist", expect=2).stderr
    assert "SW0312" in told and "--optimizer drop" in told
    shardwright("convert", run, tmp_path / "no", "--to", "torch_dist", "--optimizer", "drop")


def test_nemo2_without_its_context(shardwright, nemo2, tmp_path):
    shutil.copytree(nemo2 / "weights", tmp_path / "moved")
    done = shardwright("convert", tmp_path / "moved", tmp_path / "hf", "--to", "hf",
                       "--hf-config", LLAMA)  # fmt: skip
    assert "no folder 'context'" in done.stdout + done.stderr
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))


def test_nemo2_whose_configuration_is_damaged(shardwright, nemo2, tmp_path):
    shutil.copytree(nemo2, tmp_path / "run")
    (tmp_path / "run" / "context" / "model.yaml").write_text("config: [")
    done = shardwright("convert", tmp_path / "run", tmp_path / "hf", "--to", "hf", expect=2)
    assert "SW0241" in done.stderr and "context/model.yaml" in done.stderr
    assert not (tmp_path / "hf").exists()


def members(tp):
    files = {"model_config.yaml": MODEL_CONFIG.format(**settings()).encode()}
    files["0123456789abcdef0123456789abcdef_tokenizer.model"] = b"words"
    for rank, part in enumerate(checkpoints.llama_shards(tp)):
        body = io.BytesIO()
        torch.save({f"model.{name}": tensor for name, tensor in part.items()}, body)
        folder = "" if tp == 1 else f"mp_rank_{rank:02d}/"
        files[f"{folder}model_weights.ckpt"] = body.getvalue()
    return files


def archive(path, files, mode="w"):
    with tarfile.open(path, mode) as tar:
        for name, contents in files.items():
            info = tarfile.TarInfo(f"./{name}")
            info.size = len(contents)
            tar.addfile(info, io.BytesIO(contents))
    return path


@pytest.mark.parametrize("tp", [1, 2])
def test_nemo1_is_the_model(shardwright, tmp_path, tp):
    files = members(tp)
    whole = archive(tmp_path / "llama.nemo", files)
    for name, contents in files.items():
        (tmp_path / "unpacked" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "unpacked" / name).write_bytes(contents)
    for source in (whole, tmp_path / "unpacked"):
        out = tmp_path / f"hf-{source.name}"
        shardwright("convert", source, out, "--to", "hf")
        assert_same(load_hf(out), load_hf(LLAMA))
        assert (out / "tokenizer.model").read_bytes() == b"words"
        assert json.loads((out / "config.json").read_text())["num_hidden_layers"] == (
            settings()["num_hidden_layers"]
        )
        assert json.loads(shardwright("diagnose", source, "--json").stdout)["format"] == "nemo1"
        shardwright("diff", source, LLAMA)
        shardwright("verify", source, "--against", LLAMA)


def test_nemo1_with_torch_dist_inside(shardwright, nemo2, tmp_path):
    folder = tmp_path / "nemo"
    shutil.copytree(nemo2 / "weights", folder / "model_weights")
    (folder / "model_config.yaml").write_text(MODEL_CONFIG.format(**settings()))
    (folder / "0123456789abcdef0123456789abcdef_tokenizer.model").write_text("words")
    with tarfile.open(tmp_path / "llama.nemo", "w") as tar:
        tar.add(folder, arcname=".")
    for source in (folder, tmp_path / "llama.nemo"):
        out = tmp_path / f"hf-{source.name}"
        shardwright("convert", source, out, "--to", "hf")
        assert_same(load_hf(out), load_hf(LLAMA))
        assert (out / "tokenizer.model").read_text() == "words"


def refused(shardwright, source, tmp_path, code, *words):
    done = shardwright("convert", source, tmp_path / "out", "--to", "hf", expect=2)
    assert code in done.stderr, done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_tensor_that_one_rank_lacks(shardwright, tmp_path, rank):
    """Norms are whole in each rank's file: another rank's would be taken, and nobody would notice."""
    files = members(2)
    name = f"mp_rank_{rank:02d}/model_weights.ckpt"
    state = torch.load(io.BytesIO(files[name]))
    gone = next(key for key in state if key.endswith("pre_mlp_layernorm.weight") or "norm" in key)
    del state[gone]
    body = io.BytesIO()
    torch.save(state, body)
    files[name] = body.getvalue()
    source = archive(tmp_path / "lacking.nemo", files)
    refused(shardwright, source, tmp_path, "SW0313", name, gone.removeprefix("model."))
    assert "SW0313" in shardwright("verify", source, expect=1).stdout


def test_stages_in_each_others_place(shardwright, tmp_path):
    """Layers are numbered by stage: those of swapped ones would come out in another order."""
    whole = torch.load(io.BytesIO(members(1)["model_weights.ckpt"]))
    layers = settings()["num_hidden_layers"]
    files = {"model_config.yaml": MODEL_CONFIG.format(**settings()).encode()}
    files["model_config.yaml"] += b"pipeline_model_parallel_size: 2\n"
    for stage in range(2):
        own = {}
        for name, tensor in whole.items():
            found = re.search(r"layers\.(\d+)\.", name)
            number = int(found[1]) if found else 0 if "embedding" in name else layers - 1
            if number * 2 // layers != stage:
                continue
            local = f"layers.{number - (stage * layers + 1) // 2}."
            own[name.replace(found[0], local) if found else name] = tensor
        body = io.BytesIO()
        torch.save(own, body)
        files[f"tp_rank_00_pp_rank_{stage:03d}/model_weights.ckpt"] = body.getvalue()
    right = archive(tmp_path / "right.nemo", files)
    shardwright("convert", right, tmp_path / "hf", "--to", "hf")
    assert_same(load_hf(tmp_path / "hf"), load_hf(LLAMA))
    assert "do not say which ranks they are of" in shardwright("verify", right).stdout
    one, other = (f"tp_rank_00_pp_rank_{stage:03d}/model_weights.ckpt" for stage in range(2))
    files[one], files[other] = files[other], files[one]
    swapped = archive(tmp_path / "swapped.nemo", files)
    refused(shardwright, swapped, tmp_path, "SW0319", "lacks the embedding")
    assert shardwright("diagnose", swapped, expect=1).stdout.count("SW0319") == 1


def test_a_tokenizers_file_that_leads_nowhere(shardwright, tmp_path):
    for name, data in members(2).items():
        file = tmp_path / "unpacked" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    (tmp_path / "unpacked/vocab.json").symlink_to(tmp_path / "nowhere")
    refused(shardwright, tmp_path / "unpacked", tmp_path, "SW0112", "vocab.json is a link to")


def test_wrong_archives(shardwright, tmp_path):
    files = members(2)
    missing = {name: data for name, data in files.items() if "mp_rank_00" not in name}
    refused(shardwright, archive(tmp_path / "m.nemo", missing), tmp_path, "SW0313", "1 ranks")
    first = {name: data for name, data in files.items() if "mp_rank_01" not in name}
    refused(shardwright, archive(tmp_path / "f.nemo", first), tmp_path, "SW0313", "one rank's folder")
    more = members(4)
    del more["mp_rank_03/model_weights.ckpt"], more["mp_rank_02/model_weights.ckpt"]
    more["model_config.yaml"] += b"tensor_model_parallel_size: 4\n"
    refused(shardwright, archive(tmp_path / "4.nemo", more), tmp_path, "SW0313", "found files of 2",
            "expected 4 and 1 as model_config.yaml says")  # fmt: skip
    told = members(2)
    told["model_config.yaml"] += b"tensor_model_parallel_size: 1\npipeline_model_parallel_size: 1\n"
    source = archive(tmp_path / "told.nemo", told)
    refused(shardwright, source, tmp_path, "SW0313", "found files of 2 tensor ranks",
            "expected 1 and 1 as model_config.yaml says")  # fmt: skip
    assert "expected 1 and 1" in shardwright("verify", source, expect=1).stdout
    zipped = archive(tmp_path / "z.nemo", files, "w:gz")
    refused(shardwright, zipped, tmp_path, "SW0301", "unpack it")
    copied = members(4)
    copied["mp_rank_03/model_weights.ckpt"] = copied["mp_rank_01/model_weights.ckpt"]
    again = archive(tmp_path / "r.nemo", copied)
    refused(shardwright, again, tmp_path, "SW0319", "mp_rank_03/", "mp_rank_01/")
    escaping = archive(tmp_path / "e.nemo", {**files, "../../evil": b"x"})
    refused(shardwright, escaping, tmp_path, "SW0106", "e.nemo")
    whole = archive(tmp_path / "c.nemo", files).read_bytes()
    (tmp_path / "cut.nemo").write_bytes(whole[: len(whole) // 2])
    refused(shardwright, tmp_path / "cut.nemo", tmp_path, "SW0250", "cut.nemo")
    speech = {"model_config.yaml": b"{}"}
    body = io.BytesIO()
    torch.save({"encoder.layers.0.weight": torch.zeros(2)}, body)
    speech["model_weights.ckpt"] = body.getvalue()
    refused(shardwright, archive(tmp_path / "s.nemo", speech), tmp_path, "SW0301", "encoder.layers")
    zarr = {"model_config.yaml": b"{}", "model_weights/a/.zarray": b"{}"}
    refused(shardwright, archive(tmp_path / "a.nemo", zarr), tmp_path, "SW0301", "zarr")
