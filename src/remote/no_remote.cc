// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"
#include "base/text.h"
#include "remote/open_remote.h"

namespace shardwright {

bool is_remote_path(std::string_view /*path*/) { return false; }

Result<std::unique_ptr<Directory>> reach_directory(const std::string& path) {
  return fail(Code::kInternal, "{}: this build has no part that reads it", printable(path));
}

bool may_be_remote_file(std::string_view /*path*/) { return false; }

std::size_t end_of_remote_root(std::string_view path) { return path.size(); }

}  // namespace shardwright
