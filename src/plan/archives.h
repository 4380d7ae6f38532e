// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shardwright/plan.h"

namespace shardwright {

/// Finds the storage of a plan's archives that a byte of a target file lies in. Borrows the plan;
/// immutable.
class ArchiveStorages {
 public:
  /// REQUIRES: archives are of files that are there.
  explicit ArchiveStorages(const Plan& plan);

  /// The number of the archive that a target file is.
  [[nodiscard]] std::optional<std::uint32_t> archive_of(std::uint32_t file) const;
  /// The storage that the byte at `offset` of an archive's file lies in; nullopt for framing.
  [[nodiscard]] std::optional<std::uint32_t> storage_at(std::uint32_t archive,
                                                        std::uint64_t offset) const;

 private:
  const Plan* plan_;
  std::vector<std::uint32_t> archives_;  // number plus one by file; 0 for other files
};

/// Proves that the chunks in the files of archives fill their storages: raw, row-major, each byte
/// once, none elsewhere. Error: kPlanInvalid.
[[nodiscard]] Status check_archives(const Plan& plan);

}  // namespace shardwright
