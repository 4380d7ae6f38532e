# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_newer_training.py do: Megatron-LM's own save_checkpoint and
load_checkpoint of a later Megatron-Core, with ours switched on."""
import multiprocessing
import os
import sys
import threading

import newer_jobs
import torch
import torch.distributed as dist
from megatron.core import dist_checkpointing
from megatron.core.dist_checkpointing.mapping import ShardedTensor
from megatron.training import async_utils, checkpointing
from newer_cases import BUCKETS, EP, GROUPED, MOE, PP, SHARED, TP, WHOLE
from training_steps import Training, same

import shardwright
import shardwright.megatron as ours

CASES = {
    "dense": TP + GROUPED + WHOLE + " --ckpt-fully-parallel-save",
    "dense_async": TP + GROUPED + BUCKETS + " --async-save --async-strategy mcore",
    "dense_nvrx": TP + GROUPED + BUCKETS + " --async-save",  # the default strategy
    "moe": TP + SHARED + WHOLE + " --sequence-parallel --expert-tensor-parallel-size 1",
}
LOADS = {
    "collapsed/dense": CASES["dense"],
    "plain/dense_async": TP + GROUPED + BUCKETS,
    "collapsed/moe": CASES["moe"],
}
# Transformer Engine's layers are stand-ins that do not compute; of clipping, sums hang on layouts.
COMPUTES, SPARSE = " --transformer-impl local --clip-grad 0", MOE.replace(" --moe-grouped-gemm", "")
STORED_ONLY = " --sequence-parallel --expert-tensor-parallel-size 1 --clip-grad 0"
TP4, EP4 = TP.replace("2", "4"), EP.replace("2", "4")
# What goes on training from what ours saved, where it did and at other sizes. Megatron-Core's
# optimizer states of experts load at no EP of 1.
TRAINED = {
    "gpt_tp2_dp2": (WHOLE + COMPUTES, TP, ("", TP4, TP + PP)),
    "gpt_tp2_pp2": (COMPUTES, TP + PP + " --async-save --async-strategy mcore", ("", TP4)),
    "moe_ep2_dp2": (SPARSE + WHOLE + COMPUTES, EP, (EP4,)),
    "moe_tp2_ep2": (SHARED + WHOLE + STORED_ONLY, TP + EP, (EP, TP + EP + PP)),
}


def save(root):
    """Each case by Megatron's own strategies, by ours, and by ours with Megatron's names."""
    with newer_jobs.job():
        for name, words in CASES.items():
            run = newer_jobs.Run(words, root)
            run.fill()
            for writer in ("stock", "ours", "plain"):
                folder = new_folder(f"{root}/{writer}/{name}")
                run.args.save = folder
                run.args.async_save = writer != "stock" and "--async-save" in words
                if writer == "stock":
                    save_checkpoint(run)
                    continue
                with ours.enabled(replicas=writer == "ours", locality=False):
                    save_checkpoint(run)
                last = ours.last_save()
                assert last.path == f"{folder}/iter_0000010", last
                assert (last.replicas > 0) == (writer == "ours"), last
                assert (last.staged_bytes > 0) == run.args.async_save, last


def new_folder(path):
    if dist.get_rank() == 0:
        os.makedirs(path)
    dist.barrier()
    return path


def save_checkpoint(run):
    before = multiprocessing.active_children()
    iteration, schedule = newer_jobs.ITERATION, newer_jobs.Schedule()
    checkpointing.save_checkpoint(iteration, run.wrapped, run.optimizer, schedule, 0)
    if run.args.async_save:
        assert multiprocessing.active_children() == before, "threads, no processes"
        async_utils.maybe_finalize_async_save(blocking=True)
        async_utils._async_calls_queue = None


def save_by_default(root):
    """Saves that Megatron-LM's default queue holds while they are written, with a worker of the
    queue's own that nobody needs, and without one."""
    from nvidia_resiliency_ext.checkpointing.async_ckpt import core
    from shardwright.megatron import _save

    write, held = _save.ItemFile.write, threading.Event()
    _save.ItemFile.write = lambda file: (held.wait(), write(file))
    with newer_jobs.job(), ours.enabled():
        run = newer_jobs.Run(CASES["dense_nvrx"], root)
        run.fill()
        for persistent, by_closing in ((True, True), (True, False), (False, False)):
            held.clear()
            queue = core.AsyncCallsQueue(persistent=persistent)
            folder = new_folder(f"{root}/{persistent}-{by_closing}")
            state = {"model": run.models[0].sharded_state_dict()}
            request = dist_checkpointing.save(state, folder, async_sharded_save=True)
            assert type(request) is core.AsyncRequest
            ended = []
            request.add_finalize_fn(lambda ended=ended: ended.append(True))
            queue.schedule_async_request(request)
            assert queue.maybe_finalize_async_calls() == [] and queue.get_num_unfinalized_calls() == 1
            assert queue.persistent_caller is None, "a worker was started"
            assert not ended and not os.path.exists(f"{folder}/.metadata")
            threading.Timer(0.2, held.set).start()
            if by_closing:
                queue.close()
            else:
                assert queue.maybe_finalize_async_calls(blocking=True) == [0]
            assert ended and os.path.exists(f"{folder}/.metadata")
            assert queue.get_num_unfinalized_calls() == 0 and ours.last_save().path == folder
            queue.close()


