// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "model/arguments.h"
#include "shardwright/error.h"

namespace shardwright {

/// Adds `rope.*` for whichever spelling of the rotary settings the file uses. `section` is where to
/// look, with a dot at its end; empty for the top level, which always gets a type.
/// Error: kConfigMissing for spellings that contradict each other.
[[nodiscard]] Status add_rope_values(const std::string& section, Arguments& values);

/// Where a path of ours is written; empty for what the plain rotary embedding does not need, and
/// for a type that is another one's guess. Where kinds of layers have settings of their own, those
/// of ours are the whole attention's.
[[nodiscard]] std::string written_path(const std::string& path, const Arguments& values);

}  // namespace shardwright
