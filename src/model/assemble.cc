// SPDX-License-Identifier: Apache-2.0
#include "model/assemble.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "model/vocabulary_rows.h"

namespace shardwright {
namespace {

/// `shape` behind a leading axis.
Dims stacked(std::int64_t count, const Dims& shape) {
  Dims result{count};
  for (const std::int64_t extent : shape) result.push_back(extent);
  return result;
}

Dims without_first(const Dims& shape) {
  Dims result;
  for (int axis = 1; axis < shape.size(); ++axis) result.push_back(shape[axis]);
  return result;
}

std::string list_of_tensors(std::span<const TensorDesc> tensors) {
  std::vector<std::string> names;
  for (const TensorDesc& tensor : tensors.first(std::min<std::size_t>(tensors.size(), 4))) {
    names.push_back(fmt::format("{} {}", tensor.name, to_string(tensor.shape)));
  }
  if (tensors.size() > 4) names.emplace_back("...");
  return fmt::format("{}", fmt::join(names, ", "));
}

// Rules state the shapes of what a model computes with; a buffer of numbers has whatever it has.
bool may_be_integers(const Rule& rule) {
  return rule.shape.empty() || (rule.dtype && is_integer(*rule.dtype));
}

// Of a model file quantised values have been joined with their scales by now; Megatron keeps none.
Status check_has_no_codes(const Rule& rule, std::span<const TensorDesc> megatron) {
  for (const TensorDesc& tensor : megatron) {
    if (is_castable_float(tensor.dtype) || may_be_integers(rule)) continue;
    return fail(Code::kDtypeUnsupported,
                "tensor {}: found dtype {}, expected bfloat16, float16 or float32; values without "
                "their scales mean nothing",
                tensor.name, torch_name(tensor.dtype));
  }
  return {};
}

Status check_dtypes(const Rule& rule, std::span<const TensorDesc> tensors) {
  for (const TensorDesc& tensor : tensors) {
    if (is_integer(tensor.dtype) && !may_be_integers(rule)) {
      return fail(Code::kDtypeUnsupported,
                  "tensor {}: found dtype {}, expected floating-point numbers: a model computes "
                  "with them",
                  tensor.name, torch_name(tensor.dtype));
    }
    if (tensor.dtype == tensors[0].dtype) continue;
    return fail(Code::kDtypeUnsupported,
                "tensor {}: found dtype {}, expected {} as in {}; both are parts of one tensor",
                tensor.name, torch_name(tensor.dtype), torch_name(tensors[0].dtype),
                tensors[0].name);
  }
  return {};
}

/// The tensor whose extents a rule states.
const Dims& stated_shape(const Lowered& lowered) {
  return lowered.megatron.size() == 1 ? lowered.megatron[0] : lowered.hf[0];
}

Arrangement arrangement_of(const Rule& rule) {
  return Arrangement{rule.transform, rule.permute, static_cast<int>(rule.hf.size()),
                     static_cast<int>(rule.megatron.size())};
}

}  // namespace

const TensorDesc* Assembler::find_hf(std::string_view name) const {
  const auto found = hf_.find(std::string(name));
  return found == hf_.end() ? nullptr : &result_.hf[found->second].desc;
}

Result<std::uint32_t> Assembler::add_tensor(Side side, MappedTensor tensor, std::string_view rule) {
  std::vector<MappedTensor>& tensors = side == Side::kHf ? result_.hf : result_.megatron;
  Owners& owners = side == Side::kHf ? hf_ : megatron_;
  const Result<std::int64_t> count = element_count(tensor.desc.shape);
  if (!count)
    return std::unexpected(Error(count.error()).within(translated("tensor {}", tensor.desc.name)));
  const auto index = static_cast<std::uint32_t>(tensors.size());
  if (!owners.emplace(tensor.desc.name, index).second) {
    return fail(Code::kMappingInvalid,
                "{}: found tensor {} in a second rule, expected one; change the mapping file", rule,
                tensor.desc.name);
  }
  tensors.push_back(std::move(tensor));
  return index;
}

Result<std::int64_t> Assembler::stack_count(const Rule& rule) const {
  return rule.stack.empty() ? Result<std::int64_t>(1) : loop_count(mapping_, sizes_, rule.stack);
}

Status Assembler::check_shape(const Rule& rule, const Dims& shape, const Scope& scope) const {
  if (rule.shape.empty()) return {};
  Dims expected;
  std::vector<std::string> words;
  for (const SizeExpr& extent : rule.shape) {
    expected.push_back(SW_TRY(extent.evaluate(scope)));
    words.push_back(extent.text());
  }
  if (expected == shape) return {};
  return fail(Code::kShapeMismatch,
              "found shape {}, expected {} = ({}); check that the configuration belongs to these "
              "tensors",
              to_string(shape), to_string(expected), fmt::join(words, ", "));
}

// One without a dtype of its own has that of the tensor before it. A value that a model calculates
// with is a float's, whatever that one holds.
DType Assembler::dtype_of_constants(const Constant& constant) const {
  const DType before = result_.hf.empty() ? DType::kBF16 : result_.hf.back().desc.dtype;
  return constant.is_unused || is_castable_float(before) ? before : DType::kBF16;
}

Status Assembler::add_constant(const Instance& instance) {
  const Scope scope{sizes_, instance.bindings};
  MappedTensor tensor;
  tensor.desc.name = SW_TRY(instance.rule->megatron[0].render(scope));
  const auto& constant = std::get<Constant>(instance.rule->transform);
  tensor.desc.dtype = instance.rule->dtype.value_or(dtype_of_constants(constant));
  (constant.is_unused ? tensor.rest : tensor.constant) = constant.value;
  tensor.pinned_dtype = instance.rule->dtype.has_value();
  for (const SizeExpr& extent : instance.rule->shape) {
    tensor.desc.shape.push_back(SW_TRY(extent.evaluate(scope)));
  }
  SW_TRY(add_tensor(Side::kMegatron, std::move(tensor), instance.rule->path));
  return {};
}

Status Assembler::add_lowered(const Instance& instance, const Lowered& lowered,
                              std::vector<TensorDesc> hf, std::vector<TensorDesc> megatron) {
  const Rule& rule = *instance.rule;
  const auto mapped = [&rule](TensorDesc desc) {
    MappedTensor tensor;
    tensor.desc = std::move(desc);
    tensor.pinned_dtype = rule.dtype.has_value();
    tensor.vocabulary = rule.vocabulary;
    tensor.offset = rule.offset;
    return tensor;
  };
  std::vector<std::uint32_t> hf_at;
  for (TensorDesc& desc : hf) {
    hf_at.push_back(SW_TRY(add_tensor(Side::kHf, mapped(std::move(desc)), rule.path)));
  }
  std::vector<std::uint32_t> megatron_at;
  for (TensorDesc& desc : megatron) {
    MappedTensor target = mapped(std::move(desc));
    target.rest = lowered.fill;
    megatron_at.push_back(SW_TRY(add_tensor(Side::kMegatron, std::move(target), rule.path)));
  }
  const std::size_t turns = hf_at.size() / lowered.hf.size();
  for (std::size_t turn = 0; turn < turns; ++turn) {
    for (const Piece& piece : lowered.pieces) {
      Block block;
      block.hf = hf_at[turn * lowered.hf.size() + static_cast<std::size_t>(piece.hf)];
      block.megatron = megatron_at[static_cast<std::size_t>(piece.megatron)];
      block.hf_origin = piece.hf_origin;
      block.megatron_origin = piece.megatron_origin;
      block.shape = piece.shape;
      block.hf_axis = piece.hf_axis;
      block.hf_step = piece.hf_step;
      block.repeats = piece.repeats;
      if (!rule.stack.empty()) {
        block.megatron_origin = stacked(static_cast<std::int64_t>(turn), piece.megatron_origin);
        block.shape = stacked(1, piece.shape);
        block.hf_axis = stacked(-1, piece.hf_axis);
        block.hf_step = stacked(1, piece.hf_step);
      }
      result_.blocks.push_back(block);
    }
  }
  return {};
}

Status Assembler::add_from_hf(const Instance& instance, const TensorIndex& hf) {
  const Rule& rule = *instance.rule;
  if (std::holds_alternative<Constant>(rule.transform)) return add_constant(instance);
  const std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
  const std::int64_t turns = SW_TRY(stack_count(rule));
  if (turns == 0) return {};
  std::vector<TensorDesc> descs;
  std::vector<Dims> shapes;
  for (const std::string& name : names) {
    const TensorDesc* desc = hf.find(name);
    if (desc == nullptr) return fail(Code::kInternal, "tensor {}: there is none to map", name);
    descs.push_back(*desc);
    shapes.push_back(desc->shape);
  }
  SW_TRY(check_dtypes(rule, descs));
  const Scope scope{sizes_, instance.bindings};
  std::vector<std::string> targets;
  for (const NameTemplate& name : rule.megatron) targets.push_back(SW_TRY(name.render(scope)));
  const std::string object =
      fmt::format("tensor {} <- {}", fmt::join(targets, ", "), list_of_tensors(descs));
  const std::size_t roles = rule.hf.size();
  for (std::size_t i = roles; i < shapes.size(); ++i) {
    if (shapes[i] == shapes[i % roles]) continue;
    return fail(Code::kShapeMismatch, "tensor {}: found shape {}, expected {} as in {}", names[i],
                to_string(shapes[i]), to_string(shapes[i % roles]), names[i % roles]);
  }
  Result<Lowered> lowered =
      lower_from_hf(arrangement_of(rule), std::span(shapes).first(roles), scope);
  if (!lowered) return std::unexpected(std::move(lowered).error().within(object));
  Status shape = check_shape(rule, stated_shape(*lowered), scope);
  if (!shape) return std::unexpected(std::move(shape).error().within(object));
  std::vector<TensorDesc> megatron;
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Dims& inner = lowered->megatron[i];
    if (!rule.stack.empty() && inner.size() >= kMaxAxes) {
      return fail(Code::kShapeMismatch, "{}: found {} axes, expected fewer than {}", object,
                  inner.size(), kMaxAxes);
    }
    megatron.push_back(TensorDesc{std::move(targets[i]), rule.dtype.value_or(descs[0].dtype),
                                  rule.stack.empty() ? inner : stacked(turns, inner)});
  }
  return add_lowered(instance, *lowered, std::move(descs), std::move(megatron));
}

