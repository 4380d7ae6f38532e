// SPDX-License-Identifier: Apache-2.0
#include "exec/target_files.h"

#include <atomic>

#include "exec/threads.h"

namespace shardwright {

TargetFiles::TargetFiles(const Plan& plan, Directory& directory)
    : plan_(&plan), directory_(&directory), files_(plan.target.files.size()) {}

Status TargetFiles::create_all() {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    files_[i] = SW_TRY(directory_->create(plan_->target.files[i], plan_->file_sizes[i]));
  }
  return {};
}

Status TargetFiles::open_all() {
  for (std::uint32_t i = 0; i < files_.size(); ++i) SW_TRY(get(i));
  return {};
}

Result<WritableFile*> TargetFiles::get(std::uint32_t file) {
  const std::scoped_lock lock(mutex_);
  std::unique_ptr<WritableFile>& open = files_[file];
  if (open == nullptr) {
    open = SW_TRY(directory_->reopen(plan_->target.files[file], plan_->file_sizes[file]));
  }
  return open.get();
}

Status TargetFiles::sync(int threads) {
  std::atomic<std::size_t> next{0};
  return run_on_threads(threads, {}, [&]() -> Status {
    for (std::size_t file = next++; file < files_.size(); file = next++) {
      if (files_[file] != nullptr) SW_TRY(files_[file]->sync());
    }
    return {};
  });
}

}  // namespace shardwright
