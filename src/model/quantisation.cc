// SPDX-License-Identifier: Apache-2.0
#include "model/quantisation.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/checked.h"
#include "base/fail.h"
#include "model/expert_parameter.h"
#include "model/packed_tensors.h"

namespace shardwright {
namespace {

using Scales = QuantisationConfig::Scales;

constexpr std::array<std::string_view, 2> kScaleEndings = {"_scale_inv", "_scale"};
constexpr std::string_view kWeight = ".weight";
constexpr std::string_view kOwnScale = ".scale";
constexpr std::string_view kFp4Values = "_blocks";
constexpr std::string_view kFp4Scales = "_scales";
constexpr std::int64_t kFp4Group = 32;  // values that share an exponent, in 16 bytes
// What serving software multiplies activations and caches with: no part of the weights.
constexpr std::array<std::string_view, 11> kOfActivations = {
    ".input_scale",      ".activation_scale", ".output_scale", ".q_scale",
    ".k_scale",          ".v_scale",          ".kv_scale",     ".input_global_scale",
    ".input_zero_point", ".k_zero_point",     ".v_zero_point"};
// The same behind the name of a parameter that holds all experts.
constexpr std::array<std::string_view, 2> kOfExpertActivations = {"_input_scale",
                                                                  "_activation_scale"};
// What ModelOpt calls the scales of such a parameter.
constexpr std::string_view kModelOptScale = "_weight_scale";
constexpr std::string_view kBias = ".bias";

bool is_of_activations(std::string_view name) {
  const auto ends = [&](std::string_view ending) { return name.ends_with(ending); };
  if (std::ranges::any_of(kOfActivations, ends)) return true;
  return std::ranges::any_of(kOfExpertActivations, [&](std::string_view ending) {
    return ends(ending) && is_expert_parameter(name.substr(0, name.size() - ending.size()));
  });
}

bool is_f8(DType dtype) {
  return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2 || dtype == DType::kF8E4M3Fnuz ||
         dtype == DType::kF8E5M2Fnuz;
}

std::string one_tensor(const TensorDesc& desc) {
  return fmt::format("{} {} {}", desc.name, torch_name(desc.dtype), to_string(desc.shape));
}

class Joiner {
 public:
  Joiner(std::span<const TensorDesc> stored, const QuantisationConfig& config,
         const StoredContents* contents)
      : stored_(stored, contents), config_(config), part_of_(stored.size(), Part::kPlain) {}

  Result<ModelTensors> run() {
    for (std::uint32_t i = 0; i < stored_.size(); ++i) {
      std::optional<QuantisedTensor> packed = SW_TRY(join_packed(stored_, config_, i));
      if (packed) add(std::move(*packed));
    }
    for (std::uint32_t i = 0; i < stored_.size(); ++i) {
      if (part_of_[i] != Part::kPlain) continue;
      if (is_f8(stored_[i].dtype)) SW_TRY(join_f8(i));
      if (is_fp4_part(i, kFp4Values)) SW_TRY(join_fp4(i));
    }
    SW_TRY(check_rest());
    SW_TRY(leave_out_zero_biases());
    collect();
    return std::move(result_);
  }

 private:
  enum class Part : std::uint8_t { kPlain, kValues, kScales, kIgnored };

  [[nodiscard]] std::optional<std::uint32_t> find(const std::string& name) const {
    return stored_.find(name);
  }

  // fp4 is stored as plain bytes: the names and the config tell.
  [[nodiscard]] bool is_fp4_part(std::uint32_t index, std::string_view ending) const {
    const TensorDesc& desc = stored_[index];
    return desc.name.ends_with(ending) &&
           (desc.dtype == DType::kU8 || desc.dtype == DType::kF8E8M0) &&
           config_.scales == Scales::kFp4Groups;
  }

  // What the config must say before quantised values are touched.
  [[nodiscard]] Status check_method(const TensorDesc& values) const {
    if (config_.method.empty()) {
      return fail(Code::kConfigMissing,
                  "tensor {}: found {}, and no quantization_config in config.json that says what "
                  "its scales are; give the folder of the model's own config.json (--hf-config), "
                  "or copy the tensors as they are (--to safetensors)",
                  values.name, torch_name(values.dtype));
    }
    if (config_.unsupported.empty()) return {};
    return fail(Code::kDtypeUnsupported,
                "config.json: quantization_config: found quant_method {} {} (tensor {}), expected "
                "one that docs/formats/quantised.md lists; give the model that it was made of, or "
                "copy the tensors as they are (--to safetensors)",
                config_.method, config_.unsupported, values.name);
  }

