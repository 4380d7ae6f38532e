// SPDX-License-Identifier: Apache-2.0
#include "cli/log_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <ctime>

#include "base/fail.h"
#include "base/text.h"
#include "codec/own_report.h"
#include "io/retries.h"

namespace shardwright::cli {
namespace {

// A path that was meant for another flag may be one of a checkpoint's files: what is no log is left
// alone. Devices and pipes have no beginning to look at.
bool may_grow(int fd) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return false;
  if (!S_ISREG(status.st_mode) || status.st_size == 0) return true;
  constexpr std::size_t kHeadBytes = 64;
  std::array<char, kHeadBytes> head{};
  const ssize_t got = ::pread(fd, head.data(), head.size(), 0);
  return got > 0 && is_log({head.data(), static_cast<std::size_t>(got)});
}

}  // namespace

std::string LogFile::utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<LogFile> LogFile::open(const std::string& path, Stamp stamp) {
  constexpr mode_t kMode = 0666;
  const int fd = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, kMode);
  if (fd < 0) {
    return fail_errno(errno, translated("--log-file {}: cannot be opened", printable(path)));
  }
  LogFile file(fd, std::move(stamp));
  if (!may_grow(fd)) {
    return fail(Code::kTargetExists,
                "--log-file {}: a file that is not a log lies there; choose another path",
                printable(path));
  }
  return file;
}

LogFile::~LogFile() {
  if (fd_ >= 0) ::close(fd_);
}

void LogFile::add(std::string_view line) {
  if (errno_ != 0) return;
  const std::string text = fmt::format("{} {}\n", stamp_(), line);
  const Transfer written = transfer(text.size(), [&](std::size_t done) {
    return ::write(fd_, text.data() + done, text.size() - done);
  });
  errno_ = written.ended ? EIO : written.os_errno;
}

}  // namespace shardwright::cli
