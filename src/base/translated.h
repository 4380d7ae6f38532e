// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

namespace shardwright {

/// Another language's sentence for an English one, with the same placeholders ({0}, {1} where it
/// has another order); empty where it has none. What it returns lives as long as the program.
using Translator = std::string_view (*)(std::string_view english);

/// While it lives, `translated` and `fail` speak the translator's language, in all threads; null:
/// English. A process speaks one language at a time.
class Speaking {
 public:
  explicit Speaking(Translator translator) noexcept;
  ~Speaking();
  Speaking(const Speaking&) = delete;
  Speaking& operator=(const Speaking&) = delete;

 private:
  Translator before_;
};

[[nodiscard]] bool speaks_english() noexcept;

/// A sentence that was made without `translated`, in the language spoken now.
[[nodiscard]] std::string in_language(std::string_view english);

/// What `translated` does, whatever the types of the arguments.
[[nodiscard]] std::string vtranslated(fmt::string_view format, fmt::format_args args);

/// fmt::format in the language spoken now: the English format is the key to its translation. An
/// argument that is a phrase of several words with a translation is said in that language too, so
/// that callers pass "an empty file" as it is; a single word needs a `translated` of its own.
template <class... Args>
[[nodiscard]] std::string translated(fmt::format_string<Args...> format, Args&&... args) {
  return vtranslated(format, fmt::make_format_args(args...));
}

}  // namespace shardwright
