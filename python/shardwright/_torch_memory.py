# SPDX-License-Identifier: Apache-2.0
"""The memory of torch's tensors."""


def bytes_of(tensor):
    """The memory of a contiguous tensor as a flat tensor of bytes, not a copy. Strides say nothing
    where there is one element or none: torch calls any of them contiguous, and keeps them in what it
    makes of it."""
    import torch

    return tensor.as_strided((tensor.numel(),), (1,)).view(torch.uint8)
