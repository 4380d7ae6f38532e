// SPDX-License-Identifier: Apache-2.0
#include "remote/remote_directory.h"

#include <algorithm>
#include <cstring>

#include "base/digest.h"
#include "base/fail.h"
#include "base/text.h"
#include "io/beneath.h"

namespace shardwright {
namespace {

// Longer reads are requests of their own.
constexpr std::uint64_t kMostCachedBytes = std::uint64_t{128} << 10;
// What is read as a whole at once is likely to be read so again by another part of a command, and
// is kept up to this size.
constexpr std::uint64_t kMostKeptBytes = BlockCache::kUsualBytes / 2;

std::string joined(const std::string& root, std::string_view path) {
  return root.ends_with('/') ? root + std::string(path) : fmt::format("{}/{}", root, path);
}

class RemoteFile final : public ReadableFile {
 public:
  RemoteFile(std::shared_ptr<const RemoteStore> store, std::shared_ptr<BlockCache> cache,
             std::string path, RemoteObject object)
      : store_(std::move(store)),
        cache_(std::move(cache)),
        path_(std::move(path)),
        name_(joined(store_->name(), path_)),
        object_(std::move(object)),
        key_(path_ + '\0' + object_.tag) {}

  std::uint64_t size() const override { return object_.size; }
  const std::string& name() const override { return name_; }
  FileVersion version() const override { return object_.version(); }
  bool is_remote() const override { return true; }

  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    if (offset > object_.size || buffer.size() > object_.size - offset) {
      return fail(Code::kShortRead,
                  "{}@{}: found a file of {} bytes, expected {} bytes from here; copy the file "
                  "again from its source",
                  name_, offset, object_.size, buffer.size());
    }
    if (buffer.size() > kMostCachedBytes) return read_long(offset, buffer);
    while (!buffer.empty()) {
      const std::uint64_t number = offset / BlockCache::kBlockBytes;
      const std::uint64_t last = (offset + buffer.size() - 1) / BlockCache::kBlockBytes;
      const BlockCache::Found found =
          cache_->find(key_, number, last - number + 1, blocks_before(object_.size));
      std::vector<std::byte> fetched;
      if (found.block == nullptr) fetched = SW_TRY(fetch(number, found.claimed));
      const std::vector<std::byte>& bytes = found.block ? *found.block : fetched;
      const auto begin = static_cast<std::size_t>(offset - number * BlockCache::kBlockBytes);
      const std::size_t count = std::min(buffer.size(), bytes.size() - begin);
      std::memcpy(buffer.data(), bytes.data() + begin, count);
      buffer = buffer.subspan(count);
      offset += count;
    }
    return {};
  }

 private:
  // Blocks that are claimed are put or dropped, whatever happens: others wait for them.
  class Claim {
   public:
    Claim(BlockCache& cache, const std::string& key, std::uint64_t first, std::uint64_t count)
        : cache_(cache), key_(key), first_(first), count_(count) {}
    ~Claim() { cache_.drop(key_, first_, count_); }
    Claim(const Claim&) = delete;
    Claim& operator=(const Claim&) = delete;

   private:
    BlockCache& cache_;
    const std::string& key_;
    std::uint64_t first_;
    std::uint64_t count_;
  };

  static std::uint64_t blocks_before(std::uint64_t end) {
    return (end + BlockCache::kBlockBytes - 1) / BlockCache::kBlockBytes;
  }

  Result<std::vector<std::byte>> fetch(std::uint64_t first, std::uint64_t count) const {
    const Claim claim(*cache_, key_, first, count);
    const std::uint64_t begin = first * BlockCache::kBlockBytes;
    std::vector<std::byte> bytes(
        static_cast<std::size_t>(std::min(count * BlockCache::kBlockBytes, object_.size - begin)));
    SW_TRY(store_->read(path_, object_, begin, bytes));
    cache_->put(key_, first, bytes);
    return bytes;
  }

  Status read_long(std::uint64_t offset, std::span<std::byte> buffer) const {
    const bool is_whole = buffer.size() == object_.size && buffer.size() <= kMostKeptBytes;
    if (is_whole && cache_->copy(key_, 0, buffer)) return {};
    SW_TRY(store_->read(path_, object_, offset, buffer));
    if (is_whole) cache_->put(key_, 0, buffer);
    return {};
  }

