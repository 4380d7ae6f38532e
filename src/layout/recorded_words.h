// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "layout/legacy_evidence.h"

namespace shardwright {

/// Whether the run would have padded so many words to `rows`.
[[nodiscard]] bool pads_to(const RecordedRun& run, std::int64_t words, std::int64_t rows);

/// The words of a run whose vocabulary has `rows`, padding included; nothing where its arguments
/// don't tell. With the null tokenizer those are what it was told, or one more (Megatron-Core up
/// to 0.16): the rows say which, and where they fit both or neither its version does.
[[nodiscard]] std::optional<std::int64_t> words_of(const RecordedRun& run, std::int64_t rows);

}  // namespace shardwright
