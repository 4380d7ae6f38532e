// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// A record of an archive whose CRC-32 the archive's directory tells.
struct GuardedRecord {
  std::uint32_t file = 0;
  ByteRange range;
  std::uint32_t crc = 0;
  std::string_view name;   ///< in the archive
  std::string_view owner;  ///< what it belongs to, for messages: a tensor, an entry
};

/// Bytes of one file.
struct FileRange {
  std::uint32_t file = 0;
  ByteRange range;
};

/// Compares the bytes of records with their CRC-32s as they are read for whatever else, in any
/// order, by any thread, some of them several times: each byte is summed once. Costs 32 bytes a
/// record, and 64 for each run of bytes while a record is read in pieces; what comes in too many
/// pieces is given up and read at once in the end. Safe for concurrent use.
class RecordChecks {
 public:
  /// Makes a record known. One that is known already, or that is empty, is nothing new.
  void expect(const GuardedRecord& record);
  /// Forgets all records.
  void clear();

  /// Those of the bytes about to be read that no read has counted yet. One thread's.
  class Claim {
   public:
    [[nodiscard]] bool empty() const { return parts_.empty(); }
    /// Sums bytes that were read; `offset` is their place in the file. In order.
    void add(std::uint64_t offset, std::span<const std::byte> bytes);

   private:
    friend class RecordChecks;
    struct Part {
      std::uint32_t record = 0;  // its number
      std::uint32_t epoch = 0;
      ByteRange range;  // in the file
      std::uint64_t record_end = 0;
      std::uint32_t crc = 0;
    };
    std::uint32_t file_ = 0;
    std::vector<Part> parts_;
  };
  /// Takes what nobody has counted of the bytes; every claim has to be settled or dropped. Error:
  /// kPayloadDamaged for bytes of a record that was found damaged before.
  [[nodiscard]] Result<Claim> claim(const FileRange& bytes);
  /// Counts the bytes of a claim, all of which were added. Error: kPayloadDamaged when a record is
  /// complete by that and has another CRC-32.
  [[nodiscard]] Status settle(const Claim& claim);
  /// Gives up what a read that failed had claimed.
  void drop(const Claim& claim);

  /// What is still to be read so that every record of which something was read is whole, in
  /// pieces of at most `most_bytes`. REQUIRES: nothing is claimed.
  [[nodiscard]] std::vector<FileRange> rest(std::uint64_t most_bytes);

 private:
  enum class State : std::uint8_t { kOpen, kRight, kDamaged };
  struct Record {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t crc = 0;
    std::uint32_t label = 0;   // into labels_
    std::uint32_t number = 0;  // in its file, as they came
    State state = State::kOpen;

    [[nodiscard]] std::uint64_t end() const { return offset + length; }
  };
  // Of a record of which something was read.
  struct Progress {
    Record record;
    std::map<std::uint64_t, std::uint64_t> claimed;  // begin to end, in the file; disjoint
    std::uint64_t counted = 0;                       // bytes
    std::uint32_t sum = 0;
    std::uint32_t epoch = 0;
    bool is_given_up = false;  // until rest() begins anew
  };
  struct File {
    std::vector<Record> records;  // by offset; those behind `sorted` as they came
    std::size_t sorted = 0;
    std::uint32_t next_number = 0;
    std::unordered_map<std::uint32_t, Progress> begun;  // by the record's number; damaged ones stay
    std::uint64_t longest = 0;                          // record
    bool overlap = false;                               // some do
  };

  [[nodiscard]] static bool is_repeated(const Record& a, const Record& b);
  static void sort(File& file);
  [[nodiscard]] static std::size_t first_record(const File& file, std::uint64_t offset);
  void claim_of(File& file, const Record& record, ByteRange bytes, Claim& claim);
  [[nodiscard]] Status count(File& file, const Claim::Part& part);
  void begin_anew(Progress& progress, bool give_up);
  [[nodiscard]] std::unexpected<Error> damaged(const Progress& progress) const;

  std::mutex mutex_;
  std::unordered_map<std::uint32_t, File> files_;
  std::vector<const std::string*> labels_;
  std::unordered_map<std::string, std::uint32_t> label_numbers_;
  std::size_t runs_ = 0;  // in all `claimed`
  std::uint32_t epoch_ = 0;
};

}  // namespace shardwright
