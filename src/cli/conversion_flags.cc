// SPDX-License-Identifier: Apache-2.0
#include "cli/conversion_flags.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "layout/component_spec.h"

namespace shardwright::cli {
namespace {

using Text = ConversionFlags::Text;

template <class T>
struct Choice {
  std::string_view name;
  T value;
};

constexpr std::array kTargets = {
    Choice<TargetFormat>{"hf", TargetFormat::kHf},
    Choice<TargetFormat>{"torch_dist", TargetFormat::kTorchDist},
    Choice<TargetFormat>{"legacy", TargetFormat::kLegacy},
    Choice<TargetFormat>{"mimo", TargetFormat::kMimo},
    Choice<TargetFormat>{"safetensors", TargetFormat::kSafetensors},
    Choice<TargetFormat>{"fsdp_dtensor", TargetFormat::kFsdpDtensor},
    Choice<TargetFormat>{"dcp", TargetFormat::kDcp},
};
constexpr std::array kDtypes = {
    Choice<std::optional<DType>>{"keep", std::nullopt},
    Choice<std::optional<DType>>{"bfloat16", DType::kBF16},
    Choice<std::optional<DType>>{"float16", DType::kF16},
    Choice<std::optional<DType>>{"float32", DType::kF32},
};
constexpr std::array kSpecs = {
    Choice<ModuleSpec>{"te", ModuleSpec::kTransformerEngine},
    Choice<ModuleSpec>{"local", ModuleSpec::kLocal},
};
constexpr std::array kOptimizers = {
    Choice<OptimizerPolicy>{"keep", OptimizerPolicy::kKeep},
    Choice<OptimizerPolicy>{"drop", OptimizerPolicy::kDrop},
};

constexpr std::array kMtps = {
    Choice<MtpPolicy>{"keep", MtpPolicy::kKeep},
    Choice<MtpPolicy>{"drop", MtpPolicy::kDrop},
};
constexpr std::array kNamings = {
    Choice<bool>{"megatron", false},
    Choice<bool>{"tp_pp_ep", true},
};
constexpr std::array kReplicaChecks = {
    Choice<ReplicaCheck>{"all", ReplicaCheck::kAll},
    Choice<ReplicaCheck>{"sample", ReplicaCheck::kSample},
    Choice<ReplicaCheck>{"none", ReplicaCheck::kNone},
};

template <class T, std::size_t N>
Result<T> choose(std::string_view flag, std::string_view text,
                 const std::array<Choice<T>, N>& choices, std::string_view more = "") {
  std::array<std::string_view, N> names;
  std::string listed;
  for (std::size_t i = 0; i < N; ++i) {
    if (choices[i].name == text) return choices[i].value;
    names[i] = choices[i].name;
    if (i > 0) listed += i + 1 == N ? " or " : ", ";
    listed += names[i];
  }
  const std::string_view meant = nearest_of(text, names);
  return fail(Code::kUsage, "{}: found '{}', expected {}{}{}", flag, printable(text), listed, more,
              meant.empty() ? "" : fmt::format("; did you mean {}?", meant));
}

Status read_size(std::string_view flag, const Text& text, std::int64_t& size) {
  if (text) size = SW_TRY(parse_count(flag, *text));
  return {};
}

Result<ParallelConfig> read_parallel(const ConversionFlags& flags) {
  ParallelConfig parallel;
  SW_TRY(read_size("--tp", flags.tp, parallel.tensor));
  SW_TRY(read_size("--pp", flags.pp, parallel.pipeline));
  SW_TRY(read_size("--vpp", flags.vpp, parallel.virtual_pipeline));
  SW_TRY(read_size("--ep", flags.ep, parallel.expert));
  // Megatron-Core's own default for the experts' tensor parallelism.
  parallel.expert_tensor = parallel.tensor;
  SW_TRY(read_size("--etp", flags.etp, parallel.expert_tensor));
  SW_TRY(read_size("--encoder-tp", flags.encoder_tp, parallel.encoder_tensor));
  if (parallel.virtual_pipeline > 1 && parallel.pipeline == 1) {
    return fail(Code::kUsage,
                "--vpp: found {} with 1 pipeline stage, expected several; give --pp too",
                parallel.virtual_pipeline);
  }
  return parallel;
}

Status read_sharding(const ConversionFlags& flags, ConvertRequest& request) {
  constexpr std::int64_t kMostRanks = std::int64_t{1} << 20;
  const auto read = [&](std::string_view flag, const Text& text,
                        std::optional<std::int64_t>& size) -> Status {
    if (text) size = SW_TRY(parse_count(flag, *text, kMostRanks));
    return {};
  };
  std::optional<std::int64_t> shards;
  SW_TRY(read("--shards", flags.shards, shards));
  request.shards = shards.value_or(1);
  SW_TRY(read("--source-ep", flags.source_ep, request.source_expert));
  SW_TRY(read("--source-etp", flags.source_etp, request.source_expert_tensor));
  return read("--source-tp", flags.source_tp, request.source_tensor);
}

// `keep`, `drop`, or the folder to take the layers from.
Status read_mtp(const ConversionFlags& flags, ConvertRequest& request) {
  constexpr std::string_view kFrom = "from=";
  if (!flags.mtp) return {};
  if (!flags.mtp->starts_with(kFrom)) {
    request.mtp = SW_TRY(choose("--mtp", *flags.mtp, kMtps, " or from=DIR"));
    return {};
  }
  request.mtp = MtpPolicy::kKeep;
  request.mtp_from = flags.mtp->substr(kFrom.size());
  if (!request.mtp_from.empty()) return {};
  return fail(Code::kUsage,
              "--mtp: found 'from=', expected from=DIR, the folder of a Hugging Face "
              "checkpoint that has the layers");
}

Status read_components(const ConversionFlags& flags, ConvertRequest& request) {
  if (request.format != TargetFormat::kMimo) return {};
  if (flags.components.empty()) {
    return fail(Code::kUsage,
                "--component: found none with --to mimo, expected one for each part of the model; "
                "for example --component language=tp=4 --component images=tp=1");
  }
  request.components = SW_TRY(parse_components(flags.components));
  if (flags.world_size) {
    request.world_size = SW_TRY(parse_count("--world-size", *flags.world_size));
  }
  return {};
}

struct TargetFlag {
  std::string_view name;
  const Text* value;
};

// A flag that would be ignored is a misunderstanding that should not wait until the end.
Status refuse_given(std::span<const TargetFlag> flags, std::string_view target) {
  for (const TargetFlag& flag : flags) {
    if (flag.value->has_value()) {
      return fail(Code::kUsage, "{}: found it with --to {}, where it has no meaning; leave it out",
                  flag.name, target);
    }
  }
  return {};
}

Status check_target_flags(const ConversionFlags& flags, TargetFormat format) {
  const std::array sizes = {
      TargetFlag{"--tp", &flags.tp},   TargetFlag{"--pp", &flags.pp},
      TargetFlag{"--vpp", &flags.vpp}, TargetFlag{"--ep", &flags.ep},
      TargetFlag{"--etp", &flags.etp},
  };
  const std::array megatron_only = {
      TargetFlag{"--spec", &flags.spec},
      TargetFlag{"--make-vocab-size-divisible-by", &flags.make_vocab_size_divisible_by},
  };
  const std::array files_only = {TargetFlag{"--max-shard-size", &flags.max_shard_size}};
  const std::array legacy_only = {TargetFlag{"--naming", &flags.naming},
                                  TargetFlag{"--encoder-tp", &flags.encoder_tp}};
  const std::array sharded_only = {TargetFlag{"--shards", &flags.shards}};
  const std::array mlite_only = {
      TargetFlag{"--source-ep", &flags.source_ep},
      TargetFlag{"--source-etp", &flags.source_etp},
      TargetFlag{"--source-tp", &flags.source_tp},
  };
  if (format != TargetFormat::kLegacy) SW_TRY(refuse_given(legacy_only, *flags.to));
  if (format != TargetFormat::kDcp) SW_TRY(refuse_given(mlite_only, *flags.to));
  if (format != TargetFormat::kDcp && format != TargetFormat::kFsdpDtensor) {
    SW_TRY(refuse_given(sharded_only, *flags.to));
  }
  if (format != TargetFormat::kMimo) {
    SW_TRY(refuse_given(std::array{TargetFlag{"--world-size", &flags.world_size}}, *flags.to));
    if (!flags.components.empty()) {
      return fail(Code::kUsage,
                  "--component: found it with --to {}, where it has no meaning; leave it out",
                  *flags.to);
    }
  }
  if (!has_layout(format)) SW_TRY(refuse_given(sizes, *flags.to));
  const bool is_megatron = has_layout(format) || format == TargetFormat::kMimo;
  if (!is_megatron) SW_TRY(refuse_given(megatron_only, *flags.to));
  const bool has_files = format == TargetFormat::kHf || format == TargetFormat::kSafetensors;
  return has_files ? Status() : refuse_given(files_only, *flags.to);
}

Result<std::string> required(std::string_view name, const Text& text, std::string_view expected) {
  if (!text || text->empty()) {
    return fail(Code::kUsage, "{}: found nothing, expected {}", name, expected);
  }
  return *text;
}

}  // namespace

Result<ConvertRequest> to_request(const ConversionFlags& flags) {
  ConvertRequest request;
  request.input = SW_TRY(required("IN", flags.input, "the path of a checkpoint"));
  request.output = SW_TRY(required("OUT", flags.output, "the path of the new checkpoint"));
  const std::string to = SW_TRY(
      required("--to", flags.to, "hf, torch_dist, legacy, mimo, fsdp_dtensor, dcp or safetensors"));
  request.format = SW_TRY(choose("--to", to, kTargets));
  SW_TRY(check_target_flags(flags, request.format));
  request.parallel = SW_TRY(read_parallel(flags));
  SW_TRY(read_components(flags, request));
  SW_TRY(read_mtp(flags, request));
  if (flags.dtype) request.dtype = SW_TRY(choose("--dtype", *flags.dtype, kDtypes));
  if (flags.spec) request.spec = SW_TRY(choose("--spec", *flags.spec, kSpecs));
  if (flags.naming) {
    request.names_all_coordinates = SW_TRY(choose("--naming", *flags.naming, kNamings));
  }
  if (flags.check_replicas) {
    request.check_replicas =
        SW_TRY(choose("--check-replicas", *flags.check_replicas, kReplicaChecks));
  }
  if (flags.optimizer) {
    request.optimizer = SW_TRY(choose("--optimizer", *flags.optimizer, kOptimizers));
  }
  if (flags.max_shard_size) {
    request.max_shard_bytes = SW_TRY(parse_bytes("--max-shard-size", *flags.max_shard_size));
  }
  if (flags.make_vocab_size_divisible_by) {
    request.make_vocab_size_divisible_by =
        SW_TRY(parse_count("--make-vocab-size-divisible-by", *flags.make_vocab_size_divisible_by));
  }
  SW_TRY(read_sharding(flags, request));
  if (flags.threads) request.threads = SW_TRY(parse_threads(*flags.threads));
  if (flags.max_memory) {
    request.max_memory_bytes = SW_TRY(parse_bytes("--max-memory", *flags.max_memory));
  }
  request.include = flags.include;
  request.exclude = flags.exclude;
  request.map_files = flags.map_files;
  request.hf_config_dir = flags.hf_config;
  request.family = flags.family;
  request.models_dir = flags.models;
  request.overwrite = flags.overwrite;
  return request;
}

}  // namespace shardwright::cli