def refuse_strategies(root):
    """Without the package that the default needs, and by a name that nobody knows."""
    package = "nvidia_resiliency_ext.checkpointing.async_ckpt"
    with newer_jobs.job(), ours.enabled():
        run = newer_jobs.Run(CASES["dense_nvrx"], root)
        folder = new_folder(f"{root}/refused")
        for name in [name for name in sys.modules if name.startswith(package)]:
            sys.modules[name] = None
        for strategy in ("nvrx", "magic"):
            state = {"model": run.models[0].sharded_state_dict()}
            try:
                dist_checkpointing.save(
                    state, folder, async_sharded_save=True, async_strategy=strategy
                )
                raise AssertionError("it was not refused")
            except shardwright.UsageError as error:
                assert error.code == "SW0900" and strategy in error.message, error
                assert "--async-strategy mcore" in error.message, error
        assert ours.last_save() is None


def replace_older(root):
    """What an earlier version saved, whose common.pt would be loaded before what is saved now."""
    from shardwright.megatron import _save

    def state(number):
        tensor = torch.full((2, 4), float(number))
        cut = ShardedTensor.from_rank_offsets("decoder.w", tensor, (0, dist.get_rank(), 2))
        return {"w": cut, "iteration": number}

    def found():
        loaded = dist_checkpointing.load(state(0), folder)
        return loaded["iteration"], loaded["w"].unique().tolist()

    def no_space(*_):
        raise OSError(28, "No space left on device")

    folder = new_folder(f"{root}/step")
    dist_checkpointing.save(state(1), folder, ours.SaveStrategy())
    if dist.get_rank() == 0:
        torch.save({"iteration": 2}, f"{folder}/common.pt")
    dist.barrier()
    assert found() == (2, [1.0])
    write, _save.ItemFile.write = _save.ItemFile.write, no_space
    try:
        dist_checkpointing.save(state(3), folder, ours.SaveStrategy())
        raise AssertionError("it was saved")
    except OSError:
        _save.ItemFile.write = write
    assert found() == (2, [1.0]), "the checkpoint that was there is not what it was"
    dist_checkpointing.save(state(4), folder, ours.SaveStrategy())
    assert found() == (4, [4.0])


def load(root):
    """By Megatron's own strategies; nothing may be missing."""
    with newer_jobs.job():
        for name, words in LOADS.items():
            run = newer_jobs.Run(words, root)
            load_checkpoint(run, f"{root}/{name}", "raise_unexpected")  # RNG states stay


def load_by_ours(root):
    """What ours saved under the names of copies, in every strictness: out of each rank's own file."""
    with newer_jobs.job(), ours.enabled():
        for name, words in CASES.items():
            run = newer_jobs.Run(words.split(" --async-save")[0], root)
            for strictness in ("raise_unexpected", "log_all", "ignore_all", "assume_ok_unexpected"):
                load_checkpoint(run, f"{root}/ours/{name}", strictness)
                last = ours.last_load()
                assert last.opens - last.foreign_opens == 1 and last.own_bytes > 0, last
                # Experts are not shared out over the tensor ranks, of which the first saved them.
                others = 1 if name == "moe" and dist.get_rank() % 2 else 0
                assert last.foreign_opens == others and (last.foreign_bytes > 0) == others, last
    assert type(ours.last_load()) is ours.LoadReport


def load_checkpoint(run, folder, strictness):
    """Into a spoilt run, which afterwards holds what every run was filled with."""
    run.spoil()
    restore(run, folder, strictness)
    assert all(run.check()), "nothing was loaded"


def restore(run, folder, strictness="assume_ok_unexpected", rng=False):
    newer_jobs.torch.optim.Adam.__setstate__ = newer_jobs.torch.optim.Optimizer.__setstate__
    run.args.load, run.args.no_load_rng = folder, not rng
    run.args.dist_ckpt_strictness = strictness
    schedule = newer_jobs.Schedule()
    try:
        iteration, _ = checkpointing.load_checkpoint(run.wrapped, run.optimizer, schedule)
        assert iteration == newer_jobs.ITERATION
    except Exception as problem:
        raise AssertionError(f"{folder}, {strictness}: {problem}") from problem


def training_of(words, folder):
    run = newer_jobs.Run(words, folder)
    return run, Training(run.wrapped[0], run.optimizer)


def go_on(root, name):
    """Two steps more, after a save and after a load of it; the same elsewhere, with gradients that
    do not hang on the layout."""
    model, sizes, others = TRAINED[name]
    with newer_jobs.job():
        saved = new_folder(f"{root}/{name}")
        run, training = training_of(model + sizes, saved)
        run.fill()
        step = training.step if COMPUTES in model else training.follow
        step(0)
        with ours.enabled():
            save_checkpoint(run)
        assert ours.last_save().path == f"{saved}/iter_0000010"
        gone_on = [(step(number), training.everything()) for number in (1, 2)]
        training.spoil()
        with ours.enabled():
            restore(run, saved, rng=True)  # there is dropout
        assert ours.last_load().own_bytes > 0
        for number, (loss, everything) in zip((1, 2), gone_on):
            found = step(number), training.everything()
            assert found[0] == loss and same(found[1], everything), (number, found[0], loss)
        with ours.enabled():
            restore(run, saved)
        training.follow(1)
        run.args.save, run.args.async_save = new_folder(f"{saved}-followed"), False
        save_checkpoint(run)
        for other in others:
            run, training = training_of(model + other, saved)
            restore(run, f"{saved}-followed")  # by Megatron's own
            followed = training.everything()
            training.spoil()
            with ours.enabled():
                restore(run, saved)
            assert not same(training.everything(), followed)
            training.follow(1)
            assert same(training.everything(), followed), other
