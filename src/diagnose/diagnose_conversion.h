// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/diagnose.h"

namespace shardwright {

/// A checkpoint's folder and its format, where that was chosen or is the only one.
struct DiagnosedPlace {
  std::string path;
  std::string format;
  std::string shown;        ///< as it stands in commands, with the flag that chooses the format
  bool has_config = false;  ///< whether a config.json tells whose model it is
};

/// What a command gets where the user has to tell whose model it is.
inline constexpr std::string_view kModelFlag = " --hf-config MODEL";

/// Adds to the findings that the model can't be cut for the sizes that the caller gives, with the
/// reason, where that is so: its heads, rows or layers do not divide. Reads no tensor.
void add_impossible_sizes(const DiagnosedPlace& place, const AxisSizes& believed,
                          Diagnosis& diagnosis);

/// Adds to the findings that converting to `target` for the sizes that the caller gives would be
/// refused, with the reason, and names another command then; where it asks whose model it is, the
/// command that the diagnosis names gets kModelFlag. Plans that conversion, which reads what
/// prepare_conversion() reads.
void add_refused_conversion(const DiagnosedPlace& place, std::string_view target,
                            const AxisSizes& believed, Diagnosis& diagnosis);

}  // namespace shardwright
