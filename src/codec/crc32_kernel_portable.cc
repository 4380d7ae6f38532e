// SPDX-License-Identifier: Apache-2.0
// For processors that have no kernel of their own here.
#include <array>

#include "codec/crc32_kernel.h"

namespace shardwright {

std::span<const Crc32Kernel> crc32_kernels() {
  static constexpr std::array<Crc32Kernel, 1> kernels = {crc32_by_libdeflate};
  return kernels;
}

}  // namespace shardwright
