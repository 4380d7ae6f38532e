# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_training_save.py do: Megatron-Core's dist_checkpointing, with its own
strategies and with ours."""
import inspect
import json
import multiprocessing
import os
import pathlib
import threading
import time

import gpu_modules

gpu_modules.install()

import checkpoints  # noqa: E402
import megatron_cpu  # noqa: E402
import megatron_optimizer  # noqa: E402
import pytest  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
import megatron.core  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.dist_checkpointing.dict_utils import nested_values  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedTensor, apply_factories  # noqa: E402
from megatron.core.dist_checkpointing.strategies import fully_parallel, torch as stock  # noqa: E402
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue  # noqa: E402
from torch.distributed import distributed_c10d  # noqa: E402
from computed_tensors import Float8Tensor  # noqa: E402

import shardwright.megatron as ours  # noqa: E402
import shardwright  # noqa: E402
from shardwright.megatron import LoadStrategy, SaveStrategy, _exchange, _save  # noqa: E402


class Trained:
    """A golden family's model on this rank, filled with its truth, with an optimizer or without."""

    def __init__(self, family, spec, sizes, optimizer=False):
        megatron_cpu.join(**sizes)
        name, _, tied = family.partition("+")
        hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / name / "hf")
        if tied:  # embedding and output layer share a weight, which the last stage has a copy of
            hf["tie_word_embeddings"] = True
        self.model = megatron_cpu.build(hf, spec)
        self.truth = checkpoints.truth(name)
        megatron_cpu.fill(self.model, self.truth)
        self.args = megatron_cpu.arguments_of(self.model, hf, 10)
        self.args.moe_ffn_hidden_size = self.model.config.moe_ffn_hidden_size
        self.iteration = 10
        self.optimizer = None
        if optimizer:
            self.optimizer = megatron_optimizer.build(self.model)
            self.optimizer.reload_model_params()
            self.train()

    def train(self):
        """One step whose gradients follow from the weights: what ranks hold alike stays alike."""
        for group in self.optimizer.fp32_from_float16_groups:
            for master in group:
                master.grad = master * 0.5 + 0.25
        for group in self.optimizer.optimizer.param_groups:
            group["lr"] = 1e-3
        self.optimizer.optimizer.step()
        self.optimizer._copy_main_params_to_model_params()

    def state(self):
        model = megatron_cpu.sharded(self.model)
        state = dict(args=self.args, checkpoint_version=3.0, iteration=self.iteration, model=model)
        if self.optimizer is not None:
            state["optimizer"] = self.optimizer.sharded_state_dict(model)
        return state


    def holds(self, state):
        """The model's tensors and the optimizer's are, bit by bit, those of `state`."""
        own = flat_tensors(self.state())
        return own.keys() == state.keys() and all(torch.equal(own[k], state[k]) for k in own)


def flat_tensors(state):
    """Copies of all tensors by key and place."""
    apply_factories(state)
    return {
        f"{piece.key} {piece.global_offset}": piece.data.clone()
        for piece in nested_values(state)
        if isinstance(piece, ShardedTensor)
    }


def new_folder(path):
    if dist.get_rank() == 0:
        pathlib.Path(path).mkdir(parents=True)
    dist.barrier()
    return str(path)


def report():
    """Ours ran last, and what it says of this rank."""
    last = ours.last_save()
    assert last is not None, "ours did not run"
    return last


def end_stock_saver():
    for child in multiprocessing.active_children():
        child.kill()


def save_both(root, family, spec, sizes, optimizer, replicas):
    """The same state by Megatron's own strategy and by ours."""
    trained = Trained(family, spec, sizes, optimizer)
    folder = new_folder(f"{root}/ours")
    dist_checkpointing.save(trained.state(), folder, SaveStrategy(replicas=replicas))
    last = report()
    assert last.path == folder
    pathlib.Path(root, f"report.{dist.get_rank()}").write_text(json.dumps(last._asdict()))
    dist_checkpointing.save(trained.state(), new_folder(f"{root}/stock"))
    end_stock_saver()


# Where a save goes wrong: a method of ours, and on which rank.
FAULTS = {
    "plan": (_save._Job, "_own_part", 3),
    "exchange": (_save._Job, "_writers", 3),  # when the others have its first message and wait
    "stage": (_save.ItemFile, "stage", 3),
    "write": (_save.ItemFile, "write", 3),
    "commit": (_save.Publication, "appear", 0),
}


