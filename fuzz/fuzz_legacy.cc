// SPDX-License-Identifier: Apache-2.0
// A rank's file of the legacy format: the object graph, and where its tensors lie.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codec/torch_stream.h"
#include "expect.h"
#include "format/legacy/legacy_file.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

void expect_inside(const LegacyFile& file, std::uint64_t size) {
  for (const LegacyModel& model : file.models) {
    for (const LegacyTensor& tensor : model.tensors) {
      const ByteRange& range = tensor.place.range;
      expect(range.offset <= size && range.length <= size - range.offset, "bytes lie in the file");
    }
  }
}

void read(const std::string& bytes) {
  const std::unique_ptr<ReadableFile> file = make_memory_file("model_optim_rng.pt", bytes);
  const Result<LegacyFile> names = read_legacy_file(*file, LegacyDetail::kNames);
  const Result<LegacyFile> places = read_legacy_file(*file, LegacyDetail::kPlaces);
  expect(names.has_value() || !places.has_value(), "more detail accepts no more");
  if (places) expect_inside(*places, bytes.size());
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read(std::string(data, data + size));
  return 0;
}
