// SPDX-License-Identifier: Apache-2.0
#include "format/torch_dist/torch_dist_target.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/fail.h"
#include "dcp/replica_name.h"
#include "format/prefixed_names.h"
#include "format/torch_dist/own_files.h"
#include "layout/state_name.h"
#include "model/apply.h"
#include "plan/canonical.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

Status check_tensor_ranks(const ParallelConfig& parallel) {
  if (parallel.tensor > 1) return {};
  return fail(Code::kUsage,
              "--tp-replicas expand, which --for replicas implies: one tensor rank "
              "shares nothing; give --tp N, or leave the flag out");
}

// A run without a distributed optimizer asks for other names of master weights.
void tell_names_of_states(const TargetParts& parts, std::vector<std::string>& notes) {
  const auto is_said = [&](std::string_view name, bool value) {
    const auto said = parts.arguments.find(name);
    return said != parts.arguments.end() && said->second == ArgValue{value};
  };
  // Megatron switches the one off where it takes the other instead.
  if (!is_said("use_distributed_optimizer", false)) return;
  if (is_said("use_layer_wise_distributed_optimizer", true)) return;
  const std::string masters = join_state_name(kStateKinds[0], "");
  const bool has_masters = std::ranges::any_of(parts.tensors, [&](const DraftTensor& tensor) {
    return tensor.desc.name.starts_with(masters);
  });
  if (!has_masters) return;
  notes.emplace_back(
      "optimizer states get the names of a distributed optimizer's, and the run had none: load "
      "them with --use-distributed-optimizer and --dist-ckpt-optim-fully-reshardable");
}

class TorchDistTarget : public Target {
 public:
  TorchDistTarget()
      : Target({.name = "torch_dist",
                .names = TargetNames::kMegatron,
                .keeps_optimizer = true,
                .has_grid = true,
                .is_for_a_job = true,
                .has_run_config = true,
                .backend = "torch_dist",
                .hf_folder = "iter_0000000/hf/"}) {}

  void add_prefix(std::string_view prefix, TargetParts& parts) const override {
    for (DraftTensor& tensor : parts.tensors) {
      if (!tensor.desc.name.starts_with(kHfExtraPrefix)) put_prefix_on(prefix, tensor.desc.name);
    }
    for (StoredObject& object : parts.copied_objects) {
      if (object.name.contains("._extra_state")) put_prefix_on(prefix, object.name);
    }
    for (auto& [name, bytes] : parts.new_objects) {
      if (name.contains("._extra_state")) put_prefix_on(prefix, name);
    }
  }

  Status lay_out(const ConvertRequest& request, TargetParts& parts, Plan& plan,
                 std::vector<std::string>& notes) const override {
    tell_names_of_states(parts, notes);
    std::vector<TensorDesc> descs = descs_of(parts.tensors);
    const Placement placement = SW_TRY(Placement::make(descs, request.parallel, parts.splits));
    std::optional<JobLayout> job;
    if (request.data_ranks) {
      job = SW_TRY(JobLayout::make(descs, request.parallel, *request.data_ranks, parts.splits));
    }
    descs = {};
    PlacedParts placed = SW_TRY(place_parts(parts, placement));
    if (request.tp_replicas == TpReplicas::kExpand) {
      SW_TRY(check_tensor_ranks(request.parallel));
      const std::size_t expanded = expand_replicas(placement, parts, placed);
      notes.push_back(translated(
          "tensors that all {} tensor ranks hold ({} of them) are stored for each rank, as "
          "NAME.__tp_replica_RANK: unmodified Megatron-Core does not find them under such names",
          request.parallel.tensor, expanded));
    }
    if (job) {
      SW_TRY(put_into_own_files(*job, placed));
      notes.push_back(translated(
          "files are laid out for {} ranks that load all of this fully parallel in their "
          "data-parallel groups: loads of other sizes, or of a part, work and read more files",
          job->world_size()));
    }
    return plan_torch_dist(parts, std::move(placed), plan);
  }
};

}  // namespace

