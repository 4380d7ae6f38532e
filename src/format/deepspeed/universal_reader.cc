// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/universal_reader.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/check_alike.h"
#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/parameter_folders.h"
#include "format/deepspeed/rank_models.h"
#include "format/deepspeed/zero_file_name.h"
#include "format/tensors_beside.h"
#include "io/source_files.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

class UniversalReader {
 public:
  UniversalReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint), defects_(defects), model_(checkpoint) {}

  Status read() {
    SW_TRY(read_models());
    if (is_whole_) SW_TRY(add_frozen(models_, !cut_.empty(), checkpoint_, model_));
    const std::vector<std::string> names = SW_TRY(trained_parameters());
    const std::vector<ParameterFolder> folders = SW_TRY(read_parameter_folders(names, checkpoint_));
    for (const ParameterFolder& folder : folders) {
      SW_TRY(defects_.report(add_parameter(folder)));
    }
    SW_TRY(check_kinds());
    for (const auto& [name, shape] : shapes_) {
      if (model_.has(name)) continue;
      SW_TRY(defects_.report(
          fail(Code::kZeroLayout, "parameter {}: found no {}/{}/{}{}; copy it too", printable(name),
               kUniversalFolder, printable(name), kUniversalWeights, kUniversalEnding)));
    }
    return add_rest();
  }

 private:
  std::uint32_t number_of(std::string name) {
    checkpoint_.catalog.files.push_back(name);
    return checkpoint_.files->add(std::move(name));
  }

  // A frozen parameter's folder repeats what the model states have of it, and so does a buffer's
  // (ds_to_universal --inject_missing_state), in another dtype; that of another name of a parameter
  // what the model computed with.
  Result<std::vector<std::string>> trained_parameters() {
    std::vector<std::string> names;
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(kUniversalFolder))) {
      if (entry.problem) return std::unexpected(*entry.problem);
      const bool is_repeated =
          model_.has(entry.name) || is_other_name(entry.name) || is_of_module_alone(entry.name);
      if (!entry.is_directory || is_repeated) continue;
      SW_TRY(defects_.report(check_listed(entry.name)));
      names.push_back(entry.name);
    }
    return names;
  }

  // DeepSpeed itself passes over what the run does not name: the rest of another one.
  [[nodiscard]] Status check_listed(std::string_view name) const {
    if (shapes_.empty() || shapes_.contains(name)) return {};
    return fail(Code::kZeroLayout,
                "{}/{}: no 'param_shapes' lists this parameter, neither that of {} nor another "
                "one; keep the files of one save",
                kUniversalFolder, printable(name), checkpoint_.catalog.files[models_.front().file]);
  }

  [[nodiscard]] bool is_other_name(std::string_view name) const {
    return std::ranges::any_of(models_.front().states.shared, [&](const auto& shared) {
      return shared.first == name && shapes_.contains(shared.second);
    });
  }

  // What was not trained: the model states have it as the model computed with it. Of a frozen
  // parameter that model-parallel ranks share, its folder has one rank's part.
  [[nodiscard]] bool is_of_module_alone(std::string_view name) const {
    if (shapes_.empty() || shapes_.contains(name) || (is_whole_ && !cut_.empty())) return false;
    return std::ranges::any_of(models_, [&](const RankModel& rank) {
      const std::vector<StateTensor>& module = rank.states.module;
      return std::ranges::find(module, name, &StateTensor::name) != module.end();
    });
  }

  // Under ZeRO 3 all ranks' files list the same; model-parallel ranks have parameters of their own,
  // each cut to its part.
  Status read_models() {
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(""))) {
      const auto name = parse_zero_file(entry.name);
      if (!name || name->holds != ZeroFileName::Holds::kModel) continue;
      if (entry.problem) return std::unexpected(*entry.problem);
      if (name->data_rank) cut_.emplace(*name->data_rank, models_.size());
      models_.push_back({number_of(entry.name), {}});
    }
    SW_TRY(read_ranks(models_, *checkpoint_.files, read_model_states));
    if (models_.empty()) {
      return fail(Code::kZeroLayout,
                  "found a folder '{}' without *_model_states.pt, which has the parameters' names "
                  "and shapes; copy it too",
                  kUniversalFolder);
    }
    SW_TRY(order_by_rank());
    for (const RankModel& model : models_) {
      for (const ZeroGroup& group : model.states.groups) {
        for (const ZeroParameter& parameter : group) {
          shapes_.emplace(parameter.name, parameter.shape);
        }
      }
    }
    return {};
  }

  // Under ZeRO 3 each rank has a file, in the order of names that is not that of numbers.
  Status order_by_rank() {
    const std::int64_t expected = models_.front().states.model_ranks.value_or(1);
    if (cut_.empty() && std::ssize(models_) < expected) {
      return fail(
          Code::kZeroLayout,
          "{}: it was saved by {} model-parallel ranks, but files of {} are here; copy those "
          "of the others too",
          checkpoint_.catalog.files[models_.front().file], expected, models_.size());
    }
    is_whole_ = expected <= 1 && (models_.size() == 1 || cut_.size() == models_.size());
    if (!is_whole_ || cut_.empty()) return {};
    std::vector<RankModel> ordered;
    for (const auto& [rank, index] : cut_) {
      if (rank != static_cast<std::int64_t>(ordered.size())) {
        return fail(Code::kZeroLayout, "found {} and no such file of rank {}; copy it too",
                    checkpoint_.catalog.files[models_[index].file], ordered.size());
      }
      ordered.push_back(std::move(models_[index]));
    }
    models_ = std::move(ordered);
    return check_rank_models(models_, checkpoint_.catalog);
  }

  Status add_parameter(const ParameterFolder& folder) {
    if (!folder.listed) return folder.listed;
    if (!folder.step_path.empty()) SW_TRY(check_step(folder));
    if (folder.states.empty() || folder.states.front().kind != kUniversalWeights) {
      return fail(Code::kZeroLayout, "{}: found no {}{} in it; copy it too", folder.path,
                  kUniversalWeights, kUniversalEnding);
    }
    std::vector<std::string>& kinds =
        kinds_.emplace_back(folder.name, std::vector<std::string>()).second;
    for (const ParameterState& state : folder.states) kinds.push_back(state.kind);
    std::ranges::sort(kinds);
    std::optional<Dims> shape;
    for (const ParameterState& state : folder.states) {
      SW_TRY(add_state(folder.name, state, shape));
    }
    return {};
  }

  // All parameters have come as far, as they have in the buffers of which this is made.
  Status check_step(const ParameterFolder& folder) {
    if (!folder.step) return std::unexpected(folder.step.error());
    if (!*folder.step) return {};
    if (!step_) step_ = {**folder.step, folder.step_path};
    return check_alike("step", **folder.step, folder.step_path, step_->first, step_->second);
  }

  Status add_state(const std::string& name, const ParameterState& state,
                   std::optional<Dims>& shape) {
    if (!state.stored) return std::unexpected(state.stored.error());
    const auto& [place, is_bare] = *state.stored;
    const Dims wanted = shape ? *shape : shape_of(name, is_bare, place.shape);
    const std::int64_t elements = SW_TRY(element_count(wanted));
    const bool is_it = element_count(place.shape) == elements && place.strides.empty() &&
                       (is_bare || place.shape == wanted);
    if (!is_it) {
      return fail(Code::kZeroLayout, "{}: found shape {}, expected {} of the parameter {}",
                  state.path, to_string(place.shape), to_string(wanted), printable(name));
    }
    shape = wanted;
    const auto [known, is_new] = dtypes_.try_emplace(state.kind, place.dtype, state.path);
    if (!is_new && known->second.first != place.dtype) {
      return fail(Code::kZeroLayout,
                  "{}: found {}, expected {} as in {}; keep the files of one save", state.path,
                  torch_name(place.dtype), torch_name(known->second.first), known->second.second);
    }
    expect_record(*checkpoint_.files, state.file, place, name);
    const std::string called =
        state.kind == kUniversalWeights ? name : join_state_name(state.kind, name);
    const FlatElements all{0, elements, state.file, place.range.offset};
    return model_.add_flat({called, place.dtype, wanted}, std::span(&all, 1));
  }

  // Optimizers keep different states, and all of each: where a parameter has some of those that
  // another one has, files are missing.
  Status check_kinds() {
    std::map<std::vector<std::string>, std::string> sets;  // to the first parameter
    for (const auto& [name, kinds] : kinds_) sets.emplace(kinds, name);
    for (const auto& [name, kinds] : kinds_) {
      for (const auto& [others, other] : sets) {
        if (others.size() <= kinds.size() || !std::ranges::includes(others, kinds)) continue;
        std::vector<std::string> lacking;
        std::ranges::set_difference(others, kinds, std::back_inserter(lacking));
        SW_TRY(defects_.report(fail(Code::kZeroLayout,
                                    "{}/{}: found no {}{} in it, as {} has one; copy it too",
                                    kUniversalFolder, printable(name), lacking.front(),
                                    kUniversalEnding, printable(other))));
        break;
      }
    }
    return {};
  }

  // What one model-parallel rank lists is the whole where there is no other.
  [[nodiscard]] Dims shape_of(const std::string& name, bool is_bare, const Dims& stored) const {
    const auto known = shapes_.find(name);
    return known != shapes_.end() && (is_whole_ || is_bare) ? known->second : stored;
  }

  // Each rank has buffers whole, and of frozen parameters what it computes with.
  Status add_untrained(const StateTensor& tensor, const RankModel& rank) {
    if (buffers_.contains(tensor.name)) {
      return model_.add_replica(tensor.name, rank.file, tensor.place);
    }
    if (model_.has(tensor.name)) return {};
    const std::vector<std::string>& buffers = rank.states.buffers;
    if (std::ranges::find(buffers, tensor.name) != buffers.end()) {
      buffers_.insert(tensor.name);
    } else if (!is_whole_) {
      left_out_.insert(tensor.name);
      return {};
    } else if (!cut_.empty() && element_count(tensor.place.shape) == 0) {
      return fail(Code::kZeroLayout, "parameter {}: the model has it, but it has no folder in {}",
                  printable(tensor.name), kUniversalFolder);
    }
    return model_.add_whole(tensor.name, rank.file, tensor.place);
  }

  Status add_rest() {
    std::vector<std::string> order;
    for (const auto& [name, other] : models_.front().states.shared) {
      if (model_.has(other) && !model_.has(name)) SW_TRY(model_.add_shared(name, other));
    }
    for (const RankModel& rank : models_) {
      for (const StateTensor& tensor : rank.states.module) {
        order.push_back(tensor.name);
        SW_TRY(add_untrained(tensor, rank));
      }
    }
    const bool is_pipeline = std::ranges::all_of(
        models_, [](const RankModel& rank) { return rank.states.module.empty(); });
    if (is_pipeline) {
      checkpoint_.notes.emplace_back(
          "the run was a pipeline, of which a universal checkpoint has what was trained only: "
          "parameters that were frozen, and buffers, are in the run's own layer files");
    }
    if (!left_out_.empty()) {
      const std::vector<std::string> names(left_out_.begin(), left_out_.end());
      checkpoint_.notes.push_back(
          translated("{} tensors that were not trained are left out: nothing says how "
                     "model-parallel ranks cut "
                     "them: {}",
                     names.size(), name_list(names)));
    }
    model_.finish(order);
    tell_beside(models_.front().states.unread, checkpoint_.catalog.files[models_.front().file],
                checkpoint_);
    checkpoint_.beside_states = state_beside(step_ ? std::optional(step_->first) : std::nullopt);
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
  ModelCatalog model_;
  std::vector<RankModel> models_;
  std::map<std::int64_t, std::size_t> cut_;  // by data-parallel rank, under ZeRO 3
  std::map<std::string, Dims, std::less<>> shapes_;
  std::map<std::string, std::pair<DType, std::string>> dtypes_;          // of each kind, and a file
  std::vector<std::pair<std::string, std::vector<std::string>>> kinds_;  // of each parameter
  std::optional<std::pair<std::int64_t, std::string>> step_;             // the first, and its file
  std::set<std::string> buffers_;   // taken from the model states
  std::set<std::string> left_out_;  // what no rule puts together
  bool is_whole_ = true;            // no model-parallel rank has a part of it
};

}  // namespace

Status read_universal(Checkpoint& checkpoint, Defects& defects) {
  return defects.report(UniversalReader(checkpoint, defects).read());
}

}  // namespace shardwright
