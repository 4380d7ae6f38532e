// SPDX-License-Identifier: Apache-2.0
// Mapping files come from users: whatever is in one, parsing and applying it ends, with an error or
// with tensors that fit together.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "expect.h"
#include "model/apply.h"
#include "model/config.h"
#include "model/mapping_file.h"
#include "model/placement_file.h"

namespace shardwright {
namespace {

constexpr std::string_view kConfig = R"({"architectures": ["A"], "model_type": "a",
  "hidden_size": 4, "intermediate_size": 6, "num_attention_heads": 2, "num_key_value_heads": 1,
  "head_dim": 2, "num_hidden_layers": 2, "vocab_size": 8, "num_experts": 2,
  "moe_intermediate_size": 3, "tie_word_embeddings": false})";

void apply(const Mapping& mapping) {
  const Result<HfConfig> config = read_hf_config(kConfig);
  expect(config.has_value(), "the config of this test is one");
  static_cast<void>(args_from_hf_config(mapping, *config));
  const Result<ModelSizes> sizes = sizes_from_hf_config(mapping, *config);
  if (!sizes) return;
  const std::vector<TensorDesc> tensors = {
      {"model.embed_tokens.weight", DType::kBF16, {8, 4}},
      {"model.norm.weight", DType::kBF16, {4}},
      {"a", DType::kBF16, {2, 2}},
  };
  static_cast<void>(map_from_hf(mapping, *sizes, tensors));
  static_cast<void>(map_from_megatron(mapping, *sizes, tensors));
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace shardwright;
  // The bytes are characters of a text that nobody has checked.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto rules = parse_placement_rules(text, "fuzz.json")) {
    for (const char* name : {"layers.0.mlp.experts.fc1.weight0", "head.weight", ""}) {
      expect(rules->placements_of(name).size() == 4, "a placement for each axis of a mesh");
    }
  }
  const std::vector<MappingText> texts = {{"fuzz.json", text}};
  const auto mappings = parse_mappings(texts);
  if (!mappings) return 0;
  for (const Mapping& mapping : *mappings) apply(mapping);
  return 0;
}
