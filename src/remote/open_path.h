// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "io/known_bytes.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What a user names may lie on this machine or on a server: `hf://owner/name[@revision]`,
/// `s3://bucket/prefix`, `https://…`. These functions take both; a build without the remote part
/// takes all paths for local ones, and says then what to do about the others.

/// What is held where something is read from servers or sent there: the blocks that were read last,
/// and the libraries for it.
inline constexpr std::uint64_t kRemoteBytes = std::uint64_t{32} << 20;
/// What each thread's connection takes.
inline constexpr std::uint64_t kConnectionBytes = std::uint64_t{512} << 10;

/// Whether a path is read from a server.
[[nodiscard]] bool is_remote_path(std::string_view path);

/// Error: kNotFound, also of a remote folder in which nothing is found; kPermission, kRemote.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_directory(const std::string& path);

/// The folder that a file lies in, before it is known whether anything is there.
[[nodiscard]] Result<std::unique_ptr<Directory>> open_folder_of(const std::string& file_path);

/// As open_named_file().
[[nodiscard]] Result<std::unique_ptr<ReadableFile>> open_named(const std::string& path);
/// As read_named_file().
[[nodiscard]] Result<std::string> read_named(const std::string& path, std::uint64_t limit_bytes);

/// Whether a file lies there. Where it can't be told it is none; opening it says why. Of a web
/// server's addresses only those that end as files of models do are asked for.
[[nodiscard]] bool is_file(const std::string& path);
[[nodiscard]] bool is_folder(const std::string& path);

/// While one lives, what these functions open for its thread tells `known` what is read of it, or
/// is opened only for what `known` lacks. One at a time; it is made, and ends, on that thread;
/// `known` forgets all then. What was opened may live on.
class KnownPaths {
 public:
  enum class Way : std::uint8_t { kTell, kTake };

  KnownPaths(std::shared_ptr<KnownBytes> known, Way way);
  ~KnownPaths();
  KnownPaths(const KnownPaths&) = delete;
  KnownPaths& operator=(const KnownPaths&) = delete;

  [[nodiscard]] const std::shared_ptr<KnownBytes>& known() const { return known_; }
  [[nodiscard]] bool tells() const { return way_ == Way::kTell; }

 private:
  std::shared_ptr<KnownBytes> known_;
  Way way_;
};

/// While one lives, requests to servers are given up when `cancelled` is set, but those that take
/// back what was written. One at a time.
class StoppableRequests {
 public:
  explicit StoppableRequests(const std::atomic<bool>& cancelled);
  ~StoppableRequests();
  StoppableRequests(const StoppableRequests&) = delete;
  StoppableRequests& operator=(const StoppableRequests&) = delete;
};

/// The folder that a path lies in: `.` for a lone local name, nothing for a whole server, bucket or
/// model.
[[nodiscard]] std::optional<std::string> folder_above(const std::string& path);

/// A local path with the folders above it that it need not name; a remote one as it is.
[[nodiscard]] std::string whole_path(const std::string& path);

}  // namespace shardwright
