// SPDX-License-Identifier: Apache-2.0
// Whole checkpoints of any format, through everything that verify reads. The input is files, one
// behind the other: a name and a zero byte, the size as four bytes (the least significant first),
// the contents.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "expect.h"
#include "shardwright/verify.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;

constexpr int kMostFiles = 24;
constexpr std::size_t kSizesPerSearch = 64;

// Where the files are put; in memory where there is such a place.
fs::path place() {
  std::error_code error;
  const fs::path memory = "/dev/shm";
  const fs::path base = fs::is_directory(memory, error) ? memory : fs::temp_directory_path();
  return base / ("shardwright-fuzz-" + std::to_string(::getpid()));
}

// Names that a file system would refuse, or that lead out, are passed over.
bool is_name(std::string_view name) {
  if (name.empty() || name.size() > 100 || name.front() == '/') return false;
  const fs::path path(name);
  return path.has_filename() && std::ranges::none_of(path, [](const fs::path& part) {
           return part == ".." || part == ".";
         });
}

void put_files(std::string_view data, const fs::path& folder) {
  for (int i = 0; i < kMostFiles && !data.empty(); ++i) {
    const std::string_view name = data.substr(0, data.find('\0'));
    data.remove_prefix(std::min(name.size() + 1, data.size()));
    std::size_t size = 0;
    for (std::size_t byte = 0; byte < 4 && !data.empty(); ++byte) {
      size |= static_cast<std::size_t>(static_cast<unsigned char>(data.front())) << (8 * byte);
      data.remove_prefix(1);
    }
    const std::string_view contents = data.substr(0, size);
    data.remove_prefix(contents.size());
    std::error_code error;
    if (!is_name(name)) continue;
    fs::create_directories((folder / name).parent_path(), error);
    std::ofstream(folder / name, std::ios::binary) << contents;
  }
}

void verify_folder(std::string_view data) {
  const fs::path folder = place();
  fs::create_directories(folder);
  put_files(data, folder);
  VerifyOptions options;
  options.proof.threads = 1;
  // To look for the family, all are read, which takes a hundred times what the rest does.
  if (data.size() % kSizesPerSearch != 0) options.proof.choice.family = "llama";
  const auto report = verify_checkpoint(folder.string(), options);
  if (report) expect(!report->format.empty(), "what was read has a format");
  if (!report) expect(!report.error().message.empty(), "what is refused is told why");
  fs::remove_all(folder);
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::verify_folder({reinterpret_cast<const char*>(data), size});
  return 0;
}
