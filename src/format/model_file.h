// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// A file of a model's weights that was made known to a catalog.
struct ModelFile {
  std::uint32_t number = 0;  ///< in Catalog::files
  std::shared_ptr<const ReadableFile> file;
};

/// Adds `path` to the files of `catalog` and to `files`; opens nothing. Its number in both.
[[nodiscard]] std::uint32_t add_model_file(const std::string& path, SourceFiles& files,
                                           Catalog& catalog);

/// Opens a file that was added. Errors: those of opening it, with what tells that its download did
/// not end (with_download_hint, check_downloaded).
[[nodiscard]] Result<ModelFile> open_model_file(const Directory& directory, const std::string& path,
                                                std::uint32_t number, SourceFiles& files);

using ReadModelFile = std::function<Status(const std::string& path, Result<ModelFile> file)>;

/// Adds all files and calls `read` for each, in order, with the file or why it does not open.
/// Meanwhile those that come next are opened, and what is usually read first of them is fetched
/// from a server: a hundred files take no hundred times as long as one. Errors: those of `read`.
[[nodiscard]] Status read_model_files(const Directory& directory,
                                      const std::vector<std::string>& paths, SourceFiles& files,
                                      Catalog& catalog, const ReadModelFile& read);

}  // namespace shardwright
