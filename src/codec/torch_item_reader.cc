// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_item_reader.h"

#include <algorithm>

#include "base/checked.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/torch_record.h"
#include "codec/zip_format.h"
#include "io/prefetched_file.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kPickleBytes = 1 << 20;  // of one tensor: some 200 bytes are usual
constexpr std::uint64_t kOneReadBytes = 2048;    // an item up to this is read at once
constexpr std::uint64_t kItemHeadBytes = 16384;  // more between pickle and storage is not usual
constexpr std::uint64_t kPayloadAlignment = 64;

/// The bytes from the first record to where torch's layout lets the storage begin, where that is
/// a usual head; else nothing is fetched and each header costs a read.
Status fetch_head(PrefetchedFile& file, ByteRange item, const zip::Entry& pickle,
                  const zip::Entry& storage) {
  const std::uint64_t header_end =
      storage.header_offset + zip::kLocalBytes + storage.name.size() + zip::kExtraHeaderBytes;
  const std::uint64_t payload = round_up(header_end, kPayloadAlignment);
  if (payload > item.length || payload < pickle.header_offset ||
      payload - pickle.header_offset > kItemHeadBytes) {
    return {};
  }
  return file.fetch(item.offset + pickle.header_offset, payload - pickle.header_offset);
}

}  // namespace

Status TensorItemReader::use_pickle(std::string pickle) {
  if (pickle == pickle_) return {};
  pickle_.clear();
  const pickle::Document document = SW_TRY(pickle::decode(as_bytes(pickle)));
  recipe_ = SW_TRY(read_torch_view(document.root()));
  pickle_ = std::move(pickle);
  return {};
}

Result<LocatedTensor> TensorItemReader::read(ByteRange item) {
  PrefetchedFile file(*file_);
  const auto end = checked_add(item.offset, item.length);
  const bool in_file = end && *end <= file.size();
  if (in_file && item.length <= kOneReadBytes) SW_TRY(file.fetch(item.offset, item.length));
  const zip::Archive zip = SW_TRY(zip::Archive::open(file, item, directory_bytes_));
  directory_bytes_ = item.length - zip.directory_offset();
  const std::string folder = SW_TRY(torch_folder(zip));
  const zip::Entry& data = *SW_TRY(torch_record(zip, folder, "data.pkl"));
  // torch gives the only storage of an item the key 0; another key is found below.
  const zip::Entry* usual = zip.find(folder + "/data/0");
  if (usual != nullptr && item.length > kOneReadBytes) {
    SW_TRY(fetch_head(file, item, data, *usual));
  }
  std::string pickle = SW_TRY(zip.read(data, kPickleBytes));
  if (auto used = use_pickle(std::move(pickle)); !used) {
    return std::unexpected(std::move(used).error().within(
        fmt::format("{}@{} record '{}'", file.name(), item.offset, data.name)));
  }
  SW_TRY(check_torch_byteorder(zip, folder));
  const zip::Entry& storage = *SW_TRY(torch_record(zip, folder, "data/" + recipe_.storage_key));
  const auto found =
      file.offset() < item.offset
          ? std::nullopt
          : SW_TRY(zip.locate_in(storage, file.bytes(), file.offset() - item.offset));
  const ByteRange payload = found ? *found : SW_TRY(zip.locate(storage));
  return place_torch_tensor(recipe_, zip, storage, payload);
}

}  // namespace shardwright
