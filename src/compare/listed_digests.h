// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "exec/jobs.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The SHA-256 of a file as a list beside it says: 64 lower-case hex digits.
struct ListedDigest {
  std::string file;
  std::string digest;
};

/// What digests of files, in a list or elsewhere, were found to guard.
struct ListedChecked {
  std::size_t right = 0;                       ///< files that have the digests that they should
  std::set<std::string, std::less<>> guarded;  ///< the names of all, right or not
};

/// A file beside a checkpoint's data that says what that is: to be written.
struct GuardFile {
  std::string path;  ///< in the checkpoint's directory
  std::string text;
};

/// The SHA-256 of a file. Errors: those of reading.
[[nodiscard]] Result<std::string> sha256_of(const Directory& directory, const std::string& path);

/// Those of `files`, in their order; `bytes` of each, about. Errors: those of run_jobs and of
/// reading.
[[nodiscard]] Result<std::vector<ListedDigest>> digests_of(const Directory& directory,
                                                           std::span<const std::string> files,
                                                           std::span<const std::uint64_t> bytes,
                                                           const Workers& workers);

/// Where digests of a target's files lie: in the iteration's folder with its `/`, where Megatron
/// looks for them beside `.metadata`; empty where there is none.
[[nodiscard]] std::string digested_folder(std::span<const std::string> files);

/// Checks each of some files. What is wrong is told to `defects`. `what`: is done, in messages.
[[nodiscard]] Result<ListedChecked> check_files(const Directory& directory,
                                                std::span<const std::string> files,
                                                std::string_view what,
                                                const std::function<Status(std::size_t)>& check,
                                                const Workers& workers, Defects& defects);

/// Reads the files that `list` names and compares their digests. What is wrong is told to
/// `defects`: kDigestMismatch with the file (and the one whose digest it has, where files were
/// swapped), those of opening a file that is not there. `list_name`: for messages.
[[nodiscard]] Result<ListedChecked> check_listed(const Directory& directory,
                                                 std::span<const ListedDigest> list,
                                                 std::string_view list_name, const Workers& workers,
                                                 Defects& defects);

/// Writes it and makes it durable.
[[nodiscard]] Status write_guard_file(Directory& directory, const GuardFile& file);

}  // namespace shardwright
