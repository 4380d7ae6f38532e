// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "shardwright/diagnose.h"

namespace shardwright::cli {

/// The language for a locale such as `zh_CN.UTF-8`: Chinese where it is written with simplified
/// characters, as our texts are; English for `zh_TW` and every other one.
[[nodiscard]] Language language_of_locale(std::string_view locale);

/// That of this process: what is set first of LC_ALL, LC_MESSAGES and LANG counts, as everywhere.
[[nodiscard]] Language language_from_environment();

}  // namespace shardwright::cli
