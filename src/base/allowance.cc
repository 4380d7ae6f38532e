// SPDX-License-Identifier: Apache-2.0
#include "base/allowance.h"

#include <limits>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
constexpr std::uint64_t kPerByte = 16;

}  // namespace

std::uint64_t Allowance::of(std::uint64_t file_bytes) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
  if (file_bytes > (kMost - kFreeBytes) / kPerByte) return kMost;
  return kFreeBytes + kPerByte * file_bytes;
}

Status Allowance::take(std::uint64_t bytes, std::string_view what) {
  if (bytes > left_) return refuse_expansion(file_bytes_, what);
  left_ -= bytes;
  return {};
}

Status refuse_expansion(std::uint64_t file_bytes, std::string_view what) {
  return fail(Code::kLimit,
              "{} expand to more than {} bytes, the limit for {} stored bytes (64 MiB and 16 times "
              "them); it was made to exhaust memory or is damaged, get the file again from who "
              "wrote it",
              what, Allowance::of(file_bytes), file_bytes);
}

}  // namespace shardwright
