// SPDX-License-Identifier: Apache-2.0
#include "base/fail.h"
#include "base/text.h"
#include "io/remote_path.h"
#include "remote/open_remote.h"
#include "remote/remote_output.h"

namespace shardwright {

bool is_remote_path(std::string_view /*path*/) { return false; }

Result<std::unique_ptr<Directory>> reach_directory(const std::string& path) {
  return fail(Code::kInternal, "{}: this build has no part that reads it", printable(path));
}

bool may_be_remote_file(std::string_view /*path*/) { return false; }

std::size_t end_of_remote_root(std::string_view path) { return path.size(); }

void stop_requests_by(const std::atomic<bool>* /*cancelled*/) {}

bool is_remote_output(std::string_view /*path*/) { return false; }

Status check_output_path(const std::string& path) { return check_local_output(path); }

Result<std::unique_ptr<RemoteOutput>> begin_remote_output(
    const std::string& path, const std::vector<std::string>& /*sources*/,
    const std::atomic<bool>* /*cancelled*/) {
  return fail(Code::kInternal, "{}: this build has no part that writes it", printable(path));
}

Result<std::vector<UnfinishedUpload>> list_unfinished_uploads(const std::string& path) {
  return fail(Code::kUsage, "{}: this build has no part that looks there", printable(path));
}

Status remove_unfinished_upload(const std::string& path, const UnfinishedUpload& /*upload*/) {
  return fail(Code::kInternal, "{}: this build has no part that writes it", printable(path));
}

}  // namespace shardwright
