// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "format/survey.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// Reads a few ranks of a surveyed folder and says what it is. `path`: of the data, for commands.
[[nodiscard]] Result<Diagnosis> diagnose_legacy(const Directory& directory, const Survey& survey,
                                                std::string_view path, const Candidate& candidate,
                                                const DiagnoseRequest& request);

}  // namespace shardwright
