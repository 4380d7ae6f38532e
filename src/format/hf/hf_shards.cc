// SPDX-License-Identifier: Apache-2.0
#include "format/hf/hf_shards.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/checked.h"
#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::string_view kInfoKey = "DCP_SHARDING_INFO";
constexpr std::size_t kMostElementBytes = 16;

std::optional<Dims> read_offsets(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("saved_offsets")) return std::nullopt;
  const nlohmann::json& offsets = entry["saved_offsets"];
  if (!offsets.is_array() || offsets.size() > kMaxAxes) return std::nullopt;
  Dims dims;
  for (const nlohmann::json& offset : offsets) {
    if (!offset.is_number_integer() || offset.get<std::int64_t>() < 0) return std::nullopt;
    dims.push_back(offset.get<std::int64_t>());
  }
  return dims;
}

// Grows `shape` so that it holds the shard.
Status extend(const std::string& name, const Dims& offset, const Dims& shard, Dims& shape) {
  for (int axis = 0; axis < shape.size(); ++axis) {
    const auto end = checked_add(offset[axis], shard[axis]);
    if (!end) {
      return fail(Code::kMetadataCorrupt, "tensor {}: found a shard at {} of {}, beyond any tensor",
                  name, to_string(offset), to_string(shard));
    }
    shape[axis] = std::max(shape[axis], *end);
  }
  return {};
}

using Element = std::array<std::byte, kMostElementBytes>;

Result<Element> read_element(const ReadableFile& file, ByteRange range) {
  Element element{};
  SW_TRY(
      file.read_at(range.offset, std::span(element).first(static_cast<std::size_t>(range.length))));
  return element;
}

using Scalars = std::unordered_map<std::string_view, const StoredTensor*>;

Scalars scalars_of(const Catalog& catalog) {
  Scalars scalars;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (tensor.desc.shape.empty()) scalars.emplace(tensor.desc.name, &tensor);
  }
  return scalars;
}

Status compare_scalars(const Directory& directory, const std::string& path, const Scalars& scalars,
                       SourceFiles& files) {
  const std::unique_ptr<ReadableFile> shard = SW_TRY(directory.open(path));
  const SafetensorsHeader header = SW_TRY(read_safetensors_header(*shard));
  for (const SafetensorsTensor& kept : header.tensors) {
    if (!kept.desc.shape.empty()) continue;
    const auto found = scalars.find(kept.desc.name);
    if (found == scalars.end() || found->second->desc.dtype != kept.desc.dtype) continue;
    const ChunkList& chunks = found->second->chunks;
    const auto file = SW_TRY(files.get(chunks.file(0)));
    const Element consolidated = SW_TRY(read_element(*file, chunks.range(0)));
    const Element original = SW_TRY(read_element(*shard, kept.range));
    if (consolidated == original) continue;
    return fail(Code::kReplicasDiffer,
                "tensor {}: found another value than in {}: torch loses tensors of no axes when it "
                "consolidates; convert the folder sharded, which has them",
                kept.desc.name, path);
  }
  return {};
}

}  // namespace

Result<std::optional<ShardOffsets>> read_shard_offsets(const SafetensorsHeader& header,
                                                       std::string_view file) {
  const auto info = header.metadata.find(kInfoKey);
  if (info == header.metadata.end()) return std::nullopt;
  const std::string where = fmt::format("{} {}", file, kInfoKey);
  const nlohmann::json document = SW_TRY(parse_json(info->second, where));
  ShardOffsets offsets;
  for (const SafetensorsTensor& tensor : header.tensors) {
    const std::string& name = tensor.desc.name;
    const std::optional<Dims> found = document.is_object() && document.contains(name)
                                          ? read_offsets(document[name])
                                          : std::nullopt;
    if (!found || found->size() != tensor.desc.shape.size()) {
      return fail(Code::kMetadataCorrupt,
                  "{}: tensor {}: saved_offsets does not say for {} axes where the shard begins",
                  where, name, tensor.desc.shape.size());
    }
    offsets.emplace(name, *found);
  }
  return offsets;
}

Status join_shards(const std::vector<Dims>& offsets, Catalog& catalog) {
  std::vector<StoredTensor> joined;
  std::unordered_map<std::string, std::size_t> by_name;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const StoredTensor& shard = catalog.tensors[i];
    const auto [found, is_new] = by_name.emplace(shard.desc.name, joined.size());
    if (is_new) {
      joined.push_back({shard.desc, ChunkList(shard.desc.shape.size()), Encoding::kRaw});
      joined.back().desc.shape = Dims::filled(shard.desc.shape.size(), 0);
    }
    StoredTensor& whole = joined[found->second];
    if (whole.desc.dtype != shard.desc.dtype ||
        whole.desc.shape.size() != shard.desc.shape.size()) {
      return fail(Code::kMetadataCorrupt, "tensor {}: found shards of {} and {} axes of {}, in {}",
                  shard.desc.name, torch_name(whole.desc.dtype), shard.desc.shape.size(),
                  torch_name(shard.desc.dtype), catalog.files[shard.chunks.file(0)]);
    }
    SW_TRY(extend(shard.desc.name, offsets[i], shard.desc.shape, whole.desc.shape));
    Chunk chunk = shard.chunks[0];
    chunk.box.origin = offsets[i];
    whole.chunks.push_back(chunk);
  }
  catalog.tensors = std::move(joined);
  return {};
}

Status check_consolidated_scalars(const Directory& directory, const Catalog& catalog,
                                  SourceFiles& files) {
  constexpr const char* kFolder = "sharded";
  const Scalars scalars = scalars_of(catalog);
  if (scalars.empty() || !directory.exists(kFolder)) return {};
  for (const DirectoryEntry& entry : SW_TRY(directory.list(kFolder))) {
    if (entry.is_directory || !entry.name.ends_with(".safetensors")) continue;
    SW_TRY(compare_scalars(directory, fmt::format("{}/{}", kFolder, entry.name), scalars, files));
  }
  return {};
}

}  // namespace shardwright
