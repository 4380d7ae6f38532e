# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_training_save.py do: Megatron-Core's dist_checkpointing, with its own
strategies and with ours."""
import json
import multiprocessing
import os
import pathlib
import time

import gpu_modules

gpu_modules.install()

import checkpoints  # noqa: E402
import megatron_cpu  # noqa: E402
import megatron_optimizer  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing  # noqa: E402
from megatron.core.dist_checkpointing.dict_utils import nested_values  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedTensor, apply_factories  # noqa: E402
from megatron.core.dist_checkpointing.strategies import fully_parallel, torch as stock  # noqa: E402
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue  # noqa: E402

import shardwright.megatron as ours  # noqa: E402
import shardwright  # noqa: E402
from shardwright.megatron import SaveStrategy, _save  # noqa: E402


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
        state = dict(args=self.args, checkpoint_version=3.0, iteration=10, model=model)
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


class Faulty:
    """Makes what the last rank writes go wrong: an error, or the end of its process."""

    def __init__(self, how):
        self.how, self.write = how, _save.ItemFile.write

    def __enter__(self):
        if dist.get_rank() == dist.get_world_size() - 1:

            def write(file):
                if self.how == "killed":
                    os._exit(9)
                raise OSError(28, "No space left on device")

            _save.ItemFile.write = write

    def __exit__(self, *_):
        _save.ItemFile.write = self.write


def fail(root, how, is_async):
    """A save, and one to the same place and one to another that a rank spoils."""
    trained = Trained("llama3_4l", "local", dict(tp=2))
    strategy = SaveStrategy(replicas=False)
    folder = new_folder(f"{root}/first")
    save(trained, folder, strategy, is_async)
    first = report()
    is_last = dist.get_rank() == dist.get_world_size() - 1
    before = flat_tensors(trained.state())
    with torch.no_grad():
        for parameter in trained.model.parameters():
            parameter.fill_(1.0)
    for other in ("second", "first"):
        if how == "killed" and other == "first":
            break
        target = new_folder(f"{root}/{other}") if other == "second" else folder
        begun = time.monotonic()
        with Faulty(how):
            try:
                save(trained, target, strategy, is_async)
                problem = None
            except Exception as error:  # gloo has errors of its own for a rank that is gone
                problem = error
        assert problem is not None and time.monotonic() - begun < 10
        if how == "raised":
            expected = OSError if is_last else shardwright.StorageError
            assert isinstance(problem, expected), problem
            assert is_last or "SW0120" in str(problem) and "No space left" in str(problem)
        elif not is_async:
            assert "SW0120" in str(problem) and "no sign of life" in str(problem), problem
        assert ours.last_save() is first, "nothing was published"
    if how == "killed":
        return os._exit(0)
    dist_checkpointing.load(trained.state(), folder)
    assert trained.holds(before), "the checkpoint that was there is not what it was"


def save(trained, folder, strategy, is_async):
    if not is_async:
        dist_checkpointing.save(trained.state(), folder, strategy)
        return
    queue = AsyncCallsQueue()
    request = dist_checkpointing.save(
        trained.state(), folder, strategy, async_sharded_save=True
    )
    queue.schedule_async_request(request)
    queue.maybe_finalize_async_calls(blocking=True)
