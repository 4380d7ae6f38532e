// SPDX-License-Identifier: Apache-2.0
#include "io/source_files.h"

#include <algorithm>
#include <set>
#include <utility>

namespace shardwright {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

}  // namespace

class SourceFiles::CountedFile final : public ReadableFile {
 public:
  CountedFile(std::unique_ptr<ReadableFile> file, std::atomic<std::uint64_t>& bytes_read)
      : file_(std::move(file)), bytes_read_(&bytes_read) {}
  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    *bytes_read_ += buffer.size();
    return file_->read_at(offset, buffer);
  }
  [[nodiscard]] const std::string& name() const override { return file_->name(); }
  [[nodiscard]] FileVersion version() const override { return file_->version(); }

 private:
  std::unique_ptr<ReadableFile> file_;
  std::atomic<std::uint64_t>* bytes_read_;
};

SourceFiles::SourceFiles(const Directory& directory, std::vector<std::string> paths,
                         std::size_t open_limit)
    : directory_(&directory),
      paths_(std::move(paths)),
      open_limit_(std::max<std::size_t>(open_limit, 1)),
      slots_(paths_.size()) {}

std::uint32_t SourceFiles::add(std::string path) {
  const std::scoped_lock lock(mutex_);
  paths_.push_back(std::move(path));
  slots_.emplace_back();
  return static_cast<std::uint32_t>(paths_.size() - 1);
}

std::uint32_t SourceFiles::add(std::shared_ptr<const Directory> directory, std::string path) {
  const std::uint32_t number = add(std::move(path));
  const std::scoped_lock lock(mutex_);
  slots_[number].directory = std::move(directory);
  return number;
}

std::uint32_t SourceFiles::add(std::unique_ptr<ReadableFile> file) {
  const std::uint32_t number = add(file->name());
  const std::scoped_lock lock(mutex_);
  slots_[number].file = std::make_shared<CountedFile>(std::move(file), bytes_read_);
  slots_[number].stays_open = true;
  return number;
}

Result<std::shared_ptr<const ReadableFile>> SourceFiles::get(std::uint32_t file) {
  const std::scoped_lock lock(mutex_);
  Slot& slot = slots_[file];
  slot.last_use = ++tick_;
  if (slot.file) return slot.file;
  if (open_count_ >= open_limit_) close_oldest();
  const Directory& directory = slot.directory ? *slot.directory : *directory_;
  slot.file = std::make_shared<CountedFile>(SW_TRY(directory.open(paths_[file])), bytes_read_);
  ++opens_;
  ++open_count_;
  return slot.file;
}

Result<FileVersion> SourceFiles::version(std::uint32_t file) const {
  const std::scoped_lock lock(mutex_);
  const Slot& slot = slots_[file];
  if (slot.stays_open) return FileVersion{.size_bytes = slot.file->size()};
  if (slot.file) return slot.file->version();
  const Directory& directory = slot.directory ? *slot.directory : *directory_;
  return directory.version(paths_[file]);
}

Status SourceFiles::read_at(std::uint32_t file, std::uint64_t offset, std::span<std::byte> buffer) {
  const std::shared_ptr<const ReadableFile> source = SW_TRY(get(file));
  const auto named = [&](Status status) -> Status {
    if (status) return status;
    return std::unexpected(Error(std::move(status).error()).within(source->name()));
  };
  auto claim = checks_.claim({file, {offset, buffer.size()}});
  if (!claim) return named(std::unexpected(std::move(claim).error()));
  if (claim->empty()) return source->read_at(offset, buffer);
  // Summed while they are in the cache.
  for (std::size_t done = 0; done < buffer.size();) {
    const std::span<std::byte> block =
        buffer.subspan(done, std::min(kBlockBytes, buffer.size() - done));
    Status status = source->read_at(offset + done, block);
    if (!status) {
      checks_.drop(*claim);
      return status;
    }
    claim->add(offset + done, block);
    done += block.size();
  }
  return named(checks_.settle(*claim));
}

Status SourceFiles::check_unchanged() const {
  std::set<const Directory*> directories = {directory_};
  {
    const std::scoped_lock lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.directory) directories.insert(slot.directory.get());
    }
  }
  for (const Directory* directory : directories) SW_TRY(directory->check_unchanged());
  return {};
}

void SourceFiles::close_oldest() {
  Slot* oldest = nullptr;
  for (Slot& slot : slots_) {
    if (slot.stays_open) continue;
    if (slot.file && (oldest == nullptr || slot.last_use < oldest->last_use)) oldest = &slot;
  }
  if (oldest == nullptr) return;
  oldest->file.reset();
  --open_count_;
}

}  // namespace shardwright
