// SPDX-License-Identifier: Apache-2.0
#include "remote/sent_file.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "io/file_window.h"

namespace shardwright {

std::uint64_t part_bytes_for(std::uint64_t file_bytes, std::uint64_t asked) {
  constexpr std::uint64_t kMostParts = 10'000;
  constexpr std::uint64_t kStep = std::uint64_t{1} << 20;
  const std::uint64_t least = (file_bytes + kMostParts - 1) / kMostParts;
  if (least <= asked) return asked;
  return (least + kStep - 1) / kStep * kStep;
}

SentFile::SentFile(S3Writer& writer, JobQueue& queue, std::string key,
                   std::unique_ptr<SpoolFile> spool, std::uint64_t part_bytes)
    : writer_(writer), queue_(queue), spool_(std::move(spool)), part_bytes_(part_bytes) {
  upload_.key = std::move(key);
  if (size() <= part_bytes_) return;
  tags_.resize(static_cast<std::size_t>((size() + part_bytes_ - 1) / part_bytes_));
  is_queued_.resize(tags_.size(), false);
}

ByteRange SentFile::range_of(std::uint64_t part) const {
  const std::uint64_t begin = part * part_bytes_;
  return {begin, std::min(part_bytes_, size() - begin)};
}

Status SentFile::write(std::uint64_t offset, std::span<const std::span<const std::byte>> pieces) {
  ByteRange range{offset, 0};
  for (const std::span<const std::byte> piece : pieces) range.length += piece.size();
  if (range.length == 0) return {};
  if (offset > size() || range.length > size() - offset) {
    return fail(Code::kInternal, "{}@{}+{}: found a file of {} bytes", spool_->name(), offset,
                range.length, size());
  }
  {
    const std::scoped_lock lock(mutex_);
    if (claimed_.meets(range)) {
      return fail(Code::kInternal, "{}@{}+{}: is written twice", spool_->name(), offset,
                  range.length);
    }
    claimed_.add(range);
  }
  for (const std::span<const std::byte> piece : pieces) {
    SW_TRY(spool_->write_at(offset, piece));
    offset += piece.size();
  }
  std::vector<std::uint64_t> whole;
  {
    const std::scoped_lock lock(mutex_);
    const ByteRange there = written_.add(range);
    for (std::uint64_t part = range.offset / part_bytes_;
         part < parts() && part * part_bytes_ < range.offset + range.length; ++part) {
      const ByteRange wanted = range_of(part);
      if (wanted.offset < there.offset ||
          wanted.offset + wanted.length > there.offset + there.length) {
        continue;
      }
      is_queued_[part] = true;
      whole.push_back(part);
    }
  }
  for (const std::uint64_t part : whole) SW_TRY(send_later(part));
  return {};
}

Status SentFile::send_later(std::uint64_t part) {
  return queue_.add([this, part] { return send(part); });
}

Status SentFile::send(std::uint64_t part) {
  {
    const std::scoped_lock lock(beginning_);
    if (upload_.id.empty()) upload_.id = SW_TRY(writer_.begin(upload_.key));
  }
  const ByteRange range = range_of(part);
  std::string tag = SW_TRY(writer_.send(upload_, part + 1, FileWindow(*spool_, range)));
  spool_->forget(range.offset, range.length);
  const std::scoped_lock lock(mutex_);
  tags_[part] = std::move(tag);
  return {};
}

// What was never written is zeros.
Status SentFile::send_rest() {
  for (std::uint64_t part = 0; part < parts(); ++part) {
    {
      const std::scoped_lock lock(mutex_);
      if (is_queued_[part]) continue;
      is_queued_[part] = true;
    }
    SW_TRY(send_later(part));
  }
  return queue_.wait();
}

Status SentFile::show() {
  if (is_shown_) return {};
  if (std::ranges::any_of(tags_, &std::string::empty)) {
    return fail(Code::kInternal, "{}: is shown before all of it was sent", spool_->name());
  }
  may_be_shown_ = true;
  SW_TRY(parts() == 0 ? writer_.put(key(), *spool_) : writer_.complete(upload_, tags_, size()));
  is_shown_ = true;
  return {};
}

std::optional<S3Upload> SentFile::unfinished() const {
  if (is_shown_ || upload_.id.empty()) return std::nullopt;
  return upload_;
}

}  // namespace shardwright
