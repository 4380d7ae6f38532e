#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""deepspeed_run.py MODEL RUN: a folder as DeepSpeed saves it, of a small Hugging Face model.

ZeRO 2 on two ranks, its weights those of the model, in float32. Neither torch nor DeepSpeed is
needed: their classes stand in the pickles by name only.
"""
import collections
import json
import pathlib
import shutil
import struct
import sys

from torch_writer import Size, Tensor, save

RANKS = 2


def read_model(folder):
    """Name, shape and float32 bytes of each tensor of the model's bfloat16 safetensors files."""
    for file in sorted(folder.glob("*.safetensors")):
        whole = file.read_bytes()
        (length,) = struct.unpack("<Q", whole[:8])
        data = whole[8 + length :]
        for name, entry in json.loads(whole[8 : 8 + length]).items():
            if name == "__metadata__":
                continue
            assert entry["dtype"] == "BF16", f"{name} is {entry['dtype']}"
            begin, end = entry["data_offsets"]
            halves = memoryview(data[begin:end]).cast("H")
            yield name, entry["shape"], b"".join(struct.pack("<I", half << 16) for half in halves)


def main():
    model, run = map(pathlib.Path, sys.argv[1:3])
    tensors = {name: (shape, data) for name, shape, data in read_model(model)}
    flat = b"".join(data for _, data in tensors.values())
    flat += bytes(-len(flat) % (4 * 2 * RANKS))
    share = len(flat) // RANKS
    tag = run / "global_step100"
    tag.mkdir(parents=True)
    shapes = collections.OrderedDict((name, Size(shape)) for name, (shape, _) in tensors.items())
    save(
        {
            "module": collections.OrderedDict(
                (name, Tensor(data, shape)) for name, (shape, data) in tensors.items()
            ),
            "buffer_names": [],
            "param_shapes": [shapes],
            "frozen_param_shapes": {},
            "frozen_param_fragments": {},
            "shared_params": {},
            "global_steps": 100,
            "dp_world_size": RANKS,
            "mp_world_size": 1,
        },
        tag / "mp_rank_00_model_states.pt",
    )
    for rank in range(RANKS):
        part = Tensor(flat[rank * share : (rank + 1) * share], [share // 4])
        moments = {"step": 100, "exp_avg": part, "exp_avg_sq": part}
        state = {
            "zero_stage": 2,
            "partition_count": [RANKS],
            "single_partition_of_fp32_groups": [part],
            "base_optimizer_state": {"state": {0: moments}, "param_groups": [{"params": [0]}]},
        }
        name = f"bf16_zero_pp_rank_{rank}_mp_rank_00_optim_states.pt"
        save({"optimizer_state_dict": state}, tag / name)
    (run / "latest").write_text(tag.name)
    shutil.copy(model / "config.json", run)


if __name__ == "__main__":
    main()