Status Assembler::add_from_megatron(const Instance& instance, const TensorIndex& canonical) {
  const Rule& rule = *instance.rule;
  const Scope scope{sizes_, instance.bindings};
  std::vector<TensorDesc> megatron;
  std::vector<Dims> shapes;
  for (std::size_t i = 0; i < rule.megatron.size(); ++i) {
    const TensorDesc* desc = SW_TRY(find_megatron(rule, i, scope, canonical));
    if (desc == nullptr) {
      return fail(Code::kInternal, "tensor {}: there is none to map", rule.megatron[i].text());
    }
    megatron.push_back(*desc);
    shapes.push_back(desc->shape);
  }
  SW_TRY(check_dtypes(rule, megatron));
  SW_TRY(check_has_no_codes(rule, megatron));
  const std::string object = translated("tensor {}", list_of_tensors(megatron));
  if (const auto* constant = std::get_if<Constant>(&rule.transform)) {
    Status shape = check_shape(rule, shapes[0], scope);
    if (!shape) return std::unexpected(std::move(shape).error().within(object));
    MappedTensor tensor{megatron[0], rule.dtype.has_value(), false, 0.0, std::nullopt};
    (constant->is_unused ? tensor.rest : tensor.constant) = constant->value;
    SW_TRY(add_tensor(Side::kMegatron, std::move(tensor), rule.path));
    return {};
  }
  const std::int64_t turns = SW_TRY(stack_count(rule));
  if (!rule.stack.empty()) {
    if (shapes[0].empty() || shapes[0][0] != turns) {
      return fail(Code::kShapeMismatch,
                  "{}: found shape {}, expected a first axis of {} ('{}'); check that the "
                  "configuration belongs to these tensors",
                  object, to_string(shapes[0]), turns, rule.stack);
    }
    shapes[0] = without_first(shapes[0]);
  }
  if (rule.vocabulary) {
    const std::int64_t rows = SW_TRY(rows_by_rule(rule, scope));
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      Dims& shape = shapes[i];
      if (shape.empty() || shape[0] < rows) {
        return fail(Code::kShapeMismatch,
                    "{}: found shape {}, expected at least {} rows ('vocab'); check vocab_size",
                    object, to_string(shape), rows);
      }
      SW_TRY(check_padding(megatron[i], shape[0], rows));
      shape[0] = rows;
    }
  }
  if (shapes.size() == 1) {
    Status shape = check_shape(rule, shapes[0], scope);
    if (!shape) return std::unexpected(std::move(shape).error().within(object));
  }
  Result<Lowered> lowered = lower_from_megatron(arrangement_of(rule), shapes, scope);
  if (!lowered) return std::unexpected(std::move(lowered).error().within(object));
  if (shapes.size() > 1) {
    Status shape = check_shape(rule, stated_shape(*lowered), scope);
    if (!shape) return std::unexpected(std::move(shape).error().within(object));
  }
  std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
  std::vector<TensorDesc> hf;
  for (std::size_t i = 0; i < names.size(); ++i) {
    hf.push_back(
        TensorDesc{std::move(names[i]), megatron[0].dtype, lowered->hf[i % lowered->hf.size()]});
  }
  return add_lowered(instance, *lowered, std::move(hf), std::move(megatron));
}

