// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// The file in which Megatron notes its newest save.
inline constexpr std::string_view kTrackerName = "latest_checkpointed_iteration.txt";
inline constexpr std::uint64_t kMostTrackerBytes = std::uint64_t{1} << 20;

/// What stands in a tracker, without the white space around it.
[[nodiscard]] std::string_view tracker_word(std::string_view text);

/// The folder that a tracker's word means: `iter_0000010` for `10`, `release` for itself; empty for
/// anything else.
[[nodiscard]] std::string iteration_folder(std::string_view word);

/// The reverse: what a tracker says that names this folder; empty for folders of other names.
[[nodiscard]] std::string word_of_iteration(std::string_view folder);

/// The number behind a prefix that ends the name: 10 of `iter_0000010` for `iter_`.
[[nodiscard]] std::optional<std::int64_t> number_after(std::string_view name,
                                                       std::string_view prefix);

/// The step of NeMo Automodel's `epoch_E_step_S`, which counts through all epochs.
[[nodiscard]] std::optional<std::int64_t> step_of_epoch(std::string_view name);

/// Whether a folder's name is that of one iteration: Megatron's `iter_N` and `release`, `step_N` of
/// others.
[[nodiscard]] bool is_iteration_folder(std::string_view name);

/// The folder `prefix`N with the largest N, be it one that can't be read; null if there is none.
[[nodiscard]] const DirectoryEntry* latest_folder(std::span<const DirectoryEntry> entries,
                                                  std::string_view prefix);

/// Likewise `epoch_E_step_S` with the largest S.
[[nodiscard]] const DirectoryEntry* latest_step_of_epochs(std::span<const DirectoryEntry> entries);

}  // namespace shardwright
