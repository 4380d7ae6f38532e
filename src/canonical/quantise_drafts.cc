// SPDX-License-Identifier: Apache-2.0
#include "canonical/quantise_drafts.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/fail.h"
#include "codec/json_text.h"
#include "plan/quantising.h"

namespace shardwright {
namespace {

Dims swapped(Dims dims) {
  std::swap(dims[dims.size() - 2], dims[dims.size() - 1]);
  return dims;
}

// GPT-OSS's experts are [experts, inputs, outputs], and groups lie along the inputs.
TensorRecipe turned(const TensorRecipe& recipe) {
  TensorRecipe result = recipe;
  result.views = {};
  for (TensorView view : recipe.views) {
    view.box = {swapped(view.box.origin), swapped(view.box.shape)};
    view.axis = swapped(view.axis);
    view.step = swapped(view.step);
    result.views.push_back(view);
  }
  return result;
}

Result<std::pair<DraftTensor, DraftTensor>> split_in_two(const QuantiseChoice& choice,
                                                         const DraftTensor& draft) {
  Quantising form = choice.form;
  const bool is_fp4 = form.scheme == Quantising::Scheme::kMxfp4;
  form.shape = is_fp4 ? swapped(draft.desc.shape) : draft.desc.shape;
  if (is_fp4 && form.shape[form.column_axis()] % form.block_columns != 0) {
    return fail(Code::kShapeMismatch,
                "tensor {}: found {} inputs, expected a multiple of {}: fp4 has an exponent for "
                "so many",
                draft.desc.name, form.shape[form.column_axis()], form.block_columns);
  }
  DraftTensor values{{choice.name_of_values(draft.desc.name), is_fp4 ? DType::kU8 : DType::kF8E4M3,
                      value_shape(form)},
                     is_fp4 ? turned(draft.recipe) : draft.recipe,
                     std::nullopt};
  DraftTensor scales{
      {choice.name_of_scales(draft.desc.name), choice.scale_dtype, scale_shape(form)},
      values.recipe,
      std::nullopt};
  values.recipe.quantising = std::make_shared<const Quantising>(form);
  form.part = Quantising::Part::kScales;
  scales.recipe.quantising = std::make_shared<const Quantising>(form);
  return std::pair(std::move(values), std::move(scales));
}

// Matrices that someone may take for linears that are quantised too.
std::vector<std::string> left_modules_of(const std::vector<DraftTensor>& drafts) {
  constexpr std::string_view kWeight = ".weight";
  std::vector<std::string> modules;
  for (const DraftTensor& draft : drafts) {
    const std::string& name = draft.desc.name;
    const bool is_left = draft.recipe.quantising == nullptr && is_castable_float(draft.desc.dtype);
    if (!is_left || draft.desc.shape.size() < 2 || !name.ends_with(kWeight)) continue;
    modules.push_back(name.substr(0, name.size() - kWeight.size()));
  }
  return modules;
}

std::string described(const QuantiseChoice& choice) {
  if (choice.form.scheme == Quantising::Scheme::kMxfp4) return "mxfp4";
  return translated(
      "fp8 e4m3 with {} of {} x {}",
      choice.form.has_exponents ? "a power of two for each block" : "a scale for each block",
      choice.form.block_rows, choice.form.block_columns);
}

}  // namespace

Status quantise_drafts(QuantiseChoice& choice, std::vector<DraftTensor>& drafts, Notes& notes) {
  std::vector<DraftTensor> result;
  std::unordered_set<std::string> names;
  for (const DraftTensor& draft : drafts) names.insert(draft.desc.name);
  int count = 0;
  int kept = 0;
  for (DraftTensor& draft : drafts) {
    if (draft.desc.dtype == DType::kF8E4M3 || draft.desc.name.ends_with("_blocks")) ++kept;
    if (!choice.takes(draft.desc)) {
      result.push_back(std::move(draft));
      continue;
    }
    auto [values, scales] = SW_TRY(split_in_two(choice, draft));
    if (names.contains(scales.desc.name)) {
      return fail(Code::kDuplicateName, "tensor {}: is there, and would be the scales of {}",
                  scales.desc.name, draft.desc.name);
    }
    result.push_back(std::move(values));
    result.push_back(std::move(scales));
    ++count;
  }
  drafts = std::move(result);
  if (count == 0 && kept == 0) {
    return fail(Code::kUsage,
                "--quantise: found no linear of a layer to quantise among {} tensors; leave the "
                "flag out, or check what --include takes",
                drafts.size());
  }
  if (count > 0)
    notes.push_back(translated("quantised {} tensors to {}", count, described(choice)));
  if (kept > 0) {
    notes.push_back(translated("{} tensors are quantised so already and copied", kept));
  }
  if (!choice.lists_left) return {};
  nlohmann::ordered_json config = SW_TRY(parse_ordered_json(choice.config, "config.json"));
  std::vector<std::string> left = choice.left;
  for (std::string& module : left_modules_of(drafts)) {
    if (!choice.leaves(module)) left.push_back(std::move(module));
  }
  // A tied head is no tensor, and a module all the same.
  constexpr std::string_view kHead = "lm_head";
  const auto names_head = [&](const std::string& module) { return module.ends_with(kHead); };
  if (!choice.leaves(kHead) && std::ranges::none_of(left, names_head)) left.emplace_back(kHead);
  config["modules_to_not_convert"] = std::move(left);
  choice.config = config.dump();
  return {};
}

std::vector<DraftTensor> keep_quantised(const QuantiseChoice& choice, const Catalog& catalog,
                                        const std::set<std::string, std::less<>>& changed,
                                        ModelTensors& model) {
  const bool is_fp4 = choice.form.scheme == Quantising::Scheme::kMxfp4;
  const auto is_kept = [&](const QuantisedTensor& joined) {
    const TensorDesc& values = catalog.tensors[joined.values].desc;
    const TensorDesc& scales = catalog.tensors[joined.scales].desc;
    const bool has_names = values.name == choice.name_of_values(joined.desc.name) &&
                           scales.name == choice.name_of_scales(joined.desc.name);
    if (changed.contains(joined.desc.name)) return false;
    if (!has_names || scales.dtype != choice.scale_dtype || joined.bits != 0) return false;
    if (is_fp4) return joined.dtype == DType::kF4E2M1X2;
    const int axes = joined.block.size();
    // Scales of any value are no powers of two, whatever their names and blocks.
    if (choice.form.has_exponents && !choice.was_of_exponents) return false;
    return joined.dtype == DType::kF8E4M3 && axes >= 2 &&
           joined.block[axes - 2] == choice.form.block_rows &&
           joined.block[axes - 1] == choice.form.block_columns;
  };
  std::unordered_map<std::string, const QuantisedTensor*> by_name;
  for (const QuantisedTensor& joined : model.quantised) {
    if (is_kept(joined)) by_name.emplace(joined.desc.name, &joined);
  }
  std::vector<TensorDesc> tensors;
  for (TensorDesc& desc : model.tensors) {
    const auto found = by_name.find(desc.name);
    if (found == by_name.end()) {
      tensors.push_back(std::move(desc));
      continue;
    }
    for (const std::uint32_t part : {found->second->values, found->second->scales}) {
      tensors.push_back(catalog.tensors[part].desc);
    }
  }
  std::vector<DraftTensor> identity = draft_identity(catalog, {});
  std::vector<DraftTensor> kept;
  for (const auto& [name, joined] : by_name) {
    kept.push_back(std::move(identity[joined->values]));
    kept.push_back(std::move(identity[joined->scales]));
  }
  std::erase_if(model.quantised, is_kept);
  model.tensors = std::move(tensors);
  return kept;
}

void restore_kept(std::vector<DraftTensor> kept, std::vector<DraftTensor>& drafts) {
  std::unordered_map<std::string, DraftTensor*> by_name;
  for (DraftTensor& draft : kept) by_name.emplace(draft.desc.name, &draft);
  for (DraftTensor& draft : drafts) {
    const auto found = by_name.find(draft.desc.name);
    if (found != by_name.end()) draft = std::move(*found->second);
  }
}

}  // namespace shardwright
