// SPDX-License-Identifier: Apache-2.0
#include "io/faulty_directory.h"

#include "base/fail.h"

namespace shardwright {
namespace {

using Trigger = FaultyDirectory::Trigger;

std::unexpected<Error> injected(Code code, std::string_view object) {
  return fail(code, "{}: found an injected fault, expected this only in a test", object);
}

Code code_of(Fault fault) { return fault == Fault::kNoSpace ? Code::kDiskFull : Code::kIo; }

class FaultyReadableFile final : public ReadableFile {
 public:
  FaultyReadableFile(std::unique_ptr<ReadableFile> inner, std::shared_ptr<Trigger> trigger)
      : inner_(std::move(inner)), trigger_(std::move(trigger)) {}
  std::uint64_t size() const override { return inner_->size(); }
  const std::string& name() const override { return inner_->name(); }
  FileVersion version() const override { return inner_->version(); }
  bool is_remote() const override { return inner_->is_remote(); }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (!trigger_->next(false)) return inner_->read_at(offset, buffer);
    if (trigger_->fault != Fault::kShorten) return injected(Code::kIo, name());
    SW_TRY(inner_->read_at(offset, buffer.first(buffer.size() / 2)));
    return injected(Code::kShortRead, name());
  }

 private:
  std::unique_ptr<ReadableFile> inner_;
  std::shared_ptr<Trigger> trigger_;
};

class FaultyWritableFile final : public WritableFile {
 public:
  FaultyWritableFile(std::unique_ptr<WritableFile> inner, std::string name,
                     std::shared_ptr<Trigger> trigger)
      : inner_(std::move(inner)), name_(std::move(name)), trigger_(std::move(trigger)) {}
  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const override {
    if (!trigger_->next(true)) return inner_->write_at(offset, bytes);
    if (trigger_->fault == Fault::kShorten) {
      SW_TRY(inner_->write_at(offset, bytes.first(bytes.size() / 2)));
    }
    return injected(code_of(trigger_->fault), name_);
  }
  Status write_at(std::uint64_t offset,
                  std::span<const std::span<const std::byte>> pieces) const override {
    if (!trigger_->next(true)) return inner_->write_at(offset, pieces);
    if (trigger_->fault == Fault::kShorten) {
      SW_TRY(inner_->write_at(offset, pieces.first(pieces.size() / 2)));
    }
    return injected(code_of(trigger_->fault), name_);
  }
  void start_writeback(std::uint64_t offset, std::uint64_t length) const override {
    inner_->start_writeback(offset, length);
  }
  Status sync() override {
    if (trigger_->next(true)) return injected(code_of(trigger_->fault), name_);
    return inner_->sync();
  }

 private:
  std::unique_ptr<WritableFile> inner_;
  std::string name_;
  std::shared_ptr<Trigger> trigger_;
};

}  // namespace

bool FaultyDirectory::Trigger::next(bool takes_space) {
  if (fault == Fault::kNoSpace && !takes_space) return false;
  const std::uint64_t number = ++count;
  const bool due = duration == Duration::kOnce ? number == nth : number >= nth;
  if (due) fired = true;
  return due;
}

Result<std::unique_ptr<ReadableFile>> FaultyDirectory::open(std::string_view path) const {
  if (trigger_->next(false)) return injected(Code::kIo, path);
  auto inner = SW_TRY(inner_.open(path));
  return std::make_unique<FaultyReadableFile>(std::move(inner), trigger_);
}

Result<std::unique_ptr<WritableFile>> FaultyDirectory::create(std::string_view path,
                                                              std::uint64_t size) {
  if (trigger_->next(true)) return injected(code_of(trigger_->fault), path);
  auto inner = SW_TRY(inner_.create(path, size));
  return std::make_unique<FaultyWritableFile>(std::move(inner), std::string(path), trigger_);
}

Result<std::unique_ptr<WritableFile>> FaultyDirectory::reopen(std::string_view path,
                                                              std::uint64_t size) {
  if (trigger_->next(true)) return injected(code_of(trigger_->fault), path);
  auto inner = SW_TRY(inner_.reopen(path, size));
  return std::make_unique<FaultyWritableFile>(std::move(inner), std::string(path), trigger_);
}

Result<std::vector<DirectoryEntry>> FaultyDirectory::list(std::string_view path) const {
  if (trigger_->next(false)) return injected(Code::kIo, path);
  return inner_.list(path);
}

Result<FileVersion> FaultyDirectory::version(std::string_view path) const {
  if (trigger_->next(false)) return injected(Code::kIo, path);
  return inner_.version(path);
}

}  // namespace shardwright