  std::shared_ptr<const RemoteStore> store_;
  std::shared_ptr<BlockCache> cache_;
  std::string path_;
  std::string name_;
  RemoteObject object_;
  std::string key_;  // in the cache: the file as it is now
};

}  // namespace

FileVersion RemoteObject::version() const {
  FileVersion version{.size_bytes = size, .tells_contents = size == 0 || !tag.empty()};
  if (tag.empty()) return version;
  Digest digest;
  digest.add(tag);
  std::uint64_t number = 0;
  for (const char c : digest.text().substr(0, 16)) {
    const int digit = c <= '9' ? c - '0' : c - 'a' + 10;
    number = number << 4U | static_cast<std::uint64_t>(digit);
  }
  version.modified_ns = static_cast<std::int64_t>(number);
  return version;
}

Result<std::unique_ptr<ReadableFile>> RemoteDirectory::open(std::string_view path) const {
  if (Status status = check_relative_path(path); !status) {
    return std::unexpected(std::move(status).error().within(name()));
  }
  RemoteObject object = SW_TRY(store_->find(path));
  return std::make_unique<RemoteFile>(store_, cache_, std::string(path), std::move(object));
}

Result<std::unique_ptr<WritableFile>> RemoteDirectory::create(std::string_view path,
                                                              std::uint64_t /*size*/) {
  return fail(Code::kPermission, "{}: remote folders are only read; choose a local path",
              printable(joined(name(), path)));
}

Result<std::vector<DirectoryEntry>> RemoteDirectory::list(std::string_view path) const {
  if (!path.empty()) {
    if (Status status = check_relative_path(path); !status) {
      return std::unexpected(std::move(status).error().within(name()));
    }
  }
  {
    const std::scoped_lock lock(mutex_);
    const auto known = listings_.find(path);
    if (known != listings_.end()) return known->second;
    if (is_known_absent(path)) {
      return fail(Code::kNotFound, "{}: the server's list of the folder above has no such folder",
                  printable(joined(name(), path)));
    }
  }
  std::vector<DirectoryEntry> found = SW_TRY(store_->list(path));
  std::vector<DirectoryEntry> entries;
  for (DirectoryEntry& entry : found) {
    // An object's name may be anything: what can't be a file's name is not shown as one.
    if (entry.name.find('/') != std::string::npos || !check_relative_path(entry.name)) continue;
    entries.push_back(std::move(entry));
  }
  // An object may be called as a folder is; the folder is meant, as in a local copy.
  std::ranges::sort(entries, [](const DirectoryEntry& a, const DirectoryEntry& b) {
    return a.name != b.name ? a.name < b.name : a.is_directory > b.is_directory;
  });
  const auto repeated = std::ranges::unique(entries, {}, &DirectoryEntry::name);
  entries.erase(repeated.begin(), repeated.end());
  const std::scoped_lock lock(mutex_);
  return listings_.try_emplace(std::string(path), std::move(entries)).first->second;
}

// Of a folder that is not there a web server would be asked for each name that it could hold. What
// begins with a dot may be there without being listed.
bool RemoteDirectory::is_known_absent(std::string_view path) const {
  const auto [folder, last] = split_last(path);
  const auto above = listings_.find(folder);
  if (path.empty() || last.starts_with('.') || above == listings_.end()) return false;
  return store_->tells_all(folder) &&
         std::ranges::none_of(above->second, [&](const DirectoryEntry& entry) {
           return entry.is_directory && entry.name == last;
         });
}

Result<FileVersion> RemoteDirectory::version(std::string_view path) const {
  if (Status status = check_relative_path(path); !status) {
    return std::unexpected(std::move(status).error().within(name()));
  }
  return SW_TRY(store_->look(path)).version();
}

bool RemoteDirectory::exists(std::string_view path) const {
  if (path.empty()) return true;
  if (!check_relative_path(path)) return false;
  const auto [folder, last] = split_last(path);
  // Of a name that nobody promised, a refusal says as little as a file that is not there.
  const auto says_no = [](const Error& error) {
    return error.code == Code::kNotFound || error.code == Code::kPermission;
  };
  const auto entries = list(folder);
  if (!entries && !says_no(entries.error())) return true;
  if (entries && std::ranges::find(*entries, last, &DirectoryEntry::name) != entries->end()) {
    return true;
  }
  if (store_->tells_all(folder)) return false;
  const auto object = store_->find(path);
  return object || !says_no(object.error());
}

}  // namespace shardwright
