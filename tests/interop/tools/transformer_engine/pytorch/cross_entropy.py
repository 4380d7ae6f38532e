# SPDX-License-Identifier: Apache-2.0
def parallel_cross_entropy(*a, **k):
    raise NotImplementedError("TE stub")
