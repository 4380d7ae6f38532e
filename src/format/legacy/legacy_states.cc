// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_states.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "format/legacy/layer_wise_files.h"
#include "format/legacy/legacy_chunks.h"
#include "format/legacy/legacy_optimizer.h"
#include "format/legacy/legacy_ranks.h"
#include "format/legacy/legacy_state.h"
#include "format/legacy/rank_groups.h"
#include "format/tensors_beside.h"
#include "io/source_files.h"
#include "layout/idle_head.h"
#include "layout/layer_name.h"
#include "layout/module_order.h"
#include "layout/state_name.h"
#include "state/loss_scale.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr std::string_view kBuffersFile = "distrib_optim.pt";

// A parameter, and the tensor of the rank's file that it is.
struct PlacedParameter {
  std::size_t model = 0;
  std::size_t tensor = 0;
};

struct RankParameters {
  std::vector<RankParameter> list;  // as an optimizer lists them: in the order of the dicts
  std::vector<PlacedParameter> places;
};

bool has_prediction_layers(const LegacyRanks& ranks) {
  for (const LegacyRankFile& file : ranks.files()) {
    for (const LegacyModel& model : file.contents.models) {
      for (const LegacyTensor& tensor : model.tensors) {
        if (is_prediction_layer(tensor.name)) return true;
      }
    }
  }
  return false;
}

// The tensors of a rank's model as its optimizer lists them: where a parameter's first name stands,
// by the name that its states have.
std::vector<std::size_t> tensors_of(const LegacyModel& model) {
  std::vector<std::size_t> listed;
  std::set<std::size_t> taken;  // before their turn
  for (std::size_t i = 0; i < model.tensors.size(); ++i) {
    const std::string_view name = model.tensors[i].name;
    const std::string_view named = name_with_states(name);
    const auto found = named == name ? model.tensors.end()
                                     : std::ranges::find(model.tensors, named, &LegacyTensor::name);
    if (found == model.tensors.end()) {
      if (!taken.contains(i)) listed.push_back(i);
      continue;
    }
    listed.push_back(static_cast<std::size_t>(found - model.tensors.begin()));
    taken.insert(listed.back());
  }
  return listed;
}

Result<RankParameters> parameters_of(const LegacyRanks& ranks, std::size_t index, bool has_mtp) {
  RankParameters parameters;
  const std::vector<LegacyModel>& models = ranks.files()[index].contents.models;
  for (std::size_t v = 0; v < models.size(); ++v) {
    const LegacyStage stage = SW_TRY(ranks.stage_of(index, v));
    const bool is_tied = stage.output_is_embedding && !has_idle_head(descs_of(models[v]));
    for (const std::size_t i : tensors_of(models[v])) {
      const auto& [name, place] = models[v].tensors[i];
      if (!is_parameter(name, place.dtype)) continue;
      const bool is_shared = is_shared_parameter(name, stage.config.pipeline, is_tied, has_mtp);
      const std::int64_t elements = SW_TRY(element_count(place.shape));
      parameters.list.push_back(
          {{name, place.dtype, place.shape}, place, {name, elements, is_shared, v, place.dtype}});
      parameters.places.push_back({v, i});
    }
  }
  return parameters;
}

// What lies beside a rank's model.
struct StatesBeside {
  std::string folder;  // with the slash behind it
  bool has_part = false;
  bool has_buffers = false;
  std::uint32_t buffers = 0;  // index into Catalog::files
};

// What is read of a rank's files, whatever the others' hold.
struct RankStates {
  RankParameters parameters;
  std::optional<RankOptimizer> optimizer;  // without LayerWiseFiles
};

class StatesReader {
 public:
  StatesReader(Checkpoint& checkpoint, const LegacyRanks& ranks)
      : checkpoint_(checkpoint),
        ranks_(ranks),
        chunks_(checkpoint.catalog, *checkpoint.files),
        has_mtp_(has_prediction_layers(ranks)) {}

