// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_stage.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "base/fail.h"
#include "base/text.h"
#include "codec/torch_tensor.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/check_alike.h"
#include "io/source_files.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

// In the order of their names.
std::vector<std::string> kinds_in(const ZeroBuffers& group) {
  std::vector<std::string> kinds;
  for (const auto& [kind, place] : group.states) kinds.push_back(kind);
  return kinds;
}

// Muon keeps its momentum by whole parameters, which no buffer is as long as: such a group lacks
// none of what others have. One whose buffers are only too long or too short does.
bool has_states_of_its_own(const ZeroBuffers& group, const OptimizerStates& all) {
  if (!group.states.empty() || group.left_out.empty()) return false;
  return std::ranges::none_of(group.left_out, [&](const std::string& kind) {
    return std::ranges::any_of(
        all.groups, [&](const ZeroBuffers& other) { return other.states.contains(kind); });
  });
}

}  // namespace

std::uint32_t ZeroStage::number_of(const std::string& name) {
  checkpoint_.catalog.files.push_back(name);
  return checkpoint_.files->add(name);
}

Status ZeroStage::open(const ZeroFiles& files, bool has_layers) {
  for (const auto& [rank, name] : files.model) models_.push_back({number_of(name), {}});
  for (const auto& [rank, name] : files.optimizer) shares_.push_back({number_of(name), {}});
  SW_TRY(read_ranks(models_, *checkpoint_.files, read_model_states));
  SW_TRY(read_ranks(shares_, *checkpoint_.files, read_optimizer_states));
  leave_out_cut_states();
  SW_TRY(check_models());
  if (has_layers && model().module.empty() && !model().has_groups) leave_optimizer();
  return check_shares();
}

// Where a rank's share of Muon's group ends within a parameter, its states are no buffers; then
// those of the other ranks are of no use either.
void ZeroStage::leave_out_cut_states() {
  std::set<std::size_t> cut;
  for (const RankShare& share : shares_) {
    for (std::size_t g = 0; g < share.states.groups.size(); ++g) {
      const ZeroBuffers& group = share.states.groups[g];
      if (group.is_muon && !group.left_out.empty()) cut.insert(g);
    }
  }
  for (RankShare& share : shares_) {
    for (std::size_t g = 0; g < share.states.groups.size(); ++g) {
      ZeroBuffers& group = share.states.groups[g];
      if (!cut.contains(g)) continue;
      for (const auto& [kind, place] : group.states) group.left_out.push_back(kind);
      group.states.clear();
    }
  }
}

// A pipeline in bfloat16 without ZeRO shares its optimizer out as ZeRO 1 does, and tells no shapes.
void ZeroStage::leave_optimizer() {
  if (!shares_.empty()) unread_file_ = path(shares_.front().file);
  for (const RankShare& share : shares_) {
    for (const ZeroBuffers& group : share.states.groups) {
      for (const ZeroFragment& fragment : group.fragments) unread_.insert(fragment.name);
    }
  }
  shares_.clear();
}

Status ZeroStage::check_same_save(const ZeroStage& first) const {
  SW_TRY(check_alike("global step", model().steps.value_or(-1), file(),
                     first.model().steps.value_or(-1), first.file()));
  SW_TRY(check_alike("a world size of", model().data_ranks.value_or(-1), file(),
                     first.model().data_ranks.value_or(-1), first.file()));
  if (model().has_groups != first.model().has_groups) {
    return fail(
        Code::kZeroLayout,
        "{}: one of it and {} has 'param_shapes', and the other has none; keep the files of "
        "one save",
        file(), first.file());
  }
  if (optimizer() == nullptr) return {};
  const std::string& mine = path(shares_.front().file);
  const std::string& other = path(first.shares_.front().file);
  SW_TRY(check_alike("ZeRO stage", optimizer()->stage, mine, first.optimizer()->stage, other));
  return check_alike("step", optimizer()->step.value_or(-1), mine,
                     first.optimizer()->step.value_or(-1), other);
}

Status ZeroStage::add_parameters() {
  SW_TRY(add_buffers());
  SW_TRY(add_frozen(models_, is_third(), checkpoint_, model_));
  SW_TRY(add_trained());
  return check_kinds();
}

Status ZeroStage::check_models() const {
  SW_TRY(check_rank_models(models_, checkpoint_.catalog));
  const RankModel& one = models_.front();
  const std::string& name = path(one.file);
  if (!shares_.empty() || !one.states.has_groups) return {};
  return fail(Code::kZeroLayout,
              "{}: its parameters are in *_optim_states.pt files, and none is there; copy them "
              "too",
              name);
}

