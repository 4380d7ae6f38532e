// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The tensors of a folder of safetensors files: of those that model.safetensors.index.json names,
/// or of all where there is no index. Adds them to `files`, which must have none yet, and reads
/// their headers only. Errors: kIndexMismatch with all names
/// when the index and the files' headers disagree, kDuplicateName, kSafetensorsCorrupt.
[[nodiscard]] Result<Catalog> read_hf_catalog(const Directory& directory, SourceFiles& files);

/// The files of an HF model that are not weights (config, tokenizer, code, licences), in order.
[[nodiscard]] Result<std::vector<DirectoryEntry>> list_hf_artifacts(const Directory& directory,
                                                                    std::string_view folder);

}  // namespace shardwright
