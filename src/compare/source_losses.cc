// SPDX-License-Identifier: Apache-2.0
#include "compare/source_losses.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>

#include "base/fail.h"
#include "format/formats.h"
#include "format/targets.h"
#include "layout/lost_parts.h"
#include "layout/mlite_layout.h"
#include "layout/uneven_modules.h"
#include "layout/unsaved_shards.h"
#include "plan/canonical.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr std::string_view kExperts = ".experts.";

bool has_experts(const Catalog& catalog) {
  return std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return tensor.desc.name.find(kExperts) != std::string::npos;
  });
}

struct Losses {
  std::vector<LostPart> lost;
  std::vector<TensorDesc> canonical;  // of a Megatron model
};

Result<Losses> find_lost_of_megatron(const Catalog& catalog, const Arguments& arguments) {
  std::vector<TensorDesc> descs = SW_TRY(canonical_descs(catalog));
  std::vector<LostPart> lost = lost_parts(descs, number_of(arguments, {"num_layers"}).value_or(0));
  return Losses{std::move(lost), std::move(descs)};
}

Result<Losses> find_lost(const Checkpoint& source) {
  const Catalog& catalog = source.catalog;
  if (source.location.traits.is_hf_model || has_mlite_names(catalog)) return Losses();
  if (source.location.traits.has_module_pieces) {
    ModelOutline outline = form_of(source).outline(source);
    if (!outline.tensors) return Losses{std::move(outline.lost), {}};
    return find_lost_of_megatron(*outline.tensors, source.arguments);
  }
  if (!has_megatron_names(catalog)) return Losses{lost_local_experts(descs_of(catalog)), {}};
  Losses losses = SW_TRY(find_lost_of_megatron(catalog, source.arguments));
  const std::int64_t tensor = recorded_run(source.arguments).sizes.tensor.value_or(1);
  std::ranges::move(unsaved_shards(catalog, tensor), std::back_inserter(losses.lost));
  return losses;
}

// Where the names change, a family's mapping or the reading of layers that nobody can tell apart
// decides whether what is there is a model.
bool is_checked_later(const ConvertRequest& request, const Checkpoint& source) {
  const TargetNames names = traits_of(request.format).names;
  if (names == TargetNames::kHf) return true;
  return names != TargetNames::kStored && !form_of(source).check_layers(source);
}

// Zeros would pass for weights.
Status refuse_holes(const Catalog& wanted) {
  constexpr std::size_t kMostNamed = 8;
  std::vector<std::string> holed;
  std::string first;
  for (const StoredTensor& tensor : wanted.tensors) {
    const Status covered = check_coverage(tensor);
    if (covered || covered.error().code != Code::kHole) continue;
    if (first.empty()) first = covered.error().message;
    holed.push_back(tensor.desc.name);
  }
  if (holed.empty()) return {};
  const std::size_t named = std::min(holed.size(), kMostNamed);
  const std::string others = holed.size() == 1
                                 ? ""
                                 : translated(" ({} tensors have such holes: {}{})", holed.size(),
                                              fmt::join(std::span(holed).first(named), ", "),
                                              named < holed.size() ? ", ..." : "");
  return fail(Code::kHole,
              "{}{}; --accept-loss does not help: nothing says what was there; --exclude leaves "
              "tensors out by name, 'shardwright verify' lists every hole",
              first, others);
}

// Errors that something missing may be behind.
bool may_be_loss(Code code) {
  constexpr std::array kCodes = {
      Code::kNotFound,        Code::kShortRead,     Code::kIndexMismatch,
      Code::kChunkMismatch,   Code::kHole,          Code::kLegacyLayout,
      Code::kNothingStored,   Code::kLossySource,   Code::kUnmatchedSource,
      Code::kUnmatchedTarget, Code::kShapeMismatch, Code::kModelIncomplete};
  return std::ranges::find(kCodes, code) != kCodes.end();
}

}  // namespace

Result<std::vector<std::string>> losses_of(const Checkpoint& source) {
  std::vector<std::string> losses;
  const Losses found = SW_TRY(find_lost(source));
  for (const LostPart& part : found.lost) losses.push_back(part.what);
  return losses;
}

Status check_losses(const ConvertRequest& request, const Checkpoint& source, const Catalog& wanted,
                    std::vector<std::string>& notes) {
  if (request.accept_loss) SW_TRY(refuse_holes(wanted));
  const bool is_later = is_checked_later(request, source);
  if (is_later && !request.accept_loss) return {};
  if (!is_later && source.location.traits.has_local_numbers && has_mlite_names(wanted)) {
    return form_of(source).check_order(wanted, request);
  }
  Losses found = SW_TRY(find_lost(source));
  std::vector<LostPart>& lost = found.lost;
  if (!has_experts(wanted)) {
    std::erase_if(lost, [](const LostPart& part) { return part.name.contains(kExperts); });
  }
  if (lost.empty()) {
    // Where nothing but the tensors themselves says what the model has.
    const bool is_known =
        is_later || source.location.traits.has_module_pieces || !source.hf_config.empty();
    if (!is_known) std::ranges::move(uneven_modules(found.canonical), std::back_inserter(notes));
    return {};
  }
  if (request.accept_loss) {
    for (const LostPart& part : lost) notes.push_back("--accept-loss: " + part.what);
    return {};
  }
  const std::string more =
      lost.size() > 1 ? translated(" (and {} parts more)", lost.size() - 1) : "";
  return fail(Code::kLossySource, "{}{}; --accept-loss converts what is there", lost.front().what,
              more);
}

Error why_not_accepted(const ConvertRequest& request, Error error) {
  if (!request.accept_loss || !may_be_loss(error.code)) return error;
  if (error.message.contains("--accept-loss")) return error;
  std::string_view why =
      "it takes a source whose names and shapes show which part of a model is lost";
  if (error.code == Code::kLossySource) {
    why = "nothing says which of them is there; --to safetensors keeps it under its stored name";
  } else if (traits_of(request.format).names == TargetNames::kHf) {
    why =
        "config.json asks for the whole model; --to safetensors keeps what is there under its "
        "stored names";
  }
  error.message += translated("; --accept-loss does not help: {}", why);
  return error;
}

}  // namespace shardwright
