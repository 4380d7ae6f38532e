// SPDX-License-Identifier: Apache-2.0
#include "dcp/load_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "dcp/dcp_metadata.h"
#include "dcp/decoded_items.h"
#include "dcp/item_places.h"
#include "dcp/named_replicas.h"
#include "dcp/replica_name.h"
#include "io/memory_directory.h"

namespace shardwright {
namespace {

// What one tensor rank stored of a tensor, its shadows too.
StoredTensor rank_copy(const StoredTensor& tensor, std::int64_t replica) {
  StoredTensor one{{replica_name(tensor.desc.name, replica), tensor.desc.dtype, tensor.desc.shape},
                   ChunkList(tensor.chunks.axes()),
                   tensor.encoding};
  std::size_t at = 0;
  for (const StoredCopy& copy : tensor.copies) {
    const std::size_t end = at + copy.chunks;
    if (copy.replica == replica) {
      one.copies.push_back(copy);
      for (std::size_t i = at; i < end; ++i) one.chunks.push_back(tensor.chunks[i]);
    }
    at = end;
  }
  return one;
}

std::set<std::int64_t> ranks_that_stored(const StoredTensor& tensor) {
  std::set<std::int64_t> ranks;
  for (const StoredCopy& copy : tensor.copies) {
    if (copy.replica) ranks.insert(*copy.replica);
  }
  return ranks;
}

}  // namespace

Result<LoadCatalog> LoadCatalog::read(std::string contents, std::string name) {
  LoadCatalog load;
  const auto file = make_memory_file(std::move(name), std::move(contents));
  // Who asks for a tensor that is set aside is told before, or that there is none.
  Defects aside(Defects::Policy::kSetAside);
  DcpMetadataOptions options;
  options.defects = &aside;
  DcpMetadata metadata = SW_TRY(read_dcp_metadata(*file, options));
  load.catalog_ = std::move(metadata.catalog);
  std::vector<TransformedItem> of_tensors;
  for (TransformedItem& item : metadata.transformed) {
    const auto object = std::ranges::find(load.catalog_.objects, item.name, &StoredObject::name);
    if (object == load.catalog_.objects.end()) {
      of_tensors.push_back(std::move(item));
    } else {
      load.transformed_.push_back(std::move(item));
    }
  }
  SW_TRY(mark_transformed(of_tensors, load.catalog_));
  fold_replicas(load.catalog_);
  Defects first;
  SW_TRY(check_item_places(load.catalog_, first));
  load.listed_ = load.catalog_.tensors.size();
  load.add_rank_copies();
  load.note_names();
  load.add_objects();
  return load;
}

void LoadCatalog::add_rank_copies() {
  for (std::size_t t = 0; t < listed_; ++t) {
    for (const std::int64_t rank : ranks_that_stored(catalog_.tensors[t])) {
      StoredTensor copy = rank_copy(catalog_.tensors[t], rank);
      if (check_coverage(copy)) catalog_.tensors.push_back(std::move(copy));
    }
  }
}

void LoadCatalog::note_names() {
  for (std::uint32_t t = 0; t < catalog_.tensors.size(); ++t) {
    tensor_numbers_.emplace(catalog_.tensors[t].desc.name, t);
  }
  // Copies that are cut otherwise than one another are still copies: the first whole one serves.
  for (std::uint32_t t = 0; t < listed_; ++t) {
    const StoredTensor& tensor = catalog_.tensors[t];
    const auto name = parse_replica_name(tensor.desc.name);
    if (!name || name->is_shadow || !check_coverage(tensor)) continue;
    tensor_numbers_.emplace(std::string(name->tensor), t);
  }
}

void LoadCatalog::add_objects() {
  for (StoredObject& object : catalog_.objects) {
    const auto length = static_cast<std::int64_t>(object.range.length);
    StoredTensor bytes{{object.name, DType::kU8, {length}}, ChunkList(1), Encoding::kRaw};
    bytes.chunks.push_back({Box::whole({length}), object.file, object.range, {}});
    object_numbers_.emplace(object.name, static_cast<std::uint32_t>(catalog_.tensors.size()));
    catalog_.tensors.push_back(std::move(bytes));
    objects_.push_back(std::move(object.name));
  }
  catalog_.objects.clear();
  for (std::size_t i = 0; i < transformed_.size(); ++i) {
    if (check_transformed(transformed_[i])) {
      packed_.insert(object_numbers_.at(transformed_[i].name));
    } else {
      foreign_.emplace(transformed_[i].name, i);
    }
  }
}

std::optional<std::uint32_t> LoadCatalog::find(std::string_view name) const {
  const auto exact = tensor_numbers_.find(std::string(name));
  if (exact != tensor_numbers_.end()) return exact->second;
  const auto replica = parse_replica_name(name);
  if (!replica) return std::nullopt;
  const auto tensor = tensor_numbers_.find(std::string(replica->tensor));
  if (tensor == tensor_numbers_.end()) return std::nullopt;
  return tensor->second;
}

std::optional<std::string> LoadCatalog::tensor_name(std::string_view name) const {
  const std::optional<std::uint32_t> found = find(name);
  if (!found) return std::nullopt;
  const std::string& own = catalog_.tensors[*found].desc.name;
  const auto copy = parse_replica_name(own);
  const bool is_listed = *found < listed_;
  return is_listed || !copy ? own : std::string(copy->tensor);
}

Result<std::optional<std::uint32_t>> LoadCatalog::find_object(std::string_view name) const {
  const auto found = object_numbers_.find(std::string(name));
  if (found == object_numbers_.end()) return std::nullopt;
  const auto foreign = foreign_.find(found->first);
  if (foreign != foreign_.end()) SW_TRY(check_transformed(transformed_[foreign->second]));
  return found->second;
}

Result<std::vector<std::string>> LoadCatalog::decode(std::span<const std::uint32_t> objects,
                                                     std::vector<std::string> stored) const {
  std::map<std::uint32_t, std::uint64_t> sizes;  // of the files
  for (const std::uint32_t object : objects) sizes[catalog_.tensors[object].chunks.file(0)] = 0;
  for (const StoredTensor& tensor : catalog_.tensors) {
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const auto size = sizes.find(tensor.chunks.file(i));
      if (size != sizes.end()) size->second += tensor.chunks.range(i).length;
    }
  }
  std::map<std::uint32_t, Allowance> allowances;
  std::vector<std::string> decoded;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const StoredTensor& object = catalog_.tensors[objects[i]];
    const std::uint32_t file = object.chunks.file(0);
    Allowance& allowance = allowances.try_emplace(file, sizes[file]).first->second;
    std::string where = fmt::format("{}: object {}", catalog_.files[file], object.desc.name);
    decoded.push_back(SW_TRY(decode_object(std::move(where), std::move(stored[i]), allowance)));
  }
  return decoded;
}

}  // namespace shardwright
