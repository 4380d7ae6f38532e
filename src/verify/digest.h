// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "base/digest.h"
#include "shardwright/verify.h"

namespace shardwright {

/// A digest that has taken what comes before a tensor's elements: dtype and shape.
[[nodiscard]] Digest begin_digest(const TensorDesc& desc);

/// The digest of a set of tensors. REQUIRES: sorted by name.
[[nodiscard]] std::string digest_of(std::span<const TensorHash> tensors);

}  // namespace shardwright
