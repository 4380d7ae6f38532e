// SPDX-License-Identifier: Apache-2.0
// Stands in for libFuzzer in test builds: gives every file of the named folders to the target once.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int count, char** folders) {
  int inputs = 0;
  for (int i = 1; i < count; ++i) {
    std::error_code error;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folders[i], error)) {
      if (!entry.is_regular_file()) continue;
      std::ifstream file(entry.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
      // A copy of exactly this size, so that a sanitizer sees reads past the end.
      std::vector<std::uint8_t> input(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(input.data(), input.size());
      ++inputs;
    }
  }
  std::printf("%d inputs replayed\n", inputs);
  return inputs > 0 ? 0 : 1;  // a corpus that went missing is a failure
}