  // A run may have thousands of ranks: what waits for a disk or a server is done side by side.
  Status read(Defects& defects) {
    layer_wise_ = SW_TRY(LayerWiseFiles::find(checkpoint_, ranks_));
    const std::vector<StatesBeside> beside = SW_TRY(find_beside());
    const auto read = [&](std::size_t i) { return read_rank(i, beside[i]); };
    const auto take = [&](std::size_t i, const Result<RankStates>& states) -> Status {
      Status status = states ? add_rank(i, beside[i], *states) : std::unexpected(states.error());
      const std::string& path = checkpoint_.catalog.files[ranks_.files()[i].file];
      if (!status) status = std::unexpected(std::move(status).error().within(path));
      return defects.report(std::move(status));
    };
    return read_ahead(beside.size(), read, take);
  }

  [[nodiscard]] std::optional<std::int64_t> step() const { return step_; }

 private:
  Result<std::vector<StatesBeside>> find_beside() {
    std::vector<StatesBeside> beside(ranks_.files().size());
    for (std::size_t i = 0; i < beside.size(); ++i) {
      const std::string& path = checkpoint_.catalog.files[ranks_.files()[i].file];
      beside[i].folder = path.substr(0, path.find('/') + 1);
    }
    const auto find = [&](std::size_t i) {
      const auto has = [&](std::string_view name) {
        return checkpoint_.directory->exists(beside[i].folder + std::string(name));
      };
      beside[i].has_part = has("optim.pt");
      beside[i].has_buffers = has(kBuffersFile);
    };
    SW_TRY(prepare_ahead(beside.size(), find, [](std::size_t) { return Status(); }));
    for (StatesBeside& rank : beside) {
      if (!rank.has_buffers || !check_files(rank)) continue;
      rank.buffers = file_number(checkpoint_, rank.folder + std::string(kBuffersFile));
    }
    return beside;
  }

  [[nodiscard]] Result<RankStates> read_rank(std::size_t index, const StatesBeside& beside) const {
    const LegacyRankFile& file = ranks_.files()[index];
    SW_TRY(check_files(beside));
    RankStates states;
    states.parameters = SW_TRY(parameters_of(ranks_, index, has_mtp_));
    if (layer_wise_->has_any()) return states;
    const std::shared_ptr<const ReadableFile> model = SW_TRY(checkpoint_.files->get(file.file));
    std::shared_ptr<const ReadableFile> buffers;
    if (beside.has_buffers) buffers = SW_TRY(checkpoint_.files->get(beside.buffers));
    const LegacyStage stage = SW_TRY(ranks_.stage_of(index, 0));
    const std::vector<RankParameter>& list = states.parameters.list;
    std::vector<BufferedParameter> buffered;
    for (const RankParameter& parameter : list) buffered.push_back(parameter.buffered);
    const std::int64_t elements = SW_TRY(element_sum(buffered));
    states.optimizer = SW_TRY(read_rank_optimizer(
        {model.get(), buffers.get()}, list,
        recorded_bucket_size(file.contents.arguments, stage.rank.pipeline, elements)));
    return states;
  }

  Status add_rank(std::size_t index, const StatesBeside& beside, const RankStates& states) {
    if (!states.optimizer) return add_layer_wise(index, states.parameters);
    SW_TRY(agree_on(states.optimizer->step));
    const std::uint32_t file =
        states.optimizer->is_distributed ? beside.buffers : ranks_.files()[index].file;
    return add_states(index, file, *states.optimizer, states.parameters);
  }

  Status add_layer_wise(std::size_t index, const RankParameters& parameters) {
    for (const auto& [file, optimizer] : SW_TRY(layer_wise_->read(index, parameters.list))) {
      SW_TRY(agree_on(optimizer.step));
      SW_TRY(add_states(index, file, optimizer, parameters));
    }
    return {};
  }

