// SPDX-License-Identifier: Apache-2.0
#include "testing/golden_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

namespace shardwright {

std::string source_path(const std::string& relative) {
  return SHARDWRIGHT_SOURCE_DIR "/" + relative;
}

std::string golden_path(const std::string& relative) {
  return source_path("tests/golden/" + relative);
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << path;
  return bytes;
}

std::string read_golden(const std::string& relative) { return read_file(golden_path(relative)); }

}  // namespace shardwright
