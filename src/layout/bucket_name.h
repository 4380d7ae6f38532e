// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "shardwright/tensor.h"

namespace shardwright {

/// Whose a distributed optimizer's entry is: `chained_1.optimizer.distributed.dp_group_idx_3.` and
/// then `rest`.
struct DomainName {
  bool is_chained = false;
  std::int64_t part = 0;   ///< 0: of dense parameters, or of all; 1: of experts
  std::int64_t group = 0;  ///< the rank in its model-parallel group
  std::string_view rest;
};
[[nodiscard]] std::optional<DomainName> split_domain_name(std::string_view name);

/// One bucket's tensor: `gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_2.exp_avg`.
struct BucketName {
  std::int64_t buffer = 0;
  DType dtype = DType::kBF16;  ///< of the parameters
  std::int64_t bucket = 0;
  std::string_view state;
};
[[nodiscard]] std::optional<BucketName> split_bucket_name(std::string_view rest);

}  // namespace shardwright
