# SPDX-License-Identifier: Apache-2.0
import torch


class FusedAdam(torch.optim.AdamW):
    """fp32 Adam stand-in; same state names (exp_avg, exp_avg_sq) as TE FusedAdam."""
    def __init__(self, params, lr=1e-3, bias_correction=True, betas=(0.9, 0.999), eps=1e-8, adam_w_mode=True,
                 weight_decay=0.0, amsgrad=False, **k):
        super().__init__(params, lr=lr, betas=betas, eps=eps, weight_decay=weight_decay)


class FusedSGD(torch.optim.SGD):
    pass


def multi_tensor_applier(op, overflow_buf, tensor_lists, *args):
    return op(2048, overflow_buf, tensor_lists, *args)


def multi_tensor_l2norm(chunk, overflow, tensor_lists, per_tensor=False, *a):
    ts = tensor_lists[0]
    n = torch.sqrt(sum((t.float() ** 2).sum() for t in ts)) if ts else torch.zeros(())
    return n.reshape(1), torch.zeros(0)


def multi_tensor_scale(chunk, overflow, tensor_lists, scale):
    for s, d in zip(*tensor_lists):
        d.copy_(s * scale)


multi_tensor_unscale_l2norm = multi_tensor_l2norm
multi_tensor_adam = None


def multi_tensor_scale_tensor(chunk, overflow, tensor_lists, scale):
    for s, d in zip(*tensor_lists):
        d.copy_(s * scale.to(s.dtype))
