// SPDX-License-Identifier: Apache-2.0
#include "canonical/attention_heads.h"

#include "base/fail.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr std::string_view kQueries = ".self_attention.linear_qkv.weight";
constexpr std::string_view kTower = "vision_model.";

std::optional<std::int64_t> heads_of(std::string_view name, const Arguments& arguments) {
  if (!name.starts_with(kTower)) return number_of(arguments, {"num_attention_heads"});
  return number_of(arguments, {"vision_num_attention_heads", "vision_config.num_attention_heads",
                               "vision_config.num_heads"});
}

}  // namespace

Status check_attention_heads(std::span<const DraftTensor> tensors, const Arguments& arguments,
                             const TensorRanksOf& ranks) {
  for (const DraftTensor& tensor : tensors) {
    const std::string& name = tensor.desc.name;
    if (!name.ends_with(kQueries)) continue;
    const std::optional<std::int64_t> heads = heads_of(name, arguments);
    const std::int64_t parts = ranks(name);
    if (!heads || *heads % parts == 0) continue;
    // Only an encoder can have a size of its own.
    const std::string_view way_out =
        !name.starts_with(kTower)
            ? ""
            : ", or give this part of the model a size of its own (--to legacy "
              "--encoder-tp, --to mimo --component)";
    return fail(Code::kNotDivisible,
                "tensor {}: {} tensor parallel ranks cannot share its {} attention heads, because "
                "each of Megatron's has whole heads; choose a --tp that divides them{}",
                name, parts, *heads, way_out);
  }
  return {};
}

}  // namespace shardwright
