// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/verify.h"

namespace shardwright {

/// Whether what lies around the tensors agrees: the tracker with the folders beside it, the
/// iteration in the state with the folder's name.
[[nodiscard]] Status check_run(const Checkpoint& checkpoint, const std::string& path,
                               VerifyReport& report);

/// Whether files end where their contents end, and whether there are files of tensors that nothing
/// names: leftovers of another save.
[[nodiscard]] Status check_files(const Checkpoint& checkpoint, VerifyReport& report);

/// Whether the index of a Hugging Face model counts its bytes right.
[[nodiscard]] Status check_index_total(const Checkpoint& checkpoint, VerifyReport& report);

}  // namespace shardwright
