# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_training_load.py do: Megatron-Core saves, shardwright.megatron loads."""
import json
import logging
import os
import pathlib
import subprocess
import time

import gpu_modules

gpu_modules.install()

import checkpoints  # noqa: E402
import megatron_cpu  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.dist_checkpointing import serialization, validation  # noqa: E402
from megatron.core.dist_checkpointing.dict_utils import nested_values  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedObject, ShardedTensor  # noqa: E402
from megatron.core.dist_checkpointing.strategies import fully_parallel  # noqa: E402

from shardwright.megatron import LoadStrategy, last_load  # noqa: E402


EXTRA, NORM = "model.more", "decoder.final_layernorm.weight"


def data_ranks():
    return parallel_state.get_data_parallel_group(with_context_parallel=True)


class Job:
    """A model of a golden family at some sizes."""

    def __init__(self, family, tp, pp=1, ep=1):
        parallel_state.destroy_model_parallel()
        megatron_cpu.join(tp, pp, ep)
        hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
        self.truth = checkpoints.truth(family)
        self.model = megatron_cpu.build(hf, "te" if "mixtral" in family else "local")

    def state(self, replicas=False):
        """What it saves or loads; with `replicas` as Megatron-LM's PR 3392 names it."""
        model = megatron_cpu.sharded(self.model)
        step = ShardedObject("step", {"at": [7, 0.5]}, (1,), (0,), dist.get_rank())
        state = {"model": model, "step": step}
        if replicas:
            name_copies(model)
        return state

    def load(self, folder, strict="raise_all", replicas=False, wrapped=False, **options):
        """Loads by ours into garbage, or by ours inside Megatron-Core's wrapper; the names that
        were missing and unexpected, if it tells."""
        for parameter in self.model.parameters():
            parameter.data.fill_(-7.0)
        state = self.state(replicas)
        strategy = LoadStrategy(**options)
        if wrapped:
            strategy = fully_parallel.FullyParallelLoadStrategyWrapper(strategy, data_ranks())
        loaded = dist_checkpointing.load(state, str(folder), strategy, strict=strict)
        told = loaded[1:] if isinstance(loaded, tuple) else ()
        loaded = loaded[0] if told else loaded
        assert loaded["step"] == {"at": [7, 0.5]}
        self.model.load_state_dict(loaded["model"], strict=False)
        return told

    def assert_loaded(self):
        assert megatron_cpu.assert_holds(self.model, self.truth), "this rank holds nothing"


def name_copies(model):
    """Gives what tensor ranks hold alike a key of each rank's own."""
    group = parallel_state.get_tensor_model_parallel_group()
    tensors = [t for t in nested_values(model) if isinstance(t, ShardedTensor)]
    alike = [t.key for t in tensors if t.replica_id[1] != 0 and ".experts." not in t.key]
    told = [None] * dist.get_world_size(group)
    dist.all_gather_object(told, alike, group=group)
    names = {name for one in told for name in one}
    rank = dist.get_rank(group)
    for tensor in tensors:
        if tensor.key in names and dist.get_world_size(group) > 1:
            tensor.key += f".__tp_replica_{rank}"
            tensor.replica_id = (0, 0, tensor.replica_id[2])


def save(job, folder, replicas):
    if dist.get_rank() == 0:
        pathlib.Path(folder).mkdir(parents=True)
    dist.barrier()
    strategy = serialization.get_default_save_sharded_strategy()
    strategy.thread_count = 1
    strategy = fully_parallel.FullyParallelSaveStrategyWrapper(strategy, data_ranks())
    dist_checkpointing.save(job.state(replicas), str(folder), strategy)
    dist.barrier()


@megatron_cpu.without_children
def save_all(root, family, layouts):
    for name, (sizes, replicas) in layouts.items():
        job = Job(family, *sizes)
        megatron_cpu.fill(job.model, job.truth)
        save(job, f"{root}/{name}", replicas)


def load_all(root, family, folders, layouts, options=None, apart=False):
    """Every checkpoint at every layout, by bare names and by those of copies. `apart`: no rank reads
    another's memory."""
    if apart:
        keep_apart()
    reports = {}
    for sizes in layouts:
        job = Job(family, *sizes)
        for folder in folders:
            for replicas in (False, True):
                job.load(f"{root}/{folder}", replicas=replicas, **(options or {}))
                job.assert_loaded()
                key = f"{folder} {'x'.join(map(str, sizes))} {'copies' if replicas else 'bare'}"
                reports[key] = last_load()._asdict()
    pathlib.Path(root, f"reports.{dist.get_rank()}").write_text(json.dumps(reports))