class Faulty:
    """Makes one rank's save go wrong: by an error, or the end of its process."""

    def __init__(self, where, how):
        self.owner, self.name, self.rank = FAULTS[where]
        self.how, self.method = how, getattr(self.owner, self.name)

    def __enter__(self):
        if dist.get_rank() == self.rank:

            def fault(*_):
                if self.how == "killed":
                    os._exit(9)
                raise OSError(28, "No space left on device")

            setattr(self.owner, self.name, fault)

        return self

    def __exit__(self, *_):
        setattr(self.owner, self.name, self.method)


def fail(root, where, how, is_async):
    """A save, then one elsewhere and one to the same place which a rank spoils."""
    trained = Trained("llama3_4l", "local", dict(tp=2))
    strategy = SaveStrategy(replicas=False, silent_seconds=3)
    folder = new_folder(f"{root}/first")
    save(trained, folder, strategy, is_async)
    first = report()
    before = flat_tensors(trained.state())
    spoil(trained)
    for target in (new_folder(f"{root}/second"), folder):
        begun = time.monotonic()
        with Faulty(where, how) as fault:
            try:
                save(trained, target, strategy, is_async)
                problem = None
            except Exception as error:
                problem = error
        assert problem is not None and time.monotonic() - begun < 10
        assert ours.last_save() is first, "nothing was published"
        if how == "killed":
            # An async save asks through gloo whether all are done; that has errors of its own.
            assert is_async or "no sign of life" in str(problem), problem
            os._exit(0)  # the job is over: there is nobody to meet at its end
        expected = OSError if dist.get_rank() == fault.rank else shardwright.StorageError
        assert type(problem) is expected and "No space left" in str(problem), problem
        assert expected is OSError or problem.code == "SW0114"
    after = flat_tensors(trained.state())
    load_whole(trained, folder, before, iteration=10)
    spoil(trained)
    if dist.get_rank() == 0:
        # Of files that are no more, once it is replaced.
        for name in ("shardwright-digests.jsonl", "integrity.json", "model.sig"):
            pathlib.Path(folder, name).write_text("{}")
    save(trained, folder, strategy, is_async)
    load_whole(trained, folder, after, iteration=11)


def load_whole(trained, folder, state, iteration):
    """Tensors and common state are of the same save."""
    loaded = dist_checkpointing.load(trained.state(), folder)
    assert trained.holds(state) and loaded["iteration"] == iteration, loaded["iteration"]


def spoil(trained):
    trained.iteration = 11
    with torch.no_grad():
        for parameter in trained.model.parameters():
            parameter.fill_(1.0)


def load_first(root):
    """In a new job, what the one that failed had saved before."""
    trained = Trained("llama3_4l", "local", dict(tp=2))
    before = flat_tensors(trained.state())
    spoil(trained)
    load_whole(trained, f"{root}/first", before, iteration=10)


def save(trained, folder, strategy, is_async):
    if not is_async:
        dist_checkpointing.save(trained.state(), folder, strategy)
        return
    queue = AsyncCallsQueue()
    begin_save(queue, trained, folder, strategy)
    queue.maybe_finalize_async_calls(blocking=True)


def begin_save(queue, trained, folder, strategy):
    queue.schedule_async_request(request_save(trained, folder, strategy))


def request_save(trained, folder, strategy):
    options = dict(async_sharded_save=True)
    if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters:
        options["async_strategy"] = "mcore"  # later versions have another by default
    return dist_checkpointing.save(trained.state(), folder, strategy, **options)


def switch(root):
    """What Megatron's own entry points use, switched on and off."""
    trained = Trained("llama3_4l", "te", dict(tp=2))
    before = flat_tensors(trained.state())
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    wrapper = fully_parallel.FullyParallelSaveStrategyWrapper
    owners = (stock.TorchDistSaveShardedStrategy, wrapper)
    methods = [vars(owner).get(name) for owner in owners for name in ("save", "async_save")]
    strategies = {
        "default": lambda: None,
        "named": lambda: ("torch_dist", 1),
        "wrapped": lambda: wrapper(stock.TorchDistSaveShardedStrategy("torch_dist", 1), group),
        "ours_wrapped": lambda: wrapper(SaveStrategy(replicas=False), group),
    }

    def saved_by_ours(name, strategy):
        known = ours.last_save()
        dist_checkpointing.save(trained.state(), new_folder(f"{root}/{name}"), strategy())
        spoil(trained)
        state = dist_checkpointing.load(trained.state(), f"{root}/{name}")
        trained.model.load_state_dict(state["model"], strict=False)
        assert trained.holds(before), name
        return ours.last_save() is not known

    assert not saved_by_ours("never", strategies["default"])
    with ours.enabled(replicas=False, locality=False):
        for name, strategy in strategies.items():
            assert saved_by_ours(name, strategy), name
    assert not saved_by_ours("left", strategies["wrapped"])
    assert saved_by_ours("explicit", strategies["ours_wrapped"])
    named = wrapper(SaveStrategy(replicas=True), group)
    dist_checkpointing.save(trained.state(), new_folder(f"{root}/replicas"), named)
    assert report().replicas > 0, "the wrapper hid whose replica was whose"
    ours.enable(replicas=False, locality=False)
    ours.enable(replicas=False, locality=False)
    assert saved_by_ours("enabled", strategies["default"])
    ours.disable()
    ours.disable()
    assert not saved_by_ours("disabled", strategies["default"])
    after = [vars(owner).get(name) for owner in owners for name in ("save", "async_save")]
    assert after == methods, "what Megatron had is back"
    end_stock_saver()


