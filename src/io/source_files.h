// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "io/read_pages.h"
#include "io/record_checks.h"
#include "shardwright/storage.h"

namespace shardwright {

/// The files of a source checkpoint, opened when first read and kept open: each is opened once
/// unless there are more than `open_limit`, when the one unused for longest is closed. Opens and
/// bytes are counted. What read_at() gives is compared with the CRC-32s of the records that it
/// belongs to. Safe for concurrent use.
class SourceFiles {
 public:
  /// Borrows `directory`; `paths` are relative to it.
  SourceFiles(const Directory& directory, std::vector<std::string> paths, std::size_t open_limit);

  /// Makes a file known and returns its number: the count of those before it. Opens nothing.
  std::uint32_t add(std::string path);
  /// The same for a file of another directory, which lives as long as this object.
  std::uint32_t add(std::shared_ptr<const Directory> directory, std::string path);
  /// The same for a file that is no name in a directory. It stays open.
  std::uint32_t add(std::unique_ptr<ReadableFile> file);
  /// All files of another checkpoint, by the numbers that they have there from the returned one on.
  /// That one goes on to open, count and check them; both share the limit of open files.
  std::uint32_t add_all(std::shared_ptr<SourceFiles> others);
  /// How many files are known.
  [[nodiscard]] std::uint32_t count() const;
  /// The file stays open while the caller holds it. It must not outlive this object. What is read
  /// from it is compared with nothing.
  [[nodiscard]] Result<std::shared_ptr<const ReadableFile>> get(std::uint32_t file);
  /// What a file is, or was when it was opened. Opens nothing. Of one that is no name in a
  /// directory only the size is told.
  [[nodiscard]] Result<FileVersion> version(std::uint32_t file) const;
  /// get and read_at in one. Error: kPayloadDamaged too, when that completes a record that has
  /// another CRC-32 than its archive says.
  [[nodiscard]] Status read_at(std::uint32_t file, std::uint64_t offset,
                               std::span<std::byte> buffer);

  /// How it is found out whether memory is short; is_memory_short otherwise. Call it before
  /// anything is opened.
  void judge_memory_by(bool (*is_short)()) { is_memory_short_ = is_short; }

  /// Makes the CRC-32 of a record known, before its bytes are read.
  void expect(const GuardedRecord& record) { checks_.expect(record); }
  /// Forgets all of them, because whatever they guard was checked otherwise.
  void expect_nothing();
  /// What else to read_at() so that each record of which something was read is compared, in pieces
  /// of at most `most_bytes`. Call it while nothing is read.
  [[nodiscard]] std::vector<FileRange> unread_rest(std::uint64_t most_bytes);
  /// Whether the files that were opened are still what they were. Error: kSourceChanged.
  [[nodiscard]] Status check_unchanged() const;

  [[nodiscard]] std::uint64_t opens() const;
  [[nodiscard]] std::uint64_t bytes_read() const;

 private:
  friend class LastReading;
  class CountedFile;
  struct Slot {
    std::shared_ptr<const CountedFile> file;
    std::shared_ptr<const Directory> directory;  // null: that of all others
    std::shared_ptr<ReadPages> pages;            // null: never opened
    std::uint64_t last_use = 0;
    bool stays_open = false;
    bool is_being_opened = false;
  };
  // Files of another checkpoint.
  struct Others {
    std::uint32_t first = 0;  // their numbers here
    std::uint32_t end = 0;
    std::shared_ptr<SourceFiles> files;
  };

  void begin_last_reading();
  void end_last_reading();
  [[nodiscard]] Result<std::unique_ptr<ReadableFile>> open(std::uint32_t file,
                                                           std::unique_lock<std::mutex>& lock);
  void close_oldest();
  // Whose the file is, where it is another's; `file` becomes its number there.
  [[nodiscard]] SourceFiles* owner_of(std::uint32_t& file) const;

  const Directory* directory_;
  std::vector<std::string> paths_;
  std::size_t open_limit_;
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  std::vector<Slot> slots_;
  std::vector<Others> others_;  // in order
  std::size_t open_count_ = 0;
  std::uint64_t tick_ = 0;
  mutable std::atomic<std::uint64_t> opens_{0};
  std::atomic<int> last_readings_{0};
  bool (*is_memory_short_)() = is_memory_short;
  mutable std::atomic<std::uint64_t> bytes_read_{0};
  RecordChecks checks_;
};

/// While one lives, everything is read for the last time, as far as its maker knows: what reading
/// brings into the page cache needs not stay there, see ReadPages.
class LastReading {
 public:
  explicit LastReading(SourceFiles& files) : files_(files) { files_.begin_last_reading(); }
  ~LastReading() { files_.end_last_reading(); }
  LastReading(const LastReading&) = delete;
  LastReading& operator=(const LastReading&) = delete;

 private:
  SourceFiles& files_;
};

}  // namespace shardwright
