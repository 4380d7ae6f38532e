// SPDX-License-Identifier: Apache-2.0
// Files of a distributed optimizer, one for each rank, are waited for side by side: on a server
// their number times the way there would be minutes.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

#include "convert/legacy_golden.h"
#include "format/legacy/legacy_states.h"
#include "io/source_files.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

// Whoever opens a rank's states waits until another rank's are opened too.
class MeetingDirectory final : public Directory {
 public:
  explicit MeetingDirectory(std::unique_ptr<Directory> inner) : inner_(std::move(inner)) {}

  Result<std::unique_ptr<ReadableFile>> open(std::string_view path) const override {
    if (path.ends_with("distrib_optim.pt")) {
      std::unique_lock lock(mutex_);
      opened_.emplace(path);
      came_.notify_all();
      came_.wait_for(lock, std::chrono::seconds(20), [&] { return opened_.size() > 1; });
      have_met_ &= opened_.size() > 1;
    }
    return inner_->open(path);
  }
  Result<std::unique_ptr<WritableFile>> create(std::string_view path, std::uint64_t size) override {
    return inner_->create(path, size);
  }
  Result<std::vector<DirectoryEntry>> list(std::string_view path) const override {
    return inner_->list(path);
  }
  bool exists(std::string_view path) const override { return inner_->exists(path); }
  const std::string& name() const override { return inner_->name(); }

  bool have_met() const { return have_met_ && opened_.size() > 1; }

 private:
  std::unique_ptr<Directory> inner_;
  mutable std::mutex mutex_;
  mutable std::condition_variable came_;
  mutable std::set<std::string, std::less<>> opened_;
  mutable bool have_met_ = true;
};

TEST(RankStates, AreReadSideBySide) {
  const TemporaryFolder folder;
  const std::string runs = "mcore/dense_te/v0.16.1/";
  unpack_legacy(read_packed_legacy(runs + "tp2pp1dp2-torch-bucket.zst"),
                read_all_tensors(golden_path(runs + "tp2pp2-torch_dist-full")).value(),
                folder.path());
  Checkpoint checkpoint;
  auto meeting =
      std::make_unique<MeetingDirectory>(open_local_directory(folder / "iter_0000010").value());
  const MeetingDirectory& seen = *meeting;
  checkpoint.directory = std::move(meeting);
  checkpoint.files =
      std::make_shared<SourceFiles>(*checkpoint.directory, std::vector<std::string>(), 64);
  Defects defects;
  const Status status = read_legacy_optimizer(checkpoint, defects);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_TRUE(seen.have_met());
}

}  // namespace
}  // namespace shardwright