Status ZeroStage::check_shares() const {
  if (shares_.empty()) return {};
  const RankShare& one = shares_.front();
  const std::string& name = path(one.file);
  for (const RankShare& share : shares_) {
    const std::string& file = path(share.file);
    SW_TRY(check_alike("ZeRO stage", share.states.stage, file, one.states.stage, name));
    SW_TRY(check_alike("shares of", share.states.ranks, file, one.states.ranks, name));
    SW_TRY(check_alike("step", share.states.step.value_or(-1), file, one.states.step.value_or(-1),
                       name));
    SW_TRY(check_buffers(share));
  }
  const auto there = static_cast<std::int64_t>(ranks());
  if (one.states.ranks != there) {
    return fail(Code::kZeroLayout, "{}: it was saved by {} ranks, but files of {} are here; {}",
                name, one.states.ranks, there,
                one.states.ranks > there
                    ? translated("copy that of rank {} and further ones too", there)
                    : "keep the files of one save");
  }
  SW_TRY(check_data_ranks(one));
  const std::size_t expected = is_third() ? ranks() : 1;
  if (models_.size() != expected) {
    return fail(Code::kZeroLayout, "found {} *_model_states.pt files, expected {} beside {}",
                models_.size(), expected, name);
  }
  if (model().has_groups) return {};
  return fail(Code::kZeroLayout, "{}: no 'param_shapes' names the parameters of {}",
              path(models_.front().file), name);
}

// MiCS shares ZeRO 3's parameters out among some of the data-parallel ranks, the rest repeat them.
Status ZeroStage::check_data_ranks(const RankShare& share) const {
  const std::int64_t shares = share.states.ranks;
  const std::int64_t said = model().data_ranks.value_or(shares);
  if (is_third() && said > 0 && said % shares == 0) return {};
  return check_alike("a world size of", said, path(models_.front().file), shares, path(share.file));
}

// All ranks have the same states, in the same precision.
Status ZeroStage::check_buffers(const RankShare& share) const {
  const std::vector<ZeroBuffers>& expected = shares_.front().states.groups;
  const std::vector<ZeroBuffers>& found = share.states.groups;
  const auto have_same_dtype = [](const LocatedTensor& a, const LocatedTensor& b) {
    return a.dtype == b.dtype;
  };
  const bool are_alike =
      std::ranges::equal(found, expected, [&](const ZeroBuffers& a, const ZeroBuffers& b) {
        return have_same_dtype(a.weights, b.weights) &&
               std::ranges::equal(a.states, b.states, [&](const auto& x, const auto& y) {
                 return x.first == y.first && have_same_dtype(x.second, y.second);
               });
      });
  if (are_alike) return {};
  return fail(Code::kZeroLayout,
              "{}: its groups or their states are not those of {}; keep the files of one save",
              path(share.file), path(shares_.front().file));
}

Status ZeroStage::add_buffers() {
  const std::set<std::string, std::less<>> buffers(model().buffers.begin(), model().buffers.end());
  for (const StateTensor& tensor : model().module) {
    if (!buffers.contains(tensor.name)) continue;
    SW_TRY(model_.add_whole(tensor.name, models_.front().file, tensor.place));
    for (const RankModel& model : std::span(models_).subspan(1)) {
      SW_TRY(add_replica(tensor.name, model));
    }
  }
  return {};
}

// Under ZeRO 3 each rank has a file of the model, with buffers of its own.
Status ZeroStage::add_replica(const std::string& name, const RankModel& model) {
  const std::vector<StateTensor>& tensors = model.states.module;
  const auto found = std::ranges::find(tensors, name, &StateTensor::name);
  if (found != tensors.end()) return model_.add_replica(name, model.file, found->place);
  return fail(Code::kZeroLayout,
              "{}: the buffer {} is missing, which {} has; keep the files of one save",
              path(model.file), printable(name), path(models_.front().file));
}

Status ZeroStage::add_trained() {
  if (shares_.empty()) return {};
  std::vector<ZeroGroup> groups = model().groups;
  SW_TRY(take_paddings(groups));
  ZeroSizes sizes;
  for (const RankShare& share : shares_) {
    std::vector<std::int64_t>& of_rank = sizes.emplace_back();
    for (const ZeroBuffers& group : share.states.groups) {
      of_rank.push_back(group.weights.shape[0]);
    }
  }
  const auto pieces =
      SW_TRY(is_third() ? cut_parameters(groups, sizes) : cut_groups(groups, sizes));
  std::vector<const ZeroParameter*> parameters;
  for (const ZeroGroup& group : groups) {
    for (const ZeroParameter& parameter : group) parameters.push_back(&parameter);
  }
  SW_TRY(check_fragments(pieces, parameters));
  expect_records();
  for (std::size_t next = 0, p = 0; p < parameters.size(); ++p) {
    const std::size_t begin = next;
    while (next < pieces.size() && pieces[next].parameter == p) ++next;
    SW_TRY(add_parameter(*parameters[p], std::span(pieces).subspan(begin, next - begin)));
  }
  return {};
}

