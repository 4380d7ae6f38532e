// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "plan/archives.h"
#include "plan/check_adapted.h"
#include "plan/check_weighted.h"
#include "plan/quantised.h"
#include "plan/quantising.h"
#include "plan/repeated_tensors.h"
#include "shardwright/plan.h"
#include "tensor/convert.h"

namespace shardwright {
namespace {

Status check_view(const Plan& plan, const TensorDesc& target, const TensorView& view) {
  const auto invalid = [&](std::string_view why) {
    return fail(Code::kPlanInvalid, "tensor {}: view of {} {}", target.name, to_string(view.box),
                why);
  };
  if (view.source >= plan.source.tensors.size()) return invalid("reads a tensor that is not there");
  const TensorDesc& source = plan.source.tensors[view.source].desc;
  const int axes = target.shape.size();
  if (!make_box(view.box.origin, view.box.shape, target.shape)) return invalid("leaves the tensor");
  if (view.axis.size() != axes || view.step.size() != axes ||
      view.source_origin.size() != source.shape.size()) {
    return invalid("has the wrong number of axes");
  }
  if (view.box.is_empty()) return {};
  std::vector<bool> used(static_cast<std::size_t>(source.shape.size()), false);
  Box needed{view.source_origin, Dims::filled(source.shape.size(), 1)};
  for (int axis = 0; axis < axes; ++axis) {
    const std::int64_t s = view.axis[axis];
    if (s < 0) continue;  // all of its coordinates repeat the same elements
    if (s >= source.shape.size() || used[static_cast<std::size_t>(s)] || view.step[axis] < 1) {
      return invalid("names a source axis twice or none");
    }
    used[static_cast<std::size_t>(s)] = true;
    needed.shape[static_cast<int>(s)] = (view.box.shape[axis] - 1) * view.step[axis] + 1;
  }
  if (!make_box(needed.origin, needed.shape, source.shape)) {
    return invalid(translated("reads {} of source {} {}", to_string(needed), source.name,
                              to_string(source.shape)));
  }
  return {};
}

// The views of a recipe, or those of each term, are checked as if they were chunks: disjoint, and
// complete unless the rest is zero. What is quantised is proven as the matrix that it is made of.
Status check_recipe(const Plan& plan, std::size_t index, const std::vector<bool>& is_calculated,
                    const TermsOfSources& terms) {
  TensorDesc target = plan.target.tensors[index].desc;
  const TensorRecipe& recipe = plan.tensors[index];
  if (recipe.quantising != nullptr) {
    SW_TRY(check_quantising(*recipe.quantising, target));
    target.dtype = DType::kF32;
    target.shape = recipe.quantising->shape;
  }
  const StoredTensor nothing{target, ChunkList(target.shape.size()), Encoding::kRaw};
  std::map<std::uint32_t, StoredTensor> covered;  // by term
  if (recipe.views.empty()) covered.emplace(0, nothing);
  for (const TensorView& view : recipe.views) {
    SW_TRY(check_view(plan, target, view));
    const std::uint32_t term = SW_TRY(terms.term_in(recipe, target, view.source));
    covered.try_emplace(term, nothing).first->second.chunks.push_back({view.box, 0, {}, {}});
    const DType from = plan.source.tensors[view.source].desc.dtype;
    if (terms.is_low_half(view.source)) continue;
    const bool is_possible = is_calculated[view.source]
                                 ? is_castable_float(target.dtype)
                                 : is_supported({from, target.dtype, recipe.add});
    if (!is_possible) {
      return fail(Code::kDtypeUnsupported, "tensor {}: no conversion from {} to {}", target.name,
                  torch_name(from), torch_name(target.dtype));
    }
  }
  if (recipe.fill.value_or(0.0) != 0.0 && !is_castable_float(target.dtype)) {
    return fail(Code::kDtypeUnsupported, "tensor {}: {} cannot be filled with {}", target.name,
                torch_name(target.dtype), *recipe.fill);
  }
  for (const auto& [term, chunks] : covered) {
    const Status coverage = check_coverage(chunks, Replicas::kForbidden);
    if (coverage || (recipe.fill && coverage.error().code == Code::kHole)) continue;
    return std::unexpected(Error(coverage.error()).within("plan"));
  }
  return {};
}

// Files of archives are read one by one, so each of them has what it needs.
Replicas replicas_of(const StoredTensor& target, const ArchiveStorages& archives) {
  for (std::size_t i = 0; i < target.chunks.size(); ++i) {
    if (!archives.archive_of(target.chunks.file(i))) return Replicas::kForbidden;
  }
  return Replicas::kAllowed;
}

}  // namespace

Status check_plan(const Plan& plan) {
  const Catalog& target = plan.target;
  if (plan.tensors.size() != target.tensors.size() ||
      plan.objects.size() != target.objects.size() ||
      plan.file_sizes.size() != target.files.size()) {
    return fail(Code::kPlanInvalid, "plan: recipes and target catalog differ in length");
  }
  SW_TRY(check_archives(plan));
  for (std::size_t i = 0; i < plan.objects.size(); ++i) {
    if (plan.objects[i].is_copy || plan.objects[i].bytes != nullptr) continue;
    return fail(Code::kPlanInvalid, "plan: object {} is new and has no bytes",
                target.objects[i].name);
  }
  std::vector<bool> is_read(plan.source.tensors.size(), false);
  std::vector<bool> is_multiplied(plan.source.tensors.size(), false);
  for (const QuantisedSource& quantised : plan.quantised) {
    SW_TRY(check_quantised(plan.source, quantised));
    if (is_multiplied[quantised.values]) {
      return fail(Code::kPlanInvalid, "tensor {}: found two tensors of scales for it, expected one",
                  plan.source.tensors[quantised.values].desc.name);
    }
    is_multiplied[quantised.values] = true;
  }
  SW_TRY(check_adapted(plan, is_multiplied));
  std::vector<bool> is_calculated = is_multiplied;
  for (const AdaptedSource& adapted : plan.adapted) is_calculated[adapted.values] = true;
  const TermsOfSources terms = SW_TRY(TermsOfSources::make(plan, is_calculated));
  const ArchiveStorages archives(plan);
  for (std::size_t i = 0; i < target.tensors.size(); ++i) {
    SW_TRY(check_recipe(plan, i, is_calculated, terms));
    SW_TRY(check_coverage(target.tensors[i], replicas_of(target.tensors[i], archives)));
    for (const TensorView& view : plan.tensors[i].views) is_read[view.source] = true;
  }
  for (std::size_t i = 0; i < is_read.size(); ++i) {
    if (!is_read[i]) continue;
    const Status coverage = check_coverage(plan.source.tensors[i]);
    if (!coverage) return std::unexpected(Error(coverage.error()).within("source"));
  }
  return {};
}

PlanCost cost_of(const Plan& plan) {
  PlanCost cost;
  const std::size_t tensors = plan.source.tensors.size();
  std::vector<const QuantisedSource*> quantised_of(tensors, nullptr);
  std::vector<std::uint64_t> beside(tensors, 0);  // what is read with a tensor: scales, factors
  const auto add_beside = [&](std::uint32_t values, std::uint32_t other) {
    beside[values] += plan.source.tensors[other].chunks.range(0).length;
  };
  for (const QuantisedSource& quantised : plan.quantised) {
    quantised_of[quantised.values] = &quantised;
    for (const std::uint32_t one : companions_of(quantised)) add_beside(quantised.values, one);
  }
  for (const AdaptedSource& adapted : plan.adapted) {
    add_beside(adapted.values, adapted.out);
    if (adapted.in) add_beside(adapted.values, *adapted.in);
  }
  const std::vector<bool> repeated = repeated_tensors(plan);
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    if (repeated[i]) continue;  // filled with what was read for the one in front
    for (const TensorView& view : plan.tensors[i].views) {
      const std::int64_t count = view.box.volume();
      const QuantisedSource* quantised = quantised_of[view.source];
      const std::int64_t bytes = quantised == nullptr
                                     ? count * bytes_of(plan.source.tensors[view.source].desc.dtype)
                                     : stored_value_bytes(plan.source, *quantised, count);
      cost.payload_bytes_read +=
          static_cast<std::uint64_t>(bytes) + std::exchange(beside[view.source], 0);
    }
  }
  for (const ObjectRecipe& object : plan.objects) {
    if (object.is_copy) cost.payload_bytes_read += plan.source.objects[object.source].range.length;
  }
  for (const std::uint64_t size : plan.file_sizes) cost.bytes_written += size;
  cost.source_files = plan.source.files.size();
  cost.target_files = plan.target.files.size();
  return cost;
}

}  // namespace shardwright
