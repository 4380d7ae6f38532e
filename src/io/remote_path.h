// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "shardwright/error.h"

namespace shardwright {

/// Of a path that leads nowhere on this machine: the way out where it looks like a URL
/// (`s3://bucket/run`) or a model of the Hugging Face Hub (`org/model`), to go behind a message;
/// else nothing.
[[nodiscard]] std::string remote_hint(std::string_view path);

/// Outputs are written on this machine: a URL would become a folder called `s3:`. Error: kUsage.
[[nodiscard]] Status check_local_output(std::string_view path);

}  // namespace shardwright