  Status join_f8(std::uint32_t index) {
    const TensorDesc& values = stored_[index];
    SW_TRY(check_method(values));
    if (!config_.has_float8) {
      SW_TRY(check_scales_alone(values));
      return fail(Code::kDtypeUnsupported,
                  "{}: found {}, and no such weights in quantization_config of config.json",
                  stored_.where(index), torch_name(values.dtype));
    }
    if (values.dtype != DType::kF8E4M3) {
      return fail(Code::kDtypeUnsupported, "tensor {}: found {}, expected {} with scales",
                  values.name, torch_name(values.dtype), torch_name(DType::kF8E4M3));
    }
    std::optional<std::uint32_t> scales;
    for (const std::string& name : scale_names(values.name)) {
      const auto found = find(name);
      if (found && scales) {
        return fail(Code::kDuplicateName, "tensor {}: found scales {} and {}, expected one of them",
                    values.name, stored_[*scales].name, stored_[*found].name);
      }
      if (found) scales = found;
    }
    if (!scales) {
      return fail(Code::kUnmatchedSource,
                  "tensor {}: found {} without scales, expected {}_scale_inv or {}_scale; values "
                  "without their scales mean nothing",
                  values.name, torch_name(values.dtype), values.name, values.name);
    }
    const TensorDesc& factors = stored_[*scales];
    if (factors.dtype != DType::kF32 && factors.dtype != DType::kBF16 &&
        factors.dtype != DType::kF16 && factors.dtype != DType::kF8E8M0) {
      return fail(Code::kDtypeUnsupported,
                  "tensor {}: found scales of {}, expected float32, bfloat16, float16 or {}",
                  factors.name, torch_name(factors.dtype), torch_name(DType::kF8E8M0));
    }
    QuantisedTensor joined;
    joined.values = index;
    joined.scales = *scales;
    joined.desc = {values.name, DType::kBF16, values.shape};
    joined.scheme = "fp8 e4m3";
    joined.scale_dtype = factors.dtype;
    SW_TRY(fit_grid(factors, joined));
    add(std::move(joined));
    return {};
  }

  // DeepSeek-V4 calls the scales of `X.weight` `X.scale`.
  [[nodiscard]] std::vector<std::string> scale_names(const std::string& values) const {
    std::vector<std::string> names;
    for (const std::string_view ending : kScaleEndings)
      names.push_back(values + std::string(ending));
    if (config_.has_exponents && values.ends_with(kWeight)) {
      names.push_back(values.substr(0, values.size() - kWeight.size()) + std::string(kOwnScale));
    }
    if (is_expert_parameter(values)) names.push_back(values + std::string(kModelOptScale));
    return names;
  }

  // How the scales lie over the values.
  [[nodiscard]] Status fit_grid(const TensorDesc& scales, QuantisedTensor& joined) const {
    const Dims& shape = joined.desc.shape;
    const int axes = shape.size();
    Dims grid = scales.shape;
    bool fits = true;
    if (config_.scales == Scales::kBlocks) {
      joined.block = Dims::filled(axes, 1);
      fits = axes >= 2 && grid.size() == axes;
      for (int axis = 0; axis < axes && fits; ++axis) {
        const int tail = axis - (axes - 2);
        if (tail >= 0) joined.block[axis] = config_.block[static_cast<std::size_t>(tail)];
        fits = grid[axis] == ceil_div(shape[axis], joined.block[axis]);
        // Tables, of which rows are looked up one by one, have blocks within a row.
        if (!fits && tail == 0 && grid[axis] == shape[axis]) {
          joined.block[axis] = 1;
          fits = true;
        }
      }
    } else {
      fits = grid.size() <= axes;
      while (fits && grid.size() < axes) grid.push_back(1);
      for (int axis = 0; axis < axes && fits; ++axis) {
        const bool is_one = grid[axis] == 1;
        fits = is_one || grid[axis] == shape[axis];
        joined.block.push_back(is_one ? std::max<std::int64_t>(shape[axis], 1) : 1);
      }
      fits = fits && has_stated_extents(grid);
    }
    if (!fits) return wrong_shape(scales, joined);
    joined.stride = row_major_strides(grid);
    return {};
  }

  [[nodiscard]] bool has_stated_extents(const Dims& grid) const {
    const int axes = grid.size();
    const bool one_per_row = axes < 2 || grid[axes - 1] == 1;
    if (config_.scales == Scales::kRows) return one_per_row;
    const bool one_row = axes < 1 || grid[std::max(axes - 2, 0)] == 1;
    return config_.scales != Scales::kTensor || (one_per_row && one_row);
  }

