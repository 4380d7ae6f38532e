// SPDX-License-Identifier: Apache-2.0
#include "io/recording_directory.h"

namespace shardwright {
namespace {

using Journal = RecordingDirectory::Journal;

/// Where the events of one file go.
class Entry {
 public:
  Entry(std::shared_ptr<Journal> journal, std::string_view path)
      : journal_(std::move(journal)), path_(path) {}

  template <class Change>
  void note(Change change) const {
    const std::scoped_lock lock(journal_->mutex);
    change(journal_->files[path_]);
  }

 private:
  std::shared_ptr<Journal> journal_;
  std::string path_;
};

class RecordedReadableFile final : public ReadableFile {
 public:
  RecordedReadableFile(std::unique_ptr<ReadableFile> inner, Entry entry, bool is_remote)
      : inner_(std::move(inner)), entry_(std::move(entry)), is_remote_(is_remote) {}
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  FileVersion version() const override { return inner_->version(); }
  bool is_remote() const override { return is_remote_ || inner_->is_remote(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    SW_TRY(inner_->read_at(offset, buffer));
    entry_.note([&](FileRecord& file) { file.reads.push_back({offset, buffer.size()}); });
    return {};
  }
  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t length) const override {
    return inner_->cached_bytes(offset, length);
  }
  void give_back(std::uint64_t offset, std::uint64_t length) const override {
    inner_->give_back(offset, length);
    entry_.note([&](FileRecord& file) { file.given_back.push_back({offset, length}); });
  }

 private:
  std::unique_ptr<ReadableFile> inner_;
  Entry entry_;
  bool is_remote_;
};

class RecordedWritableFile final : public WritableFile {
 public:
  RecordedWritableFile(std::unique_ptr<WritableFile> inner, Entry entry)
      : inner_(std::move(inner)), entry_(std::move(entry)) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const override {
    SW_TRY(inner_->write_at(offset, bytes));
    entry_.note([&](FileRecord& file) { file.writes.push_back({offset, bytes.size()}); });
    return {};
  }
  Status write_at(std::uint64_t offset,
                  std::span<const std::span<const std::byte>> pieces) const override {
    SW_TRY(inner_->write_at(offset, pieces));
    std::uint64_t length = 0;
    for (const auto& piece : pieces) length += piece.size();
    entry_.note([&](FileRecord& file) { file.writes.push_back({offset, length}); });
    return {};
  }
  void start_writeback(std::uint64_t offset, std::uint64_t length) const override {
    inner_->start_writeback(offset, length);
  }
  Status sync() override {
    SW_TRY(inner_->sync());
    entry_.note([](FileRecord& file) { ++file.syncs; });
    return {};
  }

 private:
  std::unique_ptr<WritableFile> inner_;
  Entry entry_;
};

std::uint64_t total_length(const std::vector<ByteRange>& ranges) {
  std::uint64_t total = 0;
  for (const ByteRange& range : ranges) total += range.length;
  return total;
}

}  // namespace

std::map<std::string, FileRecord> RecordingDirectory::records() const {
  const std::scoped_lock lock(journal_->mutex);
  return journal_->files;
}

int RecordingDirectory::opens() const {
  int count = 0;
  for (const auto& [path, file] : records()) count += file.opens;
  return count;
}

std::uint64_t RecordingDirectory::bytes_read() const {
  std::uint64_t total = 0;
  for (const auto& [path, file] : records()) total += total_length(file.reads);
  return total;
}

std::uint64_t RecordingDirectory::bytes_written() const {
  std::uint64_t total = 0;
  for (const auto& [path, file] : records()) total += total_length(file.writes);
  return total;
}

Result<std::unique_ptr<ReadableFile>> RecordingDirectory::open(std::string_view path) const {
  auto inner = SW_TRY(inner_.open(path));
  Entry entry(journal_, path);
  entry.note([](FileRecord& file) { ++file.opens; });
  return std::make_unique<RecordedReadableFile>(std::move(inner), std::move(entry), is_remote_);
}

Result<std::unique_ptr<WritableFile>> RecordingDirectory::create(std::string_view path,
                                                                 std::uint64_t size) {
  auto inner = SW_TRY(inner_.create(path, size));
  Entry entry(journal_, path);
  entry.note([](FileRecord& file) { ++file.creates; });
  return std::make_unique<RecordedWritableFile>(std::move(inner), std::move(entry));
}

Result<std::unique_ptr<WritableFile>> RecordingDirectory::reopen(std::string_view path,
                                                                 std::uint64_t size) {
  auto inner = SW_TRY(inner_.reopen(path, size));
  Entry entry(journal_, path);
  entry.note([](FileRecord& file) { ++file.creates; });
  return std::make_unique<RecordedWritableFile>(std::move(inner), std::move(entry));
}

}  // namespace shardwright
