// SPDX-License-Identifier: Apache-2.0
#include "dcp/rank_metadata.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/fail.h"
#include "io/same_bytes.h"

namespace shardwright {
namespace {

std::string file_of_rank(std::int64_t rank) { return fmt::format("__{}{}", rank, kDcpMetadata); }

// Puts the ranks' catalogs together, file numbers and all.
class Merger {
 public:
  Status add(DcpMetadata rank, const std::string& file) {
    std::vector<std::uint32_t> numbers;
    Catalog& all = merged_.catalog;
    for (std::string& path : rank.catalog.files) {
      numbers.push_back(static_cast<std::uint32_t>(all.files.size()));
      all.files.push_back(std::move(path));
    }
    for (StoredTensor& tensor : rank.catalog.tensors) {
      for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
        tensor.chunks.set_location(i, numbers[tensor.chunks.file(i)], tensor.chunks.range(i));
      }
      SW_TRY(add_tensor(std::move(tensor), file));
    }
    for (StoredObject& object : rank.catalog.objects) {
      object.file = numbers[object.file];
      all.objects.push_back(std::move(object));
    }
    for (TransformedItem& item : rank.transformed) {
      item.file = numbers[item.file];
      merged_.transformed.push_back(std::move(item));
    }
    if (merged_.planner_paths.empty()) merged_.planner_paths = std::move(rank.planner_paths);
    merged_.audit.merge(rank.audit);
    merged_.root_class = std::move(rank.root_class);
    return {};
  }

  Result<DcpMetadata> finish() {
    for (const StoredObject& object : merged_.catalog.objects) {
      if (!by_name_.contains(object.name)) continue;
      return fail(Code::kMetadataCorrupt,
                  "entry {}: found a tensor on one rank and an object on another", object.name);
    }
    return std::move(merged_);
  }

 private:
  Status add_tensor(StoredTensor tensor, const std::string& file) {
    std::vector<StoredTensor>& tensors = merged_.catalog.tensors;
    const auto [found, is_new] = by_name_.emplace(tensor.desc.name, tensors.size());
    if (is_new) {
      tensors.push_back(std::move(tensor));
      return {};
    }
    StoredTensor& first = tensors[found->second];
    if (first.desc.dtype != tensor.desc.dtype || !(first.desc.shape == tensor.desc.shape)) {
      return fail(Code::kMetadataCorrupt,
                  "{}: tensor {}: found {} {}, expected {} {} as the ranks before it say; they do "
                  "not belong to one save",
                  file, tensor.desc.name, torch_name(tensor.desc.dtype),
                  to_string(tensor.desc.shape), torch_name(first.desc.dtype),
                  to_string(first.desc.shape));
    }
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) first.chunks.push_back(tensor.chunks[i]);
    return {};
  }

  DcpMetadata merged_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

// Where a tensor's chunks lie.
std::vector<std::tuple<std::string_view, std::uint64_t, std::uint64_t>> places_of(
    const Catalog& catalog, const StoredTensor& tensor) {
  std::vector<std::tuple<std::string_view, std::uint64_t, std::uint64_t>> places;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const ByteRange range = tensor.chunks.range(i);
    places.emplace_back(catalog.files[tensor.chunks.file(i)], range.offset, range.length);
  }
  std::ranges::sort(places);
  return places;
}

// A tensor that is not in both alike; an object is held against its name alone, for each rank may
// have written one.
std::optional<std::string> first_unlike(const Catalog& all, const Catalog& ranks) {
  std::map<std::string_view, const StoredTensor*> by_name;
  for (const StoredTensor& tensor : ranks.tensors) by_name.emplace(tensor.desc.name, &tensor);
  for (const StoredTensor& tensor : all.tensors) {
    const auto found = by_name.find(tensor.desc.name);
    if (found == by_name.end()) return tensor.desc.name;
    const StoredTensor& other = *found->second;
    const bool is_alike = tensor.desc.dtype == other.desc.dtype &&
                          tensor.desc.shape == other.desc.shape &&
                          places_of(all, tensor) == places_of(ranks, other);
    if (!is_alike) return tensor.desc.name;
    by_name.erase(found);
  }
  if (!by_name.empty()) return std::string(by_name.begin()->first);
  std::set<std::string_view> objects;
  std::set<std::string_view> of_ranks;
  for (const StoredObject& object : all.objects) objects.insert(object.name);
  for (const StoredObject& object : ranks.objects) of_ranks.insert(object.name);
  std::vector<std::string_view> unlike;
  std::ranges::set_symmetric_difference(objects, of_ranks, std::back_inserter(unlike));
  if (unlike.empty()) return std::nullopt;
  return std::string(unlike.front());
}

