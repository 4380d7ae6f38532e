// SPDX-License-Identifier: Apache-2.0
// Reads pickles from standard input, each behind its length (32 bits, little-endian), and prints a
// line for each: `-` where it is refused, else the value graph. pickle_streams.py prints the same
// of what CPython makes of them.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "codec/pickle_decode.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

constexpr int kDeepest = 200;

class GraphText {
 public:
  std::string of(Value value) {
    add(value, 0);
    return std::move(text_);
  }

 private:
  void hex(std::string_view bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    for (const char c : bytes) {
      const auto byte = static_cast<unsigned char>(c);
      text_ += kDigits[byte >> 4U];
      text_ += kDigits[byte & 15U];
    }
  }

  void each(Value list, int depth) {
    for (std::size_t i = 0; i < list.size(); ++i) add(list[i], depth);
  }

  void pairs(Value dict, int depth) {
    for (std::size_t i = 0; i < dict.size(); ++i) {
      add(dict.key(i), depth);
      add(dict.value(i), depth);
    }
  }

  // Whether it was there before; what can be changed or shared has a number.
  bool again(Value value) {
    const auto [at, is_new] = numbers_.emplace(value.id(), numbers_.size());
    if (!is_new) text_ += "@" + std::to_string(at->second) + ";";
    return !is_new;
  }

  void add_number(Value value) {
    if (value.is(Kind::kFloat)) {
      std::array<char, 40> text{};
      static_cast<void>(std::snprintf(text.data(), text.size(), "%a", *value.as_double()));
      text_ += std::string("f") + text.data();
    } else if (value.is(Kind::kInt)) {
      text_ += "i" + std::to_string(*value.as_int());
    } else {
      text_ += "I";
      hex(value.text());
    }
    text_ += ";";
  }

  void add_made(Value value, int depth) {
    if (again(value)) return;
    text_ += value.is(Kind::kReduce) ? "R(" : "O(";
    add(value.callable(), depth);
    add(value.args(), depth);
    text_ += "|";
    if (value.appended()) each(value.appended(), depth);
    text_ += "|";
    if (value.items()) pairs(value.items(), depth);
    text_ += "|";
    if (value.state()) add(value.state(), depth);
    text_ += ")";
  }

  void add_container(Value value, int depth) {
    const bool is_numbered = value.is(Kind::kList) || value.is(Kind::kDict) || value.is(Kind::kSet);
    if (is_numbered && again(value)) return;
    switch (value.kind()) {
      case Kind::kList:
        text_ += "[";
        break;
      case Kind::kTuple:
        text_ += "(";
        break;
      case Kind::kSet:
        text_ += "S[";
        break;
      case Kind::kFrozenSet:
        text_ += "F[";
        break;
      default:
        text_ += "{";
        break;
    }
    if (value.is(Kind::kDict)) {
      pairs(value, depth);
    } else {
      each(value, depth);
    }
    text_ += "]";
  }

  void add(Value value, int depth) {
    if (!value || ++depth > kDeepest) {
      text_ += "?";
      return;
    }
    switch (value.kind()) {
      case Kind::kNone:
        text_ += "N;";
        break;
      case Kind::kBool:
        text_ += *value.as_bool() ? "T;" : "B;";
        break;
      case Kind::kInt:
      case Kind::kBigInt:
      case Kind::kFloat:
        add_number(value);
        break;
      case Kind::kString:
        text_ += "s";
        hex(value.text());
        text_ += ";";
        break;
      case Kind::kBytes:
        text_ += "b";
        hex(value.text());
        text_ += ";";
        break;
      case Kind::kByteArray:
        text_ += "a";
        hex(value.text());
        text_ += ";";
        break;
      case Kind::kGlobal:
        text_ += "g";
        hex(value.module());
        text_ += " ";
        hex(value.name());
        text_ += ";";
        break;
      case Kind::kReduce:
      case Kind::kObject:
        add_made(value, depth);
        break;
      case Kind::kPersistentId:
        text_ += "P";
        add(value[0], depth);
        break;
      case Kind::kExtension:
        text_ += "Xi" + std::to_string(*value.as_int()) + ";";
        break;
      default:
        add_container(value, depth);
        break;
    }
  }

  std::string text_;
  std::map<std::uint32_t, std::size_t> numbers_;
};

bool read_stream(std::string& bytes) {
  std::array<unsigned char, 4> length{};
  if (std::fread(length.data(), 1, length.size(), stdin) != length.size()) return false;
  std::size_t size = 0;
  for (std::size_t i = length.size(); i > 0; --i) size = size << 8U | length[i - 1];
  bytes.resize(size);
  return std::fread(bytes.data(), 1, size, stdin) == size;
}

}  // namespace
}  // namespace shardwright

int main() {
  std::string bytes;
  while (shardwright::read_stream(bytes)) {
    const auto document = shardwright::pickle::decode(std::as_bytes(std::span(bytes)));
    const std::string text = document ? shardwright::GraphText().of(document->root()) : "-";
    std::puts(text.c_str());
  }
  return 0;
}
