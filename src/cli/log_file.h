// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "shardwright/error.h"

namespace shardwright::cli {

/// The file of `--log-file`: lines with the time in front, added to what earlier runs left there.
class LogFile {
 public:
  /// Gives the time as `2026-01-31T12:00:00Z`.
  using Stamp = std::function<std::string()>;

  /// Creates the file or goes on with it. Errors: kTargetExists, where something lies there that is
  /// not a log; those of opening a file.
  [[nodiscard]] static Result<LogFile> open(const std::string& path, Stamp stamp = utc_now);
  [[nodiscard]] static std::string utc_now();

  LogFile(LogFile&& other) noexcept
      : fd_(std::exchange(other.fd_, -1)), errno_(other.errno_), stamp_(std::move(other.stamp_)) {}
  LogFile& operator=(LogFile&&) = delete;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  /// Adds a line. A log that can't be written must not end what it tells of: the first failure is
  /// remembered, and nothing more is written.
  void add(std::string_view line);
  /// errno of that failure, else 0.
  [[nodiscard]] int os_errno() const { return errno_; }

 private:
  LogFile(int fd, Stamp stamp) : fd_(fd), stamp_(std::move(stamp)) {}

  int fd_;
  int errno_ = 0;
  Stamp stamp_;
};

}  // namespace shardwright::cli