Status ZeroStage::take_paddings(std::vector<ZeroGroup>& groups) const {
  const std::vector<std::vector<std::int64_t>>& paddings = shares_.front().states.paddings;
  if (is_third() || paddings.empty()) return {};
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (paddings.size() != groups.size() || paddings[g].size() != groups[g].size()) {
      return fail(Code::kZeroLayout,
                  "{}: 'param_alignment_paddings' are not those of its parameters",
                  path(shares_.front().file));
    }
    for (std::size_t i = 0; i < groups[g].size(); ++i) groups[g][i].padding = paddings[g][i];
  }
  return {};
}

// Each buffer's record is read for many parameters; what is wrong with it names its file.
void ZeroStage::expect_records() {
  for (const RankShare& share : shares_) {
    for (std::size_t g = 0; g < share.states.groups.size(); ++g) {
      const ZeroBuffers& buffers = share.states.groups[g];
      const std::string group = translated("of group {}", g);
      expect_record(*checkpoint_.files, share.file, buffers.weights, group);
      for (const auto& [kind, place] : buffers.states) {
        expect_record(*checkpoint_.files, share.file, place, group);
      }
    }
  }
}

// Newer files say where each parameter's part is: what follows from the order must be that.
Status ZeroStage::check_fragments(std::span<const ZeroPiece> pieces,
                                  std::span<const ZeroParameter* const> parameters) const {
  for (std::size_t rank = 0; rank < ranks(); ++rank) {
    for (std::size_t g = 0; g < shares_[rank].states.groups.size(); ++g) {
      SW_TRY(check_fragments_of(rank, g, pieces, parameters));
    }
  }
  return {};
}

Status ZeroStage::check_fragments_of(std::size_t rank, std::size_t group,
                                     std::span<const ZeroPiece> pieces,
                                     std::span<const ZeroParameter* const> parameters) const {
  const std::vector<ZeroFragment>& fragments = shares_[rank].states.groups[group].fragments;
  if (fragments.empty()) return {};
  std::map<std::string_view, const ZeroPiece*> by_name;
  for (const ZeroPiece& piece : pieces) {
    if (piece.rank != rank || piece.group != group) continue;
    by_name.emplace(parameters[piece.parameter]->name, &piece);
  }
  for (const ZeroFragment& fragment : fragments) {
    if (fragment.elements == 0) continue;
    const auto found = by_name.find(fragment.name);
    const bool is_it = found != by_name.end() && found->second->at == fragment.at &&
                       found->second->to - found->second->from == fragment.elements;
    if (!is_it) return refuse_fragment(rank, group, fragment.name);
    by_name.erase(found);
  }
  if (by_name.empty()) return {};
  return refuse_fragment(rank, group, by_name.begin()->first);
}

std::unexpected<Error> ZeroStage::refuse_fragment(std::size_t rank, std::size_t group,
                                                  std::string_view name) const {
  return fail(Code::kZeroLayout,
              "{}: parameter {} is not where 'param_shapes' of {} has it in group {}; keep the "
              "files of one save",
              path(shares_[rank].file), printable(name), path(models_.front().file), group);
}

Status ZeroStage::add_parameter(const ZeroParameter& parameter, std::span<const ZeroPiece> pieces) {
  const TensorDesc* const known = model_.find(parameter.name);
  const bool is_copy = known != nullptr && known->shape == parameter.shape &&
                       parameter.name.starts_with(kTiedModules);
  if (is_copy) {
    copies_.push_back(parameter.name);
    return {};
  }
  const auto add = [&](std::string name, auto buffer_of) -> Status {
    DType dtype = DType::kF32;
    std::vector<FlatElements> elements;
    for (const ZeroPiece& piece : pieces) {
      const RankShare& share = shares_[piece.rank];
      const LocatedTensor& buffer = buffer_of(share.states.groups[piece.group]);
      if (elements.empty()) dtype = buffer.dtype;
      elements.push_back(elements_in(piece, share.file, buffer));
    }
    return model_.add_flat({std::move(name), dtype, parameter.shape}, elements);
  };
  SW_TRY(add(parameter.name,
             [](const ZeroBuffers& group) -> const LocatedTensor& { return group.weights; }));
  for (const std::string& kind : SW_TRY(kinds_of(parameter, pieces))) {
    SW_TRY(add(join_state_name(kind, parameter.name),
               [&](const ZeroBuffers& group) -> const LocatedTensor& {
                 return group.states.find(kind)->second;
               }));
  }
  return {};
}

