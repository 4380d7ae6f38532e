// SPDX-License-Identifier: Apache-2.0
#include "testing/golden_files.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <utility>

namespace shardwright {

std::string source_path(const std::string& relative) {
  return SHARDWRIGHT_SOURCE_DIR "/" + relative;
}

std::string golden_path(const std::string& relative) {
  return source_path("tests/golden/" + relative);
}

std::string read_file(const std::string& path) {
  std::ostringstream file;
  file << std::ifstream(path, std::ios::binary).rdbuf();
  std::string bytes = std::move(file).str();
  EXPECT_FALSE(bytes.empty()) << path;
  return bytes;
}

std::string read_golden(const std::string& relative) { return read_file(golden_path(relative)); }

}  // namespace shardwright
