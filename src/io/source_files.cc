// SPDX-License-Identifier: Apache-2.0
#include "io/source_files.h"

#include <algorithm>
#include <new>
#include <set>
#include <utility>

#include "base/fail.h"

namespace shardwright {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{256} << 10;

}  // namespace

class SourceFiles::CountedFile final : public ReadableFile {
 public:
  CountedFile(std::unique_ptr<ReadableFile> file, SourceFiles& files,
              std::shared_ptr<ReadPages> pages)
      : file_(std::move(file)), files_(&files), pages_(std::move(pages)) {
    // One that is none in a directory was not opened here.
    if (pages_ == nullptr) is_counted_ = true;
    count_open();
  }
  [[nodiscard]] std::uint64_t size() const override { return file_->size(); }
  [[nodiscard]] Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    const bool is_last = files_->last_readings_ > 0 && pages_ != nullptr;
    if (is_last) pages_->begin(*file_);
    SW_TRY(file_->read_at(offset, buffer));
    count_open();
    // What is known without it is not read.
    if (is_counted_) files_->bytes_read_ += buffer.size();
    if (is_last) pages_->add(*file_, offset, buffer.size());
    return {};
  }
  [[nodiscard]] const std::string& name() const override { return file_->name(); }
  [[nodiscard]] FileVersion version() const override { return file_->version(); }
  [[nodiscard]] bool is_open() const override { return file_->is_open(); }
  [[nodiscard]] bool is_remote() const override { return file_->is_remote(); }
  void end_reading() const {
    if (pages_ != nullptr) pages_->finish(*file_);
  }

 private:
  void count_open() const {
    if (!is_counted_ && file_->is_open() && !is_counted_.exchange(true)) ++files_->opens_;
  }

  std::unique_ptr<ReadableFile> file_;
  SourceFiles* files_;
  std::shared_ptr<ReadPages> pages_;  // null: of a file that is none in a directory
  mutable std::atomic<bool> is_counted_{false};
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
  slots_[number].file = std::make_shared<CountedFile>(std::move(file), *this, nullptr);
  slots_[number].stays_open = true;
  return number;
}

std::uint32_t SourceFiles::add_all(std::shared_ptr<SourceFiles> others) {
  const std::uint32_t theirs = others->count();
  const std::scoped_lock lock(mutex_);
  const auto first = static_cast<std::uint32_t>(slots_.size());
  paths_.resize(paths_.size() + theirs);
  slots_.resize(slots_.size() + theirs);
  others_.push_back({first, first + theirs, std::move(others)});
  // Of n each gets a share.
  const std::size_t sharing = others_.size() + 1;
  open_limit_ = std::max<std::size_t>(open_limit_ * (sharing - 1) / sharing, 1);
  for (const Others& each : others_) each.files->open_limit_ = open_limit_;
  return first;
}

std::uint32_t SourceFiles::count() const {
  const std::scoped_lock lock(mutex_);
  return static_cast<std::uint32_t>(slots_.size());
}

SourceFiles* SourceFiles::owner_of(std::uint32_t& file) const {
  const std::scoped_lock lock(mutex_);
  for (const Others& others : others_) {
    if (file < others.first || file >= others.end) continue;
    file -= others.first;
    return others.files.get();
  }
  return nullptr;
}

Result<std::shared_ptr<const ReadableFile>> SourceFiles::get(std::uint32_t file) {
  if (SourceFiles* const owner = owner_of(file)) return owner->get(file);
  std::unique_lock lock(mutex_);
  opened_.wait(lock, [&] { return !slots_[file].is_being_opened; });
  slots_[file].last_use = ++tick_;
  if (slots_[file].file) return slots_[file].file;
  std::unique_ptr<ReadableFile> opened = SW_TRY(open(file, lock));
  Slot& slot = slots_[file];
  if (slot.pages == nullptr) slot.pages = std::make_shared<ReadPages>(*opened, is_memory_short_);
  slot.file = std::make_shared<CountedFile>(std::move(opened), *this, slot.pages);
  return slot.file;
}

// A server may take long to answer: others open and use other files meanwhile.
Result<std::unique_ptr<ReadableFile>> SourceFiles::open(std::uint32_t file,
                                                        std::unique_lock<std::mutex>& lock) {
  if (open_count_ >= open_limit_) close_oldest();
  const std::shared_ptr<const Directory> own = slots_[file].directory;
  const std::string path = paths_[file];
  ++open_count_;
  slots_[file].is_being_opened = true;
  lock.unlock();
  Result<std::unique_ptr<ReadableFile>> opened = [&]() -> Result<std::unique_ptr<ReadableFile>> {
    try {
      return (own ? *own : *directory_).open(path);
    } catch (const std::bad_alloc&) {
      return fail_out_of_memory();
    }
  }();
  lock.lock();
  slots_[file].is_being_opened = false;
  if (!opened) --open_count_;
  opened_.notify_all();
  return opened;
}

Result<FileVersion> SourceFiles::version(std::uint32_t file) const {
  if (const SourceFiles* const owner = owner_of(file)) return owner->version(file);
  const std::scoped_lock lock(mutex_);
  const Slot& slot = slots_[file];
  if (slot.file) return slot.file->version();
  const Directory& directory = slot.directory ? *slot.directory : *directory_;
  return directory.version(paths_[file]);
}

Status SourceFiles::read_at(std::uint32_t file, std::uint64_t offset, std::span<std::byte> buffer) {
  if (SourceFiles* const owner = owner_of(file)) return owner->read_at(file, offset, buffer);
  const std::shared_ptr<const ReadableFile> source = SW_TRY(get(file));
  const auto named = [&](Status status) -> Status {
    if (status) return status;
    return std::unexpected(Error(std::move(status).error()).within(source->name()));
  };
  auto claim = checks_.claim({file, {offset, buffer.size()}});
  if (!claim) return named(std::unexpected(std::move(claim).error()));
  if (claim->empty()) return source->read_at(offset, buffer);
  // Summed while they are in the cache; of a server each block would be a request.
  const std::size_t step = source->is_remote() ? buffer.size() : kBlockBytes;
  for (std::size_t done = 0; done < buffer.size();) {
    const std::span<std::byte> block = buffer.subspan(done, std::min(step, buffer.size() - done));
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
  for (const Others& others : others_) SW_TRY(others.files->check_unchanged());
  return {};
}

void SourceFiles::begin_last_reading() {
  ++last_readings_;
  for (const Others& others : others_) others.files->begin_last_reading();
}

void SourceFiles::end_last_reading() {
  {
    const std::scoped_lock lock(mutex_);
    for (const Slot& slot : slots_) {
      if (slot.file) slot.file->end_reading();
    }
  }
  --last_readings_;
  for (const Others& others : others_) others.files->end_last_reading();
}

void SourceFiles::expect_nothing() {
  checks_.clear();
  for (const Others& others : others_) others.files->expect_nothing();
}

std::vector<FileRange> SourceFiles::unread_rest(std::uint64_t most_bytes) {
  std::vector<FileRange> rest = checks_.rest(most_bytes);
  for (const Others& others : others_) {
    for (FileRange range : others.files->unread_rest(most_bytes)) {
      range.file += others.first;
      rest.push_back(range);
    }
  }
  return rest;
}

std::uint64_t SourceFiles::opens() const {
  std::uint64_t opens = opens_;
  for (const Others& others : others_) opens += others.files->opens();
  return opens;
}

std::uint64_t SourceFiles::bytes_read() const {
  std::uint64_t bytes = bytes_read_;
  for (const Others& others : others_) bytes += others.files->bytes_read();
  return bytes;
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