def joined(root, family, folder):
    """What Megatron-Core puts together of parts is the model's own memory after a load by ours, and
    a copy after one by its own strategy."""
    from shardwright.megatron._joined import whole_of

    job = Job(family, 2)
    for strategy, is_view in ((LoadStrategy(), True), (None, False)):
        for parameter in job.model.parameters():
            parameter.data.fill_(-7.0)
        state = {"model": megatron_cpu.sharded(job.model)}
        loaded = dist_checkpointing.load(state, f"{root}/{folder}", strategy)["model"]
        own = {parameter.data_ptr() for parameter in job.model.parameters()}
        gated = [name for name in loaded if name.endswith("linear_fc1.weight")]
        assert gated and all((loaded[name].data_ptr() in own) == is_view for name in gated)
        job.model.load_state_dict(loaded, strict=False)
        job.assert_loaded()
    whole = torch.arange(24.0).reshape(6, 4)
    alike = ([whole[:1], whole[1:4], whole[4:]], [whole[2:3], whole[3:]], [whole[0]], whole[1:3])
    for parts in alike:
        parts = list(parts)
        made = whole_of(parts)
        assert torch.equal(made, torch.cat(parts)) and made.data_ptr() == parts[0].data_ptr()
    others = [
        [whole[:2], whole[3:]],
        [whole[2:], whole[:2]],
        [whole[:2], whole.clone()[2:]],
        [whole[:, :2], whole[:, 2:]],
        [whole[:2], whole[2:].view(torch.int32)],
        [whole[:2].flatten(), whole[2:].flatten()[:2], whole[3:]],
        [whole[:0], whole],
        [whole.clone().requires_grad_()],
        [],
    ]
    assert [whole_of(parts) for parts in others] == [None] * len(others)


def diverged_copies(root, family, folder):
    """A norm of which the two tensor ranks have saved different values: each gets its own back, by
    either name, and where there are four, the first two do."""
    job = Job(family, 2)
    megatron_cpu.fill(job.model, job.truth)
    norms = {rank: job.truth[NORM] + rank for rank in (0, 1)}
    with torch.no_grad():
        job.model.decoder.final_layernorm.weight.copy_(norms[tensor_rank()])
    save(job, f"{root}/{folder}", True)
    for replicas in (False, True):
        job.load(f"{root}/{folder}", replicas=replicas)
        assert torch.equal(job.model.decoder.final_layernorm.weight, norms[tensor_rank()])
    job.load(f"{root}/{folder}", replicas=True, parallelization_group=dist.group.WORLD)
    assert torch.equal(job.model.decoder.final_layernorm.weight, norms[tensor_rank()])
    wide = Job(family, 4)
    wide.load(f"{root}/{folder}", replicas=True)
    if tensor_rank() in norms:
        assert torch.equal(wide.model.decoder.final_layernorm.weight, norms[tensor_rank()])


def load_without_a_job(root, family, folder):
    """One process that is in no job at all."""
    job = Job(family, 1)
    whole = job.truth[NORM]
    model = {"norm": ShardedTensor.from_rank_offsets(NORM, torch.zeros_like(whole))}
    parallel_state.destroy_model_parallel()
    dist.destroy_process_group()
    strategy = LoadStrategy()
    folder = f"{root}/{folder}"
    loaded = dist_checkpointing.load(model, folder, strategy, validate_access_integrity=False)
    assert torch.equal(loaded["norm"], whole)
    assert last_load().opens == 1
    dist.init_process_group("gloo", init_method=f"file://{root}/alone", rank=0, world_size=1)


def tensor_rank():
    return parallel_state.get_tensor_model_parallel_rank()


STRICT = [mode.value for mode in validation.StrictHandling]


