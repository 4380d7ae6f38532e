// SPDX-License-Identifier: Apache-2.0
#include "dcp/decoded_items.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include "base/allowance.h"
#include "base/fail.h"
#include "codec/zstd_stream.h"
#include "io/memory_directory.h"
#include "io/spool_file.h"

namespace shardwright {
namespace {

// A torch archive or a safetensors header around a tensor, generously.
constexpr std::uint64_t kMostFramingBytes = std::uint64_t{1} << 20;
constexpr std::uint64_t kMostObjectBytes = std::uint64_t{1} << 30;
constexpr int kMostLayers = 4;

// Appends decoded items to a temporary file that becomes one of the checkpoint's files.
class Decoder {
 public:
  Decoder(Catalog& catalog, SourceFiles& files) : catalog_(catalog), files_(files) {}

  // `file` and `range` say where the stored item is, and then where the decoded one will be.
  Status decode(std::uint32_t& file, ByteRange& range, std::uint64_t most_bytes) {
    if (!spool_) spool_ = SW_TRY(SpoolFile::create("decoded items"));
    const std::shared_ptr<const ReadableFile> source = SW_TRY(files_.get(file));
    Allowance& allowance = allowances_.try_emplace(file, source->size()).first->second;
    const std::uint64_t begin = spool_->size();
    const auto append = [&](std::span<const std::byte> bytes) -> Status {
      Status taken = allowance.take(bytes.size(), "its zstd items");
      if (taken) return spool_->append(bytes);
      return std::unexpected(std::move(taken).error().within(source->name()));
    };
    SW_TRY(decode_zstd(*source, range, most_bytes, kMostLayers, append));
    file = static_cast<std::uint32_t>(catalog_.files.size());
    range = {begin, spool_->size() - begin};
    return {};
  }

  Status finish() {
    if (!spool_) return {};
    const std::uint32_t number = static_cast<std::uint32_t>(catalog_.files.size());
    catalog_.files.push_back(spool_->name());
    if (files_.add(std::move(spool_)) == number) return {};
    return fail(Code::kInternal, "decoded items: the catalog and its files differ in number");
  }

 private:
  Catalog& catalog_;
  SourceFiles& files_;
  std::unique_ptr<SpoolFile> spool_;
  std::map<std::uint32_t, Allowance> allowances_;  // by file
};

// What the metadata says that the wanted items hold.
Result<std::uint64_t> declared_bytes(const Catalog& catalog) {
  std::uint64_t sum = 0;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.encoding != Encoding::kZstdItem) continue;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const auto bytes = static_cast<std::uint64_t>(
          SW_TRY(byte_count(tensor.chunks.box(i).shape, tensor.desc.dtype)));
      sum += std::min(bytes, std::numeric_limits<std::uint64_t>::max() - sum);
    }
  }
  return sum;
}

}  // namespace

Status check_transformed(const TransformedItem& item) {
  for (const std::string& descriptor : item.descriptors) {
    if (descriptor == kZstdDescriptor) continue;
    return fail(Code::kItemTransformed,
                "entry {}: found the stream extension {}, expected {} or none; "
                "re-save it without that extension",
                item.name, descriptor, kZstdDescriptor);
  }
  return {};
}

Status mark_transformed(std::span<const TransformedItem> items, Catalog& catalog) {
  std::unordered_map<std::string_view, std::size_t> counts;
  for (const TransformedItem& item : items) {
    SW_TRY(check_transformed(item));
    ++counts[item.name];
  }
  for (StoredTensor& tensor : catalog.tensors) {
    const auto found = counts.find(tensor.desc.name);
    if (found == counts.end()) continue;
    if (found->second < tensor.chunks.size()) {
      return fail(Code::kItemTransformed,
                  "tensor {}: found {} of {} chunks stored through {}, expected all or none",
                  tensor.desc.name, found->second, tensor.chunks.size(), kZstdDescriptor);
    }
    tensor.encoding = Encoding::kZstdItem;
  }
  return {};
}

Status decode_items(Catalog& catalog, SourceFiles& files) {
  const std::uint64_t declared = SW_TRY(declared_bytes(catalog));
  if (declared > 0) SW_TRY(SpoolFile::check_room(declared));
  Decoder decoder(catalog, files);
  for (StoredTensor& tensor : catalog.tensors) {
    if (tensor.encoding != Encoding::kZstdItem) continue;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const Chunk chunk = tensor.chunks[i];
      const auto bytes = SW_TRY(byte_count(chunk.box.shape, tensor.desc.dtype));
      std::uint32_t file = chunk.file;
      ByteRange range = chunk.range;
      Status status =
          decoder.decode(file, range, static_cast<std::uint64_t>(bytes) + kMostFramingBytes);
      if (!status) {
        return std::unexpected(
            std::move(status).error().within(fmt::format("tensor {}", tensor.desc.name)));
      }
      tensor.chunks.set_location(i, file, range);
    }
    tensor.encoding = Encoding::kTorchItem;
  }
  return decoder.finish();
}

Status decode_objects(std::span<const TransformedItem> items, Catalog& catalog,
                      SourceFiles& files) {
  std::unordered_set<std::string_view> names;
  for (const TransformedItem& item : items) names.insert(item.name);
  Decoder decoder(catalog, files);
  for (StoredObject& object : catalog.objects) {
    if (!names.contains(object.name)) continue;
    SW_TRY(decoder.decode(object.file, object.range, kMostObjectBytes));
  }
  return decoder.finish();
}

Result<std::string> decode_object(std::string where, std::string stored, Allowance& allowance) {
  const ByteRange all{0, stored.size()};
  const auto file = make_memory_file(std::move(where), std::move(stored));
  std::string decoded;
  const auto append = [&](std::span<const std::byte> bytes) -> Status {
    Status taken = allowance.take(bytes.size(), "its zstd items");
    if (!taken) return std::unexpected(std::move(taken).error().within(file->name()));
    decoded.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return {};
  };
  SW_TRY(decode_zstd(*file, all, kMostObjectBytes, kMostLayers, append));
  return decoded;
}

}  // namespace shardwright
