// SPDX-License-Identifier: Apache-2.0
#include "format/model_file.h"

#include <utility>

#include "format/unfinished_download.h"

namespace shardwright {

Result<ModelFile> open_model_file(const Directory& directory, const std::string& path,
                                  SourceFiles& files, Catalog& catalog) {
  const std::uint32_t number = files.add(path);
  catalog.files.push_back(path);
  auto file = files.get(number);
  if (!file) return std::unexpected(with_download_hint(file.error(), directory, path));
  SW_TRY(check_downloaded(directory, path));
  return ModelFile{number, *std::move(file)};
}

}  // namespace shardwright
