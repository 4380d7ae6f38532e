// SPDX-License-Identifier: Apache-2.0
#include "convert/dcp_target.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
#include "convert/mlite_source.h"
#include "format/rank_metadata.h"
#include "format/torch_dist_layout.h"
#include "layout/dtensor_placement.h"

namespace shardwright {
namespace {

// Metadata names every chunk: beyond this they are no use to anybody.
constexpr std::int64_t kMostChunks = std::int64_t{1} << 26;

// The pieces of one tensor. Ranks without rows share one item behind the tensor's end, which torch
// attributes to one of them.
std::vector<OwnedChunk> shard_rows(const Dims& shape, std::int64_t shards, bool with_empty) {
  if (shape.empty()) return {{Box::whole(shape), 0}};
  std::vector<OwnedChunk> chunks;
  for (std::int64_t rank = 0; rank < shards; ++rank) {
    const ShardRows rows = chunk_of({0, shape[0]}, shards, rank);
    OwnedChunk chunk{Box::whole(shape), rank};
    chunk.box.origin[0] = rows.offset;
    chunk.box.shape[0] = rows.rows;
    if (rows.rows > 0 || with_empty || rank == 0) chunks.push_back(chunk);
    if (rows.rows == 0) break;
  }
  return chunks;
}

using Paths = std::unordered_map<std::string, std::vector<PathStep>>;

Result<Paths> paths_of(const Checkpoint& source) {
  Paths paths;
  const Container container = source.location.container;
  if (container != Container::kDcp && container != Container::kTorchDist) return paths;
  const DcpMetadata metadata =
      SW_TRY(read_any_metadata(*source.directory, {.planner_paths = true}));
  for (const PlannerPath& path : metadata.planner_paths) paths.emplace(path.name, path.path);
  return paths;
}

// A name that was made of another one lies where that lay: the last key changes.
std::vector<PathStep> path_like(std::vector<PathStep> path, std::string_view old_name,
                                std::string_view name) {
  auto* last = path.empty() ? nullptr : std::get_if<std::string>(&path.back());
  if (last == nullptr || !old_name.ends_with(*last)) return {std::string(name)};
  const std::string_view before = old_name.substr(0, old_name.size() - last->size());
  if (!name.starts_with(before)) return {std::string(name)};
  *last = name.substr(before.size());
  return path;
}

class Draft {
 public:
  Draft(const ConvertRequest& request, const Checkpoint& source, TargetParts& parts,
        std::vector<std::string>& notes)
      : request_(request), source_(source), parts_(parts), notes_(notes) {}

  Status run(Catalog& catalog) {
    paths_ = SW_TRY(paths_of(source_));
    std::string example;
    const bool tells_sizes =
        request_.source_expert || request_.source_expert_tensor || request_.source_tensor;
    if (tells_sizes && !is_mlite(catalog)) {
      return fail(Code::kUsage,
                  "{}: found no MLite checkpoint, expected one with --source-ep, --source-etp or "
                  "--source-tp; leave them out",
                  request_.input);
    }
    if (is_mlite(catalog)) {
      for (const StoredTensor& tensor : catalog.tensors) {
        if (example.empty() && paths_.contains(tensor.desc.name)) example = tensor.desc.name;
      }
      catalog = SW_TRY(global_from_mlite(catalog, request_, notes_));
      SW_TRY(tell_side_files());
    }
    parts_.tensors = draft_identity(catalog, {request_.dtype, LayerKeys::kAutomatic});
    parts_.copied_objects = catalog.objects;
    if (!paths_.empty()) {
      for (const DraftTensor& tensor : parts_.tensors) add_path(tensor.desc.name, example);
      for (const StoredObject& object : parts_.copied_objects) add_path(object.name, {});
    }
    if (!source_.common_state.empty() && source_.directory->exists("common.pt")) {
      notes_.emplace_back("common.pt (arguments, iteration, optimizer groups) stays behind");
    }
    return {};
  }

 private:
  // What MLite writes beside its tensors, rank by rank.
  Status tell_side_files() {
    std::vector<std::string> left;
    for (const DirectoryEntry& entry : SW_TRY(source_.directory->list(""))) {
      const std::string_view name = entry.name;
      if (name.starts_with("optimizer_rank_") || name.starts_with("rng_state_rank_")) {
        left.emplace_back(name);
      }
    }
    if (left.empty()) return {};
    std::ranges::sort(left);
    notes_.push_back(
        fmt::format("{} stay behind: they belong to the ranks of the old layout", name_list(left)));
    return {};
  }

  void add_path(const std::string& name, const std::string& example) {
    const auto found = paths_.find(name);
    if (found != paths_.end()) {
      parts_.planner_paths.push_back({name, found->second});
    } else if (!example.empty()) {
      parts_.planner_paths.push_back({name, path_like(paths_.at(example), example, name)});
    } else {
      parts_.planner_paths.push_back({name, {name}});
    }
  }

  const ConvertRequest& request_;
  const Checkpoint& source_;
  TargetParts& parts_;
  std::vector<std::string>& notes_;
  Paths paths_;
};

}  // namespace

Status draft_dcp(const ConvertRequest& request, const Checkpoint& source, Catalog& catalog,
                 TargetParts& parts, std::vector<std::string>& notes) {
  return Draft(request, source, parts, notes).run(catalog);
}

Status plan_dcp(const TargetParts& parts, const ConvertRequest& request, Plan& plan) {
  const std::int64_t shards = request.shards;
  const bool with_empty = request.format == TargetFormat::kDcp;
  if (static_cast<std::int64_t>(parts.tensors.size()) > kMostChunks / shards) {
    return fail(Code::kLimit, "--shards {}: {} tensors would have more than {} chunks", shards,
                parts.tensors.size(), kMostChunks);
  }
  std::vector<TorchDistTensor> tensors;
  for (const DraftTensor& draft : parts.tensors) {
    tensors.push_back({draft.desc, shard_rows(draft.desc.shape, shards, with_empty)});
    plan.tensors.push_back(draft.recipe);
  }
  std::vector<TorchDistObject> objects;
  for (const StoredObject& object : parts.copied_objects) {
    objects.push_back({object.name, object.range.length, 0});
    plan.objects.push_back({true, static_cast<std::uint32_t>(plan.source.objects.size()), {}});
    plan.source.objects.push_back(object);
  }
  for (const auto& [name, bytes] : parts.new_objects) {
    objects.push_back({name, bytes.size(), 0});
    plan.objects.push_back({false, 0, bytes});
  }
  TorchDistLayout layout = SW_TRY(
      layout_torch_dist(tensors, objects, parts.folder, {std::nullopt, parts.planner_paths}));
  plan.target = std::move(layout.catalog);
  plan.file_sizes = std::move(layout.file_sizes);
  plan.literals.push_back(
      {static_cast<std::uint32_t>(plan.target.files.size()), 0, layout.metadata});
  plan.target.files.push_back(parts.folder + ".metadata");
  plan.file_sizes.push_back(layout.metadata.size());
  complete(parts, plan);
  return {};
}

}  // namespace shardwright