class Warnings(logging.Handler):
    """What Megatron-Core's validation warns of."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage())

    def __enter__(self):
        validation.logger.addHandler(self)
        return self.texts

    def __exit__(self, *_):
        validation.logger.removeHandler(self)


def strict_loads(root, family, folders, layouts):
    """Every mode, by both kinds of names: all is loaded, and no name is told. One rank alone may ask
    for the names."""
    if dist.get_rank() == 1:
        assert NORM in LoadStrategy().load_sharded_metadata(f"{root}/{folders[0]}")
    for sizes in layouts:
        job = Job(family, *sizes)
        for folder in folders:
            for mode in STRICT:
                for replicas in (False, True):
                    with Warnings() as warnings:
                        told = job.load(f"{root}/{folder}", mode, replicas)
                    job.assert_loaded()
                    assert told == ((set(), set()) if mode.startswith("return_") else ()), told
                    assert not warnings, warnings


def strict_mismatches(root, family, folder):
    """One name that is not stored, one that the model does not ask for; by mode, what came of it."""
    job = Job(family, 2)
    outcomes = {}
    for mode in STRICT:
        state = job.state()
        ours = state["model"].pop(NORM)
        assert ours.key == NORM
        state["model"]["more"] = ShardedTensor.from_rank_offsets(
            EXTRA, torch.full((3,), 5.0), replica_id=dist.get_rank()
        )
        try:
            with Warnings() as warnings:
                strategy = LoadStrategy()
                loaded = dist_checkpointing.load(state, f"{root}/{folder}", strategy, strict=mode)
        except Exception as error:
            outcomes[mode] = [type(error).__name__, str(error)]
            continue
        told = []
        if isinstance(loaded, tuple):
            loaded, *told = loaded
        assert "more" not in loaded["model"] and len(loaded["model"]) > 10
        outcomes[mode] = ["loaded", *(sorted(names) for names in told), *warnings]
    pathlib.Path(root, f"outcomes.{dist.get_rank()}").write_text(json.dumps(outcomes))


def padded_loads(root, family, folder):
    """A vocabulary of other lengths: what Megatron-Core's own strategy makes of it."""
    for sizes in ((1,), (2,), (4,)):
        for rows in (128, -64):
            parallel_state.destroy_model_parallel()
            megatron_cpu.join(*sizes)
            hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
            hf["vocab_size"] += rows
            states = []
            for strategy in (None, LoadStrategy()):
                model = megatron_cpu.build(hf, "local")
                state = {"model": megatron_cpu.sharded(model)}
                loaded = dist_checkpointing.load(state, f"{root}/{folder}", strategy)["model"]
                states.append({k: v for k, v in loaded.items() if isinstance(v, torch.Tensor)})
            checkpoints.assert_same(*states)
            assert any(len(v) and not v[-1].any() for v in states[0].values()) == (rows > 0) or (
                rows > 0 and dist.get_world_size() > 1
            )


def failing_load(root, family, folder, hook, rank, dies=False):
    """A load that fails on one rank, by an error or the end of its process; what each rank was told,
    and after how many seconds."""
    job = Job(family, 2)
    if hook == "unpack":  # which is done only where ranks don't read one another's memory
        keep_apart()
    if hook and dist.get_rank() == rank:
        install(hook, dies)
    began = time.monotonic()
    try:
        job.load(f"{root}/{folder}", strict="assume_ok_unexpected", round_bytes=4096)
        told = ["loaded", ""]
    except Exception as error:
        told = [type(error).__name__, str(error)]
    told.append(time.monotonic() - began)
    pathlib.Path(root, f"told.{dist.get_rank()}").write_text(json.dumps(told))
    if dies:
        os._exit(0)  # there is nobody to meet at the end


def keep_apart():
    """As where the system lets no process read another's memory."""
    from shardwright._loading import _host_memory

    _host_memory._sees = lambda told: False


def install(hook, dies):
    from shardwright._loading import _load, _phase

    def broken(*_):
        raise RuntimeError("a disk on fire")

    def dying(*_):
        os._exit(0)

    where = {
        "ask": (_load.Loading, "_resolve"),
        "plan": (_phase.Phase, "plan"),
        "open": (_load.Loading, "_open"),
        "read": (_phase.Phase, "_read_chunk"),
        "unpack": (_phase.Phase, "_unpack"),
        "take": (_phase.Phase, "take_rest"),
        "finish": (_phase.Phase, "finish"),
    }
    setattr(*where[hook], dying if dies else broken)


def own_load(root, family, folder, sizes, strict):
    """One load, with every file that this process opens listed by the system."""
    job = Job(family, *sizes)
    trace = pathlib.Path(root, f"trace.{dist.get_rank()}")
    words = ["strace", "-f", "-qq", "-e", "trace=openat,openat2", "-o", trace, "-p", os.getpid()]
    tracer = subprocess.Popen(list(map(str, words)))
    while not traced():
        time.sleep(0.01)
    dist.barrier()
    job.load(f"{root}/{folder}", strict, replicas=True)
    tracer.terminate()
    tracer.wait()
    job.assert_loaded()
    pathlib.Path(root, f"reports.{dist.get_rank()}").write_text(json.dumps(last_load()._asdict()))


def traced():
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.split("TracerPid:")[1].split()[0]) != 0
