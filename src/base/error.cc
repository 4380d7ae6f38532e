// SPDX-License-Identifier: Apache-2.0
#include "shardwright/error.h"

#include <fmt/core.h>

namespace shardwright {

Error Error::within(std::string_view object) && {
  message = fmt::format("{}: {}", object, message);
  return std::move(*this);
}

std::string Error::text() const { return fmt::format("error[{}]: {}", code_name(code), message); }

std::string code_name(Code code) { return fmt::format("SW{:04}", static_cast<int>(code)); }

}  // namespace shardwright
