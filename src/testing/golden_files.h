// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace shardwright {

/// The path of a file or folder of the project, from its root.
[[nodiscard]] std::string source_path(const std::string& relative);

/// The path of a file or folder of tests/golden.
[[nodiscard]] std::string golden_path(const std::string& relative);

/// The bytes of a file; a test failure where it is missing or empty.
[[nodiscard]] std::string read_file(const std::string& path);

/// The bytes of a file of tests/golden.
[[nodiscard]] std::string read_golden(const std::string& relative);

}  // namespace shardwright
