// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright::pickle {

/// What a loader that obeys a pickle gets when it looks a name up.
enum class NameMeaning : std::uint8_t {
  kValue,     ///< of torch, numpy or Python: makes plain values, tensors and containers
  kTraining,  ///< a class of well-known training software: it is imported
  kUnknown,   ///< of a package that is not known here: it is imported, and may do anything
  kRunsCode,  ///< runs programs, code or further pickles, or opens files and connections
};

/// `name` may have dots, which protocol 4 follows from attribute to attribute.
[[nodiscard]] NameMeaning meaning_of(std::string_view module, std::string_view name);

/// Where a loader looks, and for what.
struct GlobalName {
  std::string_view module;
  std::string_view name;
};

/// The name that Python 3 takes for one that a pickle of this protocol holds: those before 3 spell
/// them as Python 2 did.
[[nodiscard]] GlobalName name_in_python3(GlobalName stored, int protocol);

}  // namespace shardwright::pickle
