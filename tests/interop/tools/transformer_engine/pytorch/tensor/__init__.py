# SPDX-License-Identifier: Apache-2.0
import torch
class QuantizedTensor(torch.Tensor): pass
class Float8Tensor(QuantizedTensor): pass
class MXFP8Tensor(QuantizedTensor): pass
class NVFP4Tensor(QuantizedTensor): pass
class Float8BlockwiseQTensor(QuantizedTensor): pass
class QuantizedTensorStorage: pass
class MXFP8TensorStorage: pass
class NVFP4TensorStorage: pass
