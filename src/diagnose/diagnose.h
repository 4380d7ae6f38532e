// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/diagnose.h"
#include "shardwright/storage.h"

namespace shardwright {

/// diagnose() of a directory that is open already; `request.path` names it. Catalogs of formats
/// that are not legacy are opened by that path.
[[nodiscard]] Result<Diagnosis> diagnose_directory(const Directory& directory,
                                                   const DiagnoseRequest& request);

}  // namespace shardwright
