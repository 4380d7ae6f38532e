# SPDX-License-Identifier: Apache-2.0
def _r(*a, **k):
    raise NotImplementedError("TE stub")
moe_permute = moe_permute_with_probs = moe_unpermute = moe_sort_chunks_by_index = _r
moe_sort_chunks_by_index_with_probs = moe_permute_and_pad_with_probs = _r
