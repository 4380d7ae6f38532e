// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_record.h"

#include <algorithm>

#include "base/checked.h"
#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/zip_format.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kByteorderBytes = 64;
constexpr std::uint64_t kTorchAlignment = 64;

}  // namespace

Result<std::string> torch_folder(const zip::Archive& zip) {
  const std::string_view first =
      zip.entries().empty() ? std::string_view() : zip.entries().front().name;
  const std::size_t slash = first.find('/');
  if (slash != std::string_view::npos) return std::string(first.substr(0, slash));
  return fail(
      Code::kTorchArchive,
      "{}@{}: not a torch.save archive: no record lies in a folder, as <name>/data.pkl does",
      zip.file().name(), zip.window().offset);
}

Result<const zip::Entry*> torch_record(const zip::Archive& zip, std::string_view folder,
                                       std::string_view name) {
  const zip::Entry* entry = zip.find(fmt::format("{}/{}", folder, name));
  if (entry != nullptr) return entry;
  return fail(Code::kTorchArchive, "{}@{}: not a torch.save archive: it has no record {}/{}",
              zip.file().name(), zip.window().offset, folder, name);
}

Status check_torch_byteorder(const zip::Archive& zip, std::string_view folder) {
  const zip::Entry* entry = zip.find(fmt::format("{}/byteorder", folder));
  if (entry == nullptr) return {};
  const std::string contents = SW_TRY(zip.read(*entry, kByteorderBytes));
  if (contents == "little") return {};
  return fail(Code::kUnsupportedFormat,
              "{}@{} record '{}': found a file of a big-endian machine, expected little-endian; "
              "load and save it on a little-endian machine",
              zip.file().name(), zip.window().offset, entry->name);
}

std::optional<ByteRange> usual_torch_place(const zip::Archive& zip, const zip::Entry& entry) {
  if (entry.method != zip::kStored) return std::nullopt;
  const std::uint64_t wide =
      (entry.bytes >= zip::kIn64 ? 16U : 0U) + (entry.header_offset >= zip::kIn64 ? 8U : 0U);
  const std::uint64_t zip64 = wide == 0 ? 0 : zip::kExtraHeaderBytes + wide;
  const std::uint64_t padding =
      entry.header_offset + zip::kLocalBytes + entry.name.size() + zip64 + zip::kExtraHeaderBytes;
  const std::uint64_t payload = round_up(padding, kTorchAlignment);
  const bool is_late = (entry.flags & zip::kFlagDescriptor) != 0;
  const std::uint64_t descriptor = !is_late    ? 0
                                   : wide == 0 ? zip::kDescriptorBytes
                                               : zip::kDescriptor64Bytes;
  if (payload + entry.stored_bytes + descriptor != zip.end_of(entry)) return std::nullopt;
  return ByteRange{zip.window().offset + payload, entry.stored_bytes};
}

Result<LocatedTensor> place_torch_tensor(const TorchTensor& recipe, const zip::Archive& zip,
                                         const zip::Entry& storage, ByteRange payload) {
  const auto refuse = [&](Code code, std::string_view found, std::string_view expected) {
    return fail(code, "{}@{} record '{}': found {}, expected {}", zip.file().name(),
                zip.window().offset, storage.name, found, expected);
  };
  if (storage.method != zip::kStored) {
    return refuse(Code::kZipUnsupported, "a compressed storage",
                  "a stored one; save the file again without compression");
  }
  if (storage.bytes != recipe.storage_bytes) {
    return refuse(Code::kTorchArchive, fmt::format("{} bytes", storage.bytes),
                  translated("{} as the pickle says", recipe.storage_bytes));
  }
  LocatedTensor tensor = place_in_storage(recipe, payload);
  tensor.storage_crc = storage.crc;
  tensor.record = storage.name;
  return tensor;
}

Result<std::string> read_torch_storage(const ReadableFile& file, const LocatedTensor& tensor,
                                       std::uint64_t limit_bytes) {
  if (tensor.storage.length > limit_bytes) {
    return fail(Code::kLimit, "{}@{}: a storage of {} bytes is more than the {} that fit here",
                file.name(), tensor.storage.offset, tensor.storage.length, limit_bytes);
  }
  std::string bytes(static_cast<std::size_t>(tensor.storage.length), '\0');
  SW_TRY(file.read_at(tensor.storage.offset, std::as_writable_bytes(std::span(bytes))));
  const std::uint32_t crc = crc32(as_bytes(bytes));
  if (tensor.storage_crc == 0 || tensor.storage_crc == crc) return bytes;
  return fail(
      Code::kPayloadDamaged,
      "{}@{}: found CRC-32 {:08x} of record '{}' ({} bytes), expected {:08x}; its bytes were "
      "altered, restore the file",
      file.name(), tensor.storage.offset, crc, tensor.record, tensor.storage.length,
      tensor.storage_crc);
}

LocatedTensor place_in_storage(const TorchTensor& recipe, ByteRange payload) {
  LocatedTensor tensor;
  tensor.dtype = recipe.dtype;
  tensor.shape = recipe.shape;
  tensor.storage = payload;
  tensor.flips = recipe.flips;
  // read_torch_tensor has checked the sums below against storage_bytes, unless the view is empty.
  tensor.range.offset = payload.offset;
  if (std::ranges::find(recipe.shape, 0) != recipe.shape.end()) return tensor;
  std::int64_t elements = 1;
  std::int64_t last = 0;
  for (int axis = 0; axis < recipe.shape.size(); ++axis) {
    elements *= recipe.shape[axis];
    last += (recipe.shape[axis] - 1) * recipe.strides[axis];
  }
  const bool dense = recipe.is_dense();
  if (!dense) tensor.strides = recipe.strides;
  const std::int64_t item_bytes = bytes_of(recipe.dtype);
  tensor.range.offset += static_cast<std::uint64_t>(recipe.offset * item_bytes);
  tensor.range.length = static_cast<std::uint64_t>((dense ? elements : last + 1) * item_bytes);
  return tensor;
}

}  // namespace shardwright
