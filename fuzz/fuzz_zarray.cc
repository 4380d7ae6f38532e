// SPDX-License-Identifier: Apache-2.0
// .zarray: shapes, chunks and types of an array, and the files of its chunks.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "expect.h"
#include "format/zarr/zarr_array.h"

namespace shardwright {
namespace {

void check_chunk(const ZarrArray& array, const Dims& place) {
  expect(array.place_of(array.file_of(place)) == place, "a file's name leads back to its chunk");
  const Box box = array.box_of(place);
  std::int64_t last = 0;
  for (int axis = 0; axis < array.shape.size(); ++axis) {
    const std::int64_t extent = box.shape[axis];
    expect(extent > 0 && extent <= array.chunk[axis], "a chunk has elements, and no more than fit");
    expect(box.origin[axis] + extent <= array.shape[axis], "a chunk lies inside its array");
    last += (array.chunk[axis] - 1) * array.strides()[axis];
  }
  const auto bytes = byte_count(array.chunk, array.dtype);
  expect((last + 1) * bytes_of(array.dtype) == *bytes, "its elements are all that its file has");
}

void read(std::string_view text) {
  const Result<ZarrArray> array = parse_zarray(text, ".zarray");
  if (!array) return;
  Dims last;
  for (const std::int64_t count : array->grid()) {
    if (count == 0) return;  // without elements it has no chunks
    last.push_back(count - 1);
  }
  check_chunk(*array, last);
  check_chunk(*array, Dims::filled(last.size(), 0));
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  shardwright::read({reinterpret_cast<const char*>(data), size});
  return 0;
}
