# SPDX-License-Identifier: Apache-2.0
"""The ranks that succeed or fail together."""
import torch
import torch.distributed as dist

from .._errors import Error, make


def device_of(group):
    """Where tensors have to lie that `group` exchanges: on the CPU where it can do that."""
    if "gloo" in str(dist.get_backend(group)) or not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", torch.cuda.current_device())


class Job:
    """All ranks of a job, or of `group`. Every rank must take the same steps: a step that fails on
    one of them raises on all of them. One thread's."""

    def __init__(self, group=None):
        self._is_alone = not (dist.is_available() and dist.is_initialized())
        self.group = group
        if not self._is_alone and group is None:
            self.group = dist.group.WORLD

    @property
    def rank(self):
        """This process among those of the job, which files are named after."""
        return 0 if self._is_alone else dist.get_rank(self.group)

    def ranks_of(self, group):
        """The ranks of `group`, by their places in the job's."""
        if self._is_alone:
            return [0]
        ranks = dist.get_process_group_ranks(dist.group.WORLD if group is None else group)
        return [dist.get_group_rank(self.group, rank) for rank in ranks]

    def attempt(self, step, number_of=None):
        """Calls `step` and gives its value, once no rank failed in it. With `number_of`, a function
        of that value: the value, and the greatest number that any rank has."""
        value, error = None, None
        try:
            value = step()
        except BaseException as raised:  # told to the others first
            error = raised
        most = self._agree(error, number_of(value) if number_of and error is None else 0)
        return value if number_of is None else (value, most)

    def tell_first(self, make_value):
        """What `make_value` gives on the first rank, on all of them."""
        if self._is_alone:
            return make_value()
        first = dist.get_process_group_ranks(self.group)[0]
        told = [self.attempt(lambda: make_value() if dist.get_rank() == first else None)]
        dist.broadcast_object_list(told, src=first, group=self.group)
        return told[0]

    def _agree(self, error, number):
        if self._is_alone or dist.get_world_size(self.group) == 1:
            if error is not None:
                raise error
            return number
        agreed = torch.tensor(
            [int(error is not None), number], dtype=torch.int64, device=device_of(self.group)
        )
        dist.all_reduce(agreed, op=dist.ReduceOp.MAX, group=self.group)
        has_failed, most = agreed.tolist()
        if has_failed:
            self._raise_together(error)
        return most

    def _raise_together(self, error):
        described = [None] * dist.get_world_size(self.group)
        dist.all_gather_object(described, _described(error), group=self.group)
        if error is not None and not isinstance(error, Exception):
            raise error  # an interrupt stays one where it came
        ranks = dist.get_process_group_ranks(self.group)
        rank, (code, text) = next(one for one in zip(ranks, described) if one[1] is not None)
        raise make(code, f"rank {rank}: {text}") from error


def _described(error):
    if error is None:
        return None
    if isinstance(error, Error):
        return error.code, error.message
    return "SW0109", f"it failed and the others stopped: {type(error).__name__}: {error}"
