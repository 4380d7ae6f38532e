// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/fsdp_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "format/attention_kinds.h"
#include "format/fsdp_dtensor/fsdp_state.h"
#include "format/fsdp_dtensor/fsdp_target.h"
#include "format/select.h"
#include "format/tensor_pieces.h"
#include "layout/fsdp_name.h"
#include "layout/layer_name.h"
#include "layout/legacy_names.h"
#include "layout/mixer_parts.h"
#include "layout/module_tensors.h"
#include "state/recorded_run.h"
#include "tensor/chunk_part.h"

namespace shardwright {
namespace {

using Role = FsdpName::Role;

constexpr std::string_view kRngStates = "rng_state.";
constexpr std::string_view kExtraState = "_extra_state";

// What stands before a parameter in the name of a state of it.
std::string_view state_prefix(Role role) {
  switch (role) {
    case Role::kExpAvg:
      return "optimizer.state.exp_avg.";
    case Role::kExpAvgSq:
      return "optimizer.state.exp_avg_sq.";
    case Role::kMomentum:
      return "optimizer.state.momentum_buffer.";
    case Role::kMaster:
      return "optimizer.state.param.";
    default:
      return "";
  }
}

// What one tensor of a module is made of.
struct Parts {
  Role role = Role::kModel;
  std::string parameter;  // as the module calls it, experts together
  TensorPieces pieces;
};

// Every tensor's, in the order in which they are stored.
struct Pieces {
  std::vector<std::string> order;
  std::unordered_map<std::string, Parts> parts;  // by parameter, behind what it is of it
  std::unordered_set<std::string> trained;       // parameters with a state
  std::unordered_set<std::string> mastered;      // those whose master weight is apart
  std::size_t rng_states = 0;
};

// What has a tensor's name is no object, and a parameter has each of its settings once.
Status check_object_names(const Catalog& catalog) {
  std::unordered_set<std::string> settings;
  for (const StoredObject& object : catalog.objects) {
    if (const auto entry = split_fsdp_group_entry(object.name)) {
      for (const std::string& parameter : fsdp_settings_of(*entry)) {
        if (settings.insert(fmt::format("{}.{}", parameter, entry->key)).second) continue;
        return fail(Code::kDuplicateName,
                    "entry {}: its parameter has this setting under another name too", object.name);
      }
      continue;
    }
    const auto name = split_fsdp_name(object.name);
    if (!name || name->role == Role::kStep || object.name.ends_with(kExtraState)) continue;
    return fail(Code::kUnmatchedSource,
                "entry {}: found a Python object, expected a tensor as its name says", object.name);
  }
  return {};
}

// Of objects that belong to no part of such a checkpoint; empty where there are none.
std::string unknown_objects(const Catalog& catalog) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string_view> unknown;
  for (const StoredObject& object : catalog.objects) {
    const std::string& name = object.name;
    const bool is_known = is_fsdp_state_entry(name) || split_fsdp_group_entry(name) ||
                          split_fsdp_name(name) || name.starts_with(kRngStates);
    if (!is_known) unknown.push_back(name);
  }
  const std::size_t named = std::min(unknown.size(), kMostNamed);
  std::string text = fmt::to_string(fmt::join(std::span(unknown).first(named), ", "));
  if (named < unknown.size()) text += ", ...";
  return text;
}

Result<Pieces> gather_pieces(const Catalog& catalog) {
  SW_TRY(check_object_names(catalog));
  Pieces pieces;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::optional<FsdpName> name = split_fsdp_name(tensor.desc.name);
    if (!name) {
      if (!tensor.desc.name.starts_with(kRngStates)) {
        return fail(Code::kUnmatchedSource, "tensor {}: found a name that fsdp_dtensor has not",
                    tensor.desc.name);
      }
      ++pieces.rng_states;
      continue;
    }
    if (name->role != Role::kModel) pieces.trained.insert(name->parameter);
    if (name->role == Role::kMaster) pieces.mastered.insert(name->parameter);
    if (name->role == Role::kStep) continue;
    const std::string whole = std::string(state_prefix(name->role)) + name->parameter;
    const auto [found, is_new] = pieces.parts.try_emplace(whole);
    if (is_new) {
      pieces.order.push_back(whole);
      found->second.role = name->role;
      found->second.parameter = name->parameter;
    }
    if (!found->second.pieces.add(name->expert, name->half, tensor)) {
      return fail(Code::kDuplicateName, "tensor {}: its parameter is stored under another name too",
                  tensor.desc.name);
    }
  }
  return pieces;
}

