// SPDX-License-Identifier: Apache-2.0
#include "format/peft/square_experts.h"

#include "base/fail.h"
#include "base/text.h"

namespace shardwright {

// Gate and up together have more outputs than their inputs are, or the square ones would not be
// square; of down it is the other way round.
ExpertSide side_of_square(const PeftAdapter& adapter, const LoraParameter& parameter) {
  const auto module = [](const std::string& name) { return name.substr(0, name.rfind('.')); };
  for (const LoraParameter& other : adapter.parameters) {
    if (other.name == parameter.name || module(other.name) != module(parameter.name)) continue;
    const std::int64_t in = adapter.catalog.tensors[other.in].desc.shape[2];
    const std::int64_t out = adapter.catalog.tensors[other.out].desc.shape[1];
    if (in != out) return in < out ? ExpertSide::kInputs : ExpertSide::kOutputs;
  }
  return adapter.config.is_before_0_19 ? ExpertSide::kSecondAxis : ExpertSide::kUnknown;
}

bool is_square(const PeftAdapter& adapter, const LoraParameter& parameter) {
  return adapter.catalog.tensors[parameter.in].desc.shape[2] ==
         adapter.catalog.tensors[parameter.out].desc.shape[1];
}

std::unexpected<Error> refuse_square(const PeftAdapter& adapter, const LoraParameter& parameter) {
  return fail(Code::kUnsupportedFormat,
              "{}: parameter {}: nothing tells whether lora_A is over the inputs or the outputs of "
              "its square matrices; let PEFT merge this adapter (merge_and_unload)",
              adapter.path, printable(parameter.name));
}

Status check_one_by_one(const PeftAdapter& adapter, const LoraParameter& parameter) {
  if (!is_square(adapter, parameter)) return {};
  const ExpertSide side = side_of_square(adapter, parameter);
  const bool is_over_inputs = side == ExpertSide::kInputs || side == ExpertSide::kUnknown;
  return is_over_inputs ? Status() : refuse_square(adapter, parameter);
}

}  // namespace shardwright
