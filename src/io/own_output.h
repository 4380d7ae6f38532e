// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/storage.h"

namespace shardwright {

/// Whether this process writes its standard output or its standard error into that file, as under
/// `inspect DIR --json > DIR/report.json`: a shell has made it before anything is read, and it
/// grows meanwhile.
[[nodiscard]] bool is_own_output(const FileVersion& file);

}  // namespace shardwright
