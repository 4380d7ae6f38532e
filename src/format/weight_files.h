// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/hf_index.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Whether all files are there that the names of some tell of (`model-00002-of-00003.safetensors`;
/// numbers begin with 0 or 1), and are of one save. `files`: those of the folder's weights that no
/// index chooses from. Errors: kNotFound with the names of those that are missing; kTwoCheckpoints
/// for files of several counts, or beside one without a number, and for several models of one save
/// of accelerate (`model.safetensors` and `model_1.safetensors`).
[[nodiscard]] Status check_numbered_files(const Directory& directory,
                                          std::span<const std::string> files);

/// That the checkpoint is a file which was given by itself and by its name is one of several; empty
/// where that is not so.
[[nodiscard]] std::string lone_part_note(const Checkpoint& checkpoint);

/// The one or the other: one file of several is read where it alone was asked for, and a note says
/// so. Told to `defects`: what check_numbered_files() finds.
[[nodiscard]] Status check_unindexed_files(std::span<const std::string> files,
                                           Checkpoint& checkpoint, Defects& defects);

/// The one file that transformers reads before that index: `model.safetensors`.
[[nodiscard]] std::string whole_model_of(std::string_view index_file);

/// Whether `index_file` was left behind by an earlier save: the folder holds the model in one
/// file too, and none of those that the
/// index names. Error: kTwoCheckpoints where some of them are there too.
[[nodiscard]] Result<bool> is_stale_index(const Directory& directory, std::string_view index_file,
                                          const HfIndex& index);

/// A note that such an index is passed over.
[[nodiscard]] std::string stale_index_note(std::string_view index_file);

/// Takes those files away that lie beside a whole model and are none of its parts: its variants
/// (`model.fp16.safetensors` beside `model.safetensors`), and Mistral's own form of it
/// (`consolidated.safetensors`). transformers reads the whole model alone. A note names them; it is
/// empty where there are none.
[[nodiscard]] std::string take_variants(std::vector<std::string>& files);

/// A note on those of the folder's weights that are not `read` because `index` does not name them;
/// empty where there are none.
[[nodiscard]] std::string unnamed_files_note(std::string_view index,
                                             std::span<const std::string> files,
                                             std::span<const std::string> read);

}  // namespace shardwright
