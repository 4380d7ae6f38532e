# SPDX-License-Identifier: Apache-2.0
"""What the checkpoints of test_newer_megatron.py hold: a tensor's values follow from its name in
torch_dist, and optimizer states from the weight, element by element."""
import hashlib

import torch

STATES = {
    "param": lambda weight: weight.float() * (1 + 2**-12),
    "exp_avg": lambda weight: weight.float() * 0.5,
    "exp_avg_sq": lambda weight: weight.float() ** 2,
}


def weight_of(key, shape):
    """The values of the whole tensor that torch_dist calls `key`."""
    seed = int.from_bytes(hashlib.sha256(key.encode()).digest()[:6], "little")
    generator = torch.Generator().manual_seed(seed)
    return torch.empty(shape).uniform_(0.03, 0.9, generator=generator).bfloat16()
