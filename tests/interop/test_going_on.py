# SPDX-License-Identifier: Apache-2.0
"""Training goes on after a load as if it had not stopped: real steps of Megatron-Core's models."""
import pytest

# What was trained, where, and where else it goes on.
CASES = {
    "gpt_tp2_dp2": ("gpt", dict(tp=2), [dict(tp=4), dict(tp=2, pp=2)]),
    "gpt_tp2_pp2": ("gpt_each", dict(tp=2, pp=2), [dict(tp=1)]),
    "moe_ep2_dp2": ("moe", dict(ep=2), [dict(ep=4)]),
    "moe_tp2_ep2": ("moe_te", dict(tp=2, ep=2), [dict(ep=2)]),
    "moe_ep2_etp2": ("moe_te", dict(ep=2, etp=2), [dict(ep=4)]),
    "moe_tp2": ("moe_te", dict(tp=2), [dict(tp=1)]),
}


@pytest.mark.parametrize("case", CASES)
def test_training_goes_on_as_if_it_had_not_stopped(ranks, tmp_path, case):
    model, sizes, others = CASES[case]
    ranks("going_on_jobs", "go_on", 4, root=tmp_path, model=model, sizes=sizes, others=others)
