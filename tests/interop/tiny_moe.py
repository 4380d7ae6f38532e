# SPDX-License-Identifier: Apache-2.0
"""A tiny mixture of experts under FSDP2, expert, tensor and pipeline parallelism, trained on CPUs.

Parameters have MLite's names: experts by their number on their EP rank, layers by their number in
their stage. Rows do not divide by the ranks, and one parameter has fewer rows than there are ranks.
"""
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy, silu

from shardwright.torch import checkpoint_meshes, placements_for

FAMILY = "deepseek_v4"
WORDS, HIDDEN, FFN, EXPERTS, LAYERS, TOKENS = 10, 7, 6, 4, 2, 5


class _Gather(torch.autograd.Function):
    """All ranks' rows; the gradient of each row is the sum of what the ranks say of it."""

    @staticmethod
    def forward(ctx, rows, group):
        ctx.group = group
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size(group))]
        dist.all_gather(parts, rows.contiguous(), group=group)
        return torch.cat(parts)

    @staticmethod
    def backward(ctx, gradient):
        return _sum_own(gradient, ctx.group), None


class _SumOwn(torch.autograd.Function):
    """This rank's rows of the sum over all ranks."""

    @staticmethod
    def forward(ctx, rows, group):
        ctx.group = group
        return _sum_own(rows, group)

    @staticmethod
    def backward(ctx, gradient):
        return _Gather.apply(gradient, ctx.group), None


def _joined(part, axis, group):
    """A weight of which each rank of a tensor-parallel group has a part along an axis: it is used
    whole, which changes nothing in what is stored."""
    if dist.get_world_size(group) == 1:
        return part
    if axis == 0:
        return _Gather.apply(part, group)
    return _Gather.apply(part.transpose(0, axis), group).transpose(0, axis)


def _sum_own(rows, group):
    total = rows.clone()
    dist.all_reduce(total, group=group)
    return total.chunk(dist.get_world_size(group))[dist.get_rank(group)].clone()


class Linears(nn.Module):
    """Weights `weight0`, `weight1`, …: one for each expert of this rank."""

    def __init__(self, count, rows, columns):
        super().__init__()
        for index in range(count):
            self.register_parameter(f"weight{index}", nn.Parameter(torch.randn(rows, columns) / 4))

    def weights(self):
        return list(self.parameters(recurse=False))


