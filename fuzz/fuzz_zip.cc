// SPDX-License-Identifier: Apache-2.0
// Zip archives, torch archives, and the quick reader of .distcp items: they must agree. And torch
// files of before 1.6.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "codec/torch_archive.h"
#include "codec/torch_item_reader.h"
#include "codec/torch_stream.h"
#include "codec/zip_reader.h"
#include "expect.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostRecordBytes = std::uint64_t{1} << 20;

bool lies_inside(ByteRange inner, ByteRange outer) {
  return inner.offset >= outer.offset && inner.length <= outer.length &&
         inner.offset - outer.offset <= outer.length - inner.length;
}

void read_zip(const ReadableFile& file) {
  zip::Limits limits;
  limits.entries = 1000;
  limits.inflated_bytes = kMostRecordBytes;
  const ByteRange window{0, file.size()};
  const Result<zip::Archive> archive = zip::Archive::open(file, window, 4096, limits);
  if (!archive) return;
  for (const zip::Entry& entry : archive->entries()) {
    expect(archive->find(entry.name) == &entry, "a record is found by its name");
    const Result<ByteRange> range = archive->locate(entry);
    if (range) expect(lies_inside(*range, window), "a record lies inside the file");
    const Result<std::string> bytes = archive->read(entry, kMostRecordBytes);
    if (bytes) expect(bytes->size() == entry.bytes, "a record is as long as the directory says");
  }
}

template <class Torch>
void locate_tensors(const Torch& torch, std::uint64_t file_bytes) {
  const pickle::Document& document = torch.document();
  for (std::uint32_t id = 0; id < document.node_count(); ++id) {
    const pickle::Value value = document.at(id);
    if (!is_tensor(value)) continue;
    const Result<LocatedTensor> tensor = torch.locate(value);
    if (!tensor) continue;
    expect(lies_inside(tensor->range, tensor->storage), "a tensor lies inside its storage");
    expect(lies_inside(tensor->storage, {0, file_bytes}), "a storage lies inside the file");
  }
}

void read_torch(const ReadableFile& file) {
  const Result<TorchArchive> archive = TorchArchive::open(file);
  if (!archive) return;
  locate_tensors(*archive, file.size());
  static_cast<void>(archive->with_pickle("\x80\x02N.", kMostRecordBytes));
}

void read_stream(const ReadableFile& file) {
  const Result<TorchStream> stream = TorchStream::open(file);
  if (stream) locate_tensors(*stream, file.size());
}

// The item reader takes short cuts; where it finds a tensor, the long way must find the same one.
void compare_item(const ReadableFile& file) {
  TensorItemReader reader(file);
  const Result<LocatedTensor> quick = reader.read({0, file.size()});
  if (!quick) return;
  const Result<TorchArchive> archive = TorchArchive::open(file);
  if (!archive) return;
  const Result<LocatedTensor> slow = archive->locate(archive->root());
  if (!slow) return;
  expect(quick->dtype == slow->dtype && quick->shape == slow->shape, "both readers see one tensor");
  expect(quick->range.offset == slow->range.offset && quick->range.length == slow->range.length &&
             quick->strides == slow->strides,
         "both readers see it at one place");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwright;
  const auto file = make_memory_file("input", std::string(data, data + size));
  read_zip(*file);
  read_torch(*file);
  read_stream(*file);
  compare_item(*file);
  return 0;
}
