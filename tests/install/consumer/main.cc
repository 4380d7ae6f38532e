// SPDX-License-Identifier: Apache-2.0
// Reads a tensor of a checkpoint that it makes: a safetensors file of one tensor.
#include <shardwright/reader.h>

#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

int main() {
  const std::string path =
      std::filesystem::temp_directory_path() / "shardwright-consumer.safetensors";
  const std::string header = R"({"w":{"dtype":"U8","shape":[2,3],"data_offsets":[0,6]}})";
  {
    std::ofstream file(path, std::ios::binary);
    file << static_cast<char>(header.size()) << std::string(7, '\0') << header << "abcdef";
  }
  auto reader = shardwright::TensorReader::open(path);
  if (!reader) {
    std::puts(reader.error().text().c_str());
    return 1;
  }
  std::array<std::byte, 4> bytes{};
  const auto status = reader->read(reader->find("w").value_or(99), {{0, 1}, {2, 2}}, bytes);
  if (!status) std::puts(status.error().text().c_str());
  std::filesystem::remove(path);
  const std::array expected = {std::byte{'b'}, std::byte{'c'}, std::byte{'e'}, std::byte{'f'}};
  return status && bytes == expected ? 0 : 1;
}
