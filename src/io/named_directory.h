// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// open_local_directory for a folder that messages call something else: what is written into a
/// temporary folder is known to the user by its final name only.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_local_directory_as(std::string_view path,
                                                                         std::string shown_name);

}  // namespace shardwright
