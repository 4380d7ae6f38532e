// SPDX-License-Identifier: Apache-2.0
#include "exec/guarded_object.h"

#include <array>
#include <memory>
#include <span>
#include <string>

#include "base/fail.h"
#include "codec/zip_format.h"
#include "codec/zip_reader.h"
#include "io/prefetched_file.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kOneReadBytes = std::uint64_t{256} << 10;
constexpr std::uint64_t kMostDeflatedBytes = std::uint64_t{16} << 20;
constexpr std::string_view kMagic = "PK\x03\x04";

}  // namespace

Status expect_object(SourceFiles& files, const StoredObject& object) {
  const std::shared_ptr<const ReadableFile> source = SW_TRY(files.get(object.file));
  // Other files that go along may be archives of other kinds; nobody said that they are torch's.
  const bool is_torch = source->name().ends_with(".distcp") || source->name().ends_with(".pt");
  if (!is_torch || object.range.length <= kMagic.size()) return {};
  PrefetchedFile file(*source);
  if (object.range.length <= kOneReadBytes) {
    SW_TRY(file.fetch(object.range.offset, object.range.length));
  }
  std::array<char, kMagic.size()> head{};
  SW_TRY(file.read_at(object.range.offset, std::as_writable_bytes(std::span(head))));
  if (std::string_view(head.data(), head.size()) != kMagic) return {};  // it was only pickled
  const auto expect_records = [&]() -> Status {
    const zip::Archive archive = SW_TRY(zip::Archive::open(file, object.range));
    for (const zip::Entry& entry : archive.entries()) {
      const ByteRange place = SW_TRY(archive.locate(entry));
      if (entry.method != zip::kStored) {
        SW_TRY(archive.read(entry, kMostDeflatedBytes));
      } else if (entry.crc != 0) {
        files.expect({object.file, place, entry.crc, entry.name, object.name});
      }
    }
    return {};
  };
  Status status = expect_records();
  if (status) return {};
  return std::unexpected(Error(std::move(status).error()).within(object.name));
}

}  // namespace shardwright
