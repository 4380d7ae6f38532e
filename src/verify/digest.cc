// SPDX-License-Identifier: Apache-2.0
#include "verify/digest.h"

#include <fmt/format.h>

namespace shardwright {

Digest begin_digest(const TensorDesc& desc) {
  std::string head(torch_name(desc.dtype));
  for (int axis = 0; axis < desc.shape.size(); ++axis) {
    head += fmt::format("{}{}", axis == 0 ? ' ' : ',', desc.shape[axis]);
  }
  head += '\n';
  Digest digest;
  digest.add(head);
  return digest;
}

std::string digest_of(std::span<const TensorHash> tensors) {
  Digest digest;
  for (const TensorHash& tensor : tensors) {
    digest.add(tensor.desc.name);
    digest.add(std::string_view("\0", 1));
    digest.add(tensor.digest);
    digest.add("\n");
  }
  return digest.text();
}

}  // namespace shardwright
