// SPDX-License-Identifier: Apache-2.0
#include "dcp/string_pool.h"

#include <cstring>
#include <limits>

namespace shardwright {
namespace {

constexpr std::size_t kFirstSlots = 1024;
constexpr std::size_t kLongestProbe = 512;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

std::uint64_t load(const char* text, std::size_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, text, bytes);
  return value;
}

std::uint32_t hash_of(std::string_view text) {
  constexpr std::uint64_t kFirst = 0x9e3779b97f4a7c15;
  constexpr std::uint64_t kSecond = 0xd6e8feb86659fd93;
  std::uint64_t hash = kFirst ^ text.size();
  const char* at = text.data();
  std::size_t left = text.size();
  for (; left > 16; left -= 16, at += 16) {
    hash = mix(load(at, 8) ^ kSecond ^ hash, load(at + 8, 8) ^ kFirst);
  }
  if (left > 8) {
    hash = mix(load(at, 8) ^ kSecond ^ hash, load(at + 8, left - 8) ^ kFirst);
  } else {
    hash = mix(load(at, left) ^ kSecond ^ hash, kFirst);
  }
  return static_cast<std::uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

StringPool::StringPool() : ends_(1, 0), slots_(kFirstSlots) {}

void StringPool::grow() {
  std::vector<Slot> old(slots_.size() * 2);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id_plus_one == 0) continue;
    std::size_t place = slot.hash & (slots_.size() - 1);
    while (slots_[place].id_plus_one != 0) place = (place + 1) & (slots_.size() - 1);
    slots_[place] = slot;
  }
}

std::optional<std::uint32_t> StringPool::intern(std::string_view text) {
  // Files name things in about the same order again: the last string or the one behind it.
  for (std::size_t guess = last_; guess < size() && guess <= std::size_t{last_} + 1; ++guess) {
    if (this->text(static_cast<std::uint32_t>(guess)) == text) {
      last_ = static_cast<std::uint32_t>(guess);
      return last_;
    }
  }
  const std::uint32_t hash = hash_of(text);
  std::size_t place = hash & (slots_.size() - 1);
  for (std::size_t probe = 0; slots_[place].id_plus_one != 0; ++probe) {
    const std::uint32_t id = slots_[place].id_plus_one - 1;
    if (slots_[place].hash == hash && this->text(id) == text) {
      last_ = id;
      return id;
    }
    if (probe == kLongestProbe) return std::nullopt;
    place = (place + 1) & (slots_.size() - 1);
  }
  const std::size_t id = size();
  if (id >= std::numeric_limits<std::uint32_t>::max() / 2) return std::nullopt;
  last_ = static_cast<std::uint32_t>(id);
  text_ += text;
  ends_.push_back(text_.size());
  slots_[place] = {hash, static_cast<std::uint32_t>(id + 1)};
  if (size() * 2 > slots_.size()) grow();
  return static_cast<std::uint32_t>(id);
}

}  // namespace shardwright