def save_in_background(root, max_staging_bytes):
    """Two async saves by a job that goes on training, of which the second waits for the first."""
    trained = Trained("llama3_4l", "local", dict(tp=2), optimizer=True)
    strategy = SaveStrategy(replicas=False, max_staging_bytes=max_staging_bytes)
    queue = AsyncCallsQueue()
    write, held = _save.ItemFile.write, threading.Event()
    slow = lambda file: (held.wait(), write(file))  # noqa: E731
    _save.ItemFile.write = slow
    states, processes = [], len(multiprocessing.active_children())
    for name in ("one", "two"):
        folder = new_folder(f"{root}/{name}")
        states.append(flat_tensors(trained.state()))
        begin_save(queue, trained, folder, strategy)
        trained.train()
        if name == "one":
            assert queue.maybe_finalize_async_calls(blocking=False) == []
            assert not os.path.exists(f"{folder}/.metadata"), "nothing is published yet"
            threading.Timer(0.3, held.set).start()
    assert len(multiprocessing.active_children()) == processes, "threads, no processes"
    assert queue.maybe_finalize_async_calls(blocking=True) == [0, 1]
    last = report()
    assert last.staged_bytes <= max_staging_bytes and last.blocking_seconds < last.seconds
    assert (last.staged_bytes > 0) == (max_staging_bytes > 0)
    # A request may also be executed by whoever asked for it.
    _save.ItemFile.write = lambda file: (time.sleep(0.3), write(file))
    states.append(flat_tensors(trained.state()))
    request_save(trained, new_folder(f"{root}/three"), strategy).execute_sync()
    assert not strategy._background.is_alive(), "published before it was written"
    for name, state in zip(("one", "two", "three"), states):
        loaded = dist_checkpointing.load(trained.state(), f"{root}/{name}")
        trained.model.load_state_dict(loaded["model"], strict=False)
        trained.optimizer.load_state_dict(loaded["optimizer"])
        assert trained.holds(state), name


def repeat(root):
    """The same state several times, and what that leaves in the job's store."""
    trained = Trained("llama3_4l", "te", dict(tp=2))
    strategy, keys = SaveStrategy(), []
    for number in range(4):
        save(trained, new_folder(f"{root}/{number}"), strategy, number % 2 == 1)
        dist.barrier()
        keys.append(distributed_c10d._get_default_store().num_keys())
        dist.barrier()
    assert keys[3] - keys[1] <= 0, f"messages of saves that are over: {keys}"


class OwnWrapper(fully_parallel.FullyParallelSaveStrategyWrapper):
    """Somebody's own, which does not ask the strategy that it is given."""

    def save(self, sharded_state_dict, checkpoint_dir):
        SaveStrategy().save(sharded_state_dict, checkpoint_dir)

    def async_save(self, sharded_state_dict, checkpoint_dir):
        return SaveStrategy().async_save(sharded_state_dict, checkpoint_dir)


class OwnStrategy(SaveStrategy):
    """Likewise."""

    save, async_save = OwnWrapper.save, OwnWrapper.async_save