// The model's own tensors by its modules' names; what has none of those is left to who reads it.
std::vector<TensorDesc> modules_of(const Catalog& catalog) {
  std::vector<TensorDesc> modules;
  std::unordered_set<std::string> known;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::optional<FsdpName> name = split_fsdp_name(tensor.desc.name);
    const bool is_model = name && name->role == Role::kModel;
    if (!is_model || !known.insert(name->parameter).second) continue;
    TensorDesc module = tensor.desc;
    module.name = name->parameter;
    if (name->half != GateHalf::kWhole && !module.shape.empty()) module.shape[0] *= 2;
    modules.push_back(std::move(module));
  }
  return modules;
}

// Tensors of modules taken apart into those of torch_dist.
class Renaming {
 public:
  Renaming(const Pieces& pieces, const ModuleTensors& tensors, const Arguments& arguments)
      : pieces_(pieces),
        tensors_(tensors),
        tensor_parallel_(number_of(arguments, {"tensor_model_parallel_size"})) {}

  Status add(const Parts& parts, std::vector<StoredTensor>& out) {
    const StoredTensor whole = parts.pieces.put_together(parts.parameter);
    const std::size_t first = out.size();
    for (const RowRun& run : SW_TRY(runs_of(parts, whole))) {
      StoredTensor& tensor = out[SW_TRY(place_of(run, parts, whole.desc, out))];
      if (run.rows == rows_of(whole.desc)) {
        tensor = {
            {tensor.desc.name, whole.desc.dtype, whole.desc.shape}, whole.chunks, Encoding::kRaw};
        continue;
      }
      tensor.desc.shape[0] += run.rows;
      Box piece = Box::whole(whole.desc.shape);
      piece.origin[0] = run.from;
      piece.shape[0] = run.rows;
      Dims origin = piece.origin;
      origin[0] = run.to;
      append_moved(whole, piece, origin, tensor.chunks);
    }
    // Buffers (a router's bias) and frozen weights have no state, hence no main weight.
    if (parts.role != Role::kModel || !pieces_.trained.contains(parts.parameter)) return {};
    if (pieces_.mastered.contains(parts.parameter)) return {};
    const std::size_t end = out.size();
    for (std::size_t i = first; i < end; ++i) {
      StoredTensor main_weight = out[i];
      main_weight.desc.name = "optimizer.state.param." + out[i].desc.name;
      out.push_back(std::move(main_weight));
    }
    return {};
  }

 private:
  static std::int64_t rows_of(const TensorDesc& desc) {
    return desc.shape.empty() ? 1 : desc.shape[0];
  }

  // Experts are counted along the first axis, and are never of several tensors.
  Result<std::vector<RowRun>> runs_of(const Parts& parts, const StoredTensor& whole) const {
    if (!parts.pieces.has_experts()) return tensors_.runs_of(whole.desc, tensor_parallel_);
    return std::vector<RowRun>{
        {tensors_.canonical_name(parts.parameter), 0, 0, rows_of(whole.desc)}};
  }

