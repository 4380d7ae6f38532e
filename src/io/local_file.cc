// SPDX-License-Identifier: Apache-2.0
#include "io/local_file.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <optional>

#include "base/checked.h"
#include "base/fail.h"
#include "io/dirty_bytes.h"
#include "io/file_link.h"
#include "io/pending_call.h"
#include "io/retries.h"

namespace shardwright {
namespace {

// Older headers lack both. Linux 6.5 or newer; who may not write the file may not be told.
struct CachedRange {
  std::uint64_t offset;
  std::uint64_t length;
};
struct CachedPages {
  std::uint64_t cached;
  std::uint64_t others[4];
};
#ifdef SYS_cachestat
constexpr long kCachestat = SYS_cachestat;
#else
constexpr long kCachestat = 451;
#endif

constexpr auto kMaxOffset = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());

class LocalReadableFile final : public ReadableFile {
 public:
  LocalReadableFile(UniqueFd fd, std::string name, const FileVersion& version)
      : fd_(std::move(fd)), name_(std::move(name)), version_(version), size_(version.size_bytes) {}

  std::uint64_t size() const override { return size_; }
  const std::string& name() const override { return name_; }
  FileVersion version() const override { return version_; }

  Status read_at(std::uint64_t offset, std::span<std::byte> buffer) const override {
    const auto end = checked_add<std::uint64_t>(offset, buffer.size());
    if (!end || *end > size_) return short_read(offset, buffer.size());
    const PendingCall pending("a read", name_);
    const Transfer read = transfer(buffer.size(), [&](std::size_t done) {
      return ::pread(fd_.get(), buffer.data() + done, buffer.size() - done,
                     static_cast<off_t>(offset + done));
    });
    if (read.ended) return short_read(offset, buffer.size());
    if (read.os_errno == 0) return {};
    return fail_errno(read.os_errno, translated("{}@{}: cannot read {} bytes", name_,
                                                offset + read.done, buffer.size() - read.done));
  }

  std::optional<std::uint64_t> cached_bytes(std::uint64_t offset,
                                            std::uint64_t length) const override {
    CachedRange range{offset, length};
    CachedPages pages{};
    if (length == 0 || ::syscall(kCachestat, fd_.get(), &range, &pages, 0) != 0)
      return std::nullopt;
    return pages.cached * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  }

  void give_back(std::uint64_t offset, std::uint64_t length) const override {
    (void)::posix_fadvise(fd_.get(), static_cast<off_t>(offset), static_cast<off_t>(length),
                          POSIX_FADV_DONTNEED);
  }

 private:
  std::unexpected<Error> short_read(std::uint64_t offset, std::size_t wanted) const {
    struct stat status{};
    const std::uint64_t now =
        ::fstat(fd_.get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
    return fail(Code::kShortRead,
                "{}@{}: found a file of {} bytes ({} when it was opened), expected {} bytes from "
                "here; copy the file again from its source",
                name_, offset, now, size_, wanted);
  }

  UniqueFd fd_;
  std::string name_;
  FileVersion version_;
  std::uint64_t size_;
};

bool has_name(int fd) {
  struct stat status{};
  return ::fstat(fd, &status) == 0 && status.st_nlink > 0;
}

class LocalWritableFile final : public WritableFile {
 public:
  LocalWritableFile(UniqueFd fd, std::string name, std::uint64_t size)
      : fd_(std::move(fd)), name_(std::move(name)), size_(size) {}

  Status write_at(std::uint64_t offset, std::span<const std::byte> bytes) const override {
    SW_TRY(check_range(offset, bytes.size()));
    const PendingCall pending("a write", name_);
    const Transfer written = transfer(bytes.size(), [&](std::size_t done) {
      return ::pwrite(fd_.get(), bytes.data() + done, bytes.size() - done,
                      static_cast<off_t>(offset + done));
    });
    if (written.ended) return write_error(EIO, offset + written.done);
    if (written.os_errno != 0) return write_error(written.os_errno, offset + written.done);
    return {};
  }

  Status write_at(std::uint64_t offset,
                  std::span<const std::span<const std::byte>> pieces) const override {
    std::uint64_t total = 0;
    for (const auto& piece : pieces) total += piece.size();
    SW_TRY(check_range(offset, total));
    const PendingCall pending("a write", name_);
    std::size_t index = 0;   // first piece that is not wholly written
    std::size_t within = 0;  // bytes of it that are
    Retries retries;
    while (true) {
      std::array<iovec, IOV_MAX> batch;  // filled below up to `count`
      const std::size_t count = fill_batch(pieces, index, within, batch);
      if (count == 0) return {};
      ssize_t written =
          ::pwritev(fd_.get(), batch.data(), static_cast<int>(count), static_cast<off_t>(offset));
      const int os_errno = written < 0 ? errno : EIO;
      if (written < 0 && retries.allow(os_errno)) continue;
      if (written <= 0) return write_error(os_errno, offset);
      retries.reset();
      auto advance = static_cast<std::size_t>(written);
      offset += advance;
      while (advance > 0) {
        const std::size_t step = std::min(advance, pieces[index].size() - within);
        within += step;
        advance -= step;
        if (within == pieces[index].size()) {
          ++index;
          within = 0;
        }
      }
    }
  }

