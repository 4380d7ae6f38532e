// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/plain_values.h"

#include "base/fail.h"
#include "codec/torch_tensor.h"

namespace shardwright {

using pickle::Kind;
using pickle::Value;

std::optional<Dims> extents_of(Value value) {
  if (value.is(Kind::kReduce)) {
    if (!value.callable().is_global("torch", "Size")) return std::nullopt;
    value = value.args()[0];
  }
  if (!value.is(Kind::kTuple) && !value.is(Kind::kList)) return std::nullopt;
  if (value.size() > static_cast<std::size_t>(kMaxAxes)) return std::nullopt;
  Dims extents;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::optional<std::int64_t> extent = value[i].as_int();
    if (!extent || *extent < 0) return std::nullopt;
    extents.push_back(*extent);
  }
  return extents;
}

std::vector<std::string> texts_of(Value list) {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (const auto text = list[i].as_string()) texts.emplace_back(*text);
  }
  return texts;
}

Result<LocatedTensor> locate_flat(const TorchFile& torch, Value tensor, const std::string& what) {
  if (!is_tensor(tensor)) {
    return fail(Code::kZeroLayout, "{}: found no tensor, expected a flat buffer", what);
  }
  Result<LocatedTensor> place = torch.locate(tensor);
  if (!place) return std::unexpected(std::move(place).error().within(what));
  const bool is_flat = place->shape.size() == 1 && place->strides.empty();
  if (is_flat) return place;
  return fail(Code::kZeroLayout, "{}: found shape {}, expected one axis without gaps", what,
              to_string(place->shape));
}

}  // namespace shardwright