  // Runs of one tensor follow one another; it begins without rows.
  Result<std::size_t> place_of(const RowRun& run, const Parts& parts, const TensorDesc& whole,
                               std::vector<StoredTensor>& out) {
    std::string name = std::string(state_prefix(parts.role)) + run.tensor;
    const auto [found, is_new] = made_.try_emplace(name, Made{out.size(), &parts});
    if (!is_new && found->second.parts != &parts) {
      return fail(Code::kDuplicateName, "tensor {}: its parameter is stored under another name too",
                  parts.pieces.first().desc.name);
    }
    if (is_new) {
      Dims shape = whole.shape;
      if (!shape.empty()) shape[0] = 0;
      const int axes = shape.size();
      out.push_back({{std::move(name), whole.dtype, shape}, ChunkList(axes), Encoding::kRaw});
    }
    return found->second.index;
  }

  struct Made {
    std::size_t index;
    const Parts* parts;
  };

  const Pieces& pieces_;
  const ModuleTensors& tensors_;
  std::optional<std::int64_t> tensor_parallel_;
  std::unordered_map<std::string, Made> made_;  // by name
};

// What the names show of the version whose modules they are. Those of settings are the modules' own
// in every version; tensors of the newest have others than their modules.
VersionedNames versioned_names_of(const Catalog& stored, bool is_kept) {
  VersionedNames names;
  for (const StoredTensor& tensor : stored.tensors) {
    const auto name = split_fsdp_name(tensor.desc.name);
    if (!name) continue;
    note_version(tensor.desc.name, names);
    names.has_mixers_apart |= name->parameter.find("in_proj.") != std::string::npos &&
                              split_mixer_part(name->parameter).second >= 0;
    names.has_latents_apart |= name->parameter.ends_with(".linear_q_down_proj.weight");
  }
  if (is_kept) return names;
  if (!names.has_mtp_model_layer.value_or(true)) names.has_mtp_model_layer.reset();
  for (const StoredObject& object : stored.objects) {
    if (split_fsdp_group_entry(object.name)) note_version(object.name, names);
  }
  return names;
}

// A run chooses their type, float32 where it does not say. Frozen ones have another, and are known
// by the states of the others.
std::string note_on_main_weights(const Catalog& canonical) {
  std::set<std::string_view> trained;
  std::set<std::string_view> all;
  for (const StoredTensor& tensor : canonical.tensors) {
    const TensorDesc& desc = tensor.desc;
    if (!is_castable_float(desc.dtype)) continue;
    if (desc.name.starts_with("optimizer.state.param.")) trained.insert(torch_name(desc.dtype));
    all.insert(torch_name(desc.dtype));
  }
  const std::set<std::string_view>& types = trained.empty() ? all : trained;
  const std::string_view usual = torch_name(DType::kF32);
  if (!types.empty() && !types.contains(usual)) {
    return translated("weights stay {}, the main weights of Megatron-FSDP", fmt::join(types, ", "));
  }
  return translated(
      "weights stay {}, the main weights of Megatron-FSDP; --dtype bfloat16 gives what such a "
      "model usually computes with",
      usual);
}

// The settings of each parameter, under the name that it has in torch_dist.
std::vector<StoredObject> renamed_settings(const Catalog& stored, const ModuleTensors& tensors) {
  std::vector<StoredObject> settings;
  for (const StoredObject& object : stored.objects) {
    const auto entry = split_fsdp_group_entry(object.name);
    if (!entry) continue;
    FsdpName name = split_fsdp_parameter(entry->parameter);
    name.parameter = tensors.canonical_name(name.parameter);
    for (const std::string& parameter : fsdp_settings_of(name)) {
      settings.push_back(object);
      settings.back().name = fmt::format("{}.{}", parameter, entry->key);
    }
  }
  return settings;
}

