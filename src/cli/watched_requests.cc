// SPDX-License-Identifier: Apache-2.0
#include "cli/watched_requests.h"

#include <algorithm>
#include <string_view>

namespace shardwright::cli {

bool names_a_server(const std::vector<std::string>& words) {
  return std::ranges::any_of(words, [](const std::string_view word) {
    return is_remote_path(word) || is_remote_path(word.substr(word.find('=') + 1));
  });
}

}  // namespace shardwright::cli
