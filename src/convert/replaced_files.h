// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// What writing the files `written` (paths within `folder`) replaces in a folder that exists. A
/// folder is replaced where it is one checkpoint of a known format and every file in it is known to
/// be of that checkpoint, or is written anew; of a run's root only the iteration that is written
/// and the tracker are. Empty for an empty folder. Errors: kTargetExists names what else would be
/// lost; those of listing.
[[nodiscard]] Result<ReplacedOutput> find_replaced_files(const std::string& folder,
                                                         std::span<const std::string> written);

}  // namespace shardwright
