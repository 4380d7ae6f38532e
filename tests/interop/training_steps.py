# SPDX-License-Identifier: Apache-2.0
"""Training steps of real Megatron models on a CPU, and everything that such a step changes."""
import torch
import torch.distributed as dist
from checkpoints import same_bits
from megatron.core import parallel_state
from megatron.core.optimizer.distrib_optimizer import DistributedOptimizer
from megatron.core.transformer.moe import moe_utils
from megatron.core.utils import unwrap_model

WORDS = 16
# The stand-in for Transformer Engine has no arithmetic; without it the router takes torch's.
moe_utils.te_general_gemm = None

_exchange = dist.all_to_all_single


def _exchange_by_numbers(output, input, output_split_sizes=None, input_split_sizes=None, **named):
    # Megatron gives tensors of sizes, which gloo does not take.
    sizes = (output_split_sizes, input_split_sizes)
    lists = (None if one is None else [int(size) for size in one] for one in sizes)
    return _exchange(output, input, *lists, **named)


dist.all_to_all_single = _exchange_by_numbers


def leaves(optimizer):
    """The optimizers that a chained one has."""
    inner = getattr(optimizer, "chained_optimizers", None)
    found = [optimizer] if inner is None else [leaf for each in inner for leaf in leaves(each)]
    return [leaf for leaf in found if not getattr(leaf, "is_stub_optimizer", False)]


def states_of(optimizer):
    """(a flat piece of a weight, its master weight or None, its other states)"""
    for leaf in leaves(optimizer):
        inner = leaf.optimizer.state
        if isinstance(leaf, DistributedOptimizer):
            pairs = zip(
                leaf.model_float16_groups + leaf.model_fp32_groups,
                leaf.shard_fp32_from_float16_groups + leaf.shard_fp32_groups,
            )
            for weights, shards in pairs:
                for weight, shard in zip(weights, shards):
                    own = leaf._get_model_param_range_map(weight)["param"]
                    flat = weight.detach().view(-1)[own.start : own.end]
                    is_master = weight.dtype != torch.float32
                    yield flat, shard if is_master else None, inner[shard]
            continue
        for weights, masters in zip(leaf.float16_groups, leaf.fp32_from_float16_groups):
            for weight, master in zip(weights, masters):
                yield weight.detach(), master, inner[master]
        for weight in sum(leaf.fp32_from_fp32_groups, []):
            yield weight.detach(), None, inner[weight]


def same(one, other):
    """Whether two of what `everything` gives are equal bit by bit."""
    return one.keys() == other.keys() and all(same_bits(one[name], other[name]) for name in one)


class Training:
    """A model, wrapped by Megatron's DDP, that an optimizer of Megatron's trains."""

    def __init__(self, wrapped, optimizer):
        self._wrapped, self._model = wrapped, unwrap_model(wrapped)
        self._optimizer = optimizer

    def step(self, number):
        """Forwards, backwards and the optimizer's step on data that the number and the data rank
        choose. Gives the loss, of the last stage, else None."""
        self._wrapped.zero_grad_buffer()
        self._optimizer.zero_grad()
        loss = self._backwards(*_data(number))
        self._wrapped.finish_grad_sync()
        self._take()
        return loss

    def follow(self, number):
        """A step whose gradients follow from the weights, element by element: the same for every
        layout of the model, and for one that cannot compute."""
        for parameter in self._wrapped.parameters():
            parameter.main_grad.copy_(parameter.detach().float() * number + 0.25)
        self._take()

    def everything(self):
        """Copies of all that training changes, by place."""
        found = {name: weight for name, weight in self._model.named_parameters()}
        for place, (_, master, states) in enumerate(states_of(self._optimizer)):
            found[f"{place}.master"] = master
            found.update({f"{place}.{name}": states[name] for name in ("exp_avg", "exp_avg_sq")})
        for place, group in enumerate(self._groups()):
            found[f"{place}.step"] = torch.tensor(float(self._steps_of(*group)))
        return {name: one.detach().clone() for name, one in found.items() if one is not None}

    def spoil(self):
        """Nothing is what it was, how many steps there were included."""
        with torch.no_grad():
            for name, parameter in self._model.named_parameters():
                parameter.fill_(-7.0)
        for _, master, states in states_of(self._optimizer):
            for tensor in (master, states["exp_avg"], states["exp_avg_sq"]):
                if tensor is not None:
                    tensor.data.fill_(-5.0)
            if "step" in states:
                states["step"] = torch.tensor(77.0)
        for _, group in self._groups():
            group["step"] = 77

    def _groups(self):
        leafs = leaves(self._optimizer)
        return [(leaf, group) for leaf in leafs for group in leaf.optimizer.param_groups]

    @staticmethod
    def _steps_of(leaf, group):
        states = leaf.optimizer.state[group["params"][0]] if group["params"] else {}
        is_counted = not isinstance(leaf, DistributedOptimizer) and "step" in states
        return states["step"] if is_counted else group.get("step", 0)

    def _take(self):
        for leaf, group in self._groups():
            group["lr"] = 1e-3
            if isinstance(leaf, DistributedOptimizer):
                # As a fused Adam has it, for which Megatron stores steps: by the group.
                steps = torch.tensor(float(group.get("step", 0)))
                for parameter in group["params"]:
                    if leaf.optimizer.state[parameter]:
                        leaf.optimizer.state[parameter]["step"] = steps.clone()
                group["step"] = int(steps) + 1
        assert self._optimizer.step()[0]
        for leaf, group in self._groups():
            if isinstance(leaf, DistributedOptimizer):
                for parameter in group["params"]:
                    del leaf.optimizer.state[parameter]["step"]

    def _backwards(self, ids, places, mask):
        is_first = parallel_state.is_pipeline_first_stage()
        is_last = parallel_state.is_pipeline_last_stage()
        rows = None
        if not is_first:
            width = self._model.config.hidden_size
            rows = torch.empty(WORDS, 1, width, dtype=self._model.config.params_dtype)
            dist.recv(rows, parallel_state.get_pipeline_model_parallel_prev_rank())
            self._model.set_input_tensor(rows.requires_grad_())
        result = self._wrapped(ids, places, mask, labels=ids if is_last else None)
        if is_last:
            loss = result.float().mean()
            loss.backward()
        else:
            next_stage = parallel_state.get_pipeline_model_parallel_next_rank()
            dist.send(result.detach().contiguous(), next_stage)
            gradient = torch.empty_like(result)
            dist.recv(gradient, next_stage)
            result.backward(gradient)
        if not is_first:
            dist.send(rows.grad, parallel_state.get_pipeline_model_parallel_prev_rank())
        return loss.item() if is_last else None


def _data(number):
    generator = torch.Generator().manual_seed(
        1000 * number + parallel_state.get_data_parallel_rank()
    )
    mask = torch.triu(torch.ones(1, 1, WORDS, WORDS, dtype=torch.bool), 1)
    ids = torch.randint(0, 256, (1, WORDS), generator=generator)
    return ids, torch.arange(WORDS)[None], mask
