// SPDX-License-Identifier: Apache-2.0
#include "canonical/exact_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/fail.h"
#include "compare/tensor_values.h"
#include "model/apply.h"
#include "tensor/convert.h"

namespace shardwright {
namespace {

/// An HF tensor and the one that Megatron makes of it by adding a constant.
struct Shifted {
  const TensorDesc* hf = nullptr;
  const TensorDesc* megatron = nullptr;
  double offset = 0.0;
};

std::vector<Shifted> shifted_tensors(const Correspondence& correspondence) {
  std::vector<Shifted> tensors;
  for (const Block& block : correspondence.blocks) {
    const MappedTensor& hf = correspondence.hf[block.hf];
    if (hf.offset == 0.0) continue;
    tensors.push_back({&hf.desc, &correspondence.megatron[block.megatron].desc, hf.offset});
  }
  return tensors;
}

/// Values of one dtype in another one, with a constant added.
Result<std::vector<std::byte>> converted(std::span<const std::byte> bytes,
                                         const Conversion& conversion) {
  const std::int64_t from = bytes_of(conversion.from);
  const std::int64_t to = bytes_of(conversion.to);
  const std::int64_t count = std::ssize(bytes) / from;
  std::vector<std::byte> result(static_cast<std::size_t>(count * to));
  SW_TRY(convert_run(conversion, count, bytes.data(), from, result.data(), to));
  return result;
}

/// The largest difference of corresponding values; infinity where only one of them is a number.
Result<double> largest_difference(std::span<const std::byte> a, std::span<const std::byte> b,
                                  DType dtype) {
  const std::vector<std::byte> left = SW_TRY(converted(a, {dtype, DType::kF64, 0.0}));
  const std::vector<std::byte> right = SW_TRY(converted(b, {dtype, DType::kF64, 0.0}));
  double largest = 0.0;
  for (std::size_t at = 0; at < left.size(); at += sizeof(double)) {
    double x = 0.0;
    double y = 0.0;
    std::memcpy(&x, left.data() + at, sizeof x);
    std::memcpy(&y, right.data() + at, sizeof y);
    if (std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y)) continue;
    const double difference = std::abs(x - y);
    largest = std::max(largest, std::isnan(difference) ? HUGE_VAL : difference);
  }
  return largest;
}

/// A plan whose target tensors are these drafts, to read their values.
Plan plan_of_drafts(std::vector<DraftTensor> drafts, const Catalog& source) {
  Plan plan;
  for (DraftTensor& draft : drafts) {
    const int axes = draft.desc.shape.size();
    plan.target.tensors.push_back({std::move(draft.desc), ChunkList(axes)});
    plan.tensors.push_back(std::move(draft.recipe));
  }
  if (!plan.tensors.empty()) plan.source = source;
  return plan;
}

DraftTensor whole(const TensorDesc& desc, const CanonicalTensor& source) {
  return {desc, {{view_of_canonical(source)}, std::nullopt, 0.0}, std::nullopt};
}

/// How far HF values are from what comes back after adding the offset and taking it away again.
Result<double> loss_there_and_back(TensorValues& values, std::size_t target, double offset,
                                   DType dtype) {
  double largest = 0.0;
  const TileGrid grid = values.grid(target);
  for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
    const std::span<const std::byte> hf = SW_TRY(values.read(target, grid.tile(ordinal)));
    const std::vector<std::byte> there = SW_TRY(converted(hf, {dtype, dtype, offset}));
    const std::vector<std::byte> back = SW_TRY(converted(there, {dtype, dtype, -offset}));
    largest = std::max(largest, SW_TRY(largest_difference(hf, back, dtype)));
  }
  return largest;
}

/// How far values are, once the offset is taken away, from what the dtype can hold.
Result<double> loss_back(TensorValues& values, std::size_t target, double offset, DType dtype) {
  double largest = 0.0;
  const TileGrid grid = values.grid(target);
  for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
    const std::span<const std::byte> megatron = SW_TRY(values.read(target, grid.tile(ordinal)));
    const std::vector<std::byte> rounded = SW_TRY(converted(megatron, {dtype, dtype, -offset}));
    const std::vector<std::byte> held = SW_TRY(converted(rounded, {dtype, DType::kF64, 0.0}));
    const std::vector<std::byte> exact = SW_TRY(converted(megatron, {dtype, DType::kF64, -offset}));
    largest = std::max(largest, SW_TRY(largest_difference(held, exact, DType::kF64)));
  }
  return largest;
}

/// Whether Megatron's tensor is still the kept one plus the offset, bit by bit. Both may have been
/// cast since, so the sum may be one that a shorter dtype has rounded.
Result<bool> still_fits(TensorValues& values, std::size_t megatron, std::size_t kept, double offset,
                        DType dtype) {
  const TileGrid grid = values.grid(megatron);
  for (const DType summed : {dtype, DType::kBF16, DType::kF16}) {
    bool fits = true;
    for (std::int64_t ordinal = 0; fits && ordinal < grid.count(); ++ordinal) {
      const std::span<const std::byte> a = SW_TRY(values.read(megatron, grid.tile(ordinal), 0));
      const std::span<const std::byte> b = SW_TRY(values.read(kept, grid.tile(ordinal), 1));
      const std::vector<std::byte> sum = SW_TRY(converted(b, {dtype, summed, offset}));
      fits = std::ranges::equal(a, SW_TRY(converted(sum, {summed, dtype, 0.0})));
    }
    if (fits) return true;
  }
  return false;
}

