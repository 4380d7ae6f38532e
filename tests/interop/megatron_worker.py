# SPDX-License-Identifier: Apache-2.0
"""What one rank of a Megatron job does: saves a golden family's weights, or loads them and compares."""
import os

import checkpoints
import megatron_cpu


def build(family, spec, sizes):
    megatron_cpu.join(**sizes)
    hf = megatron_cpu.read_config(checkpoints.GOLDEN / "hf" / family / "hf")
    return megatron_cpu.build(hf, spec), hf, checkpoints.truth(family)


def save(family, folder, spec, strict, sizes):
    model, hf, truth = build(family, spec, sizes)
    megatron_cpu.fill(model, truth)
    megatron_cpu.save(model, folder, hf)


def save_legacy(family, folder, spec, strict, sizes):
    model, hf, truth = build(family, spec, sizes)
    megatron_cpu.fill(model, truth)
    megatron_cpu.save_legacy(model, folder, hf)


def load(family, folder, spec, strict, sizes):
    model, _, truth = build(family, spec, sizes)
    megatron_cpu.load(model, checkpoints.iteration_folder(folder), strict)
    assert megatron_cpu.assert_holds(model, truth), "this rank holds nothing"


def load_legacy(family, folder, spec, strict, sizes):
    model, _, truth = build(family, spec, sizes)
    megatron_cpu.load_legacy(model, checkpoints.iteration_folder(folder))
    assert megatron_cpu.assert_holds(model, truth), "this rank holds nothing"


def fail_on_rank(rank):
    assert megatron_cpu.dist.get_rank() != rank, "as it was asked to"


def make_groups(count):
    """Gloo's groups have two threads each that work, and none of their own that looks for messages."""
    dist = megatron_cpu.dist
    before = len(os.listdir("/proc/self/task"))
    groups = [dist.new_group() for _ in range(count)]
    assert len(os.listdir("/proc/self/task")) - before == 2 * count
    for group in groups:
        told = [None, None]
        dist.all_gather_object(told, dist.get_rank(), group=group)
        assert told == [0, 1]
