// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The tensors of a folder of safetensors files: of those that its index names,
/// or of all where there is no index. Adds them to `files`, which must have none yet, and reads
/// their headers only. Told to `defects`: kIndexMismatch with all names when the index and the
/// files' headers disagree, kDuplicateName, files that are not there or whose header is broken. A
/// collection without a usable index gets all files.
[[nodiscard]] Result<Catalog> read_hf_catalog(const Directory& directory, SourceFiles& files,
                                              Defects& defects);

/// The names of a folder's safetensors files, sorted; those of an adapter only where no others are.
[[nodiscard]] Result<std::vector<std::string>> list_weight_files(const Directory& directory);

/// Adds one file and its tensors to the catalog; the numbers of `files` and Catalog::files must
/// agree. Errors: those of read_safetensors_header.
[[nodiscard]] Status add_safetensors(const Directory& directory, const std::string& path,
                                     SourceFiles& files, Catalog& catalog);

/// The files of an HF model that are not weights (config, tokenizer, code, licences), in order.
/// Names that can't be read are told to `defects` and left out.
[[nodiscard]] Result<std::vector<DirectoryEntry>> list_hf_artifacts(const Directory& directory,
                                                                    std::string_view folder,
                                                                    Defects& defects);

}  // namespace shardwright