def common_states(root):
    """Whoever saves, the common state is of the save that was published last, also after one that
    failed; where it is not known that ours saves, it is written as Megatron-Core writes it."""
    rank, world = dist.get_rank(), dist.get_world_size()
    megatron_cpu.join(tp=1)
    group = parallel_state.get_data_parallel_group(with_context_parallel=True)
    wrapper = fully_parallel.FullyParallelSaveStrategyWrapper
    single = stock.TorchDistSaveShardedStrategy
    ours_at_once = {
        "ours": SaveStrategy,
        "ours wrapped": lambda: wrapper(SaveStrategy(), group),
        "default": lambda: None,
        "single": lambda: single("torch_dist", 1),
        "wrapped": lambda: wrapper(single("torch_dist", 1), group),
    }
    others = {
        "own wrapper": lambda: OwnWrapper(single("torch_dist", 1), group),
        "own wrapper of ours": lambda: OwnWrapper(SaveStrategy(), group),
        "own strategy": OwnStrategy,
    }

    def state(number):
        tensor = torch.full((2, 4), float(number))
        cut = ShardedTensor.from_rank_offsets("decoder.w", tensor, (0, rank, world))
        return {"w": cut, "iteration": number}

    def saved(number, folder, strategy, is_async):
        options = dict(async_sharded_save=True) if is_async else {}
        request = dist_checkpointing.save(state(number), folder, strategy, **options)
        if is_async:
            request.execute_sync()

    def check(number, folder, what):
        loaded = dist_checkpointing.load(state(0), folder)
        found = loaded["iteration"], loaded["w"].unique().tolist()
        assert found == (number, [float(number)]), (what, found)
        dist.barrier()

    def fails(number, folder, strategy, is_async):
        try:
            with Faulty("commit", "raised"):
                saved(number, folder, strategy, is_async)
        except OSError:
            return
        raise AssertionError("it was saved")

    for is_async in (False, True):
        folder = new_folder(f"{root}/{is_async}")
        with ours.enabled():
            for number, (name, strategy) in enumerate(ours_at_once.items()):
                saved(2 * number, folder, strategy(), is_async)
                check(2 * number, folder, name)
                fails(2 * number + 1, folder, strategy(), is_async)
                check(2 * number, folder, name)
            for number, (name, strategy) in enumerate(others.items(), 10):
                saved(number, folder, strategy(), is_async)
                check(number, folder, name)
        for name in ("default", "single", "wrapped"):  # switched off
            saved(20, folder, ours_at_once[name](), False)
            check(20, folder, name)
        left = os.listdir(folder)
        assert not [name for name in left if name.endswith((".partial", ".old"))], left
    end_stock_saver()


def save_float8(root, is_async):
    """Weights that are kept in FP8 alone: their values are what Megatron-Core saves of them too."""
    rank, strategy = dist.get_rank(), SaveStrategy()
    torch.manual_seed(rank)
    weight = Float8Tensor.random(4, 8)

    def state(tensor):
        cut = ShardedTensor.from_rank_offsets("decoder.w", tensor, (0, rank, dist.get_world_size()))
        return {"w": cut, "iteration": 3}

    folder, options = new_folder(f"{root}/ours"), dict(async_sharded_save=True)
    if not is_async:
        dist_checkpointing.save(state(weight), folder, strategy)
    else:
        dist_checkpointing.save(state(weight), folder, strategy, **options).execute_sync()
    for loader in (None, LoadStrategy()):
        empty = torch.zeros(4, 8, dtype=torch.bfloat16)
        loaded = dist_checkpointing.load(state(empty), folder, loader)
        assert torch.equal(loaded["w"], weight.dequantize()), loader


def component_state(component, tp_rank):
    """What a tensor rank of a component has; of one tensor the other component has copies."""
    name = ("language", "vision")[component]
    norm = torch.arange(4.0) + component
    cut = torch.full((2, 3), 2.0 * component + tp_rank)
    return {
        "norm": ShardedTensor.from_rank_offsets(
            f"{name}.norm.weight", norm, replica_id=(0, tp_rank, 0)
        ),
        "cut": ShardedTensor.from_rank_offsets(
            f"{name}.fc.weight", cut, (0, tp_rank, 2), replica_id=(0, 0, 0)
        ),
        "copy": ShardedTensor.from_rank_offsets(
            "language.tied", torch.ones(3), replica_id=(component, tp_rank, 0)
        ),
    }


