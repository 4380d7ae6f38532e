// SPDX-License-Identifier: Apache-2.0
#include "io/memory_directory.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/checked.h"
#include "base/fail.h"
#include "io/beneath.h"

namespace shardwright {
namespace {

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(std::string name, std::shared_ptr<const std::string> bytes,
                     const FileVersion& version)
      : name_(std::move(name)), bytes_(std::move(bytes)), version_(version) {}

  std::uint64_t size() const override { return version_.size_bytes; }
  const std::string& name() const override { return name_; }
  FileVersion version() const override { return version_; }
  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    const auto end = checked_add<std::uint64_t>(offset, buffer.size());
    if (!end || *end > bytes_->size()) {
      return fail(Code::kShortRead,
                  "{}@{}: found a file of {} bytes ({} when it was opened), expected {} bytes "
                  "from here; copy the file again from its source",
                  name_, offset, bytes_->size(), size(), buffer.size());
    }
    if (!buffer.empty()) std::memcpy(buffer.data(), bytes_->data() + offset, buffer.size());
    return {};
  }
  // What is here lies in no page cache.
  std::optional<std::uint64_t> cached_bytes(std::uint64_t /*offset*/,
                                            std::uint64_t /*length*/) const override {
    return 0;
  }

 private:
  std::string name_;
  std::shared_ptr<const std::string> bytes_;
  FileVersion version_;
};

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(std::string name, std::shared_ptr<std::string> bytes)
      : name_(std::move(name)), bytes_(std::move(bytes)) {}

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const override {
    const auto end = checked_add<std::uint64_t>(offset, bytes.size());
    if (!end || *end > bytes_->size()) {
      return fail(Code::kInternal, "{}@{}: found a write of {} bytes, expected it to end at {}",
                  name_, offset, bytes.size(), bytes_->size());
    }
    if (!bytes.empty()) std::memcpy(bytes_->data() + offset, bytes.data(), bytes.size());
    return {};
  }
  Status write_at(std::uint64_t offset,
                  std::span<const std::span<const std::byte>> pieces) const override {
    for (const auto& piece : pieces) {
      SW_TRY(write_at(offset, piece));
      offset += piece.size();
    }
    return {};
  }
  void start_writeback(std::uint64_t /*offset*/, std::uint64_t /*length*/) const override {}
  Status sync() override { return {}; }

 private:
  std::string name_;
  std::shared_ptr<std::string> bytes_;
};

bool is_inside(std::string_view path, std::string_view folder) {
  return folder.empty() ||
         (path.size() > folder.size() && path.starts_with(folder) && path[folder.size()] == '/');
}

}  // namespace

std::unique_ptr<ReadableFile> make_memory_file(std::string name, std::string contents) {
  const FileVersion version{.size_bytes = contents.size()};
  return std::make_unique<MemoryReadableFile>(
      std::move(name), std::make_shared<const std::string>(std::move(contents)), version);
}

void MemoryDirectory::put(std::string_view path, std::string contents) {
  const std::scoped_lock lock(mutex_);
  files_[std::string(path)] = std::make_shared<std::string>(std::move(contents));
  ++changes_[std::string(path)];
}

std::string MemoryDirectory::contents(std::string_view path) const {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  return found == files_.end() ? std::string() : *found->second;
}

std::vector<std::string> MemoryDirectory::paths() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::string> result;
  for (const auto& [path, bytes] : files_) result.push_back(path);
  return result;
}

void MemoryDirectory::touch(std::string_view path, std::size_t position, char byte) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) return;
  if (position < found->second->size()) (*found->second)[position] = byte;
  ++changes_[std::string(path)];
}

void MemoryDirectory::truncate(std::string_view path, std::size_t size) {
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found != files_.end()) found->second->resize(size);
}

Result<std::unique_ptr<ReadableFile>> MemoryDirectory::open(std::string_view path) const {
  SW_TRY(check_relative_path(path));
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found == files_.end()) {
    return fail(Code::kNotFound, "{}: cannot open: no such file", full_name(path));
  }
  return std::make_unique<MemoryReadableFile>(full_name(path), found->second,
                                              version_of(path, found->second->size()));
}

Result<std::unique_ptr<WritableFile>> MemoryDirectory::create(std::string_view path,
                                                              std::uint64_t size) {
  SW_TRY(check_relative_path(path));
  if (size > std::numeric_limits<std::int64_t>::max()) {
    return fail(Code::kLimit, "{}: found a size of {} bytes, expected one that a file can have",
                full_name(path), size);
  }
  if (exists(path)) {
    return fail(Code::kTargetExists, "{}: found something there, expected to make a new file",
                full_name(path));
  }
  auto bytes = std::make_shared<std::string>(size, '\0');
  const std::scoped_lock lock(mutex_);
  files_[std::string(path)] = bytes;
  return std::make_unique<MemoryWritableFile>(full_name(path), std::move(bytes));
}

Result<std::unique_ptr<WritableFile>> MemoryDirectory::reopen(std::string_view path,
                                                              std::uint64_t size) {
  SW_TRY(check_relative_path(path));
  {
    const std::scoped_lock lock(mutex_);
    const auto found = files_.find(path);
    if (found != files_.end() && found->second->size() == size) {
      return std::make_unique<MemoryWritableFile>(full_name(path), found->second);
    }
  }
  return create(path, size);
}

Result<std::vector<DirectoryEntry>> MemoryDirectory::list(std::string_view path) const {
  if (!path.empty()) SW_TRY(check_relative_path(path));
  std::vector<DirectoryEntry> entries;
  const std::scoped_lock lock(mutex_);
  for (const auto& [file, bytes] : files_) {
    if (!is_inside(file, path)) continue;
    const std::string_view rest = std::string_view(file).substr(path.empty() ? 0 : path.size() + 1);
    const std::size_t slash = rest.find('/');
    DirectoryEntry entry{std::string(rest.substr(0, slash)), slash != std::string_view::npos, 0};
    if (!entry.is_directory) entry.size_bytes = bytes->size();
    // Files of one folder need not be neighbours: "a-x" sorts between "a" and "a/b".
    const bool seen = std::ranges::any_of(
        entries, [&](const DirectoryEntry& other) { return other.name == entry.name; });
    if (!seen) entries.push_back(std::move(entry));
  }
  if (entries.empty() && !path.empty()) {
    return fail(Code::kNotFound, "{}: cannot list: no such folder", full_name(path));
  }
  std::ranges::sort(entries, {}, &DirectoryEntry::name);
  return entries;
}

Result<FileVersion> MemoryDirectory::version(std::string_view path) const {
  SW_TRY(check_relative_path(path));
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(path);
  if (found != files_.end()) return version_of(path, found->second->size());
  return fail(Code::kNotFound, "{}: no such file", full_name(path));
}

// REQUIRES: the lock is held.
FileVersion MemoryDirectory::version_of(std::string_view path, std::uint64_t size) const {
  const auto changes = changes_.find(path);
  return {.size_bytes = size, .modified_ns = changes == changes_.end() ? 0 : changes->second};
}

bool MemoryDirectory::exists(std::string_view path) const {
  if (path.empty()) return true;
  const std::scoped_lock lock(mutex_);
  return std::ranges::any_of(files_, [&](const auto& entry) {
    return entry.first == path || is_inside(entry.first, path);
  });
}

std::string MemoryDirectory::full_name(std::string_view path) const {
  return path.empty() ? name_ : fmt::format("{}/{}", name_, path);
}

}  // namespace shardwright
