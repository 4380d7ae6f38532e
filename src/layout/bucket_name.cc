// SPDX-License-Identifier: Apache-2.0
#include "layout/bucket_name.h"

#include "base/text.h"

namespace shardwright {
namespace {

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

}  // namespace

std::optional<DomainName> split_domain_name(std::string_view name) {
  DomainName result;
  if (take(name, "chained_")) {
    const auto part = take_number(name);
    if (!part || !take(name, ".")) return std::nullopt;
    result.is_chained = true;
    result.part = *part;
  }
  if (!take(name, "optimizer.distributed.dp_group_idx_")) return std::nullopt;
  const auto group = take_number(name);
  if (!group || !take(name, ".")) return std::nullopt;
  result.group = *group;
  result.rest = name;
  return result;
}

std::optional<BucketName> split_bucket_name(std::string_view rest) {
  BucketName result;
  if (!take(rest, "gbuf_idx_")) return std::nullopt;
  const auto buffer = take_number(rest);
  if (!buffer || !take(rest, ".dtype_(torch.")) return std::nullopt;
  const std::size_t comma = rest.find(',');
  const auto dtype = dtype_from_torch(rest.substr(0, comma));
  constexpr std::string_view kBucket = ").bucket_idx_";
  const std::size_t at = rest.find(kBucket);
  if (!dtype || comma == std::string_view::npos || at == std::string_view::npos) {
    return std::nullopt;
  }
  rest.remove_prefix(at + kBucket.size());
  const auto bucket = take_number(rest);
  if (!bucket || !take(rest, ".")) return std::nullopt;
  result.buffer = *buffer;
  result.dtype = *dtype;
  result.bucket = *bucket;
  result.state = rest;
  return result;
}

}  // namespace shardwright
