// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// What `quantization_config` of a config.json says about stored weights and their scales.
struct QuantisationConfig {
  enum class Scales : std::uint8_t {
    kUnstated,  ///< one for each tensor or row, as their shape tells
    kTensor,
    kRows,
    kBlocks,
    kFp4Groups,  ///< fp4 pairs in groups of 32 with an exponent each
  };
  std::string method;  ///< quant_method; empty where the model is not quantised
  /// Why weights of this method cannot be read; empty where they can.
  std::string unsupported;
  Scales scales = Scales::kUnstated;
  std::array<std::int64_t, 2> block{};  ///< rows and columns, for kBlocks
};

/// Looks at the top of the config and into its `text_config`. An empty text says nothing. Errors:
/// kJsonCorrupt, also where a field has another type than it must.
[[nodiscard]] Result<QuantisationConfig> read_quantisation_config(std::string_view config_json);

}  // namespace shardwright