Result<bool> are_equal(const StoredObject& a, const StoredObject& b, SourceFiles& files) {
  if (a.range.length != b.range.length) return false;
  const auto difference = SW_TRY(
      first_difference(files, {a.file, a.range.offset}, {b.file, b.range.offset}, a.range.length));
  return !difference.has_value();
}

}  // namespace

std::optional<std::int64_t> metadata_rank(std::string_view file_name) {
  if (!file_name.starts_with("__") || !file_name.ends_with(kDcpMetadata)) return std::nullopt;
  file_name.remove_prefix(2);
  file_name.remove_suffix(kDcpMetadata.size());
  std::int64_t rank = 0;
  const char* const end = file_name.data() + file_name.size();
  const auto [stop, error] = std::from_chars(file_name.data(), end, rank);
  if (error != std::errc() || stop != end || rank < 0) return std::nullopt;
  return rank;
}

Result<DcpMetadata> read_rank_metadata(const Directory& directory,
                                       const DcpMetadataOptions& options) {
  std::vector<std::int64_t> ranks;
  for (const DirectoryEntry& entry : SW_TRY(directory.list(""))) {
    const std::optional<std::int64_t> rank = metadata_rank(entry.name);
    if (rank && !entry.is_directory) ranks.push_back(*rank);
  }
  // Only a folder with a `.metadata` that can't be read has neither that nor a rank's: opening it
  // says why.
  if (ranks.empty()) static_cast<void>(SW_TRY(directory.open(kDcpMetadata)));
  std::ranges::sort(ranks);
  Merger merger;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (ranks[i] != static_cast<std::int64_t>(i)) {
      return fail(Code::kMetadataCorrupt, "{}: not found, expected one file for each rank up to {}",
                  file_of_rank(static_cast<std::int64_t>(i)), ranks.back());
    }
    const std::string name = file_of_rank(ranks[i]);
    const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(name));
    DcpMetadata rank = SW_TRY(read_dcp_metadata(*file, options));
    SW_TRY(merger.add(std::move(rank), name));
  }
  return merger.finish();
}

Result<DcpMetadata> read_any_metadata(const Directory& directory,
                                      const DcpMetadataOptions& options) {
  if (!directory.exists(kDcpMetadata)) return read_rank_metadata(directory, options);
  const std::unique_ptr<ReadableFile> file = SW_TRY(directory.open(kDcpMetadata));
  return read_dcp_metadata(*file, options);
}

std::string contradicting_ranks(const Directory& directory, const Catalog& catalog) {
  const auto entries = directory.list("");
  const bool has_ranks = entries && std::ranges::any_of(*entries, [](const DirectoryEntry& entry) {
                           return !entry.is_directory && metadata_rank(entry.name).has_value();
                         });
  if (!has_ranks) return {};
  const Result<DcpMetadata> ranks = read_rank_metadata(directory, {});
  if (!ranks) {
    return translated(
        "the ranks' own __N.metadata beside .metadata are not read: {}; move them away if they are "
        "of another save",
        ranks.error().message);
  }
  const std::optional<std::string> unlike = first_unlike(catalog, ranks->catalog);
  if (!unlike) return {};
  return translated(
      ".metadata is read; the ranks' own __N.metadata beside it say otherwise of {}: they are of "
      "two "
      "saves, move the files of the other away",
      *unlike);
}

Result<std::vector<std::string>> settle_rank_objects(Catalog& catalog, SourceFiles& files) {
  std::vector<std::string> notes;
  std::map<std::string, std::vector<const StoredObject*>> by_name;
  for (const StoredObject& object : catalog.objects) by_name[object.name].push_back(&object);
  std::vector<StoredObject> kept;
  for (const auto& [name, objects] : by_name) {
    bool all_equal = true;
    for (std::size_t i = 1; i < objects.size() && all_equal; ++i) {
      all_equal = SW_TRY(are_equal(*objects[0], *objects[i], files));
    }
    if (all_equal) {
      kept.push_back(*objects[0]);
    } else {
      notes.push_back(
          translated("entry {} is left out: the ranks that saved it have different values", name));
    }
  }
  catalog.objects = std::move(kept);
  return notes;
}

}  // namespace shardwright
