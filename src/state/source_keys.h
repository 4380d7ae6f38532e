// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/quantise_choice.h"
#include "shardwright/tensor.h"

namespace shardwright {

inline constexpr std::string_view kSourceKeysFile = "source_keys.json";

/// The mapping that a Megatron checkpoint was made with, where flags gave it: without it the way
/// back would need them again.
struct RecordedMapping {
  std::string family;  ///< empty: none is recorded
  /// Its mapping files that are not built in as they are: name and text.
  std::vector<std::pair<std::string, std::string>> files;
};

/// `hf/source_keys.json`: names, dtypes and shapes of the HF tensors that a Megatron checkpoint was
/// made from, in their order; quantised ones as what they were multiplied to. It tells an export
/// which optional tensors existed, and by which mapping and in which form, if that was recorded.
[[nodiscard]] std::string write_source_keys(std::span<const TensorDesc> hf,
                                            const RecordedMapping& mapping = {},
                                            const ReleasedQuantisation& quantisation = {});

/// What such a file says of tensors.
struct SourceKeys {
  std::vector<TensorDesc> tensors;
  /// Names that a target had no place for; nullopt where no such target wrote the file.
  std::optional<std::vector<std::string>> left_out = {};
};

/// Error: kJsonCorrupt.
[[nodiscard]] Result<SourceKeys> read_source_keys(std::string_view json);

/// The same file with the names of tensors that a target had no place for, besides those that it
/// lists already. Error: kJsonCorrupt.
[[nodiscard]] Result<std::string> with_left_out(std::string json,
                                                const std::vector<std::string>& names);

/// The quantisation that such a file records; `json` may be empty. Error: kJsonCorrupt.
[[nodiscard]] Result<ReleasedQuantisation> read_recorded_quantisation(std::string_view json);

/// The mapping that such a file records; `json` may be empty. Error: kJsonCorrupt.
[[nodiscard]] Result<RecordedMapping> read_recorded_mapping(std::string_view json);

}  // namespace shardwright
