// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// What a JSON text may cost, besides what Allowance gives its size: an empty list is two bytes of
/// text and a hundred of memory.
struct JsonLimits {
  std::uint64_t text_bytes = std::uint64_t{256} << 20;
  std::size_t depth = 100;
};

/// Parses a JSON text from a file that may be hostile: repeated keys, deep nesting, malformed
/// numbers and UTF-8 are errors, never exceptions. Python's `NaN` and `Infinity`, which configs
/// written by Python hold, become null. `name` is for messages. Errors: kJsonCorrupt, kLimit.
[[nodiscard]] Result<nlohmann::json> parse_json(std::string_view text, std::string_view name,
                                                const JsonLimits& limits = {});

/// The same with the keys of each object in their order, for texts that are written again.
[[nodiscard]] Result<nlohmann::ordered_json> parse_ordered_json(std::string_view text,
                                                                std::string_view name,
                                                                const JsonLimits& limits = {});

/// The text as a JSON string literal with its quotes, escaped as serde_json and Python (with
/// ensure_ascii=False) do: what must be escaped and nothing else. REQUIRES: UTF-8.
[[nodiscard]] std::string json_string(std::string_view text);

/// The reason in an exception text of nlohmann's parser, without its classification.
[[nodiscard]] std::string json_reason(std::string_view exception_text);

}  // namespace shardwright
