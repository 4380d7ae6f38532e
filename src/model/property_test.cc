// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include <set>

#include "model/apply.h"
#include "model/golden_family.h"
#include "model/sample_model.h"

namespace shardwright {
namespace {

SampleModel any_model() {
  SampleModel model;
  model.layers = *rc::gen::inRange(1, 3);
  model.hidden = *rc::gen::inRange(1, 5);
  model.ffn = *rc::gen::inRange(1, 4);
  model.groups = *rc::gen::inRange(1, 4);
  model.heads = model.groups * *rc::gen::inRange(1, 4);
  model.head_dim = *rc::gen::inRange(1, 4);
  model.vocab = *rc::gen::inRange(1, 6);
  model.experts = *rc::gen::inRange(1, 4);
  model.moe_ffn = *rc::gen::inRange(1, 4);
  model.tied = *rc::gen::arbitrary<bool>();
  return model;
}

std::int64_t elements_of(const std::vector<MappedTensor>& tensors) {
  std::int64_t count = 0;
  for (const MappedTensor& tensor : tensors) count += *element_count(tensor.desc.shape);
  return count;
}

/// Every element of both sides in exactly one pair, and the same pairs the other way.
void check_bijection(const Mapping& mapping, const ModelSizes& sizes,
                     const std::vector<TensorDesc>& hf) {
  const auto forth = map_from_hf(mapping, sizes, hf);
  if (!forth) RC_FAIL(forth.error().message);
  RC_ASSERT(forth->hf.size() == hf.size());
  const auto origins = element_origins(*forth);  // fails when a Megatron element has two
  RC_ASSERT(std::ssize(origins) == elements_of(forth->megatron));
  std::set<std::string> sources;
  for (const auto& [target, source] : origins) sources.insert(source);
  RC_ASSERT(std::ssize(sources) == elements_of(forth->hf));
  RC_ASSERT(sources.size() == origins.size());

  std::vector<TensorDesc> megatron;
  for (const MappedTensor& tensor : forth->megatron) megatron.push_back(tensor.desc);
  const HfWanted wanted{hf};
  const auto back = map_from_megatron(mapping, sizes, megatron, &wanted);
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(tensor_lines(back->hf) == tensor_lines(forth->hf));
  RC_ASSERT(block_lines(*back) == block_lines(*forth));
}

RC_GTEST_PROP(LlamaProperty, EveryElementCorrespondsToOne, ()) {
  const SampleModel model = any_model();
  const bool attention_bias = *rc::gen::arbitrary<bool>();
  const bool mlp_bias = *rc::gen::arbitrary<bool>();
  check_bijection(shipped("llama"), model.sizes(), model.llama(attention_bias, mlp_bias));
}

RC_GTEST_PROP(QwenMoeProperty, EveryElementCorrespondsToOne, ()) {
  const SampleModel model = any_model();
  const std::int64_t dense = *rc::gen::inRange<std::int64_t>(0, model.layers + 1);
  const bool is_packed = *rc::gen::arbitrary<bool>();
  check_bijection(shipped("qwen3_moe"), model.sizes(), model.qwen3_moe(is_packed, dense));
}

RC_GTEST_PROP(DeepseekProperty, EveryElementCorrespondsToOne, ()) {
  const SampleModel model = any_model();
  const std::int64_t q_rank = *rc::gen::inRange<std::int64_t>(0, 4);
  check_bijection(shipped("deepseek_v2"), model.deepseek_sizes(q_rank), model.deepseek_v2(q_rank));
}

RC_GTEST_PROP(QkvProperty, RowsFollowTheGroupFormula, ()) {
  const SampleModel model = any_model();
  const auto mapped = map_from_hf(shipped("llama"), model.sizes(), model.llama(true, false));
  if (!mapped) RC_FAIL(mapped.error().message);
  const auto origins = element_origins(*mapped);
  const std::int64_t per_group = model.heads / model.groups;
  for (std::int64_t group = 0; group < model.groups; ++group) {
    for (std::int64_t slot = 0; slot < per_group + 2; ++slot) {
      for (std::int64_t t = 0; t < model.head_dim; ++t) {
        const std::int64_t row = (group * (per_group + 2) + slot) * model.head_dim + t;
        const bool is_query = slot < per_group;
        const char* role = is_query ? "q" : slot == per_group ? "k" : "v";
        const std::int64_t head = is_query ? group * per_group + slot : group;
        RC_ASSERT(
            origins.at(fmt::format("decoder.layers.0.self_attention.linear_qkv.bias({},)", row)) ==
            fmt::format("model.layers.0.self_attn.{}_proj.bias({},)", role,
                        head * model.head_dim + t));
      }
    }
  }
}

RC_GTEST_PROP(VocabularyProperty, PaddingNeverReachesHf, ()) {
  const SampleModel model = any_model();
  const auto forth = map_from_hf(shipped("llama"), model.sizes(), model.llama(false, false));
  if (!forth) RC_FAIL(forth.error().message);
  const std::int64_t padding = *rc::gen::inRange(0, 9);
  std::vector<TensorDesc> megatron;
  for (const MappedTensor& tensor : forth->megatron) {
    megatron.push_back(tensor.desc);
    if (tensor.vocabulary) megatron.back().shape[0] += padding;
  }
  const auto back = map_from_megatron(shipped("llama"), model.sizes(), megatron);
  if (!back) RC_FAIL(back.error().message);
  RC_ASSERT(block_lines(*back) == block_lines(*forth));
  RC_ASSERT(tensor_lines(back->hf) == tensor_lines(forth->hf));
}

}  // namespace
}  // namespace shardwright
