# SPDX-License-Identifier: Apache-2.0
import contextlib
import torch


class CudaRNGStatesTracker:
    def __init__(self):
        self.states_ = {}
        self.seeds_ = set()

    def reset(self):
        self.states_ = {}
        self.seeds_ = set()

    def get_states(self): return dict(self.states_)
    def set_states(self, states): self.states_ = states

    def add(self, name, seed):
        if seed in self.seeds_ or name in self.states_:
            raise RuntimeError(f"seed {seed} / state {name} already exists")
        self.seeds_.add(seed)
        s = torch.get_rng_state()
        torch.manual_seed(seed)
        self.states_[name] = torch.get_rng_state()
        torch.set_rng_state(s)

    @contextlib.contextmanager
    def fork(self, name="model-parallel-rng"):
        s = torch.get_rng_state()
        torch.set_rng_state(self.states_[name])
        try:
            yield
        finally:
            self.states_[name] = torch.get_rng_state()
            torch.set_rng_state(s)


def checkpoint(function, *args, **kwargs):
    raise NotImplementedError("TE stub")


@contextlib.contextmanager
def activation_recompute_forward(*a, **k):
    yield


def is_fp8_activation_recompute_enabled(): return False
def in_fp8_activation_recompute_phase(): return False
def get_all_rng_states(): return {}
def gather_along_first_dim(*a, **k): raise NotImplementedError("TE stub")
def reduce_scatter_along_first_dim(*a, **k): raise NotImplementedError("TE stub")
