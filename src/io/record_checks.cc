// SPDX-License-Identifier: Apache-2.0
#include "io/record_checks.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/crc32.h"
#include "base/fail.h"

namespace shardwright {
namespace {

// Runs of bytes that are kept in mind: of one record, and of all together (16 MiB of memory).
constexpr std::size_t kMostRunsOfRecord = std::size_t{1} << 14;
constexpr std::size_t kMostRuns = std::size_t{1} << 18;
// With more gaps than this a record is cheaper to read anew than to fill up.
constexpr std::size_t kMostGaps = 256;

}  // namespace

void RecordChecks::expect(const GuardedRecord& record) {
  if (record.range.length == 0) return;
  const std::string label = translated("record '{}' of {}", record.name, record.owner);
  const std::scoped_lock lock(mutex_);
  const auto [known, is_new] =
      label_numbers_.emplace(label, static_cast<std::uint32_t>(labels_.size()));
  if (is_new) labels_.push_back(&known->first);
  File& file = files_[record.file];
  Record added{record.range.offset, record.range.length, record.crc, known->second,
               file.next_number++};
  // Most come in order, and a storage that several tensors share once for each of them.
  const bool follows = file.records.empty() || (file.sorted == file.records.size() &&
                                                file.records.back().end() <= added.offset);
  if (!file.records.empty() && is_repeated(file.records.back(), added)) return;
  file.longest = std::max(file.longest, added.length);
  file.records.push_back(added);
  if (follows) ++file.sorted;
}

bool RecordChecks::is_repeated(const Record& a, const Record& b) {
  return a.offset == b.offset && a.length == b.length && a.crc == b.crc;
}

void RecordChecks::clear() {
  const std::scoped_lock lock(mutex_);
  files_.clear();
  labels_.clear();
  label_numbers_.clear();
  runs_ = 0;
}

void RecordChecks::sort(File& file) {
  if (file.sorted == file.records.size()) return;
  const auto key = [](const Record& r) { return std::tuple(r.offset, r.length, r.crc, r.number); };
  const auto less = [&](const Record& a, const Record& b) { return key(a) < key(b); };
  const auto middle = file.records.begin() + static_cast<std::ptrdiff_t>(file.sorted);
  std::sort(middle, file.records.end(), less);
  std::inplace_merge(file.records.begin(), middle, file.records.end(), less);
  // The one that came first stays: of it something may have been read.
  const auto repeated = std::ranges::unique(file.records, is_repeated);
  file.records.erase(repeated.begin(), repeated.end());
  std::uint64_t end = 0;
  for (const Record& record : file.records) {
    file.overlap |= record.offset < end;
    end = std::max(end, record.end());
  }
  file.sorted = file.records.size();
}

// The first one that may reach behind `offset`.
std::size_t RecordChecks::first_record(const File& file, std::uint64_t offset) {
  const std::uint64_t reach = file.overlap ? std::min(offset, file.longest) : 0;
  auto found = std::ranges::upper_bound(file.records, offset - reach, {}, &Record::offset);
  while (found != file.records.begin() && std::prev(found)->end() > offset) --found;
  return static_cast<std::size_t>(found - file.records.begin());
}

Result<RecordChecks::Claim> RecordChecks::claim(const FileRange& bytes) {
  Claim claim;
  claim.file_ = bytes.file;
  if (bytes.range.length == 0) return claim;  // of the record that it lies in nothing is read
  const std::uint64_t begin = bytes.range.offset;
  const std::uint64_t end = begin + bytes.range.length;
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(bytes.file);
  if (found == files_.end()) return claim;
  File& file = found->second;
  sort(file);
  const auto first = file.records.begin() + static_cast<std::ptrdiff_t>(first_record(file, begin));
  const auto last = std::ranges::lower_bound(first, file.records.end(), end, {}, &Record::offset);
  const std::ranges::subrange touched(first, last);
  for (const Record& record : touched) {
    if (record.state != State::kDamaged || record.end() <= begin) continue;
    return damaged(file.begun.at(record.number));
  }
  for (const Record& record : touched) {
    if (record.state == State::kRight || record.end() <= begin) continue;
    const std::uint64_t from = std::max(begin, record.offset);
    claim_of(file, record, {from, std::min(end, record.end()) - from}, claim);
  }
  return claim;
}

void RecordChecks::claim_of(File& file, const Record& record, ByteRange bytes, Claim& claim) {
  const auto [found, is_new] = file.begun.try_emplace(record.number);
  Progress& progress = found->second;
  if (is_new) {
    progress.record = record;
    progress.epoch = ++epoch_;
  }
  if (progress.is_given_up) return;
  auto& claimed = progress.claimed;
  const std::uint64_t end = bytes.offset + bytes.length;
  std::uint64_t from = bytes.offset;
  std::uint64_t run_begin = bytes.offset;
  std::uint64_t run_end = end;
  const auto take = [&](std::uint64_t to) {
    if (from >= to) return;
    claim.parts_.push_back({record.number, progress.epoch, {from, to - from}, record.end(), 0});
  };
  auto run = claimed.upper_bound(bytes.offset);
  if (run != claimed.begin() && std::prev(run)->second >= bytes.offset) --run;
  while (run != claimed.end() && run->first <= end) {
    take(std::min(run->first, end));
    from = std::max(from, run->second);
    run_begin = std::min(run_begin, run->first);
    run_end = std::max(run_end, run->second);
    run = claimed.erase(run);
    --runs_;
  }
  take(end);
  claimed.emplace_hint(run, run_begin, run_end);
  ++runs_;
  if (claimed.size() > kMostRunsOfRecord || runs_ > kMostRuns) begin_anew(progress, true);
}

void RecordChecks::begin_anew(Progress& progress, bool give_up) {
  runs_ -= progress.claimed.size();
  progress.claimed.clear();
  progress.counted = 0;
  progress.sum = 0;
  progress.epoch = ++epoch_;  // parts that are still claimed count no more
  progress.is_given_up = give_up;
}

void RecordChecks::Claim::add(std::uint64_t offset, std::span<const std::byte> bytes) {
  for (Part& part : parts_) {
    const std::uint64_t from = std::max(offset, part.range.offset);
    const std::uint64_t to = std::min(offset + bytes.size(), part.range.offset + part.range.length);
    if (from >= to) continue;
    part.crc = crc32(
        bytes.subspan(static_cast<std::size_t>(from - offset), static_cast<std::size_t>(to - from)),
        part.crc);
  }
}

Status RecordChecks::settle(const Claim& claim) {
  if (claim.empty()) return {};
  std::vector<Claim::Part> parts = claim.parts_;
  for (Claim::Part& part : parts) {
    part.crc = crc32_share(part.crc, part.record_end - part.range.offset - part.range.length);
  }
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(claim.file_);
  if (found == files_.end()) return {};
  Status first;
  for (const Claim::Part& part : parts) {
    Status status = count(found->second, part);
    if (!status && first) first = std::move(status);
  }
  return first;
}

Status RecordChecks::count(File& file, const Claim::Part& part) {
  const auto found = file.begun.find(part.record);
  if (found == file.begun.end() || found->second.epoch != part.epoch) return {};
  Progress& progress = found->second;
  progress.sum ^= part.crc;
  progress.counted += part.range.length;
  if (progress.counted < progress.record.length) return {};
  const bool is_right = progress.sum == progress.record.crc;
  sort(file);
  auto record = std::ranges::lower_bound(file.records, progress.record.offset, {}, &Record::offset);
  while (record->number != part.record) ++record;
  record->state = is_right ? State::kRight : State::kDamaged;
  if (!is_right) return damaged(progress);
  runs_ -= progress.claimed.size();
  file.begun.erase(found);
  return {};
}

void RecordChecks::drop(const Claim& claim) {
  const std::scoped_lock lock(mutex_);
  const auto file = files_.find(claim.file_);
  if (file == files_.end()) return;
  for (const Claim::Part& part : claim.parts_) {
    const auto found = file->second.begun.find(part.record);
    if (found != file->second.begun.end()) begin_anew(found->second, true);
  }
}

std::vector<FileRange> RecordChecks::rest(std::uint64_t most_bytes) {
  std::vector<FileRange> rest;
  const auto add = [&](std::uint32_t file, std::uint64_t begin, std::uint64_t end) {
    for (; begin < end; begin += std::min(most_bytes, end - begin)) {
      rest.push_back({file, {begin, std::min(most_bytes, end - begin)}});
    }
  };
  const std::scoped_lock lock(mutex_);
  for (auto& [number, file] : files_) {
    for (auto& [record_number, progress] : file.begun) {
      const Record& record = progress.record;
      if (progress.counted == record.length) continue;  // damaged
      if (progress.is_given_up || progress.claimed.size() > kMostGaps) begin_anew(progress, false);
      std::uint64_t from = record.offset;
      for (const auto& [begin, end] : progress.claimed) {
        add(number, from, begin);
        from = end;
      }
      add(number, from, record.end());
    }
  }
  std::ranges::sort(
      rest, {}, [](const FileRange& piece) { return std::pair(piece.file, piece.range.offset); });
  return rest;
}

std::unexpected<Error> RecordChecks::damaged(const Progress& progress) const {
  const Record& record = progress.record;
  return fail(Code::kPayloadDamaged,
              "{}: found CRC-32 {:08x} of its {} bytes from {} on, expected {:08x}; its bytes were "
              "altered, restore the file",
              *labels_[record.label], progress.sum, record.length, record.offset, record.crc);
}

}  // namespace shardwright