const Target& torch_dist_target() {
  static const TorchDistTarget target;
  return target;
}

bool is_held_by_ranks(std::string_view name) {
  if (name.starts_with(kHfExtraPrefix)) return false;
  return !is_optimizer_name(name) || split_state_name(name).has_value();
}

Result<PlacedParts> place_parts(const TargetParts& parts, const Placement& placement) {
  PlacedParts placed;
  placed.tensors.reserve(parts.tensors.size());
  for (const DraftTensor& draft : parts.tensors) {
    OwnedChunks chunks = SW_TRY(placement.place(draft.desc));
    placed.tensors.push_back({draft.desc, std::move(chunks)});
  }
  placed.objects.reserve(parts.copied_objects.size() + parts.new_objects.size());
  for (const StoredObject& object : parts.copied_objects) {
    placed.objects.push_back(
        {object.name, object.range.length, placement.rank_of_object(object.name)});
  }
  for (const auto& [name, bytes] : parts.new_objects) {
    placed.objects.push_back({name, bytes->size(), placement.rank_of_object(name)});
  }
  return placed;
}

std::size_t expand_replicas(const Placement& placement, TargetParts& parts, PlacedParts& placed) {
  std::vector<DraftTensor> drafts;
  std::vector<TorchDistTensor> tensors;
  drafts.reserve(parts.tensors.size());
  tensors.reserve(parts.tensors.size());
  std::size_t expanded = 0;
  for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
    DraftTensor& draft = parts.tensors[i];
    TorchDistTensor& tensor = placed.tensors[i];
    const std::int64_t copies =
        is_held_by_ranks(draft.desc.name) ? placement.copies_of(draft.desc) : 1;
    if (copies > 1) ++expanded;
    for (std::int64_t rank = 0; copies > 1 && rank < copies; ++rank) {
      TorchDistTensor copy = tensor;
      copy.desc.name = replica_name(tensor.desc.name, rank);
      for (std::size_t c = 0; c < copy.chunks.size(); ++c) {
        copy.chunks.set_owner(c, copy.chunks.owner(c) + rank);
      }
      drafts.push_back(draft);
      drafts.back().desc.name = copy.desc.name;
      tensors.push_back(std::move(copy));
    }
    if (copies > 1) continue;
    drafts.push_back(std::move(draft));
    tensors.push_back(std::move(tensor));
  }
  parts.tensors = std::move(drafts);
  placed.tensors = std::move(tensors);
  return expanded;
}

Status plan_torch_dist(TargetParts& parts, PlacedParts placed, Plan& plan) {
  plan.objects.reserve(parts.copied_objects.size() + parts.new_objects.size());
  for (StoredObject& object : parts.copied_objects) {
    const std::uint32_t from = static_cast<std::uint32_t>(plan.source.objects.size());
    plan.source.objects.push_back(std::move(object));
    plan.objects.push_back({true, from, {}});
  }
  for (auto& [name, bytes] : parts.new_objects) {
    plan.objects.push_back({false, 0, std::move(bytes)});
  }
  parts.copied_objects = {};
  parts.new_objects = {};
  TorchDistLayout layout =
      SW_TRY(layout_torch_dist(std::move(placed.tensors), std::move(placed.objects), parts.folder));
  plan.target = std::move(layout.catalog);
  plan.file_sizes = std::move(layout.file_sizes);
  add_file({parts.folder + ".metadata", std::move(layout.metadata)}, plan);
  add_file({fmt::format("{}{}", parts.folder, kCommonStateFile), parts.common_state}, plan);
  add_file({parts.folder + "metadata.json", torch_dist_marker()}, plan);
  add_file({"latest_checkpointed_iteration.txt", parts.tracker}, plan);
  plan.tensors.reserve(parts.tensors.size());
  for (DraftTensor& draft : parts.tensors) plan.tensors.push_back(std::move(draft.recipe));
  parts.tensors = {};
  complete(parts, plan);
  return {};
}

}  // namespace shardwright
