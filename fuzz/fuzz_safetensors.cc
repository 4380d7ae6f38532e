// SPDX-License-Identifier: Apache-2.0
// A header that is accepted can be laid out and read again, with the same tensors.
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "codec/safetensors_header.h"
#include "expect.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

using Shapes = std::map<std::string, Dims>;

// Headers may speak of more bytes than a test wants to make.
constexpr std::uint64_t kMostFileBytes = std::uint64_t{8} << 20;

void read(const ReadableFile& file) {
  const Result<SafetensorsHeader> header = read_safetensors_header(file);
  if (!header) return;
  Shapes shapes;
  std::vector<TensorDesc> tensors;
  for (const SafetensorsTensor& tensor : header->tensors) {
    expect(tensor.range.offset >= header->data_offset &&
               tensor.range.offset + tensor.range.length <= file.size(),
           "a tensor lies inside the data");
    const Result<std::int64_t> bytes = byte_count(tensor.desc.shape, tensor.desc.dtype);
    expect(bytes && static_cast<std::uint64_t>(*bytes) == tensor.range.length,
           "a tensor's range fits its shape");
    expect(shapes.emplace(tensor.desc.name, tensor.desc.shape).second, "names are unique");
    tensors.push_back(tensor.desc);
  }
  const Result<SafetensorsLayout> layout = layout_safetensors(tensors, header->metadata);
  expect(layout.has_value(), "what was read can be written");
  if (layout->file_bytes > kMostFileBytes) return;
  std::string bytes = layout->header;
  bytes.resize(static_cast<std::size_t>(layout->file_bytes));
  const auto written = make_memory_file("written", std::move(bytes));
  const Result<SafetensorsHeader> again = read_safetensors_header(*written);
  expect(again.has_value(), "what was written can be read");
  expect(again->metadata == header->metadata, "metadata survives");
  expect(again->tensors.size() == tensors.size(), "all tensors survive");
  for (const SafetensorsTensor& tensor : again->tensors) {
    const auto before = shapes.find(tensor.desc.name);
    expect(before != shapes.end() && before->second == tensor.desc.shape, "shapes survive");
  }
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto file = shardwright::make_memory_file("input", std::string(data, data + size));
  shardwright::read(*file);
  return 0;
}
