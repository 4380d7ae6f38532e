// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace shardwright {

// The texts of docs/diagnose.md, docs/errors.md and their Chinese twins, put into the program when
// it is built.
[[nodiscard]] std::string_view diagnose_guide_english();
[[nodiscard]] std::string_view diagnose_guide_chinese();
[[nodiscard]] std::string_view errors_guide_english();
[[nodiscard]] std::string_view errors_guide_chinese();

}  // namespace shardwright
