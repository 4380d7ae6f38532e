// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "format/hf_index.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The files of a folder that hold its model, and the index that names them where one counts.
struct WeightChoice {
  std::vector<std::string> files;  ///< sorted
  std::optional<HfIndex> index;
  std::string index_file;  ///< its name; empty without an index
};

/// Those that the folder's index names, or all where there is none, without other forms of a whole
/// model; notes tell what lies beside them. Told to `defects`: an index that can't be read (all
/// files are taken then), files that are missing or of two saves.
[[nodiscard]] Result<WeightChoice> choose_weights(Checkpoint& checkpoint, Defects& defects);

/// The tensors of the chosen safetensors files. Adds them to `files`, which must have none yet, and
/// reads their headers only. Told to `defects`: kIndexMismatch with all names when the index and
/// the files' headers disagree, kDuplicateName, files that are not there or whose header is broken.
[[nodiscard]] Result<Catalog> read_hf_catalog(const Directory& directory, WeightChoice choice,
                                              SourceFiles& files, Defects& defects);

/// The names of a folder's safetensors files, sorted; those of an adapter only where no others are.
[[nodiscard]] Result<std::vector<std::string>> list_weight_files(const Directory& directory);

/// Adds one file and its tensors to the catalog; the numbers of `files` and Catalog::files must
/// agree. Errors: those of read_safetensors_header.
[[nodiscard]] Status add_safetensors(const Directory& directory, const std::string& path,
                                     SourceFiles& files, Catalog& catalog);

}  // namespace shardwright
