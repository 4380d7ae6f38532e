// SPDX-License-Identifier: Apache-2.0
#include "io/known_bytes.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "base/endian.h"
#include "base/fail.h"
#include "base/message.h"

namespace shardwright {

void KnownBytes::add_file(const std::string& name, const FileVersion& version) {
  if (is_closed_) return;
  const std::scoped_lock lock(mutex_);
  File& file = files_[name];
  file.size_bytes = version.size_bytes;
  file.modified_ns = version.modified_ns;
}

void KnownBytes::add(const std::string& name, std::uint64_t offset,
                     std::span<const std::byte> bytes) {
  if (is_closed_) return;
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(name);
  if (found == files_.end()) return;
  File& file = found->second;
  // Only the gaps are new.
  auto next = file.parts.upper_bound(offset);
  if (next != file.parts.begin()) {
    const auto& [begin, part] = *std::prev(next);
    const std::uint64_t end = begin + part.size();
    if (end > offset) {
      const std::uint64_t known = std::min<std::uint64_t>(end - offset, bytes.size());
      offset += known;
      bytes = bytes.subspan(static_cast<std::size_t>(known));
    }
  }
  while (!bytes.empty()) {
    next = file.parts.lower_bound(offset);
    std::uint64_t gap = bytes.size();
    if (next != file.parts.end()) gap = std::min(gap, next->first - offset);
    add_part(file, offset, bytes.first(static_cast<std::size_t>(gap)));
    std::uint64_t passed = gap;
    if (gap < bytes.size()) {
      passed = std::min<std::uint64_t>(gap + next->second.size(), bytes.size());
    }
    offset += passed;
    bytes = bytes.subspan(static_cast<std::size_t>(passed));
  }
}

void KnownBytes::add_part(File& file, std::uint64_t offset, std::span<const std::byte> bytes) {
  const std::uint64_t of_others = known_bytes_ - file.known_bytes;
  const std::uint64_t most = (most_bytes_ - of_others) / 2;
  if (bytes.empty() || bytes.size() > most || file.known_bytes > most - bytes.size()) return;
  file.parts.emplace(offset,
                     std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  file.known_bytes += bytes.size();
  known_bytes_ += bytes.size();
}

std::optional<FileVersion> KnownBytes::find(const std::string& name) const {
  if (is_closed_) return std::nullopt;
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(name);
  if (found == files_.end()) return std::nullopt;
  return FileVersion{.size_bytes = found->second.size_bytes,
                     .modified_ns = found->second.modified_ns};
}

bool KnownBytes::copy(const std::string& name, std::uint64_t offset,
                      std::span<std::byte> buffer) const {
  if (is_closed_) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = files_.find(name);
  if (found == files_.end()) return false;
  const auto& parts = found->second.parts;
  while (!buffer.empty()) {
    auto part = parts.upper_bound(offset);
    if (part == parts.begin()) return false;
    const auto& [begin, bytes] = *--part;
    if (offset - begin >= bytes.size()) return false;
    const auto from = static_cast<std::size_t>(offset - begin);
    const std::size_t step = std::min(buffer.size(), bytes.size() - from);
    std::memcpy(buffer.data(), bytes.data() + from, step);
    buffer = buffer.subspan(step);
    offset += step;
  }
  return true;
}

void KnownBytes::forget() {
  is_closed_ = true;
  const std::scoped_lock lock(mutex_);
  files_.clear();
  known_bytes_ = 0;
}

std::string KnownBytes::message() const {
  const std::scoped_lock lock(mutex_);
  MessageWriter message;
  message.number(files_.size());
  for (const auto& [name, file] : files_) {
    message.text(name).number(file.size_bytes);
    message.number(static_cast<std::uint64_t>(file.modified_ns)).number(file.parts.size());
    for (const auto& [offset, bytes] : file.parts) message.number(offset).text(bytes);
  }
  return message.take();
}

Status KnownBytes::add_message(std::string_view message) {
  MessageReader reader(message);
  for (std::uint64_t files = SW_TRY(reader.number()); files > 0; --files) {
    const std::string name = SW_TRY(reader.text());
    FileVersion version;
    version.size_bytes = SW_TRY(reader.number());
    version.modified_ns = static_cast<std::int64_t>(SW_TRY(reader.number()));
    add_file(name, version);
    for (std::uint64_t parts = SW_TRY(reader.number()); parts > 0; --parts) {
      const std::uint64_t offset = SW_TRY(reader.number());
      add(name, offset, as_bytes(SW_TRY(reader.text())));
    }
  }
  return {};
}

}  // namespace shardwright
