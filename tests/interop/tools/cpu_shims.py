# SPDX-License-Identifier: Apache-2.0
"""Make Megatron run on a machine without CUDA.

Imported by the fake transformer_engine package; `import cpu_shims` by hand is fine too (idempotent).
torch.cuda.is_available() stays False. Calls which Megatron makes unconditionally become no-ops or
answer "cpu".
"""
import contextlib
import torch

_done = False


class _FakeStream:
    def __init__(self, *a, **k):
        self.device = torch.device("cpu")
        self.cuda_stream = 0

    def wait_stream(self, *a, **k): pass
    def wait_event(self, *a, **k): pass
    def synchronize(self): pass
    def record_event(self, *a, **k): return _FakeEvent()
    def query(self): return True
    def __enter__(self): return self
    def __exit__(self, *a): return False


class _FakeEvent:
    def __init__(self, *a, **k): pass
    def record(self, *a, **k): pass
    def wait(self, *a, **k): pass
    def synchronize(self): pass
    def query(self): return True
    def elapsed_time(self, other): return 0.0


class _Props:
    name = "cpu-shim"
    major, minor = 9, 0
    total_memory = 80 * 2**30
    multi_processor_count = 132
    gcnArchName = ""


def apply():
    global _done
    if _done or torch.cuda.is_available():
        return
    _done = True
    # Megatron compiles what it fuses: that takes each process seconds, and needs a C++ compiler.
    torch.compile = lambda function=None, **_: function or (lambda decorated: decorated)
    c = torch.cuda
    cpu = torch.device("cpu")
    c.current_device = lambda: cpu
    c.set_device = lambda *a, **k: None
    c.synchronize = lambda *a, **k: None
    c.empty_cache = lambda *a, **k: None
    c.reset_peak_memory_stats = lambda *a, **k: None
    c.ipc_collect = lambda *a, **k: None
    c.manual_seed = lambda *a, **k: None
    c.manual_seed_all = lambda *a, **k: None
    c.get_device_properties = lambda *a, **k: _Props
    c.get_device_capability = lambda *a, **k: (9, 0)
    c.get_device_name = lambda *a, **k: "cpu-shim"
    c.memory_allocated = lambda *a, **k: 0
    c.max_memory_allocated = lambda *a, **k: 0
    c.memory_reserved = lambda *a, **k: 0
    c.max_memory_reserved = lambda *a, **k: 0
    c.memory_stats = lambda *a, **k: {}
    c.mem_get_info = lambda *a, **k: (64 * 2**30, 80 * 2**30)
    c.Stream = _FakeStream
    c.Event = _FakeEvent
    c.current_stream = lambda *a, **k: _FakeStream()
    c.default_stream = lambda *a, **k: _FakeStream()
    c.stream = lambda *a, **k: contextlib.nullcontext()
    c.device = lambda *a, **k: contextlib.nullcontext()
    c.get_rng_state = lambda *a, **k: torch.get_rng_state()
    c.set_rng_state = lambda s, *a, **k: torch.set_rng_state(s.cpu() if hasattr(s, "cpu") else s)
    import torch.cuda.random as _cr
    _cr.get_rng_state = c.get_rng_state
    _cr.set_rng_state = c.set_rng_state
    c.initial_seed = lambda: torch.initial_seed()
    c.is_current_stream_capturing = lambda: False
    c._lazy_init = lambda *a, **k: None
    c._lazy_call = lambda f, **k: None
    c.cudart = lambda: None
    if hasattr(c, "nvtx"):
        c.nvtx.range_push = lambda *a, **k: None
        c.nvtx.range_pop = lambda *a, **k: None

    # x.cuda() / module.cuda(): stay where it is
    torch.Tensor.cuda = lambda self, *a, **k: self
    torch.nn.Module.cuda = lambda self, *a, **k: self
    torch.Tensor.pin_memory = lambda self, *a, **k: self

    # device="cuda" literals
    def _fix(kwargs):
        d = kwargs.get("device")
        if d is not None and not isinstance(d, int) and torch.device(d).type == "cuda":
            kwargs["device"] = cpu
        elif isinstance(d, int) and not isinstance(d, bool):
            kwargs["device"] = cpu
        if kwargs.get("pin_memory"):
            kwargs["pin_memory"] = False
        return kwargs

    for name in ("empty", "zeros", "ones", "full", "rand", "randn", "arange", "tensor", "empty_like",
                 "zeros_like", "ones_like", "randint", "eye", "linspace", "as_tensor", "empty_strided"):
        orig = getattr(torch, name)

        def w(*a, __o=orig, **k):
            return __o(*a, **_fix(k))
        w.__name__ = name
        setattr(torch, name, w)

    orig_to = torch.Tensor.to

    def to(self, *a, **k):
        a = tuple(cpu if (isinstance(x, (str, torch.device)) and str(x).startswith("cuda")) else x for x in a)
        return orig_to(self, *a, **_fix(k))
    torch.Tensor.to = to
    orig_mto = torch.nn.Module.to

    def mto(self, *a, **k):
        a = tuple(cpu if (isinstance(x, (str, torch.device)) and str(x).startswith("cuda")) else x for x in a)
        return orig_mto(self, *a, **_fix(k))
    torch.nn.Module.to = mto


apply()
