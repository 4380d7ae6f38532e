// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/rank_models.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/fail.h"
#include "base/text.h"
#include "dcp/guarded_storage.h"
#include "format/deepspeed/check_alike.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

bool have_same_parameters(const ZeroGroup& a, const ZeroGroup& b) {
  return std::ranges::equal(a, b, [](const ZeroParameter& x, const ZeroParameter& y) {
    return x.name == y.name && x.shape == y.shape;
  });
}

// A name that one of two state dicts has and the other lacks; empty where there is none.
std::string lone_name(const std::vector<StateTensor>& a, const std::vector<StateTensor>& b) {
  std::set<std::string_view> names;
  for (const StateTensor& tensor : a) names.insert(tensor.name);
  for (const StateTensor& tensor : b) {
    if (names.erase(tensor.name) == 0) return tensor.name;
  }
  return names.empty() ? "" : std::string(*names.begin());
}

Result<const StateTensor*> frozen_part(const RankModel& model, const std::string& name,
                                       const Checkpoint& checkpoint) {
  const std::vector<StateTensor>& parts = model.states.frozen_parts;
  const auto found = std::ranges::find(parts, name, &StateTensor::name);
  if (found != parts.end()) return &*found;
  return fail(Code::kZeroLayout, "{}: the frozen parameter {} has no part in it",
              checkpoint.catalog.files[model.file], printable(name));
}

Status add_whole_parameter(const ZeroParameter& parameter, const RankModel& rank,
                           const Checkpoint& checkpoint, ModelCatalog& model) {
  const StateTensor* const whole = SW_TRY(frozen_part(rank, parameter.name, checkpoint));
  if (!(whole->place.shape == parameter.shape)) {
    return fail(Code::kZeroLayout, "parameter {}: found shape {}, expected {}",
                printable(parameter.name), to_string(whole->place.shape),
                to_string(parameter.shape));
  }
  return model.add_whole(parameter.name, rank.file, whole->place);
}

// Each part is in a tensor of its own.
Status add_cut_parameter(const ZeroParameter& parameter, std::span<const RankModel> models,
                         const Checkpoint& checkpoint, ModelCatalog& model) {
  ZeroSizes sizes;
  std::vector<const LocatedTensor*> places;
  for (const RankModel& rank : models) {
    const StateTensor* const part = SW_TRY(frozen_part(rank, parameter.name, checkpoint));
    const LocatedTensor& place = part->place;
    const bool is_first = places.empty();
    const DType dtype = is_first ? place.dtype : places.front()->dtype;
    if (place.shape.size() != 1 || !place.strides.empty() || place.dtype != dtype) {
      return fail(Code::kZeroLayout, "{}: the part of the frozen parameter {} is no flat {} one",
                  checkpoint.catalog.files[rank.file], printable(parameter.name),
                  torch_name(dtype));
    }
    places.push_back(&place);
    sizes.push_back({place.shape[0]});
  }
  const std::vector<ZeroGroup> alone = {{parameter}};
  std::vector<FlatElements> pieces;
  for (const ZeroPiece& piece : SW_TRY(cut_parameters(alone, sizes))) {
    const std::uint32_t file = models[piece.rank].file;
    expect_record(*checkpoint.files, file, *places[piece.rank], parameter.name);
    pieces.push_back(elements_in(piece, file, *places[piece.rank]));
  }
  return model.add_flat({parameter.name, places.front()->dtype, parameter.shape}, pieces);
}

}  // namespace

FlatElements elements_in(const ZeroPiece& piece, std::uint32_t file, const LocatedTensor& buffer) {
  const auto element = static_cast<std::uint64_t>(bytes_of(buffer.dtype));
  return {piece.from, piece.to, file,
          buffer.range.offset + static_cast<std::uint64_t>(piece.at) * element};
}

Status check_rank_models(std::span<const RankModel> models, const Catalog& catalog) {
  const ModelStates& one = models.front().states;
  const std::string& first = catalog.files[models.front().file];
  for (const RankModel& model : models) {
    const ModelStates& states = model.states;
    const std::string& file = catalog.files[model.file];
    SW_TRY(
        check_alike("global step", states.steps.value_or(-1), file, one.steps.value_or(-1), first));
    SW_TRY(check_alike("a world size of", states.data_ranks.value_or(-1), file,
                       one.data_ranks.value_or(-1), first));
    const bool is_alike = std::ranges::equal(states.groups, one.groups, have_same_parameters) &&
                          have_same_parameters(states.frozen, one.frozen);
    if (!is_alike) {
      return fail(Code::kZeroLayout,
                  "{}: its parameters are not those of {}; keep the files of one save", file,
                  first);
    }
    const std::string lone = lone_name(one.module, states.module);
    if (lone.empty()) continue;
    return fail(Code::kZeroLayout,
                "{}: tensor {} is in this file or in {} alone; keep the files of one save", file,
                printable(lone), first);
  }
  return {};
}

Status add_frozen(std::span<const RankModel> models, bool is_cut, const Checkpoint& checkpoint,
                  ModelCatalog& model) {
  for (const ZeroParameter& parameter : models.front().states.frozen) {
    SW_TRY(is_cut ? add_cut_parameter(parameter, models, checkpoint, model)
                  : add_whole_parameter(parameter, models.front(), checkpoint, model));
  }
  return {};
}

}  // namespace shardwright
