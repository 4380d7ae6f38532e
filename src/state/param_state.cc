// SPDX-License-Identifier: Apache-2.0
#include "state/param_state.h"

#include "base/fail.h"

namespace shardwright {
namespace {

using pickle::Kind;
using pickle::Value;

// `(torch.bfloat16, torch.float32)`: of the parameters and of their gradients.
std::optional<DType> parameter_dtype(Value key) {
  const Value dtype = key.is(Kind::kTuple) ? key[0] : Value();
  if (!dtype.is(Kind::kGlobal) || dtype.module() != "torch") return std::nullopt;
  return dtype_from_torch(dtype.name());
}

Result<ParamStateBuffer> read_buffer(std::size_t number, Value by_dtype,
                                     const LocateTensor& locate) {
  const auto refuse = [&](std::string_view found, std::string_view expected) {
    return fail(Code::kOptimizerUnsupported,
                "optimizer: buffer {}: found {}, expected {}; convert without it (--optimizer "
                "drop)",
                number, found, expected);
  };
  if (!by_dtype.is(Kind::kDict) || by_dtype.size() != 1) return refuse("no dict", "one dtype's");
  const auto dtype = parameter_dtype(by_dtype.key(0));
  const Value states = by_dtype.value(0);
  if (!dtype || !states.is(Kind::kDict)) {
    return refuse("states in a form of before 2024", "those of a pair of dtypes");
  }
  ParamStateBuffer buffer{*dtype, 0, {}};
  for (std::size_t kind = 0; kind < kStateKinds.size(); ++kind) {
    const Value tensor = states.find(kStateKinds[kind]);
    if (!tensor && kind + 1 == kStateKinds.size()) break;  // Lion's
    if (!is_tensor(tensor)) {
      return refuse(fmt::format("no {}", kStateKinds[kind]),
                    "the states of Adam or Lion, coalesced");
    }
    const LocatedTensor place = SW_TRY(locate(tensor));
    if (place.dtype != DType::kF32 || place.shape.size() != 1 || !place.strides.empty()) {
      return refuse(fmt::format("{} {} {}", kStateKinds[kind], torch_name(place.dtype),
                                to_string(place.shape)),
                    "a row of float32");
    }
    if (kind == 0) buffer.elements = place.shape[0];
    if (place.shape[0] != buffer.elements) {
      return refuse(translated("{} of {} elements", kStateKinds[kind], place.shape[0]),
                    translated("{} as of its param", buffer.elements));
    }
    buffer.places.push_back({std::string(kStateKinds[kind]), place});
  }
  return buffer;
}

}  // namespace

Result<std::vector<ParamStateBuffer>> read_param_state(Value state, const LocateTensor& locate) {
  std::vector<ParamStateBuffer> buffers;
  while (const Value by_dtype = state.find(static_cast<std::int64_t>(buffers.size()))) {
    buffers.push_back(SW_TRY(read_buffer(buffers.size(), by_dtype, locate)));
  }
  std::size_t numbered = 0;
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (state.key(i).as_int()) ++numbered;
  }
  if (!state.is(Kind::kDict) || numbered != buffers.size()) {
    return fail(Code::kOptimizerUnsupported,
                "optimizer: found {} numbered buffers, expected a distributed optimizer's from 0 "
                "on; convert without it (--optimizer drop)",
                numbered);
  }
  return buffers;
}

}  // namespace shardwright
