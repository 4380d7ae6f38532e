// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "format/target_parts.h"

namespace shardwright {

/// What config.json calls the number of prediction layers.
inline constexpr std::array<std::string_view, 3> kPredictionKeys = {
    "num_nextn_predict_layers", "mtp_num_hidden_layers", "mtp_num_layers"};

/// How much of a config.json a dtype is said for.
enum class DtypeScope : std::uint8_t {
  kTop,   ///< its top only: parts of the model may have types of their own
  kSame,  ///< and the parts that said the same as the top
  kAll,   ///< and all parts; told at the top where nothing said it
};

/// The head of a reward, value or classification model that is written.
struct ConfigHead {
  std::string name;  ///< of its weight
  std::int64_t rows = 0;
  bool has_bias = false;
};

/// What of a config.json is no longer so.
struct ConfigEdits {
  std::optional<DType> dtype;  ///< that the weights have
  DtypeScope scope = DtypeScope::kSame;
  bool is_dequantised = false;
  bool without_prediction = false;
  std::optional<std::int64_t> vocabulary = std::nullopt;  ///< rows of it, where they are others
  /// The quantization_config that becomes true, as JSON; empty: none.
  std::string quantisation = {};
  std::string expert_dtype = {};  ///< of DeepSeek-V4's experts; empty: as it is
  std::optional<ConfigHead> head = std::nullopt;
};

/// config.json with these edits: only these fields are changed, wherever the config spells them,
/// and each change is told. Empty where nothing has to be changed. Error: kJsonCorrupt.
[[nodiscard]] Result<std::string> edited_config(std::string_view config, const ConfigEdits& edits,
                                                std::vector<std::string>& notes);

/// Whether some weights are still stored as values and scales, as the source had them.
[[nodiscard]] bool has_quantised(const std::vector<DraftTensor>& tensors);

/// The floating point type of most elements of a model's weights, as they are written; nullopt
/// where there are none, or where they are stored as values and scales of the source. What is
/// quantised on the way does not count.
[[nodiscard]] std::optional<DType> written_dtype(const std::vector<DraftTensor>& tensors);

}  // namespace shardwright
