# SPDX-License-Identifier: Apache-2.0
def general_gemm(*a, **k):
    raise NotImplementedError("TE stub")
def cast_to_fp8(*a, **k):
    raise NotImplementedError("TE stub")
