// SPDX-License-Identifier: Apache-2.0
// What a `.metadata` says stays inside its own bounds, and can be written and read again.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "dcp/dcp_metadata.h"
#include "expect.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

std::size_t count_chunks(const Catalog& catalog) {
  std::size_t chunks = 0;
  for (const StoredTensor& tensor : catalog.tensors) chunks += tensor.chunks.size();
  return chunks;
}

void check_catalog(const Catalog& catalog) {
  for (const StoredTensor& tensor : catalog.tensors) {
    expect(element_count(tensor.desc.shape).has_value(), "a shape can be counted");
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      expect(tensor.chunks.file(i) < catalog.files.size(), "a chunk's file exists");
      expect(contains(Box::whole(tensor.desc.shape), tensor.chunks.box(i)),
             "a chunk lies inside its tensor");
      const ByteRange range = tensor.chunks.range(i);
      expect(range.offset + range.length >= range.offset, "a range does not wrap");
    }
    static_cast<void>(check_coverage(tensor));
  }
  for (const StoredObject& object : catalog.objects) {
    expect(object.file < catalog.files.size(), "an object's file exists");
  }
}

Result<DcpMetadata> read(std::string bytes) {
  DcpMetadataOptions options;
  options.planner_paths = true;
  options.limits.opcodes = std::uint64_t{1} << 20;
  return read_dcp_metadata(*make_memory_file(".metadata", std::move(bytes)), options);
}

void check(std::string bytes) {
  const Result<DcpMetadata> metadata = read(std::move(bytes));
  if (!metadata) return;
  check_catalog(metadata->catalog);
  const Result<std::string> written = encode_dcp_metadata(metadata->catalog);
  expect(written.has_value(), "what was read can be written");
  const Result<DcpMetadata> again = read(*written);
  expect(again.has_value(), "what was written can be read");
  expect(again->catalog.tensors.size() == metadata->catalog.tensors.size() &&
             again->catalog.objects.size() == metadata->catalog.objects.size() &&
             count_chunks(again->catalog) == count_chunks(metadata->catalog),
         "nothing is lost");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::check(std::string(data, data + size));
  return 0;
}
