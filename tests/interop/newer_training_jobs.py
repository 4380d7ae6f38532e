# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_newer_training.py do: Megatron-LM's own save_checkpoint and
load_checkpoint of a later Megatron-Core, with ours switched on."""
import multiprocessing
import os

import newer_jobs
import torch.distributed as dist
from megatron.training import async_utils, checkpointing
from newer_cases import BUCKETS, GROUPED, SHARED, TP, WHOLE

import shardwright.megatron as ours

CASES = {
    "dense": TP + GROUPED + WHOLE + " --ckpt-fully-parallel-save",
    "dense_async": TP + GROUPED + BUCKETS + " --async-save --async-strategy mcore",
    "moe": TP + SHARED + WHOLE + " --sequence-parallel --expert-tensor-parallel-size 1",
}
LOADS = {
    "collapsed/dense": CASES["dense"],
    "plain/dense_async": TP + GROUPED + BUCKETS,
    "collapsed/moe": CASES["moe"],
}


def save(root):
    """Each case by Megatron's own strategies, by ours, and by ours with Megatron's names."""
    with newer_jobs.job():
        for name, words in CASES.items():
            for writer in ("stock", "ours", "plain"):
                folder = f"{root}/{writer}/{name}"
                if dist.get_rank() == 0:
                    os.makedirs(folder)
                dist.barrier()
                run = newer_jobs.Run(words, folder)
                run.fill()
                if writer == "stock":
                    run.args.async_save = False
                    save_checkpoint(run)
                    continue
                with ours.enabled(replicas=writer == "ours", locality=False):
                    save_checkpoint(run)
                last = ours.last_save()
                assert last.path == f"{folder}/iter_0000010", last
                assert (last.replicas > 0) == (writer == "ours"), last
                assert (last.staged_bytes > 0) == run.args.async_save, last


def save_checkpoint(run):
    before = multiprocessing.active_children()
    iteration, schedule = newer_jobs.ITERATION, newer_jobs.Schedule()
    checkpointing.save_checkpoint(iteration, run.wrapped, run.optimizer, schedule, 0)
    if run.args.async_save:
        assert multiprocessing.active_children() == before, "threads, no processes"
        async_utils.maybe_finalize_async_save(blocking=True)
        async_utils._async_calls_queue = None


def load(root):
    """By Megatron's own strategies; nothing may be missing."""
    with newer_jobs.job():
        for name, words in LOADS.items():
            load_checkpoint(f"{root}/{name}", words, "raise_unexpected")  # RNG states stay


def load_by_ours(root):
    """What ours saved under the names of copies, in every strictness: out of each rank's own file."""
    with newer_jobs.job(), ours.enabled():
        for name, words in CASES.items():
            folder = f"{root}/ours/{name}"
            for strictness in ("raise_unexpected", "log_all", "ignore_all", "assume_ok_unexpected"):
                load_checkpoint(folder, words.split(" --async-save")[0], strictness)
                last = ours.last_load()
                assert last.opens - last.foreign_opens == 1 and last.own_bytes > 0, last
                # Experts are not shared out over the tensor ranks, of which the first saved them.
                others = 1 if name == "moe" and dist.get_rank() % 2 else 0
                assert last.foreign_opens == others and (last.foreign_bytes > 0) == others, last
    assert type(ours.last_load()) is ours.LoadReport


def load_checkpoint(folder, words, strictness):
    newer_jobs.torch.optim.Adam.__setstate__ = newer_jobs.torch.optim.Optimizer.__setstate__
    run = newer_jobs.Run(words, folder)
    run.spoil()
    run.args.load, run.args.no_load_rng = folder, True
    run.args.dist_ckpt_strictness = strictness
    schedule = newer_jobs.Schedule()
    try:
        iteration, _ = checkpointing.load_checkpoint(run.wrapped, run.optimizer, schedule)
        assert iteration == newer_jobs.ITERATION
        assert all(run.check()), "nothing was loaded"
    except Exception as problem:
        raise AssertionError(f"{folder}, {strictness}: {problem}") from problem
