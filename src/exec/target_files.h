// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "shardwright/plan.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The files of a target that are written, at their final sizes. Safe for concurrent use.
class TargetFiles {
 public:
  /// Borrows both.
  TargetFiles(const Plan& plan, Directory& directory);

  /// Makes all of them, which must not be there yet.
  [[nodiscard]] Status create_all();
  /// Opens all of them, and makes those that are missing.
  [[nodiscard]] Status open_all();
  /// A file; it is opened, or made where it is missing, if it was not yet.
  [[nodiscard]] Result<WritableFile*> get(std::uint32_t file);
  /// Makes what was written durable, of the files that are open.
  [[nodiscard]] Status sync(int threads);

 private:
  const Plan* plan_;
  Directory* directory_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<WritableFile>> files_;  // null: not open
};

}  // namespace shardwright
