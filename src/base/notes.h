// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace shardwright {

/// Sentences that the user should read: what was dropped, guessed, kept or left out.
using Notes = std::vector<std::string>;

}  // namespace shardwright
