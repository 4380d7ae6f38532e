// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "cli/json_writer.h"
#include "format/pickle_files.h"
#include "shardwright/diagnose.h"
#include "shardwright/error.h"

namespace shardwright::cli {

/// What pickles would do in a loader that obeys them, and what else other software does not load,
/// for those who look at a checkpoint.
struct PickleWarnings {
  std::vector<Error> errors;       ///< what runs code, and what cannot be judged
  std::vector<std::string> notes;  ///< what is imported, and other notes
  std::vector<Error> others;       ///< what other software stumbles over

  void add(const std::vector<PickleReport>& reports);
};

/// One line each; "" without any.
[[nodiscard]] std::string warnings_text(const PickleWarnings& warnings, Language language);
/// `"pickles": [{"code": "SW0224", "message": "..."}], "warnings": [...], "notes": [...]`.
void write_warnings(JsonWriter& json, const PickleWarnings& warnings);

}  // namespace shardwright::cli
