// SPDX-License-Identifier: Apache-2.0
#include "model/packed_tensors.h"

#include <array>
#include <string>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "model/expert_parameter.h"
#include "model/packed_joiner.h"

namespace shardwright {
namespace {

using Packing = QuantisationConfig::Packing;
using Kind = PackedWeights::Kind;

constexpr std::string_view kPacked = "_packed";
constexpr std::string_view kQWeight = ".qweight";
constexpr std::string_view kScale = "_scale";
// Of the parameter that holds all experts of a layer.
constexpr std::string_view kExpertScale = "_weight_scale";
constexpr std::string_view kSecondExpertScale = "_weight_scale_2";
constexpr std::int64_t kNvfp4Group = 16;  // values that share an e4m3 scale
constexpr std::int64_t kMxfp4Group = 32;  // values that share an exponent

std::string without(std::string_view name, std::string_view ending) {
  return std::string(name.substr(0, name.size() - ending.size()));
}

// Of the schemes that the config lists the one that fits.
Result<QuantisedTensor> join_by_scheme(PackedJoiner& joiner, const StoredTensors& stored,
                                       std::uint32_t index, DType scale_type,
                                       const QuantisationConfig& config) {
  std::optional<Result<QuantisedTensor>> best;
  for (const PackedWeights& packed : config.packed) {
    const bool are_integers = stored[index].dtype == DType::kI32;
    if (are_integers != (packed.kind == Kind::kIntegers)) continue;
    // Two schemes of fp4 are told apart by the type of their scales.
    const bool is_nvfp4 = packed.kind == Kind::kNvfp4;
    if (!are_integers && config.packed.size() > 1 && is_nvfp4 != (scale_type == DType::kF8E4M3)) {
      continue;
    }
    Result<QuantisedTensor> joined = [&]() -> Result<QuantisedTensor> {
      if (are_integers) return joiner.integers_of_compressed_tensors(packed);
      if (!is_nvfp4)
        return joiner.fp4(2, kMxfp4Group, {DType::kU8, DType::kF8E8M0}, "_scale", "mxfp4");
      QuantisedTensor fp4 = SW_TRY(joiner.fp4(2, kNvfp4Group, {DType::kF8E4M3}, "_scale", "nvfp4"));
      SW_TRY(joiner.add_second_scale("_global_scale", true, fp4));
      return fp4;
    }();
    if (joined && best && *best) {
      return fail(Code::kShapeMismatch,
                  "{}: fits several of config_groups in quantization_config of config.json, "
                  "expected one",
                  stored.where(index));
    }
    if (!best || joined) best = std::move(joined);
  }
  if (best) return std::move(*best);
  return fail(Code::kDtypeUnsupported,
              "{}: found {}, and no such weights in quantization_config of config.json",
              stored.where(index), shape_text(stored[index].dtype, stored[index].shape));
}

// What the stored values are called without what says that they are packed; empty where nothing
// does.
std::string base_of(const StoredTensors& stored, const QuantisationConfig& config,
                    const TensorDesc& values) {
  const std::string& name = values.name;
  const bool are_bytes = values.dtype == DType::kU8 || values.dtype == DType::kI8;
  switch (config.packing) {
    case Packing::kCompressedTensors:
      return name.ends_with(kPacked) ? without(name, kPacked) : "";
    case Packing::kGptq:
    case Packing::kAwq:
      return name.ends_with(kQWeight) ? without(name, kQWeight) : "";
    case Packing::kModelOpt:
      if (are_bytes && is_expert_parameter(name)) return name;
      return are_bytes && stored.find(name + "_scale") ? name : "";
    case Packing::kNone:
      break;
  }
  const bool is_weight = config.has_exponents && are_bytes && name.ends_with(".weight");
  return is_weight && stored.find(without(name, "weight") + "scale") ? name : "";
}

}  // namespace

Result<std::optional<QuantisedTensor>> join_packed(const StoredTensors& stored,
                                                   const QuantisationConfig& config,
                                                   std::uint32_t index) {
  if (!config.unsupported.empty()) return std::optional<QuantisedTensor>();
  const std::string base = base_of(stored, config, stored[index]);
  if (base.empty()) return std::optional<QuantisedTensor>();
  const bool is_transposed = config.packing == Packing::kGptq || config.packing == Packing::kAwq;
  const std::string plain = is_transposed ? base + ".weight" : base;
  if (plain != stored[index].name && stored.find(plain)) {
    return fail(Code::kDuplicateName, "{}: found {} too, expected one of them", stored.where(index),
                plain);
  }
  PackedJoiner joiner(stored, config, index, base);
  QuantisedTensor joined;
  if (config.packing == Packing::kGptq) {
    joined = SW_TRY(joiner.gptq());
  } else if (config.packing == Packing::kAwq) {
    joined = SW_TRY(joiner.awq());
  } else if (config.packing == Packing::kModelOpt) {
    const bool are_experts = is_expert_parameter(base);
    const std::string scale(are_experts ? kExpertScale : kScale);
    joined = SW_TRY(joiner.fp4(are_experts ? 3 : 2, kNvfp4Group, {DType::kF8E4M3}, scale, "nvfp4"));
    SW_TRY(joiner.add_second_scale(scale + "_2", false, joined));
  } else if (config.packing == Packing::kCompressedTensors) {
    const auto scales = stored.find(base + "_scale");
    joined = SW_TRY(join_by_scheme(joiner, stored, index,
                                   scales ? stored[*scales].dtype : DType::kF32, config));
  } else {
    PackedJoiner exponents(stored, config, index, without(base, ".weight"));
    joined = SW_TRY(exponents.fp4(2, kMxfp4Group, {DType::kF8E8M0, DType::kU8}, ".scale", "fp4"));
    joined.desc.name = base;
  }
  const DType scales = stored[joined.scales].dtype;
  joined.scale_dtype = scales == DType::kU8 ? DType::kF8E8M0 : scales;
  return std::optional(std::move(joined));
}

bool is_part_of_packed(std::string_view name) {
  constexpr std::array<std::string_view, 9> kEndings = {
      ".weight_packed",       ".weight_shape",   ".weight_zero_point", ".weight_g_idx",
      ".weight_global_scale", ".weight_scale_2", ".qweight",           ".qzeros",
      ".pre_quant_scale"};
  const bool is_of_experts =
      name.ends_with(kSecondExpertScale) && is_expert_parameter(without(name, kSecondExpertScale));
  return is_of_experts || ends_as_any(name, kEndings);
}

}  // namespace shardwright
