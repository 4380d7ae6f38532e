// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A file of a model's weights that was made known to a catalog.
struct ModelFile {
  std::uint32_t number = 0;  ///< in Catalog::files
  std::shared_ptr<const ReadableFile> file;
};

/// Adds `path` of `directory` to the files of `catalog` and opens it. Errors: those of opening it,
/// with what tells that its download did not end (with_download_hint, check_downloaded).
[[nodiscard]] Result<ModelFile> open_model_file(const Directory& directory, const std::string& path,
                                                SourceFiles& files, Catalog& catalog);

}  // namespace shardwright