  // Before mid-2023 each data-parallel rank had a folder.
  [[nodiscard]] Status check_files(const StatesBeside& beside) const {
    if (beside.has_part) {
      return fail(
          Code::kOptimizerUnsupported,
          "optim.pt: found a data-parallel rank's part of an optimizer, expected all of it "
          "in model_optim_rng.pt or distrib_optim.pt; convert without it (--optimizer drop)");
    }
    if (layer_wise_->has_any() && beside.has_buffers) {
      return fail(Code::kOptimizerUnsupported,
                  "found {} beside layer_wise_optimizer_N.pt, of another run's optimizer; keep the "
                  "files of one save",
                  kBuffersFile);
    }
    return {};
  }

  Status agree_on(const std::optional<std::int64_t>& step) {
    if (step && step_ && *step != *step_) {
      return fail(Code::kOptimizerUnsupported,
                  "optimizer: found step {}, expected {} as in other ranks' files", *step, *step_);
    }
    if (step) step_ = step;
    return {};
  }

  Status add_states(std::size_t index, std::uint32_t states_file, const RankOptimizer& optimizer,
                    const RankParameters& parameters) {
    const LegacyRankFile& file = ranks_.files()[index];
    std::vector<std::vector<std::vector<LegacyPart>>> parts;
    for (std::size_t v = 0; v < file.contents.models.size(); ++v) {
      const LegacyStage stage = SW_TRY(ranks_.stage_of(index, v));
      parts.push_back(SW_TRY(legacy_parts(descs_of(file.contents.models[v]), stage)));
    }
    for (std::size_t i = 0; i < parameters.list.size(); ++i) {
      if (!optimizer.states[i]) continue;
      const auto& [model, tensor] = parameters.places[i];
      const std::vector<LegacyPart>& of_tensor = parts[model][tensor];
      for (const auto& [kind, place] : *optimizer.states[i]) {
        // What Megatron calls master weights that no distributed optimizer keeps.
        const bool is_master = kind == kStateKinds[0];
        const bool is_own = optimizer.has_adam_beside && is_master;
        // An FP32Optimizer's run does not ask for what is the weight itself.
        if (is_own && !optimizer.has_own_masters) continue;
        const bool is_weight = is_master && optimizer.weight_is_master[i];
        for (const LegacyPart& part : of_tensor) {
          SW_TRY(chunks_.add(
              fmt::format("optimizer.state.{}.", is_own ? kOwnMasters : kind),
              {is_weight ? file.file : states_file, place, part, of_tensor.size() == 1}));
        }
      }
    }
    return {};
  }

  Checkpoint& checkpoint_;
  const LegacyRanks& ranks_;
  LegacyChunks chunks_;
  std::optional<LayerWiseFiles> layer_wise_;  // once they are looked for
  bool has_mtp_;
  std::optional<std::int64_t> step_;
};

// `rng_state`, and what early versions called `random_rng_state`, `torch_rng_state`, ...
bool has_rng_states(const LegacyRanks& ranks) {
  return std::ranges::any_of(ranks.files(), [](const LegacyRankFile& file) {
    return std::ranges::any_of(file.contents.keys,
                               [](std::string_view key) { return key.contains("rng_state"); });
  });
}

}  // namespace

Status read_legacy_optimizer(Checkpoint& checkpoint, Defects& defects) {
  const LegacyRanks ranks = SW_TRY(LegacyRanks::read(checkpoint, defects));
  StatesReader reader(checkpoint, ranks);
  SW_TRY(reader.read(defects));
  const auto file = SW_TRY(checkpoint.files->get(ranks.files().front().file));
  LegacyState<std::string> state =
      SW_TRY(read_legacy_state(*file, {LegacyStateParts::Optimizer::kGroups, reader.step()}));
  const auto joined = join_rank_groups(state.state, checkpoint, ranks, reader.step());
  SW_TRY(defects.report(joined ? Status() : std::unexpected(joined.error())));
  checkpoint.common_state = joined.value_or(std::move(state.state));
  checkpoint.beside_states = state_beside(reader.step());
  if (state.drops_loss_scale) checkpoint.notes.emplace_back(kLossScaleNote);
  if (has_rng_states(ranks)) {
    checkpoint.notes.emplace_back("RNG states are left out: they belong to the old ranks");
  }
  checkpoint.has_unread_optimizer = false;
  return {};
}

}  // namespace shardwright
