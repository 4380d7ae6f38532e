// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exec/piece_journal.h"
#include "shardwright/parts.h"

namespace shardwright {

/// A saved plan from a file's text. `name`: of the file. Errors: those of read_plan_file but for
/// reading it.
[[nodiscard]] Result<SavedPlan> parse_plan_file(std::string_view text, std::string_view name);

/// Whether a conversion still is what was saved. Errors: kCannotResume, saying what is different;
/// kJsonCorrupt for pieces that are too many to be kept.
[[nodiscard]] Status check_saved_plan(const PreparedConversion& conversion, const SavedPlan& plan);

/// What the journals of its parts are of.
[[nodiscard]] JournalHead head_of(const SavedPlan& plan);

/// What its parts agree on, see PublishOptions::parts_id.
[[nodiscard]] std::string parts_id_of(const SavedPlan& plan);

/// How large the pieces of a saved plan are, whose number of parts nobody knows yet: so many that
/// some dozens of parts have several each.
[[nodiscard]] std::uint64_t shared_piece_bytes(std::uint64_t total_bytes);

}  // namespace shardwright
