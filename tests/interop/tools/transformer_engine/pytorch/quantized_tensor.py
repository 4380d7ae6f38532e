# SPDX-License-Identifier: Apache-2.0
from .tensor import QuantizedTensor
