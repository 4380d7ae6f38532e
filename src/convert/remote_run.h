// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/convert.h"

namespace shardwright {

/// What of a request can be told to be impossible before anything is opened, where its output is on
/// a server. Error: kUsage for what needs to read the output back, or replaces something.
[[nodiscard]] Status check_remote_output(const ConvertRequest& request);

/// Runs a conversion whose output is a server's: files appear when all of them are there, what says
/// that they are a checkpoint last. Errors: those of run_conversion and begin_remote_output; what
/// could not be taken back is named.
[[nodiscard]] Result<ConvertReport> run_to_server(const PreparedConversion& conversion,
                                                  const RunOptions& options);

}  // namespace shardwright
