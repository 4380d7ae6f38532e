// SPDX-License-Identifier: Apache-2.0
#include "base/shell_path.h"

#include "base/text.h"

namespace shardwright {

std::string shell_path(std::string_view path) {
  return shell_quoted(path.starts_with('-') ? "./" + std::string(path) : std::string(path));
}

}  // namespace shardwright