class Experts(nn.Module):
    def __init__(self, count, etp_mesh):
        super().__init__()
        self.group, etp = etp_mesh.get_group(), etp_mesh.size()
        self.fc1 = Linears(count, 2 * FFN // etp, HIDDEN)
        self.fc2 = Linears(count, HIDDEN, FFN // etp)

    def forward(self, rows, shares):
        total = torch.zeros_like(rows)
        pairs = zip(self.fc1.weights(), self.fc2.weights())
        for share, (fc1, fc2) in zip(shares.unbind(1), pairs):
            whole = _joined(fc1, 0, self.group), _joined(fc2, 1, self.group)
            total = total + share[:, None] * _gated(rows, *whole)
        return total


def _gated(rows, gate_up, down):
    gate, up = (rows @ gate_up.T).chunk(2, dim=1)
    return (silu(gate) * up) @ down.T


class Moe(nn.Module):
    def __init__(self, tp_mesh, experts):
        super().__init__()
        ep_mesh = experts["ep"]
        self.group, self.ep_rank = ep_mesh.get_group(), ep_mesh.get_local_rank()
        self.local = EXPERTS // ep_mesh.size()
        self.router = nn.Linear(HIDDEN, EXPERTS, bias=False)
        self.experts = Experts(self.local, experts["etp"])
        self.tp_group, tp = tp_mesh.get_group(), tp_mesh.size()
        self.shared_experts = nn.ModuleDict(
            {
                "gate_up": nn.Linear(HIDDEN, 2 * FFN // tp, bias=False),
                "down": nn.Linear(FFN // tp, HIDDEN, bias=False),
            }
        )

    def forward(self, rows):
        shares = self.router(rows).softmax(1)
        first = self.ep_rank * self.local
        everyone = _Gather.apply(torch.cat([rows, shares], 1), self.group)
        own_shares = everyone[:, HIDDEN + first : HIDDEN + first + self.local]
        routed = _SumOwn.apply(self.experts(everyone[:, :HIDDEN], own_shares), self.group)
        shared = self.shared_experts
        gate_up = _joined(shared.gate_up.weight, 0, self.tp_group)
        down = _joined(shared.down.weight, 1, self.tp_group)
        return rows + routed + _gated(rows, gate_up, down)


class Layer(nn.Module):
    def __init__(self, tp_mesh, experts):
        super().__init__()
        self.norm = nn.RMSNorm(HIDDEN)
        self.mlp = Moe(tp_mesh, experts)

    def forward(self, rows):
        return self.mlp(self.norm(rows))


class Stage(nn.Module):
    """The layers of one pipeline stage; the first embeds, the last has the head."""

    def __init__(self, layers, tp_mesh, experts, is_first, is_last):
        super().__init__()
        self.tp_group, tp = tp_mesh.get_group(), tp_mesh.size()
        if is_first:
            self.embed = nn.Embedding(WORDS // tp, HIDDEN)
        self.layers = nn.ModuleList(Layer(tp_mesh, experts) for _ in range(layers))
        if is_last:
            self.hc_head = nn.ParameterDict({"hc_scale": nn.Parameter(torch.ones(1))})
            self.head = nn.Linear(HIDDEN, WORDS // tp, bias=False)

    def forward(self, rows):
        if hasattr(self, "embed"):
            rows = _joined(self.embed.weight, 0, self.tp_group)[rows]
        for layer in self.layers:
            rows = layer(rows)
        if not hasattr(self, "head"):
            return rows
        return (rows * self.hc_head["hc_scale"]) @ _joined(self.head.weight, 0, self.tp_group).T


class Run:
    """A model, its optimizer and how it is laid out on the ranks."""

    def __init__(self, seed, pp=1, ep=1, tp=1, etp=1):
        self.pp = pp
        self.dense, self.experts = checkpoint_meshes("cpu", pp=pp, ep=ep, tp=tp, etp=etp)
        self.stage = self.dense.get_local_rank("pp")
        self.ep_rank = self.experts.get_local_rank("ep")
        self.edp_rank = self.experts.get_local_rank("edp")
        self.etp_rank = self.experts.get_local_rank("etp")
        self.is_first, self.is_last = self.stage == 0, self.stage == pp - 1
        # Experts of the EP and ETP ranks differ, replicas of one parameter do not.
        torch.manual_seed(seed * 1000 + self.stage * 100 + self.ep_rank * 10 + self.etp_rank)
        self.model = Stage(
            LAYERS // pp, self.dense["tp"], self.experts, self.is_first, self.is_last
        )
        parts = torch.Generator().manual_seed(seed * 10 + self.dense.get_local_rank("tp"))
        for name, parameter in self.model.named_parameters():
            if ".experts." in name:
                continue
            for axis in ("dp", "tp"):
                same = self.dense[axis]
                first = dist.get_process_group_ranks(same.get_group())[0]
                dist.broadcast(parameter.data, first, group=same.get_group())
            if tp > 1 and self.cut_axis(name) is not None:
                parameter.data += torch.randn(parameter.shape, generator=parts) / 4
        for layer in self.model.layers:
            fully_shard(layer.mlp.experts, mesh=self.experts["edp"])
            fully_shard(layer, mesh=self.dense["dp"])
        fully_shard(self.model, mesh=self.dense["dp"])
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)

    def step(self, number):
        """One step on data that only the step and the data-parallel rank choose."""
        generator = torch.Generator().manual_seed(1000 * number + self.dense.get_local_rank("dp"))
        words, targets = torch.randint(0, WORDS, (2, TOKENS), generator=generator)
        neighbour = dist.get_world_size() // self.pp
        rank = dist.get_rank()
        rows = words
        if not self.is_first:
            rows = torch.empty(TOKENS, HIDDEN)
            dist.recv(rows, rank - neighbour)
            rows.requires_grad_()
        result = self.model(rows)
        if self.is_last:
            cross_entropy(result, targets).backward()
        else:
            dist.send(result.detach().contiguous(), rank + neighbour)
            gradient = torch.empty_like(result)
            dist.recv(gradient, rank + neighbour)
            result.backward(gradient)
        if not self.is_first:
            dist.send(rows.grad, rank - neighbour)
        self._share_gradients()
        self.optimizer.step()
        self.optimizer.zero_grad()

    def _share_gradients(self):
        """Tensor-parallel ranks go the same step with what each of them has whole. Their gradients
        may differ in the last bit: a row's product may depend on where in a matrix it lies."""
        group = self.dense["tp"].get_group()
        for name, parameter in self.model.named_parameters():
            if ".experts." not in name and self.cut_axis(name) is None:
                gradient = parameter.grad.to_local()
                dist.broadcast(gradient, dist.get_process_group_ranks(group)[0], group=group)

    @staticmethod
    def cut_axis(name):
        """Along which axis tensor-parallel ranks have parts of a parameter, or None."""
        placements = placements_for(name, FAMILY).placements
        return getattr(placements[-1], "dim", None)

    def parameters(self):
        return dict(self.model.named_parameters())

    def moments(self, which):
        """The optimizer's state of a kind, by parameter; made where there is none yet."""
        state = self.optimizer.state
        for parameter in self.model.parameters():
            if not state[parameter]:
                state[parameter].update(
                    step=torch.zeros(()),
                    exp_avg=torch.zeros_like(parameter),
                    exp_avg_sq=torch.zeros_like(parameter),
                )
        return {name: state[parameter][which] for name, parameter in self.parameters().items()}

    def prefix(self, what):
        return f"{what}." if self.pp == 1 else f"{what}_pp{self.stage}."

    def global_name(self, name):
        """A parameter's name in a model without parallelism."""
        words = name.split(".")
        if words[0] == "layers":
            words[1] = str(int(words[1]) + self.stage * len(self.model.layers))
        if ".experts." in name:
            local = EXPERTS // self.experts["ep"].size()
            words[-1] = f"weight{self.ep_rank * local + int(words[-1].removeprefix('weight'))}"
        return ".".join(words)

    def whole(self, tensors):
        """Whole tensors by their global names, on the rank that is the first to have each."""
        whole = {}
        for name, tensor in tensors.items():
            is_expert = ".experts." in name
            tp_mesh = self.experts["etp"] if is_expert else self.dense["tp"]
            full, axis = tensor.full_tensor().detach().clone(), self.cut_axis(name)
            if axis is not None:
                full = _joined(full, axis, tp_mesh.get_group()).contiguous()
            if (self.edp_rank if is_expert else self.dense.get_local_rank("dp")) == 0:
                whole[self.global_name(name)] = full
        return whole
