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
#include "codec/torch_file.h"
#include "codec/torch_number.h"
#include "codec/torch_tensor.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/check_alike.h"
#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/rank_models.h"
#include "format/deepspeed/zero_file_name.h"
#include "format/tensors_beside.h"
#include "io/source_files.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::string_view kMasterWeights = "fp32";
constexpr std::string_view kTorchEnding = ".pt";
constexpr std::string_view kStep = "step";

class UniversalReader {
 public:
  UniversalReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint), defects_(defects), model_(checkpoint) {}

  Status read() {
    SW_TRY(read_models());
    if (is_whole_) SW_TRY(add_frozen(models_, !cut_.empty(), checkpoint_, model_));
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(kUniversalFolder))) {
      if (entry.problem) return std::unexpected(*entry.problem);
      // A frozen parameter's folder repeats what the model states have of it, and so does a
      // buffer's (ds_to_universal --inject_missing_state), in another dtype; that of another name
      // of a parameter what the model computed with.
      const bool is_repeated =
          model_.has(entry.name) || is_other_name(entry.name) || is_of_module_alone(entry.name);
      if (!entry.is_directory || is_repeated) continue;
      SW_TRY(defects_.report(read_parameter(entry.name)));
    }
    SW_TRY(check_kinds());
    for (const auto& [name, shape] : shapes_) {
      if (model_.has(name)) continue;
      SW_TRY(defects_.report(
          fail(Code::kZeroLayout, "parameter {}: found no {}/{}/{}{}; copy it too", printable(name),
               kUniversalFolder, printable(name), kMasterWeights, kTorchEnding)));
    }
    return add_rest();
  }

 private:
  std::uint32_t number_of(std::string name) {
    checkpoint_.catalog.files.push_back(name);
    return checkpoint_.files->add(std::move(name));
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

  Status read_parameter(const std::string& name) {
    const std::string folder = fmt::format("{}/{}", kUniversalFolder, name);
    std::vector<std::string> kinds;
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(folder))) {
      if (entry.problem) return std::unexpected(*entry.problem);
      if (entry.is_directory || !entry.name.ends_with(kTorchEnding)) continue;
      const std::string kind = entry.name.substr(0, entry.name.size() - kTorchEnding.size());
      if (kind == kStep) {
        SW_TRY(check_step(fmt::format("{}/{}", folder, entry.name)));
      } else if (!kind.contains('.')) {
        kinds.push_back(kind);
      }
    }
    std::ranges::stable_partition(kinds,
                                  [](const std::string& kind) { return kind == kMasterWeights; });
    if (kinds.empty() || kinds.front() != kMasterWeights) {
      return fail(Code::kZeroLayout, "{}: found no {}{} in it; copy it too", folder, kMasterWeights,
                  kTorchEnding);
    }
    std::ranges::sort(kinds_.emplace_back(name, kinds).second);
    std::optional<Dims> shape;
    for (const std::string& kind : kinds) {
      SW_TRY(read_state(name, kind, fmt::format("{}/{}{}", folder, kind, kTorchEnding), shape));
    }
    return {};
  }

  // All parameters have come as far, as they have in the buffers of which this is made.
  Status check_step(const std::string& path) {
    const auto file = SW_TRY(checkpoint_.directory->open(path));
    const TorchFile torch = SW_TRY(TorchFile::open(*file));
    const auto step = SW_TRY(read_torch_count(*file, torch, torch.root()));
    if (!step) return {};
    if (!step_) step_ = {*step, path};
    return check_alike(kStep, *step, path, step_->first, step_->second);
  }

  Status read_state(const std::string& name, const std::string& kind, const std::string& path,
                    std::optional<Dims>& shape) {
    const std::uint32_t file = number_of(path);
    const auto opened = SW_TRY(checkpoint_.files->get(file));
    const TorchFile torch = SW_TRY(TorchFile::open(*opened));
    const bool is_bare = is_tensor(torch.root());
    const pickle::Value tensor = is_bare ? torch.root() : torch.root().find("param");
    if (!is_tensor(tensor)) {
      return fail(Code::kZeroLayout, "{}: found neither a tensor nor one under 'param'", path);
    }
    Result<LocatedTensor> place = torch.locate(tensor);
    if (!place) return std::unexpected(std::move(place).error().within(path));
    const Dims wanted = shape ? *shape : shape_of(name, is_bare, place->shape);
    const std::int64_t elements = SW_TRY(element_count(wanted));
    const bool is_it = element_count(place->shape) == elements && place->strides.empty() &&
                       (is_bare || place->shape == wanted);
    if (!is_it) {
      return fail(Code::kZeroLayout, "{}: found shape {}, expected {} of the parameter {}", path,
                  to_string(place->shape), to_string(wanted), printable(name));
    }
    shape = wanted;
    const auto [known, is_new] = dtypes_.try_emplace(kind, place->dtype, path);
    if (!is_new && known->second.first != place->dtype) {
      return fail(Code::kZeroLayout,
                  "{}: found {}, expected {} as in {}; keep the files of one save", path,
                  torch_name(place->dtype), torch_name(known->second.first), known->second.second);
    }
    expect_record(*checkpoint_.files, file, *place, name);
    const std::string called = kind == kMasterWeights ? name : join_state_name(kind, name);
    const FlatElements all{0, elements, file, place->range.offset};
    return model_.add_flat({called, place->dtype, wanted}, std::span(&all, 1));
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
        SW_TRY(defects_.report(fail(
            Code::kZeroLayout, "{}/{}: found no {}{} in it, as {} has one; copy it too",
            kUniversalFolder, printable(name), lacking.front(), kTorchEnding, printable(other))));
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
