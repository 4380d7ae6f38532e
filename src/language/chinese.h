// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

/// The Chinese of an English sentence as it stands in the sources, placeholders included; empty
/// where there is none. A Translator: see base/translated.h.
[[nodiscard]] std::string_view chinese_sentence(std::string_view english);

}  // namespace shardwright
