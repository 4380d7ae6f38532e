# SPDX-License-Identifier: Apache-2.0
"""What the ranks of a LoRA run save: PEFT's models under real FSDP2, as verl does it."""
import json
import pathlib

import peft
import torch.distributed as dist
from fsdp_model_jobs import save_rank
from peft_adapters import load, train
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard


def save_verl(base, out, settings, meta):
    """`out/actor` is the run's, `out/peft` what PEFT itself saves of the same adapter."""
    out = pathlib.Path(out)
    model = train(peft.get_peft_model(load(base), peft.LoraConfig(**settings)))
    if dist.get_rank() == 0:
        model.save_pretrained(out / "peft")
        (out / "actor").mkdir()
        (out / "actor" / "lora_train_meta.json").write_text(json.dumps(meta))
    dist.barrier()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for layer in model.base_model.model.model.layers:
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
    save_rank(model.state_dict(), out / "actor")
