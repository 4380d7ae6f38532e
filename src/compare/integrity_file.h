// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "exec/jobs.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What Megatron writes with --verify-integrity (0.18 and newer): the SHA-256 of each file beside
/// it, `{"algorithm": "sha256", "files": {"common.pt": "…"}}`.
inline constexpr std::string_view kIntegrityFile = "integrity.json";

/// What it was found to guard.
struct IntegrityChecked {
  std::size_t right = 0;                       ///< files that have the digests that it says
  std::set<std::string, std::less<>> guarded;  ///< the names of all, right or not
};

/// Reads the files that it names and compares their digests; nothing is guarded where there is no
/// such file. What is wrong is told to `defects`:
/// kDigestMismatch with the file (and the one whose digest it has, where files were swapped), those
/// of opening a file that is not there, kJsonCorrupt.
[[nodiscard]] Result<IntegrityChecked> check_integrity_file(const Checkpoint& checkpoint,
                                                            const Workers& workers,
                                                            Defects& defects);

/// The SHA-256 of a file, 64 lower-case hex digits. Errors: those of reading.
[[nodiscard]] Result<std::string> sha256_of(const Directory& directory, const std::string& path);

/// Where digests of a target's files lie: in the iteration's folder with its `/`, where Megatron
/// looks for them beside `.metadata`; empty where there is none.
[[nodiscard]] std::string digested_folder(std::span<const std::string> files);

/// Such a file that is to be written.
struct IntegrityFile {
  std::string path;  ///< in the checkpoint's directory
  std::string text;
};

/// Makes one of a checkpoint that was just written, with the digests of `files`, which are read
/// again for it; all are paths in `directory`. Where they lie in an iteration's folder it covers
/// those in it, else all. `threads` files at a time. Errors: those of reading.
[[nodiscard]] Result<IntegrityFile> make_integrity_file(const Directory& directory,
                                                        std::span<const std::string> files,
                                                        int threads);

/// Writes it and makes it durable.
[[nodiscard]] Status write_integrity_file(Directory& directory, const IntegrityFile& integrity);

}  // namespace shardwright
