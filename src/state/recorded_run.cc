// SPDX-License-Identifier: Apache-2.0
#include "state/recorded_run.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "layout/legacy_grid.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

constexpr std::array<std::string_view, 4> kEncoderSizes = {"encoder_tensor_model_parallel_size",
                                                           "encoder_tensor_parallel_size",
                                                           "encoder_tp_size", "encoder_tp"};

}  // namespace

std::span<const std::string_view> encoder_size_names() { return kEncoderSizes; }

std::optional<std::int64_t> number_of(const Arguments& arguments,
                                      std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = arguments.find(name);
    if (found == arguments.end()) continue;
    if (const auto* number = std::get_if<std::int64_t>(&found->second)) return *number;
  }
  return std::nullopt;
}

std::set<std::int64_t> noop_layers_of(const Arguments& arguments) {
  std::set<std::int64_t> layers;
  const ArgValue* const said = find_set(arguments, kNoopLayers);
  if (said == nullptr) return layers;
  if (const auto* numbers = std::get_if<std::vector<std::int64_t>>(said)) {
    layers.insert(numbers->begin(), numbers->end());
  } else if (const auto* text = std::get_if<std::string>(said)) {
    for (std::string_view number : split_at(*text, ',')) {
      number.remove_prefix(std::min(number.find_first_not_of(' '), number.size()));
      if (const auto layer = take_number(number)) layers.insert(*layer);
    }
  } else if (const auto* one = std::get_if<std::int64_t>(said)) {
    layers.insert(*one);
  }
  return layers;
}

namespace {

// The versions that count the end of a document among the words let it be named.
NullTokenizer null_tokenizer(const Arguments& arguments) {
  const auto type = arguments.find("tokenizer_type");
  if (type == arguments.end() || type->second != ArgValue{std::string("NullTokenizer")}) {
    return NullTokenizer::kNone;
  }
  const bool is_later = arguments.contains("null_tokenizer_pad_id");
  return is_later ? NullTokenizer::kCountsWhatItIsTold : NullTokenizer::kCountsOneMore;
}

// `schedules_method` is MindSpeed's, the flags are FlagScale's.
ChunkOrder recorded_order(const Arguments& arguments) {
  const auto method = arguments.find(kScheduleMethod);
  const bool is_named =
      method != arguments.end() && method->second == ArgValue{std::string(kDualPipeV)};
  if (is_named || is_true(arguments, kUsesDualPipeV)) return ChunkOrder::kFolded;
  return is_true(arguments, "use_dualpipe") ? ChunkOrder::kTwoCopies : ChunkOrder::kInterleaved;
}

}  // namespace

RecordedRun recorded_run(const Arguments& arguments) {
  RecordedRun run;
  run.is_present = !arguments.empty();
  AxisSizes& sizes = run.sizes;
  sizes.tensor = number_of(arguments, {"tensor_model_parallel_size", "model_parallel_size"});
  sizes.pipeline = number_of(arguments, {"pipeline_model_parallel_size"});
  sizes.virtual_pipeline = number_of(
      arguments, {"virtual_pipeline_model_parallel_size", "num_virtual_stages_per_pipeline_rank"});
  sizes.expert = number_of(arguments, {"expert_model_parallel_size", "expert_parallel_size"});
  sizes.expert_tensor =
      number_of(arguments, {"expert_tensor_parallel_size", "expert_tensor_model_parallel_size"});
  sizes.data = number_of(arguments, {"data_parallel_size"});
  run.experts = number_of(arguments, {"num_experts", "num_moe_experts"});
  run.vocabulary = number_of(arguments, {"vocab_size"});
  run.null_tokenizer = null_tokenizer(arguments);
  run.vocabulary_divisor = number_of(arguments, {"make_vocab_size_divisible_by"});
  run.rank = number_of(arguments, {"rank"});
  run.world = number_of(arguments, {"world_size"});
  run.context = number_of(arguments, {"context_parallel_size"});
  run.pipeline_before_data = find_flag(arguments, "use_tp_pp_dp_mapping");
  const std::int64_t stages = number_of(arguments, {kEncoderStages}).value_or(0);
  if (stages > 0 && stages <= kMostRanksOfAnAxis) run.encoder_stages = stages;
  run.chunk_order = recorded_order(arguments);
  run.has_own_expert_order = is_true(arguments, kExtendsExperts);
  for (const std::string_view name : kEncoderSizes) {
    if (!run.encoder_tensor) run.encoder_tensor = number_of(arguments, {name});
  }
  return run;
}

std::optional<std::int64_t> recorded_bucket_size(const Arguments& arguments,
                                                 std::int64_t pipeline_rank,
                                                 std::int64_t elements) {
  if (!is_true(arguments, "overlap_grad_reduce")) return std::nullopt;
  if (pipeline_rank > 0) return std::nullopt;
  const auto count = number_of(arguments, {"ddp_num_buckets"});
  if (count && *count > 0) return elements / *count;
  if (const auto size = number_of(arguments, {"ddp_bucket_size"})) return size;
  constexpr std::int64_t kLeast = 40'000'000;
  constexpr std::int64_t kPerRank = 1'000'000;
  constexpr std::int64_t kMostRanks = 1'000'000;
  const std::int64_t data = number_of(arguments, {"data_parallel_size"}).value_or(1);
  const std::int64_t context = number_of(arguments, {"context_parallel_size"}).value_or(1);
  return std::max(kLeast, kPerRank * std::min(data, kMostRanks) * std::min(context, kMostRanks));
}

NamedOptimizer named_optimizer(const Arguments& arguments) {
  const auto told = arguments.find("optimizer");
  const auto* name = told == arguments.end() ? nullptr : std::get_if<std::string>(&told->second);
  if (name == nullptr || name->empty() || *name == "sgd") return NamedOptimizer::kUntold;
  return *name == "adam" ? NamedOptimizer::kAdam : NamedOptimizer::kOfLinears;
}

std::string_view writer_of(const Arguments& arguments) {
  if (arguments.contains("load_platform") || arguments.contains("common_config_path")) {
    return "AIAK (LoongForge, LLaVA-OneVision-2)";
  }
  if (arguments.contains(kExtendsExperts)) return "MindSpeed";
  return {};
}

}  // namespace shardwright