// Canonical tensors of `catalog`, a part of the model whose modules `tensors` are.
Result<Catalog> name_by(const ModuleTensors& tensors, const Catalog& catalog,
                        const Arguments& arguments, std::vector<std::string>& notes) {
  const Pieces pieces = SW_TRY(gather_pieces(catalog));
  if (pieces.rng_states > 0) {
    notes.emplace_back("RNG states are left out: they belong to the old ranks");
  }
  if (const std::string unknown = unknown_objects(catalog); !unknown.empty()) {
    notes.push_back(
        translated("entries that are no part of a training state are left out: {}", unknown));
  }
  Catalog canonical;
  canonical.files = catalog.files;
  for (const std::string& name : pieces.order) SW_TRY(pieces.parts.at(name).pieces.check(name));
  Renaming renaming(pieces, tensors, arguments);
  for (const std::string& name : pieces.order) {
    SW_TRY(renaming.add(pieces.parts.at(name), canonical.tensors));
  }
  tell_attention_kinds(arguments, canonical);
  return canonical;
}

}  // namespace

Status check_fsdp_stages(const Catalog& catalog, const Arguments& arguments) {
  const FsdpStages stages = count_fsdp_stages(catalog, arguments);
  if (!stages.lost_layers()) return {};
  return fail(
      Code::kLossySource,
      "model: found {} layers by name, expected {} of a run with {} pipeline stages; stages "
      "number their layers alike, and layers of one name were lost when this was saved",
      stages.found, stages.expected, stages.stages);
}

FsdpStages count_fsdp_stages(const Catalog& catalog, const Arguments& arguments) {
  std::vector<TensorDesc> descs;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::optional<FsdpName> name = split_fsdp_name(tensor.desc.name);
    descs.push_back(tensor.desc);
    if (name) descs.back().name = name->parameter;
  }
  return {number_of(arguments, {"pipeline_model_parallel_size"}).value_or(1),
          count_main_layers(descs), number_of(arguments, {"num_layers"}).value_or(0)};
}

Result<Catalog> canonical_from_fsdp(const Catalog& catalog, const Arguments& arguments,
                                    std::vector<std::string>& notes) {
  Catalog canonical = SW_TRY(named_canonically(catalog, arguments, notes));
  SW_TRY(check_fsdp_stages(catalog, arguments));
  return canonical;
}

Status check_fsdp_pieces(const Catalog& catalog) {
  const Pieces pieces = SW_TRY(gather_pieces(catalog));
  for (const std::string& name : pieces.order)
    SW_TRY(pieces.parts.at(name).pieces.check_count(name));
  return {};
}

Result<Catalog> named_canonically(const Catalog& catalog, const Arguments& arguments,
                                  std::vector<std::string>& notes) {
  const std::vector<TensorDesc> modules = modules_of(catalog);
  return name_by(ModuleTensors(modules), catalog, arguments, notes);
}

Status undo_fsdp(const ConvertRequest& request, Checkpoint& source, Catalog& catalog,
                 std::vector<std::string>& notes) {
  const bool with_optimizer = keeps_optimizer(request);
  const Catalog stored = std::move(catalog);
  // Of a part of the model the rest tells how it is made.
  const std::vector<TensorDesc> modules = modules_of(source.catalog);
  const ModuleTensors tensors(modules);
  catalog = SW_TRY(name_by(tensors, stored, source.arguments, notes));
  SW_TRY(check_fsdp_stages(stored, source.arguments));
  if (with_optimizer) SW_TRY(check_fsdp_settings(stored));
  source.common_state = SW_TRY(make_common_state(stored, *source.files, with_optimizer, notes));
  const bool is_own = is_fsdp(source);
  const bool stays = is_own && request.format == fsdp_dtensor_target().traits().name;
  if (with_optimizer && !stays) {
    std::string note = SW_TRY(note_on_like_groups(source.common_state));
    if (!note.empty()) notes.push_back(std::move(note));
  }
  // To its own format each parameter's settings go along as they are.
  if (with_optimizer && stays) {
    std::ranges::move(renamed_settings(stored, tensors), std::back_inserter(catalog.objects));
  }
  source.versioned_names = versioned_names_of(stored, stays);
  if (!request.dtype && is_own && !stays) notes.push_back(note_on_main_weights(catalog));
  return {};
}

}  // namespace shardwright
