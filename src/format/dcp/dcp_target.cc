// SPDX-License-Identifier: Apache-2.0
#include "format/dcp/dcp_target.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "dcp/rank_metadata.h"
#include "dcp/torch_dist_layout.h"
#include "format/mlite/mlite_source.h"
#include "format/mlite/rank_files.h"
#include "format/stored_drafts.h"
#include "layout/dtensor_placement.h"

namespace shardwright {
namespace {

// Metadata names every chunk: beyond this they are no use to anybody.
constexpr std::int64_t kMostChunks = std::int64_t{1} << 26;

// The pieces of one tensor. Ranks without rows share one item behind the tensor's end, which torch
// attributes to one of them.
OwnedChunks shard_rows(const Dims& shape, std::int64_t shards, bool with_empty) {
  if (shape.empty()) return {0, {{Box::whole(shape), 0}}};
  OwnedChunks chunks(shape.size());
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
  if (!source.location.traits.has_chunk_list) return paths;
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

// The nested state dict that the entries came from, where the source is one.
class PathFinder {
 public:
  PathFinder(Paths paths, const Catalog& stored) : paths_(std::move(paths)) {
    if (paths_.empty() || !has_mlite_names(stored)) return;
    const auto found = std::ranges::find_if(stored.tensors, [&](const StoredTensor& tensor) {
      return paths_.contains(tensor.desc.name);
    });
    if (found != stored.tensors.end()) example_ = found->desc.name;
  }

  void find(TargetParts& parts) const {
    if (paths_.empty()) return;
    for (const DraftTensor& tensor : parts.tensors) {
      parts.planner_paths.push_back({tensor.desc.name, path_of(tensor.desc.name, example_)});
    }
    for (const StoredObject& object : parts.copied_objects) {
      parts.planner_paths.push_back({object.name, path_of(object.name, {})});
    }
  }

 private:
  [[nodiscard]] std::vector<PathStep> path_of(const std::string& name,
                                              const std::string& example) const {
    const auto found = paths_.find(name);
    if (found != paths_.end()) return found->second;
    if (!example.empty()) return path_like(paths_.at(example), example, name);
    return {name};
  }

  Paths paths_;
  std::string example_;  // where the tensors lay whose names are made anew
};

class DcpTarget : public Target {
 public:
  DcpTarget()
      : Target({.name = "dcp",
                .names = TargetNames::kStored,
                .keeps_optimizer = true,
                .has_shards = true}) {}

  Status draft_stored(const ConvertRequest& request, const Checkpoint& source, Catalog& catalog,
                      TargetParts& parts, std::vector<std::string>& notes) const override {
    const PathFinder paths(SW_TRY(paths_of(source)), catalog);
    SW_TRY(draft_stored_tensors(request, catalog, parts, notes));
    parts.copied_objects = catalog.objects;
    SW_TRY(take_rank_files(request, source, parts, notes));
    paths.find(parts);
    tell_what_stays(source, catalog, notes);
    return {};
  }

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& /*notes*/) const override {
    return plan_dcp(parts, request, /*with_empty=*/true, plan);
  }
};

}  // namespace

const Target& dcp_target() {
  static const DcpTarget target;
  return target;
}

Status plan_dcp(TargetParts& parts, const ConvertRequest& request, bool with_empty, Plan& plan) {
  const std::int64_t shards = request.shards;
  if (static_cast<std::int64_t>(parts.tensors.size()) > kMostChunks / shards) {
    return fail(Code::kLimit, "--shards {}: {} tensors would have more than {} chunks", shards,
                parts.tensors.size(), kMostChunks);
  }
  std::vector<TorchDistTensor> tensors;
  tensors.reserve(parts.tensors.size());
  plan.tensors.reserve(parts.tensors.size());
  for (DraftTensor& draft : parts.tensors) {
    OwnedChunks chunks = shard_rows(draft.desc.shape, shards, with_empty);
    tensors.push_back({std::move(draft.desc), std::move(chunks)});
    plan.tensors.push_back(std::move(draft.recipe));
  }
  parts.tensors = {};
  std::vector<TorchDistObject> objects;
  for (const StoredObject& object : parts.copied_objects) {
    objects.push_back({object.name, object.range.length, 0});
    plan.objects.push_back({true, static_cast<std::uint32_t>(plan.source.objects.size()), {}});
    plan.source.objects.push_back(object);
  }
  for (const auto& [name, bytes] : parts.new_objects) {
    objects.push_back({name, bytes->size(), 0});
    plan.objects.push_back({false, 0, bytes});
  }
  TorchDistLayout layout =
      SW_TRY(layout_torch_dist(std::move(tensors), std::move(objects), parts.folder,
                               {std::nullopt, std::move(parts.planner_paths)}));
  plan.target = std::move(layout.catalog);
  plan.file_sizes = std::move(layout.file_sizes);
  plan.literals.push_back(
      {static_cast<std::uint32_t>(plan.target.files.size()), 0, std::move(layout.metadata)});
  plan.target.files.push_back(parts.folder + ".metadata");
  plan.file_sizes.push_back(plan.literals.back().bytes.size());
  complete(parts, plan);
  return {};
}

}  // namespace shardwright
