// SPDX-License-Identifier: Apache-2.0
#include "compare/master_form.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <unordered_map>
#include <vector>

#include "compare/master_weights.h"
#include "compare/tensor_values.h"
#include "model/arguments.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// Of torch's types, or as the flag spells it.
bool has_half_masters(const Arguments& arguments) {
  const auto found = arguments.find("main_params_dtype");
  if (found == arguments.end()) return false;
  const auto* const name = std::get_if<std::string>(&found->second);
  return name != nullptr && (*name == "float16" || *name == "fp16");
}

// Those of bfloat16 weights.
std::vector<const StoredTensor*> masters_in(const Catalog& catalog) {
  std::unordered_map<std::string_view, DType> dtypes;
  for (const StoredTensor& tensor : catalog.tensors) {
    dtypes.emplace(tensor.desc.name, tensor.desc.dtype);
  }
  std::vector<const StoredTensor*> masters;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto name = weight_of_master(tensor.desc.name);
    const auto weight = name ? dtypes.find(*name) : dtypes.end();
    if (weight != dtypes.end() && weight->second == DType::kBF16) masters.push_back(&tensor);
  }
  return masters;
}

// Vectors may be whole numbers.
const StoredTensor* largest_matrix(std::span<const StoredTensor* const> masters) {
  const StoredTensor* largest = nullptr;
  std::int64_t most = 0;
  for (const StoredTensor* const master : masters) {
    const bool may_be = master->desc.shape.size() > 1 && master->desc.dtype == DType::kF32;
    const std::int64_t elements = may_be ? element_count(master->desc.shape).value_or(0) : 0;
    if (elements <= most) continue;
    most = elements;
    largest = master;
  }
  return largest;
}

// Of weights that were not trained yet all are 0.
bool are_remainders(std::span<const std::byte> bytes) {
  bool has_large = false;
  bool has_any = false;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float number = 0;
    std::memcpy(&number, bytes.data() + at, sizeof number);
    if (!(number >= -32768.0F && number <= 32767.0F) || number != std::trunc(number)) return false;
    has_any |= number != 0.0F;
    has_large |= std::abs(number) >= 256.0F;  // which no weight is
  }
  return has_large || !has_any;
}

}  // namespace

Result<MasterForm> form_of_masters(const Arguments& arguments, const Catalog& catalog,
                                   SourceFiles& files) {
  const std::vector<const StoredTensor*> masters = masters_in(catalog);
  const bool has_integers = std::ranges::any_of(
      masters, [](const StoredTensor* master) { return master->desc.dtype == DType::kI16; });
  if (has_integers) return MasterForm::kRemainders;
  if (has_half_masters(arguments) || is_true(arguments, "fp8_param_gather")) {
    return MasterForm::kNotRounded;
  }
  if (!is_true(arguments, "use_precision_aware_optimizer")) return MasterForm::kRounded;
  const StoredTensor* const master = largest_matrix(masters);
  if (master == nullptr) return MasterForm::kRounded;
  Plan plan;
  plan.source.tensors = {*master};
  plan.target.tensors = {{master->desc, ChunkList(), Encoding::kRaw}};
  plan.tensors = {{{view_of_canonical({master->desc, 0, -1})}, std::nullopt, 0.0}};
  TensorValues values(plan, files);
  const auto bytes = SW_TRY(values.read(0, values.grid(0).tile(0)));
  return are_remainders(bytes) ? MasterForm::kRemainders : MasterForm::kRounded;
}

bool is_remainder(const TensorDesc& master, DType weight) {
  return weight == DType::kBF16 && (master.dtype == DType::kI16 || master.dtype == DType::kF32);
}

std::string_view note_on_form(MasterForm form) {
  switch (form) {
    case MasterForm::kRounded:
      break;
    case MasterForm::kNotRounded:
      return "the run keeps weights or master weights in a form (FP8, float16) in which the first "
             "are not the second, rounded: they are not compared";
    case MasterForm::kRemainders:
      return "the run keeps of its master weights what its weights lack of them: nothing proves "
             "whose they are but shapes, groups and order";
  }
  return {};
}

}  // namespace shardwright