  void start_writeback(std::uint64_t offset, std::uint64_t length) const override {
    const std::optional<ByteRange> batch = dirty_.add(offset, length);
    if (!batch) return;
    // Only a hint: the result, and any failed write, shows in sync().
    (void)::sync_file_range(fd_.get(), static_cast<off_t>(batch->offset),
                            static_cast<off_t>(batch->length), SYNC_FILE_RANGE_WRITE);
  }

  Status sync() override {
    const PendingCall pending("a sync", name_);
    // The kernel reports a failed writeback once and then forgets it, so a second call that
    // succeeds would prove nothing.
    if (sync_errno_ == 0 && ::fdatasync(fd_.get()) != 0) sync_errno_ = errno;
    if (sync_errno_ == 0) return check_named();
    return fail_errno(sync_errno_, translated("{}: cannot make the contents durable", name_));
  }

 private:
  // Bytes in a file without a name are lost, whoever took it away: a purger of old files, or a
  // hand.
  [[nodiscard]] Status check_named() const {
    struct stat status{};
    if (!was_named_ || ::fstat(fd_.get(), &status) != 0 || status.st_nlink > 0) return {};
    return fail(
        Code::kIo,
        "{}: it was removed while it was being written, so its contents are lost; run again "
        "where nothing cleans up meanwhile",
        name_);
  }

  static std::size_t fill_batch(std::span<const std::span<const std::byte>> pieces,
                                std::size_t index, std::size_t within,
                                std::array<iovec, IOV_MAX>& batch) {
    std::size_t count = 0;
    for (; index < pieces.size() && count < batch.size(); ++index, within = 0) {
      const auto rest = pieces[index].subspan(within);
      if (rest.empty()) continue;
      // pwritev never writes through iov_base; its type is not const for readv's sake.
      batch[count++] = {const_cast<std::byte*>(rest.data()), rest.size()};
    }
    return count;
  }

  Status check_range(std::uint64_t offset, std::uint64_t length) const {
    const auto end = checked_add(offset, length);
    if (end && *end <= size_) return {};
    return fail(Code::kInternal, "{}@{}: found a write of {} bytes, expected it to end at {}",
                name_, offset, length, size_);
  }

  std::unexpected<Error> write_error(int os_errno, std::uint64_t offset) const {
    return fail_errno(os_errno, translated("{}@{}: cannot write", name_, offset));
  }

  UniqueFd fd_;
  std::string name_;
  std::uint64_t size_;
  mutable DirtyBytes dirty_;
  int sync_errno_ = 0;
  bool was_named_ = has_name(fd_.get());  // some file systems count no names
};

int reserve_bytes(int fd, std::uint64_t size) {
  if (size == 0) return 0;
  int result = 0;
  Retries retries;
  do {
    // Not posix_fallocate: where the file system can't reserve, that one writes every block.
    result = ::fallocate(fd, 0, 0, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR && retries.allow(EINTR));
  if (result == 0) return 0;
  if (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL) return errno;
  return ::ftruncate(fd, static_cast<off_t>(size)) == 0 ? 0 : errno;
}

}  // namespace

Result<std::string> read_all(const ReadableFile& file, std::uint64_t limit_bytes) {
  if (file.size() > limit_bytes) {
    return fail(Code::kLimit, "{}: found {} bytes, expected at most {}", file.name(), file.size(),
                limit_bytes);
  }
  std::string contents(file.size(), '\0');
  SW_TRY(file.read_at(0, std::as_writable_bytes(std::span(contents))));
  return contents;
}

FileVersion version_of(const struct stat& status) {
  const auto nanoseconds = [](const timespec& time) {
    constexpr std::int64_t kPerSecond = 1'000'000'000;
    return std::int64_t{time.tv_sec} * kPerSecond + time.tv_nsec;
  };
  return {status.st_dev, status.st_ino, static_cast<std::uint64_t>(status.st_size),
          nanoseconds(status.st_mtim), nanoseconds(status.st_ctim)};
}

Result<std::unique_ptr<ReadableFile>> make_readable(UniqueFd fd, std::string name) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) {
    return fail_errno(errno, translated("{}: cannot read its size", name));
  }
  if (!S_ISREG(status.st_mode)) return not_a_file(status.st_mode, name);
  return std::make_unique<LocalReadableFile>(std::move(fd), std::move(name), version_of(status));
}

Result<std::unique_ptr<WritableFile>> make_writable(UniqueFd fd, std::string name,
                                                    std::uint64_t size) {
  if (size > kMaxOffset) {
    return fail(Code::kLimit, "{}: found a size of {} bytes, expected at most {}", name, size,
                kMaxOffset);
  }
  if (const int os_errno = reserve_bytes(fd.get(), size); os_errno != 0) {
    return fail_errno(os_errno, translated("{}: cannot reserve {} bytes", name, size));
  }
  return std::make_unique<LocalWritableFile>(std::move(fd), std::move(name), size);
}

}  // namespace shardwright
