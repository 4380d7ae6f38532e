# SPDX-License-Identifier: Apache-2.0
import torch
class FusibleOperation(torch.nn.Module): pass
class BasicOperation(FusibleOperation): pass
class Sequential(torch.nn.Sequential): pass
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    class _Op(BasicOperation):
        def __init__(self, *a, **k):
            raise NotImplementedError(f"TE stub: ops.{name}")
    _Op.__name__ = name
    return _Op
