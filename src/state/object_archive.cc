// SPDX-License-Identifier: Apache-2.0
#include "state/object_archive.h"

#include "base/fail.h"

namespace shardwright {
namespace {

// Of an entry without tensors; the pickle of one with them is limited by its reader.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;

}  // namespace

Result<TorchArchive> open_object(const StoredObject& object, SourceFiles& files) {
  if (object.range.length > kMostBytes) {
    return fail(Code::kLimit, "entry {}: {} bytes, limit {}", object.name, object.range.length,
                kMostBytes);
  }
  const std::shared_ptr<const ReadableFile> file = SW_TRY(files.get(object.file));
  return TorchArchive::open(*file, object.range);
}

}  // namespace shardwright
