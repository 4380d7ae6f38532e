// SPDX-License-Identifier: Apache-2.0
#include "cli/named_output.h"

#include <cstdint>
#include <filesystem>
#include <system_error>

#include "base/fail.h"
#include "base/text.h"
#include "io/named_file.h"
#include "io/remote_path.h"
#include "io/replace_file.h"

namespace shardwright::cli {

Result<bool> check_named_output(std::string_view flag, const std::string& path,
                                const std::function<bool(std::string_view)>& is_ours) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;
  if (Status is_local = check_local_output(path); !is_local) {
    return std::unexpected(std::move(is_local).error().within(std::string(flag)));
  }
  std::error_code ignored;
  const bool is_there = std::filesystem::exists(std::filesystem::symlink_status(path, ignored));
  if (is_there) {
    const auto text = read_named_file(path, kMostBytes);
    if (!text || !is_ours(*text)) {
      return fail(Code::kTargetExists,
                  "{} {}: what lies there is not what {} writes and is left alone; choose another "
                  "path or remove it",
                  flag, printable(path), flag);
    }
  }
  SW_TRY(check_replaceable(path));
  return is_there;
}

}  // namespace shardwright::cli
