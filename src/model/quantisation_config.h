// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// One way that weights are packed several to a byte or word.
struct PackedWeights {
  enum class Kind : std::uint8_t { kIntegers, kNvfp4, kMxfp4 };
  Kind kind = Kind::kIntegers;
  int bits = 4;            ///< of an integer: 2, 4 or 8
  std::int64_t group = 0;  ///< columns that share a scale; 0: a whole row, -1: the whole tensor
  bool is_symmetric = true;
  bool is_ordered = false;  ///< a tensor says which group each column belongs to

  friend bool operator==(const PackedWeights&, const PackedWeights&) = default;
};

/// What `quantization_config` of a config.json says about stored weights and their scales.
struct QuantisationConfig {
  enum class Scales : std::uint8_t {
    kUnstated,  ///< one for each tensor or row, as their shape tells
    kTensor,
    kRows,
    kBlocks,
    kFp4Groups,  ///< fp4 pairs in groups of 32 with an exponent each
  };
  /// Whose names and layout packed weights have.
  enum class Packing : std::uint8_t { kNone, kCompressedTensors, kModelOpt, kGptq, kAwq };
  std::string method;  ///< quant_method; empty where the model is not quantised
  /// Why weights of this method cannot be read; empty where they can.
  std::string unsupported;
  Scales scales = Scales::kUnstated;    ///< of e4m3
  std::array<std::int64_t, 2> block{};  ///< rows and columns, for kBlocks
  bool has_float8 = true;               ///< whether the method has e4m3 weights
  bool has_exponents = false;           ///< scales are powers of two (DeepSeek-V4, with fp4 too)
  Packing packing = Packing::kNone;
  std::vector<PackedWeights> packed;  ///< each module has one of them; of gptq and awq there is one
  bool has_lesser_zeros = false;      ///< stored zeros of gptq are one less than they should be
  bool is_varied = false;             ///< single modules of gptq have other bits and groups
};

/// Looks at the top of the config and into its `text_config`. An empty text says nothing. Errors:
/// kJsonCorrupt, also where a field has another type than it must.
[[nodiscard]] Result<QuantisationConfig> read_quantisation_config(std::string_view config_json);

}  // namespace shardwright
