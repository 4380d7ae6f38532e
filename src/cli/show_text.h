// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace shardwright::cli {

/// `--help`, `--version`: text for standard output.
struct ShowText {
  std::string text;
  bool is_version = false;
};

}  // namespace shardwright::cli