// The states of a parameter: each buffer with a piece of it has all of them.
Result<std::set<std::string>> ZeroStage::kinds_of(const ZeroParameter& parameter,
                                                  std::span<const ZeroPiece> pieces) const {
  const auto states_of = [&](const ZeroPiece& piece) -> const auto& {
    return shares_[piece.rank].states.groups[piece.group].states;
  };
  std::set<std::string> kinds;
  for (const ZeroPiece& piece : pieces) {
    for (const auto& [kind, place] : states_of(piece)) kinds.insert(kind);
  }
  for (const ZeroPiece& piece : pieces) {
    for (const std::string& kind : kinds) {
      if (states_of(piece).contains(kind)) continue;
      return fail(Code::kZeroLayout,
                  "{}: group {} has no {} of its piece of parameter {}, as other groups have; "
                  "keep the files of one save",
                  path(shares_[piece.rank].file), piece.group, kind, printable(parameter.name));
    }
  }
  return kinds;
}

// Optimizers keep different states, and all of each: where a group has some of those that another
// one has, a part of the save is missing. All ranks' groups are alike.
Status ZeroStage::check_kinds() const {
  if (shares_.empty()) return {};
  const RankShare& share = shares_.front();
  std::map<std::vector<std::string>, std::size_t> sets;  // to the first group
  for (std::size_t g = 0; g < share.states.groups.size(); ++g) {
    const ZeroBuffers& group = share.states.groups[g];
    if (group.weights.shape[0] > 0 && !has_states_of_its_own(group, share.states)) {
      sets.emplace(kinds_in(group), g);
    }
  }
  for (const auto& [kinds, group] : sets) {
    for (const auto& [others, other] : sets) {
      if (others.size() <= kinds.size() || !std::ranges::includes(others, kinds)) continue;
      std::vector<std::string> lacking;
      std::ranges::set_difference(others, kinds, std::back_inserter(lacking));
      return fail(Code::kZeroLayout,
                  "{}: group {} has no {}, as group {} has; keep the files of one save",
                  path(share.file), group, lacking.front(), other);
    }
  }
  return {};
}

// DeepSpeed loads the model before the optimizer's weights, and stops at one that it lacks. Of a
// pipeline the layers' files have it.
Status ZeroStage::check_module() const {
  if (is_third() || model().module.empty()) return {};
  std::set<std::string_view> names;
  for (const StateTensor& tensor : model().module) names.insert(tensor.name);
  for (const auto& [name, other] : model().shared) {
    if (names.contains(name)) names.insert(other);
  }
  for (const ZeroGroup& group : model().groups) {
    for (const ZeroParameter& parameter : group) {
      if (names.contains(parameter.name)) continue;
      return fail(Code::kZeroLayout,
                  "{}: its 'module' has no parameter {}, which its 'param_shapes' and the "
                  "optimizer have; copy the file again from where it was saved",
                  path(models_.front().file), printable(parameter.name));
    }
  }
  return {};
}

// Other names of tensors; then what the model has beside all of it: ZeRO 1 keeps frozen
// parameters there only.
Status ZeroStage::add_rest() {
  SW_TRY(check_module());
  for (const auto& [name, other] : model().shared) {
    if (model_.has(other) && !model_.has(name)) SW_TRY(model_.add_shared(name, other));
  }
  std::vector<std::string> as_stored;
  for (const StateTensor& tensor : model().module) {
    if (model_.has(tensor.name)) continue;
    const bool is_placeholder = is_third() && element_count(tensor.place.shape) == 0;
    if (is_placeholder) {
      return fail(Code::kZeroLayout,
                  "parameter {}: the model has it, but no rank's buffers do; it was frozen and "
                  "left out when this was saved, or 'param_shapes' is of another model",
                  printable(tensor.name));
    }
    SW_TRY(model_.add_whole(tensor.name, models_.front().file, tensor.place));
    as_stored.push_back(tensor.name);
  }
  if (!as_stored.empty() && !shares_.empty()) {
    checkpoint_.notes.push_back(
        translated("{} tensors are not the optimizer's and are taken as the model has them: {}",
                   as_stored.size(), name_list(as_stored)));
  }
  return {};
}

}  // namespace shardwright
