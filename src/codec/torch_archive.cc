// SPDX-License-Identifier: Apache-2.0
#include "codec/torch_archive.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/allowance.h"
#include "base/checked.h"
#include "base/crc32.h"
#include "base/endian.h"
#include "base/fail.h"
#include "codec/read_into.h"
#include "codec/stand_in.h"
#include "codec/torch_record.h"
#include "codec/zip_layout.h"

namespace shardwright {
namespace {

using namespace std::string_view_literals;

constexpr std::uint64_t kSmallRecordBytes = 64;  // .storage_alignment
constexpr std::uint32_t kUsualAlignment = 64;

struct Signature {
  std::size_t position;
  std::string_view bytes;
  std::string_view meaning;
};

/// The number that begins a file of before torch 1.6, as a pickle's LONG1, behind a header of a few
/// bytes that depends on the protocol.
constexpr std::string_view kLegacyMagic = "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"sv;
constexpr std::size_t kLegacyMagicWithin = 32;

// What no format begins with: the file is damaged.
constexpr std::string_view kUnknownBytes = "unknown bytes";

constexpr std::string_view kSafetensors = "a safetensors file";

// What is often found where a torch file is expected.
constexpr std::array<Signature, 9> kSignatures = {{
    {257, "ustar"sv, "a tar archive, the format of torch before 0.1.10"},
    {0, "PYTORCH1"sv, "a preview format of torch"},
    {0, "\x1f\x8b"sv, "a gzip file"},
    {0, "7z\xbc\xaf\x27\x1c"sv, "a 7-Zip archive"},
    {0, "\x28\xb5\x2f\xfd"sv, "a zstd stream"},
    {0, "\x89HDF"sv, "an HDF5 file"},
    {0, "GGUF"sv, "a GGUF file"},
    {0, "version https://git-lfs"sv, "a Git LFS pointer"},
    {8, "{\""sv, kSafetensors},
}};

/// Refuses what is no zip archive, by name where it is known.
Status check_is_zip(const ReadableFile& file, ByteRange window) {
  std::string head(std::min(window.length, kHeadBytes), '\0');
  SW_TRY(read_into(file, window.offset, head));
  const auto found = identify_no_zip(head);
  if (!found) return {};
  SW_TRY(refuse_stand_in(Code::kTorchArchive, file.name(), head, "a torch.save archive",
                         Contents::kBinary));
  if (*found == kSafetensors) {
    return fail(Code::kUnsupportedFormat,
                "{}@{}: found {}, expected a torch.save archive; give it a name that ends in "
                ".safetensors, also in the index if one names it",
                file.name(), window.offset, *found);
  }
  return fail(*found == kUnknownBytes ? Code::kTorchArchive : Code::kUnsupportedFormat,
              "{}@{}: found {}, expected a torch.save archive; load and save it with torch 1.6 or "
              "later",
              file.name(), window.offset, *found);
}

}  // namespace

std::optional<std::string> identify_no_zip(std::string_view head) {
  if (head.starts_with("PK\x03\x04")) return std::nullopt;
  for (const Signature& signature : kSignatures) {
    if (head.size() >= signature.position &&
        head.substr(signature.position).starts_with(signature.bytes)) {
      return std::string(signature.meaning);
    }
  }
  if (head.starts_with('\x80')) {
    const bool legacy =
        head.substr(0, kLegacyMagicWithin).find(kLegacyMagic) != std::string_view::npos;
    return legacy ? "a torch file in the format of before torch 1.6" : "a bare pickle";
  }
  return std::string(kUnknownBytes);
}

Result<TorchArchive> TorchArchive::open(const ReadableFile& file, ByteRange window,
                                        const pickle::Limits& limits) {
  SW_TRY(check_is_zip(file, window));
  zip::Archive zip = SW_TRY(zip::Archive::open(file, window));
  std::string folder = SW_TRY(torch_folder(zip));
  TorchArchive archive(std::move(zip), std::move(folder));
  SW_TRY(archive.check_records());
  const zip::Entry* entry = SW_TRY(torch_record(archive.zip_, archive.prefix_, "data.pkl"));
  const std::string pickle = SW_TRY(archive.zip_.read(*entry, limits.bytes));
  pickle::Limits bounded = limits;
  if (bounded.file_bytes == 0) bounded.file_bytes = window.length;
  auto document = pickle::decode(as_bytes(pickle), bounded);
  if (!document) {
    return std::unexpected(std::move(document).error().within(
        fmt::format("{} record '{}'", file.name(), entry->name)));
  }
  // There each local header is a request. That a place is wrong shows by the CRC of its bytes.
  if (file.is_remote()) {
    const auto usual = usual_torch_place(archive.zip_, *entry);
    const ByteRange place = SW_TRY(archive.zip_.locate(*entry));
    archive.has_usual_places_ = usual && usual->offset == place.offset;
  }
  archive.document_ = std::make_unique<pickle::Document>(std::move(*document));
  return archive;
}

Status TorchArchive::check_records() const {
  if (record("constants.pkl") != nullptr) {
    return fail(Code::kUnsupportedFormat,
                "{}: found a TorchScript archive, expected one of torch.save; save the state dict "
                "of the loaded module",
                zip_.file().name());
  }
  const std::string folder = prefix_ + "/";
  for (const zip::Entry& entry : zip_.entries()) {
    if (entry.name.starts_with(folder)) continue;
    return fail(Code::kTorchArchive, "{}: found a record '{}', expected all in the folder {}",
                zip_.file().name(), entry.name, prefix_);
  }
  return check_torch_byteorder(zip_, prefix_);
}

const zip::Entry* TorchArchive::record(std::string_view name) const {
  return zip_.find(fmt::format("{}/{}", prefix_, name));
}

Result<LocatedTensor> TorchArchive::locate(pickle::Value tensor) const {
  auto recipe = read_torch_tensor(tensor);
  if (!recipe) return std::unexpected(std::move(recipe).error().within(zip_.file().name()));
  const zip::Entry* storage = SW_TRY(torch_record(zip_, prefix_, "data/" + recipe->storage_key));
  const bool shows_if_wrong = storage->crc != 0 || storage->bytes == 0;
  const auto usual =
      has_usual_places_ && shows_if_wrong ? usual_torch_place(zip_, *storage) : std::nullopt;
  const ByteRange payload = usual ? *usual : SW_TRY(zip_.locate(*storage));
  return place_torch_tensor(*recipe, zip_, *storage, payload);
}

Result<std::string> TorchArchive::with_pickle(const std::string& pickle, std::uint64_t limit_bytes,
                                              std::span<const TorchStorage> added) const {
  const zip::Entry* data = record("data.pkl");
  std::uint32_t alignment = kUsualAlignment;
  if (const zip::Entry* entry = record(".storage_alignment")) {
    // Some readers compute the storages' places from it, so the new layout must keep it true.
    const std::string text = SW_TRY(zip_.read(*entry, kSmallRecordBytes));
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), alignment);
    if (error != std::errc() || end != text.data() + text.size()) alignment = 0;
  }
  std::vector<zip::Record> records;
  for (const zip::Entry& entry : zip_.entries()) {
    records.push_back({entry.name, &entry == data ? pickle.size() : entry.bytes, alignment});
  }
  for (const TorchStorage& storage : added) {
    records.push_back(
        {fmt::format("{}/data/{}", prefix_, storage.key), storage.bytes.size(), alignment});
  }
  const zip::Layout layout = SW_TRY(zip::Layout::make(std::move(records)));
  limit_bytes = std::min(limit_bytes, Allowance::of(std::max(zip_.window().length, pickle.size())));
  if (layout.total_bytes() > limit_bytes) {
    return fail(Code::kLimit, "{}: found an archive of {} bytes, expected at most {}",
                zip_.file().name(), layout.total_bytes(), limit_bytes);
  }
  std::string out;
  std::vector<std::uint32_t> crcs;
  const std::size_t own = zip_.entries().size();
  const auto contents_of = [&](std::size_t index) -> Result<std::string> {
    if (index >= own) return added[index - own].bytes;
    const zip::Entry& entry = zip_.entries()[index];
    return &entry == data ? pickle : zip_.read(entry, limit_bytes);
  };
  for (std::size_t index = 0; index < layout.records().size(); ++index) {
    const std::string contents = SW_TRY(contents_of(index));
    crcs.push_back(crc32(as_bytes(contents)));
    layout.append_header(index, out);
    out += contents;
    layout.append_descriptor(index, crcs.back(), out);
  }
  layout.append_directory(crcs, out);
  return out;
}

}  // namespace shardwright
