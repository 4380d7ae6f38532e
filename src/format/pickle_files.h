// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "codec/pickle_audit.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/storage.h"

namespace shardwright {

/// A pickle of a checkpoint that does more than make values, or whose bytes go on behind it.
struct PickleReport {
  std::string where;  ///< `common.pt`, `__0_0.distcp entry rng_state/shard_0_1`
  pickle::Audit audit;

  /// kPickleRunsCode where it runs code, kPickleCorrupt where bytes follow that belong to nothing,
  /// and the decoder's error where it is no whole pickle.
  [[nodiscard]] std::vector<Error> errors() const;
  /// Names of packages that are not known here; "" without any.
  [[nodiscard]] std::string warning() const;
};

/// Audits what pickles a file has: those of a torch archive's records, of a torch file of before
/// 1.6, or one alone. Storages are not read. An empty audit for what holds none.
[[nodiscard]] Result<pickle::Audit> audit_file(const ReadableFile& file, ByteRange window);

/// Audits the pickles of a file of weights, which is read without running anything: a conversion is
/// told what a loader would run, a check finds it.
[[nodiscard]] Status judge_pickles(const ReadableFile& file, const std::string& path,
                                   Checkpoint& checkpoint, Defects& defects);

/// What was found in a folder's files.
struct FolderAudit {
  std::vector<PickleReport> reports;
  std::size_t files = 0;     ///< that were looked at
  std::size_t left_out = 0;  ///< beyond `most_files`
};

/// Audits the files in a folder and in its ranks' folders that torch or Python would unpickle, at
/// most so many. Only what is worth a word is reported. Files that are damaged or may not be read
/// are not: who needs them says so. What a read error kept from being judged is (kIo).
[[nodiscard]] FolderAudit audit_folder(const Directory& directory, const std::string& folder,
                                       std::size_t most_files);

/// The same of all files of a checkpoint, and of its catalog's objects. `.metadata` is judged where
/// it is read.
[[nodiscard]] std::vector<PickleReport> audit_pickles(const Checkpoint& checkpoint);

}  // namespace shardwright