  [[nodiscard]] Status wrong_shape(const TensorDesc& scales, const QuantisedTensor& joined) const {
    std::string expected = "one for the tensor or one for each row";
    if (config_.scales == Scales::kTensor) expected = "one for the tensor";
    if (config_.scales == Scales::kRows) expected = "one for each row";
    if (config_.scales == Scales::kBlocks) {
      expected = translated("one for each block of {} x {}", config_.block[0], config_.block[1]);
    }
    return fail(Code::kShapeMismatch,
                "tensor {}: found shape {}, expected {} of {} {} (quantization_config in "
                "config.json)",
                scales.name, to_string(scales.shape), expected, joined.desc.name,
                to_string(joined.desc.shape));
  }

  // [experts, rows, groups, 16] bytes hold what the model knows as [experts, 32 * groups, rows].
  Status join_fp4(std::uint32_t index) {
    const TensorDesc& values = stored_[index];
    const std::string name = values.name.substr(0, values.name.size() - kFp4Values.size());
    const auto scales = find(name + std::string(kFp4Scales));
    if (!scales) {
      return fail(Code::kUnmatchedSource,
                  "tensor {}: found fp4 values without scales, expected {}{}", values.name, name,
                  kFp4Scales);
    }
    if (find(name)) {
      return fail(Code::kDuplicateName, "tensor {}: found {} too, expected one of them",
                  values.name, name);
    }
    const Dims& bytes = values.shape;
    if (bytes.size() != 4 || bytes[3] != kFp4Group / 2 || values.dtype != DType::kU8) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found {} {}, expected uint8 (experts, rows, groups, 16)", values.name,
                  torch_name(values.dtype), to_string(bytes));
    }
    const TensorDesc& factors = stored_[*scales];
    if (!(factors.shape == Dims{bytes[0], bytes[1], bytes[2]}) ||
        (factors.dtype != DType::kU8 && factors.dtype != DType::kF8E8M0)) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found {} {}, expected uint8 {} as the groups of {}", factors.name,
                  torch_name(factors.dtype), to_string(factors.shape),
                  to_string(Dims{bytes[0], bytes[1], bytes[2]}), values.name);
    }
    const auto columns = checked_mul(bytes[2], kFp4Group);
    if (!columns) return fail(Code::kLimit, "tensor {}: its shape is too large", values.name);
    const Dims shape{bytes[0], *columns, bytes[1]};
    SW_TRY(element_count(shape));
    QuantisedTensor joined;
    joined.values = index;
    joined.scales = *scales;
    joined.desc = {name, DType::kBF16, shape};
    joined.scheme = "mxfp4";
    joined.dtype = DType::kF4E2M1X2;
    joined.scale_dtype = DType::kF8E8M0;
    joined.strides = {bytes[1] * *columns, 1, *columns};
    joined.block = {1, kFp4Group, 1};
    joined.stride = {bytes[1] * bytes[2], 1, bytes[2]};
    add(std::move(joined));
    return {};
  }

  void add(QuantisedTensor joined) {
    part_of_[joined.values] = Part::kValues;
    for (const std::uint32_t companion : companions_of(joined)) {
      part_of_[companion] = Part::kScales;
    }
    for (const std::uint32_t more : joined.more) part_of_[more] = Part::kScales;
    result_.quantised.push_back(std::move(joined));
  }

  // Weights of methods that are not read come as whole numbers and scales.
  [[nodiscard]] bool is_of_unread_method(const TensorDesc& desc) const {
    const bool is_packed = desc.dtype == DType::kU8 || desc.dtype == DType::kI8 ||
                           desc.dtype == DType::kI32 || desc.dtype == DType::kU32;
    return !config_.unsupported.empty() && (is_packed || !check_scales_alone(desc));
  }

  // Scales that nothing took, and bytes of methods that are not read.
  Status check_rest() {
    for (std::uint32_t i = 0; i < stored_.size(); ++i) {
      const TensorDesc& desc = stored_[i];
      if (part_of_[i] != Part::kPlain) continue;
      const auto ends = [&](std::string_view ending) { return desc.name.ends_with(ending); };
      if (!config_.method.empty() && is_of_activations(desc.name)) {
        part_of_[i] = Part::kIgnored;
        continue;
      }
      if (is_fp4_part(i, kFp4Scales)) {
        return fail(Code::kUnmatchedSource, "tensor {}: found scales without values, expected {}{}",
                    desc.name, desc.name.substr(0, desc.name.size() - kFp4Scales.size()),
                    kFp4Values);
      }
      if (is_of_unread_method(desc)) SW_TRY(check_method(desc));
      SW_TRY(check_packed_alone(i));
      SW_TRY(check_scales_alone(desc));
      const bool has_exponents =
          ends(kFp4Values) &&
          find(desc.name.substr(0, desc.name.size() - kFp4Values.size()) + std::string(kFp4Scales));
      if (has_exponents && config_.method.empty()) SW_TRY(check_method(desc));
    }
    return {};
  }

  // Parts of packed tensors whose values are not there, and numbers that no scheme explains.
  [[nodiscard]] Status check_packed_alone(std::uint32_t index) const {
    const TensorDesc& desc = stored_[index];
    const bool is_weight =
        desc.name.ends_with(kWeight) && desc.shape.size() > 1 && is_integer(desc.dtype);
    if (is_part_of_packed(desc.name)) {
      SW_TRY(check_method(desc));
      return fail(Code::kUnmatchedSource,
                  "{}: found {} {}, which belongs to no packed weights that quantization_config of "
                  "config.json describes",
                  stored_.where(index), torch_name(desc.dtype), to_string(desc.shape));
    }
    if (config_.has_exponents && desc.name.ends_with(kOwnScale) && desc.dtype == DType::kF8E8M0) {
      return fail(Code::kUnmatchedSource, "{}: found scales without values, expected {}{}",
                  stored_.where(index), desc.name.substr(0, desc.name.size() - kOwnScale.size()),
                  kWeight);
    }
    if (config_.method.empty() || !is_weight) return {};
    return fail(Code::kDtypeUnsupported,
                "{}: found {} {}, and nothing in quantization_config of config.json that says how "
                "such weights are multiplied",
                stored_.where(index), torch_name(desc.dtype), to_string(desc.shape));
  }

  [[nodiscard]] Status check_scales_alone(const TensorDesc& desc) const {
    for (const std::string_view ending : kScaleEndings) {
      if (!desc.name.ends_with(ending)) continue;
      const std::string name = desc.name.substr(0, desc.name.size() - ending.size());
      const auto values = find(name);
      const bool is_meant = ending == kScaleEndings[0] || name.ends_with(".weight");
      if (!is_meant) continue;
      return fail(Code::kUnmatchedSource, "tensor {}: found scales {}, expected {} of {}",
                  desc.name,
                  values ? translated("whose values are ") + one_tensor(stored_[*values])
                         : "without values",
                  name, torch_name(DType::kF8E4M3));
    }
    return {};
  }

  // AutoGPTQ and GPTQ-for-LLaMa give every linear a bias, which the model need not have. One that
  // it has is not zero in all layers.
  Status leave_out_zero_biases() {
    if (config_.packing != QuantisationConfig::Packing::kGptq || !stored_.can_read()) return {};
    std::map<std::string, std::vector<std::uint32_t>> alike;  // but for numbers in their names
    std::set<std::string> of_models;
    for (std::uint32_t i = 0; i < stored_.size(); ++i) {
      std::string_view name = stored_[i].name;
      if (part_of_[i] != Part::kPlain || !name.ends_with(kBias)) continue;
      name.remove_suffix(kBias.size());
      if (!find(std::string(name) + ".qweight")) continue;
      std::string kind(name);
      std::erase_if(kind, [](char c) { return c >= '0' && c <= '9'; });
      alike[kind].push_back(i);
      const bool is_known = of_models.contains(kind);
      if (!is_known && !SW_TRY(stored_.is_zero(i))) of_models.insert(kind);
    }
    for (const auto& [kind, biases] : alike) {
      if (of_models.contains(kind)) continue;
      for (const std::uint32_t bias : biases) {
        part_of_[bias] = Part::kIgnored;
        result_.zero_biases.push_back(stored_[bias].name);
      }
    }
    return {};
  }

  void collect() {
    std::unordered_map<std::uint32_t, const TensorDesc*> joined;
    for (const QuantisedTensor& tensor : result_.quantised) {
      joined.emplace(tensor.values, &tensor.desc);
    }
    for (std::uint32_t i = 0; i < stored_.size(); ++i) {
      if (part_of_[i] == Part::kPlain) result_.tensors.push_back(stored_[i]);
      if (part_of_[i] == Part::kValues) result_.tensors.push_back(*joined.at(i));
      if (part_of_[i] == Part::kIgnored && is_of_activations(stored_[i].name)) {
        result_.ignored.push_back(stored_[i].name);
      }
    }
  }

  StoredTensors stored_;
  const QuantisationConfig& config_;
  std::vector<Part> part_of_;
  ModelTensors result_;
};

}  // namespace

bool ModelTensors::is_quantised(std::string_view name) const {
  return std::ranges::any_of(
      quantised, [&](const QuantisedTensor& tensor) { return tensor.desc.name == name; });
}

Result<ModelTensors> join_scales(std::span<const TensorDesc> stored,
                                 const QuantisationConfig& config, const StoredContents* contents) {
  return Joiner(stored, config, contents).run();
}

}  // namespace shardwright
