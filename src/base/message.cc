// SPDX-License-Identifier: Apache-2.0
#include "base/message.h"

#include <cstring>

#include "base/endian.h"
#include "base/fail.h"

namespace shardwright {

MessageWriter& MessageWriter::number(std::uint64_t value) {
  append_le(bytes_, value);
  return *this;
}

MessageWriter& MessageWriter::text(std::string_view value) {
  number(value.size());
  bytes_ += value;
  return *this;
}

MessageWriter& MessageWriter::numbers(const std::vector<std::uint32_t>& values) {
  number(values.size());
  for (const std::uint32_t value : values) append_le(bytes_, value);
  return *this;
}

MessageWriter& MessageWriter::error(const Error& value) {
  return number(static_cast<std::uint64_t>(value.code))
      .number(static_cast<std::uint64_t>(value.os_errno))
      .text(value.message);
}

Result<std::string_view> MessageReader::take(std::uint64_t count) {
  if (count > rest_.size()) {
    return fail(Code::kInternal, "message of a rank: found {} bytes, expected {}", rest_.size(),
                count);
  }
  const std::string_view taken = rest_.substr(0, static_cast<std::size_t>(count));
  rest_.remove_prefix(taken.size());
  return taken;
}

Result<std::uint8_t> MessageReader::kind() {
  return static_cast<std::uint8_t>(SW_TRY(take(1)).front());
}

Result<std::uint64_t> MessageReader::number() {
  return load_le<std::uint64_t>(as_bytes(SW_TRY(take(sizeof(std::uint64_t)))).data());
}

Result<std::string> MessageReader::text() {
  const std::uint64_t size = SW_TRY(number());
  return std::string(SW_TRY(take(size)));
}

Result<std::vector<std::uint32_t>> MessageReader::numbers() {
  const std::uint64_t count = SW_TRY(number());
  if (count > rest_.size() / sizeof(std::uint32_t)) {
    return fail(Code::kInternal, "message of a rank: {} numbers do not fit into it", count);
  }
  const std::string_view bytes = SW_TRY(take(count * sizeof(std::uint32_t)));
  std::vector<std::uint32_t> values(static_cast<std::size_t>(count));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Result<Error> MessageReader::error() {
  Error error;
  error.code = static_cast<Code>(SW_TRY(number()));
  error.os_errno = static_cast<int>(SW_TRY(number()));
  error.message = SW_TRY(text());
  return error;
}

}  // namespace shardwright
