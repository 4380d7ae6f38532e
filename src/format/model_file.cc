// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "base/prepare_ahead.h"
#include "format/unfinished_download.h"

namespace shardwright {
namespace {

// A header or a pickle is at a file's begin, an archive's directory at its end. What is fetched of
// a server stays in its cache for whoever reads it.
void fetch_ends(const ReadableFile& file) {
  if (!file.is_remote()) return;
  std::array<std::byte, 4096> bytes{};
  const std::uint64_t count = std::min<std::uint64_t>(bytes.size(), file.size());
  const std::span<std::byte> end = std::span(bytes).first(static_cast<std::size_t>(count));
  // Whoever reads it tells what is wrong with it.
  if (!file.read_at(0, end)) return;
  std::ignore = file.read_at(file.size() - count, end);
}

}  // namespace

std::uint32_t add_model_file(const std::string& path, SourceFiles& files, Catalog& catalog) {
  catalog.files.push_back(path);
  return files.add(path);
}

Result<ModelFile> open_model_file(const Directory& directory, const std::string& path,
                                  std::uint32_t number, SourceFiles& files) {
  auto file = files.get(number);
  if (!file) return std::unexpected(with_download_hint(file.error(), directory, path));
  SW_TRY(check_downloaded(directory, path));
  return ModelFile{number, *std::move(file)};
}

Status read_model_files(const Directory& directory, const std::vector<std::string>& paths,
                        SourceFiles& files, Catalog& catalog, const ReadModelFile& read) {
  std::vector<std::uint32_t> numbers;
  for (const std::string& path : paths) numbers.push_back(add_model_file(path, files, catalog));
  const auto open = [&](std::size_t i) {
    if (const auto file = files.get(numbers[i])) fetch_ends(**file);
  };
  return prepare_ahead(paths.size(), open, [&](std::size_t i) -> Status {
    return read(paths[i], open_model_file(directory, paths[i], numbers[i], files));
  });
}

}  // namespace shardwright
