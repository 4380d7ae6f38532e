# SPDX-License-Identifier: Apache-2.0
"""What the ranks of test_megatron_saves_at_once.py do: saves to one folder of which one begins
before another is published."""
import inspect
import os

import gpu_modules

gpu_modules.install()

import megatron_cpu  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from megatron.core import dist_checkpointing, parallel_state  # noqa: E402
from megatron.core.dist_checkpointing.mapping import ShardedTensor  # noqa: E402
from megatron.core.dist_checkpointing.strategies.async_utils import AsyncCallsQueue  # noqa: E402

import shardwright.megatron as ours  # noqa: E402
from shardwright import Error  # noqa: E402
from shardwright.megatron import SaveStrategy  # noqa: E402


def sharded(number, ranks):
    """A tensor of which each of these ranks has a part."""
    if dist.get_rank() not in ranks:
        return {}
    tensor, place = torch.full((3,), float(number)), list(ranks).index(dist.get_rank())
    return {"w": ShardedTensor.from_rank_offsets("decoder.w", tensor, (0, place, len(ranks)))}


def state(number):
    return {**sharded(number, range(dist.get_world_size())), "iteration": number}


def begun(number, folder, strategy=None, **options):
    """Megatron's request for an async save."""
    if "async_strategy" in inspect.signature(dist_checkpointing.save).parameters:
        options["async_strategy"] = "mcore"  # later versions have another by default
    return dist_checkpointing.save(
        state(number), folder, strategy, async_sharded_save=True, **options
    )


def joined(root):
    """A folder in a job whose ranks know one another."""
    if not parallel_state.model_parallel_is_initialized():
        megatron_cpu.join()
    if dist.get_rank() == 0:
        os.makedirs(f"{root}/step")
    dist.barrier()
    return f"{root}/step"


def check(number, folder):
    """The folder has that save, whole, and files of no other."""
    dist.barrier()
    loaded = dist_checkpointing.load(state(0), folder)
    found = loaded["iteration"], loaded["w"].unique().tolist()
    assert found == (number, [float(number)]), found
    files = [name for name in os.listdir(folder) if name.endswith(".distcp")]
    assert len(files) == dist.get_world_size(), files
    dist.barrier()


def one_queue(root, switched_on):
    """Three async saves that one queue publishes, one after the other."""
    folder = joined(root)
    if switched_on:
        ours.enable()
    strategy, queue = None if switched_on else SaveStrategy(), AsyncCallsQueue()
    for number in (1, 2, 3):
        queue.schedule_async_request(begun(number, folder, strategy))
    assert queue.maybe_finalize_async_calls(blocking=True) == [0, 1, 2]
    check(3, folder)


def no_file_yet(root):
    """The rank that numbers the files has none itself in the save that is under way."""
    folder, strategy = joined(root), SaveStrategy()
    other = dist.get_world_size() - 1
    job = strategy._in_background(sharded(1, [other]), folder)
    job.join()
    if dist.get_rank() == other:
        os.rename(f"{folder}/__{other}_0.distcp", f"{root}/late")  # as if it came later
    dist.barrier()
    later = SaveStrategy()._in_background(sharded(2, range(2)), folder)
    later.join()
    if dist.get_rank() == other:
        assert os.path.exists(f"{folder}/__{other}_1.distcp"), os.listdir(folder)
        os.rename(f"{root}/late", f"{folder}/__{other}_0.distcp")
    dist.barrier()
    job()
    later()
    dist.barrier()
    assert sorted(os.listdir(folder)) == [".metadata", *(f"__{r}_1.distcp" for r in range(2))]


def publish_refused(request, code):
    """Rank 0 tells `code`; the others that a rank failed, with what it said."""
    try:
        request.execute_sync()
    except Error as error:
        assert error.code == (code if dist.get_rank() == 0 else "SW0114"), error
        assert code in str(error), error
        return error.message
    raise AssertionError("it was published")


def outdone(root, later_is_async):
    """A save that is published when one that began later is already there."""
    folder = joined(root)
    earlier = begun(1, folder, SaveStrategy())
    if later_is_async:
        begun(2, folder, SaveStrategy()).execute_sync()
    else:
        dist_checkpointing.save(state(2), folder, SaveStrategy())
    dist.barrier()
    assert os.path.exists(f"{folder}/__1_0.distcp"), "a file of a save under way is gone"
    dist.barrier()
    message = publish_refused(earlier, "SW0107")
    assert f"{folder}: found a checkpoint of a save that began later" in message, message
    check(2, folder)
    # Nor is it in the way of what comes then.
    begun(3, folder, SaveStrategy()).execute_sync()
    check(3, folder)


def spoilt(root, how, code):
    """Somebody else removes or cuts a rank's file before it is published."""
    folder = joined(root)
    dist_checkpointing.save(state(1), folder, SaveStrategy())
    request = begun(2, folder, SaveStrategy())
    for function in request.finalize_fns[:1]:
        function.join()
    dist.barrier()
    if dist.get_rank() == 0:
        path = f"{folder}/__1_1.distcp"
        if how == "removed":
            os.unlink(path)
        else:
            os.truncate(path, os.path.getsize(path) - 1)
        open(f"{folder}/integrity.json", "w").close()
    dist.barrier()
    message = publish_refused(request, code)
    assert f"{folder}/__1_1.distcp: found " in message, message
    dist.barrier()
    assert os.path.exists(f"{folder}/integrity.json"), "what is said of the files is gone"
    check(1, folder)


def given_up(root):
    """Of a save that was begun and dropped the next that is published removes the files."""
    folder = joined(root)
    dropped = begun(1, folder, SaveStrategy())
    dropped.finalize_fns[0].join()
    del dropped
    dist_checkpointing.save(state(2), folder, SaveStrategy())
    check(2, folder)


def of_another_job(root):
    """A file with a later number than one's own."""
    folder = joined(root)
    request = begun(1, folder, SaveStrategy())
    if dist.get_rank() == 0:
        open(f"{folder}/__0_7.distcp", "w").close()
    request.execute_sync()
    dist.barrier()
    assert os.path.exists(f"{folder}/__0_7.distcp")


def two_folders(root):
    """Saves to other folders have nothing to do with one another, whatever their numbers."""
    folder, other = joined(root), joined(f"{root}/other")
    dist_checkpointing.save(state(1), other, SaveStrategy())
    request = begun(2, folder, SaveStrategy())
    dist_checkpointing.save(state(3), other, SaveStrategy())
    request.execute_sync()
    check(2, folder)
    check(3, other)
