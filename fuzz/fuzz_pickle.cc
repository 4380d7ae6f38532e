// SPDX-License-Identifier: Apache-2.0
// Whatever the decoder accepts, the encoder writes, and reading that gives the same again.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/endian.h"
#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/torch_tensor.h"
#include "expect.h"

namespace shardwright {
namespace {

void check_writable(const pickle::Document& document, pickle::Protocol protocol) {
  const Result<std::string> written = pickle::encode(document, protocol);
  if (!written) {
    const Code code = written.error().code;
    expect(code == Code::kPickleUnsupported || code == Code::kLimit, "encode fails as it says");
    return;
  }
  const Result<pickle::Document> again = pickle::decode(as_bytes(*written));
  expect(again.has_value(), "what was written can be read");
  const Result<std::string> twice = pickle::encode(*again, protocol);
  expect(twice.has_value() && *twice == *written, "reading and writing again changes nothing");
}

void read(std::span<const std::byte> bytes) {
  pickle::Limits limits;
  limits.string_bytes = std::uint64_t{1} << 20;
  limits.opcodes = std::uint64_t{1} << 20;
  const Result<pickle::Prefix> prefix = pickle::decode_prefix(bytes, limits);
  if (!prefix) return;
  expect(prefix->consumed <= bytes.size(), "no more is consumed than there is");
  const pickle::Document& document = prefix->document;
  for (std::uint32_t id = 0; id < document.node_count(); ++id) {
    const pickle::Value value = document.at(id);
    if (is_tensor(value)) static_cast<void>(read_torch_tensor(value));
  }
  check_writable(document, pickle::Protocol::kTwo);
  check_writable(document, pickle::Protocol::kFour);
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::as_bytes(std::span(data, size)));
  return 0;
}