def components(root):
    """Two components of a model, each on ranks and with groups of its own: Megatron's are none.
    They load where they were saved, and on one another's ranks."""
    rank = dist.get_rank()
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    singles = [dist.new_group([one]) for one in range(4)]
    place, tp_rank = divmod(rank, 2)
    folder = new_folder(f"{root}/ours")
    strategy = SaveStrategy(tp_group=groups[place], dp_group=singles[rank])
    dist_checkpointing.save(component_state(place, tp_rank), folder, strategy)
    assert report().replicas == (1 if place else 2)
    for component in (place, 1 - place):
        expected = component_state(component, tp_rank)
        state = component_state(component, tp_rank)
        for tensor in state.values():
            tensor.data.fill_(-7.0)
        loaded = dist_checkpointing.load(state, folder, LoadStrategy(singles[rank]))
        assert all(torch.equal(loaded[name], expected[name].data) for name in expected)
        last = ours.last_load()
        # A tensor rank finds its own copies; those of what both have lie with the language.
        foreign = component if component == place else 1
        assert (last.opens, last.foreign_opens) == (1 + component, foreign), last


def marked_names(root):
    """Tensors whose own names are like those of copies."""
    rank = dist.get_rank()
    megatron_cpu.join(tp=2)

    def state(*names, blank=False):
        tensors = {}
        for number, name in enumerate(names):
            tensor = torch.full((3,), 0.0 if blank else number + 1.0)
            tensors[name] = ShardedTensor.from_rank_offsets(name, tensor, replica_id=(0, rank, 0))
        return tensors

    def refused(call, text):
        try:
            call()
        except shardwright.Error as error:
            assert error.code == "SW0415" and text in error.message, error
            return
        raise AssertionError("it was not refused")

    def check(folder, strategy, names):
        loaded = dist_checkpointing.load(state(*names, blank=True), folder, strategy)
        found = [loaded[name].tolist() for name in names]
        assert found == [[number + 1.0] * 3 for number in range(len(names))], found

    # Such names stay, and are nobody's copies where no tensor has the name without the mark.
    alone = ("a.__tp_replica_0", "__shadow_0__b", "c")
    folder = new_folder(f"{root}/alone")
    dist_checkpointing.save(state(*alone), folder, SaveStrategy())
    assert report().replicas == 1
    check(folder, LoadStrategy(), alone)
    both = ("a", "a.__tp_replica_0")
    text = "tensor a.__tp_replica_0: the state has that name, which a copy of a gets"
    folder = new_folder(f"{root}/both")
    refused(lambda: dist_checkpointing.save(state(*both), folder, SaveStrategy()), text)
    dist.barrier()
    assert not [name for name in os.listdir(folder) if name.endswith(".distcp")]
    dist.barrier()
    dist_checkpointing.save(state(*both), folder, SaveStrategy(replicas=False))
    text = "tensor a.__tp_replica_0: the model asks for it and for a, of which a copy"
    loading = state(*both, blank=True)
    refused(lambda: dist_checkpointing.load(loading, folder, LoadStrategy()), text)
    assert not any(tensor.data.any() for tensor in loading.values()), "something was loaded"
    check(folder, None, both)
    # A copy that is not stored is found as ever.
    single = new_folder(f"{root}/single")
    dist_checkpointing.save(state("a"), single, SaveStrategy(replicas=False))
    loaded = dist_checkpointing.load(state(*both, blank=True), single, LoadStrategy())
    assert all(loaded[name].tolist() == [1.0] * 3 for name in both)


def refuse(version):
    """A Megatron-Core that nobody has seen."""
    megatron.core.__version__ = version
    methods = dict(vars(stock.TorchDistSaveShardedStrategy))
    for name in ("enable", "SaveStrategy"):
        try:
            getattr(ours, name)
            raise AssertionError("it was not refused")
        except shardwright.ModelError as error:
            assert error.code == "SW0416" and version in error.message, error
    assert dict(vars(stock.TorchDistSaveShardedStrategy)) == methods


def miss(root):
    """A rank that fails before it comes to a save must not be out of step for good."""
    megatron_cpu.join()
    _exchange._NEWER_SECONDS = 1.0
    rank, folder = dist.get_rank(), new_folder(os.path.join(root, "step"))

    def save_as(value):
        mine = torch.full((2,), float(value))
        part = ShardedTensor.from_rank_offsets("w", mine, (0, rank, dist.get_world_size()))
        SaveStrategy(arrival_seconds=3).save({"w": part}, folder)

    for absent in (1, 0):
        if rank != absent:
            with pytest.raises(shardwright.StorageError, match=f"rank {absent}: has not come"):
                save_as(7)
        dist.barrier()
        # Whoever comes first: a rank may be there before rank 0 begins another attempt.
        time.sleep(0.5 * (rank == 0))
        save_as(absent)
        with shardwright.open(folder, framework="pt") as saved:
            assert saved.get_tensor("w").tolist() == [float(absent)] * 4
        dist.barrier()