using CanonicalByName = std::unordered_map<std::string_view, const CanonicalTensor*>;

const CanonicalTensor* find(const CanonicalByName& canonical, std::string_view name) {
  const auto found = canonical.find(name);
  return found == canonical.end() ? nullptr : found->second;
}

}  // namespace

Result<std::vector<DraftTensor>> keep_exact_values(const Correspondence& correspondence,
                                                   const Catalog& source,
                                                   std::span<const DraftTensor> drafts,
                                                   SourceFiles& files,
                                                   std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, std::uint32_t> stored;
  for (std::uint32_t i = 0; i < source.tensors.size(); ++i) {
    stored.emplace(source.tensors[i].desc.name, i);
  }
  std::unordered_map<std::string_view, DType> made;
  for (const DraftTensor& draft : drafts) made.emplace(draft.desc.name, draft.desc.dtype);
  const auto dtype_in_megatron = [&](const Shifted& tensor) {
    const auto dtype = made.find(tensor.megatron->name);
    return dtype == made.end() ? tensor.hf->dtype : dtype->second;
  };
  std::vector<Shifted> tensors = shifted_tensors(correspondence);
  std::erase_if(tensors, [&](const Shifted& tensor) {
    const auto place = stored.find(tensor.hf->name);
    return place == stored.end() || !is_castable_float(tensor.hf->dtype) ||
           source.tensors[place->second].desc.dtype != tensor.hf->dtype ||
           !is_castable_float(dtype_in_megatron(tensor));
  });
  std::vector<DraftTensor> kept;
  for (const Shifted& tensor : tensors) {
    TensorDesc extra = *tensor.hf;
    extra.name = std::string(kHfExtraPrefix) + tensor.hf->name;
    extra.dtype = dtype_in_megatron(tensor);
    kept.push_back(whole(extra, {*tensor.hf, stored.at(tensor.hf->name), -1}));
  }
  const Plan plan = plan_of_drafts(kept, source);
  TensorValues values(plan, files);
  std::vector<DraftTensor> result;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shifted& tensor = tensors[i];
    const DType dtype = dtype_in_megatron(tensor);
    const double loss = SW_TRY(loss_there_and_back(values, i, tensor.offset, dtype));
    if (loss == 0.0) continue;
    notes.push_back(translated(
        "{}: Megatron keeps it {:+g}, which rounds in {}: the way back is off by up to {}; the "
        "exact values are kept as hf_extra",
        tensor.hf->name, tensor.offset, torch_name(dtype), loss));
    result.push_back(std::move(kept[i]));
  }
  return result;
}

Status restore_exact_values(const Correspondence& correspondence,
                            std::span<const CanonicalTensor> canonical, const Catalog& source,
                            std::span<DraftTensor> drafts, SourceFiles& files,
                            std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, DraftTensor*> made;
  for (DraftTensor& draft : drafts) made.emplace(draft.desc.name, &draft);
  CanonicalByName by_name;
  for (const CanonicalTensor& tensor : canonical) by_name.emplace(tensor.desc.name, &tensor);
  const std::vector<Shifted> tensors = shifted_tensors(correspondence);
  std::vector<DraftTensor> compared;  // of each tensor Megatron's, then what the kept one makes
  std::vector<const CanonicalTensor*> kept;
  for (const Shifted& tensor : tensors) {
    const CanonicalTensor* now = find(by_name, tensor.megatron->name);
    if (now == nullptr) return fail(Code::kInternal, "{} is missing", tensor.megatron->name);
    const CanonicalTensor* extra = find(by_name, std::string(kHfExtraPrefix) + tensor.hf->name);
    const bool fits = extra != nullptr && extra->desc.shape == now->desc.shape &&
                      extra->desc.dtype == now->desc.dtype;
    kept.push_back(fits ? extra : nullptr);
    compared.push_back(whole(now->desc, *now));
    compared.push_back(whole(now->desc, fits ? *extra : *now));
  }
  const Plan plan = plan_of_drafts(compared, source);
  TensorValues values(plan, files);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Shifted& tensor = tensors[i];
    const DType dtype = compared[2 * i].desc.dtype;
    const auto draft = made.find(tensor.hf->name);
    if (draft == made.end() || !is_castable_float(dtype)) continue;
    if (kept[i] != nullptr && SW_TRY(still_fits(values, 2 * i, 2 * i + 1, tensor.offset, dtype))) {
      draft->second->recipe = whole(kept[i]->desc, *kept[i]).recipe;
      continue;
    }
    // A cast that was asked for rounds anyway.
    if (kept[i] == nullptr && draft->second->desc.dtype != dtype) continue;
    const double loss = SW_TRY(loss_back(values, 2 * i, tensor.offset, dtype));
    if (loss == 0.0 && kept[i] == nullptr) continue;
    notes.push_back(translated(
        "{}: {} {:+g} is rounded to {} by up to {}{}", tensor.hf->name, tensor.megatron->name,
        -tensor.offset, torch_name(dtype), loss,
        kept[i] != nullptr ? "; the values kept as hf_extra are those of before it was trained"
                           : ""));
  }
  return {};
}

}  // namespace shardwright
