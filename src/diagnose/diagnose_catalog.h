// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "format/survey.h"
#include "shardwright/checkpoint.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// What there is to say about a folder whose names carry no ranks: torch_dist, DCP, Hugging Face.
/// `path`: of the data. A catalog that cannot be read is a finding. Error: an outage.
[[nodiscard]] Result<Diagnosis> diagnose_catalog(const Survey& survey, const std::string& path,
                                                 const Candidate& candidate,
                                                 const DiagnoseRequest& request);

}  // namespace shardwright
