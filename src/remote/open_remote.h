// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "shardwright/storage.h"

namespace shardwright {

/// What open_path.h has of servers. A build without the remote part knows none: no path leads to
/// one, and the other functions are not called.
[[nodiscard]] bool is_remote_path(std::string_view path);

/// Looks at nothing yet. Errors: kUsage, kNotFound, kPermission, kRemote.
[[nodiscard]] Result<std::unique_ptr<Directory>> reach_directory(const std::string& path);

/// Whether a name may be a file's: a web server would answer for a folder too.
[[nodiscard]] bool may_be_remote_file(std::string_view path);

/// Where the names in a server, bucket or model begin in a path.
[[nodiscard]] std::size_t end_of_remote_root(std::string_view path);

/// Requests are given up when `cancelled` is set; null: none is.
void stop_requests_by(const std::atomic<bool>* cancelled);

}  // namespace shardwright
