// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layout/texts.h"
#include "shardwright/error.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A layout that some training software writes, known by the names of what lies in its folder.
struct Sibling {
  std::string_view format;  ///< `deepspeed_zero`: the name of the format in a diagnosis
  TextKey what;             ///< `a DeepSpeed ZeRO checkpoint`, or the software's name
  TextKey reader;           ///< which tool reads it
};

struct SiblingMatch {
  const Sibling* sibling = nullptr;
  std::string entry;  ///< the name that shows it
};

/// The layouts whose signs are all among these entries, the most telling first. Names only: nothing
/// is opened. None of them is one that shardwright reads.
[[nodiscard]] std::vector<SiblingMatch> recognise_siblings(std::span<const DirectoryEntry> entries);

/// The same for a path that is a file, such as `model.gguf`; null: none.
[[nodiscard]] const Sibling* recognise_sibling_file(std::string_view name);

/// Whether a file is named as software that serves models names the weights of a rank:
/// TensorRT-LLM, and vLLM and SGLang (`save_sharded_state`). Beside a config.json they are its own
/// cut of a model, with the names and the order of rows that it computes with, not a model's files.
[[nodiscard]] bool is_weights_of_serving(std::string_view name);

/// The error for what another tool reads. `shown`: the path, or the folder and the entry in it.
[[nodiscard]] std::unexpected<Error> refuse_sibling(std::string_view shown, const Sibling& sibling);

/// Who wrote a checkpoint that shardwright does read, where names show it: Megatron-Bridge, VeOmni,
/// ms-swift, slime, MLite, verl. What they write is one of the formats that are read.
[[nodiscard]] std::vector<SiblingMatch> recognise_writers(std::span<const DirectoryEntry> entries);

/// Whether `name` matches `pattern`, in which `*` stands for any text and `#` for a number.
[[nodiscard]] bool matches_sign(std::string_view name, std::string_view pattern);

}  // namespace shardwright