// What is padding in one is so in all.
Status Assembler::check_padding(const TensorDesc& table, std::int64_t height, std::int64_t rows) {
  const auto [first, is_new] = padded_.try_emplace(rows, PaddedTable{table.name, height});
  if (is_new || first->second.height == height) return {};
  return fail(Code::kShapeMismatch,
              "tensor {}: found {} rows, expected {} as in {}: Megatron pads the vocabulary of {} "
              "to one height",
              table.name, height, first->second.height, first->second.name, rows);
}

Status Assembler::add_identity(const TensorDesc& hf, const TensorDesc& megatron) {
  MappedTensor source;
  source.desc = hf;
  MappedTensor target;
  target.desc = megatron;
  Block block;
  block.hf = SW_TRY(add_tensor(Side::kHf, std::move(source), "copies"));
  block.megatron = SW_TRY(add_tensor(Side::kMegatron, std::move(target), "copies"));
  block.hf_origin = Dims::filled(hf.shape.size(), 0);
  block.megatron_origin = block.hf_origin;
  block.shape = hf.shape;
  block.hf_step = Dims::filled(hf.shape.size(), 1);
  for (int axis = 0; axis < hf.shape.size(); ++axis) block.hf_axis.push_back(axis);
  result_.blocks.push_back(block);
  return {};
}

}  // namespace shardwright
