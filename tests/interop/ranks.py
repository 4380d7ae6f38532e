# SPDX-License-Identifier: Apache-2.0
"""Runs functions on several ranks, forked from one process that has imported everything once.

`python ranks.py MODULE FUNCTION WORLD STORE JSON` calls `MODULE.FUNCTION(**JSON)` on each rank of a
gloo job. The exit status is 1 where a rank fails.
"""
import importlib
import json
import os
import sys
import traceback


def run(module, function, world, store, arguments):
    import torch.distributed as dist

    job = getattr(importlib.import_module(module), function)
    children = []
    for rank in range(world):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                dist.init_process_group(
                    "gloo", init_method=f"file://{store}", rank=rank, world_size=world
                )
                job(**arguments)
                dist.barrier()
                status = 0
            except BaseException:
                print(f"rank {rank}:\n{traceback.format_exc()}", file=sys.stderr, flush=True)
            finally:
                os._exit(status)
        children.append(child)
    statuses = [os.waitpid(child, 0)[1] for child in children]
    return 0 if not any(statuses) else 1


if __name__ == "__main__":
    name, function, world, store, arguments = sys.argv[1:]
    sys.exit(run(name, function, int(world), store, json.loads(arguments)))
