// SPDX-License-Identifier: Apache-2.0
#include "cli/conversion_flags.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <iterator>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "cli/options.h"
#include "convert/upcycle_spec.h"
#include "format/targets.h"
#include "layout/component_spec.h"

namespace shardwright::cli {
namespace {

CLI::Option* add_target(CLI::App& app, std::string& format, std::string_view otherwise) {
  const std::string megatron =
      translated("torch_dist (what Megatron-Core saves today) or legacy (mp_rank folders)");
  const Vocabulary others = {
      .words = {},
      .aliases = {{"huggingface", "hf"},
                  {"hugging_face", "hf"},
                  {"transformers", "hf"},
                  {"torchdist", "torch_dist"},
                  {"dist_ckpt", "torch_dist"},
                  {"megatron_legacy", "legacy"},
                  {"fsdp", "fsdp_dtensor"},
                  {"megatron_fsdp", "fsdp_dtensor"},
                  {"safetensor", "safetensors"}},
      .doubts = {{"megatron", megatron},
                 {"mcore", megatron},
                 {"megatron_core", megatron},
                 {"torch", translated("torch_dist (what Megatron-Core saves today), legacy (its "
                                      "--ckpt-format torch) or dcp")},
                 {"pytorch", translated("hf, whose weights are in safetensors files, or dcp")}}};
  std::vector<Choice<std::string>> choices;
  std::vector<std::string_view> names;
  std::vector<std::string_view> stored;
  for (const Target* target : all_targets()) {
    const TargetTraits& traits = target->traits();
    choices.push_back({traits.name, std::string(traits.name)});
    names.push_back(traits.name);
    if (traits.names == TargetNames::kStored) stored.push_back(traits.name);
  }
  const std::string text = fmt::format("{} ({} for the source's own names{})", word_list(names),
                                       word_list(stored), otherwise);
  return add_choice(app, "--to", format, choices, text, others, "FORMAT");
}

void add_sizes(CLI::App& app, ConvertRequest& request) {
  ParallelConfig& parallel = request.parallel;
  add_number(app, kTp, parallel.tensor, "tensor parallel size (default 1)");
  add_number(app, kPp, parallel.pipeline, "pipeline parallel size (default 1)");
  add_number(app, kVpp, parallel.virtual_pipeline, "virtual stages per pipeline rank (default 1)");
  add_number(app, kEp, parallel.expert, "expert parallel size (default 1)");
  add_number(app, kEtp, parallel.expert_tensor,
             "tensor parallel size of experts (default: as --tp)");
  add_number(app, kEncoderTp, parallel.encoder_tensor,
             "of legacy: tensor parallel size of encoders (default: as --tp)");
  add_read_list(app, "--component", request.components, parse_components, "SPEC",
                "of mimo: name=tp=N[,pp=,dp=,cp=,ep=,etp=,rank_offset=]; repeatable");
  add_number(app, "--world-size", request.world_size, "of mimo: ranks of the whole run");
  add_number(app, "--shards", request.shards,
             "ranks that share out a DCP or fsdp_dtensor target (default 1)", kMostRanks);
}

constexpr std::string_view kFrom = "from=";

// `keep`, `drop`, or the folder to take the layers from.
void add_mtp(CLI::App& app, ConvertRequest& request) {
  const auto check = [](std::string& text) -> std::string {
    if (!text.starts_with(kFrom)) {
      return choose_word(text, {.words = {"keep", "drop"}, .more = translated(" or from=DIR")});
    }
    if (text.size() > kFrom.size()) return {};
    return translated(
        "found 'from=', expected from=DIR, the folder of a Hugging Face checkpoint that has the "
        "layers");
  };
  const auto take = [&request](const std::string& text) {
    request.mtp = text == "drop" ? MtpPolicy::kDrop : MtpPolicy::kKeep;
    if (text.starts_with(kFrom)) request.mtp_from = text.substr(kFrom.size());
  };
  add_checked(app, "--mtp", "keep|drop|from=DIR",
              "layers for multi-token prediction (default: keep, drop for mimo); from= takes those "
              "of another Hugging Face checkpoint of the model",
              check, take);
}

void add_weight_form(CLI::App& app, ConvertRequest& request) {
  add_choice<WeightForm>(
      app, "--quantise", request.quantise,
      {{"fp8-block", WeightForm::kFp8Block},
       {"fp8-block-ue8m0", WeightForm::kFp8BlockUe8m0},
       {"mxfp4", WeightForm::kMxfp4}},
      "of hf: store the linears of layers as values and scales, as DeepSeek-V3, DeepSeek-V3.1 or "
      "GPT-OSS were released",
      {.words = {},
       .aliases = {{"fp8", "fp8-block"},
                   {"fp8_block", "fp8-block"},
                   {"ue8m0", "fp8-block-ue8m0"},
                   {"fp8_block_ue8m0", "fp8-block-ue8m0"},
                   {"fp4", "mxfp4"}}});
}

void add_upcycling(CLI::App& app, ConvertRequest& request) {
  const auto check = [](std::string& text) -> std::string {
    const Result<Upcycling> read = parse_upcycling(text);
    return read ? std::string() : read.error().message;
  };
  add_checked(app, "--upcycle", "SPEC",
              "make a dense model one of experts, as Megatron-Core does: "
              "experts=N[,granularity=,topk=,pre_softmax=true,seed=]",
              check, [&request](const std::string& text) {
                request.upcycle = parse_upcycling(text).value();
              });
}

void add_adapter_names(CLI::App& app, ConvertRequest& request) {
  add_choice<AdapterNames>(
      app, "--adapter-names", request.adapter_names,
      {{"bridge", AdapterNames::kBridge}, {"ms-swift", AdapterNames::kSwift}},
      "of an adapter in PEFT's files, to torch_dist: for which trainer (default: bridge, which is "
      "Megatron-Bridge)",
      {.words = {},
       .aliases = {
           {"ms_swift", "ms-swift"}, {"swift", "ms-swift"}, {"megatron_bridge", "bridge"}}});
}

void add_policies(CLI::App& app, ConvertRequest& request) {
  const Vocabulary dtypes = {.words = {},
                             .aliases = {{"bf16", "bfloat16"},
                                         {"fp16", "float16"},
                                         {"f16", "float16"},
                                         {"half", "float16"},
                                         {"fp32", "float32"},
                                         {"f32", "float32"},
                                         {"float", "float32"},
                                         {"single", "float32"}}};
  add_choice<std::optional<DType>>(app, "--dtype", request.dtype,
                                   {{"keep", std::nullopt},
                                    {"bfloat16", DType::kBF16},
                                    {"float16", DType::kF16},
                                    {"float32", DType::kF32}},
                                   "of floating point tensors (default: keep)", dtypes);
  add_choice<ModuleSpec>(app, "--spec", request.spec,
                         {{"te", ModuleSpec::kTransformerEngine}, {"local", ModuleSpec::kLocal}},
                         "modules to name entries for (default: the source's; te from hf)");
  add_choice<OptimizerPolicy>(app, "--optimizer", request.optimizer,
                              {{"keep", OptimizerPolicy::kKeep}, {"drop", OptimizerPolicy::kDrop}},
                              "optimizer state (default: keep for Megatron targets and dcp)");
  add_choice<ReplicaCheck>(app, "--check-replicas", request.check_replicas,
                           {{"all", ReplicaCheck::kAll},
                            {"sample", ReplicaCheck::kSample},
                            {"none", ReplicaCheck::kNone}},
                           "compare what several ranks hold alike (default: all)");
  add_choice<TpReplicas>(
      app, "--tp-replicas", request.tp_replicas,
      {{"collapse", TpReplicas::kCollapse}, {"expand", TpReplicas::kExpand}},
      "of torch_dist: what all tensor ranks hold alike once (default: collapse), "
      "or once for each as NAME.__tp_replica_RANK");
  add_number(
      app, "--dp", request.data_ranks,
      "of torch_dist: data-parallel ranks (times context-parallel ones) of the job that will "
      "load it; each file holds what its rank reads",
      kMostRanks);
  add_checked(
      app, "--for", "stock|replicas",
      "with --dp: which names that job looks for, Megatron-Core's or those of copies "
      "(default: as --tp-replicas)",
      [](std::string& word) { return choose_word(word, {.words = {"stock", "replicas"}}); },
      [](const std::string&) {});  // finish_job() reads it beside --tp-replicas
  add_choice<bool>(app, "--naming", request.names_all_coordinates,
                   {{"megatron", false}, {"tp_pp_ep", true}},
                   "of legacy folders: as Megatron does, or three numbers wherever EP > 1");
}

// Flags that mean something for some targets only. One that would be ignored is a misunderstanding
// that should not wait until the end.
struct TargetFlag {
  const char* name;
  bool (*applies)(const TargetTraits& target);
};

constexpr auto kHasGrid = [](const TargetTraits& target) { return target.has_grid; };
constexpr auto kHasComponents = [](const TargetTraits& target) { return target.has_components; };
constexpr auto kHasStateDicts = [](const TargetTraits& target) { return target.holds_state_dicts; };
constexpr auto kIsForAJob = [](const TargetTraits& target) { return target.is_for_a_job; };
constexpr auto kHasShards = [](const TargetTraits& target) { return target.has_shards; };
constexpr auto kHasShardFiles = [](const TargetTraits& target) { return target.has_shard_files; };
constexpr auto kIsMegatron = [](const TargetTraits& target) {
  return target.names == TargetNames::kMegatron;
};
constexpr auto kNamesModels = [](const TargetTraits& target) {
  return target.names != TargetNames::kStored;
};
constexpr auto kIsHf = [](const TargetTraits& target) { return target.names == TargetNames::kHf; };

constexpr std::array kTargetFlags = {
    TargetFlag{"--tp", kHasGrid},
    TargetFlag{"--pp", kHasGrid},
    TargetFlag{"--vpp", kHasGrid},
    TargetFlag{"--ep", kHasGrid},
    TargetFlag{"--etp", kHasGrid},
    TargetFlag{"--component", kHasComponents},
    TargetFlag{"--world-size", kHasComponents},
    TargetFlag{"--encoder-tp", kHasStateDicts},
    TargetFlag{"--naming", kHasStateDicts},
    TargetFlag{"--shards", kHasShards},
    TargetFlag{"--max-shard-size", kHasShardFiles},
    TargetFlag{"--tp-replicas", kIsForAJob},
    TargetFlag{"--dp", kIsForAJob},
    TargetFlag{"--for", kIsForAJob},
    TargetFlag{"--extend-vocab", kNamesModels},
    TargetFlag{"--quantise", kIsHf},
    TargetFlag{"--upcycle", kIsMegatron},
    TargetFlag{"--adapter-names", kIsMegatron},
    TargetFlag{"--spec", kIsMegatron},
    TargetFlag{"--make-vocab-size-divisible-by", kIsMegatron},
};

// Which job is to load the files, and which names it looks for.
Status finish_job(const CLI::App& app, ConvertRequest& request) {
  if (!is_given(app, "--for")) return {};
  const std::string reader = given_word(app, "--for");
  const TpReplicas read = reader == "replicas" ? TpReplicas::kExpand : TpReplicas::kCollapse;
  if (!is_given(app, "--dp")) {
    return fail(Code::kUsage,
                "--for {} needs --dp N, the data-parallel ranks of the job that will load it",
                reader);
  }
  if (is_given(app, "--tp-replicas") && read != request.tp_replicas) {
    return fail(Code::kUsage,
                "--for {} and --tp-replicas {} contradict each other: such a job looks for other "
                "names; leave one of them out",
                reader, given_word(app, "--tp-replicas"));
  }
  request.tp_replicas = read;
  return {};
}

// `3/8`; what is wrong with it, or nothing.
std::string read_part(std::string_view text, Part& part) {
  const auto refuse = [text](std::string_view expected) {
    return translated("found '{}', expected {}", printable(text), expected);
  };
  std::string_view rest = text;
  const auto number = take_number(rest);
  const bool has_count = rest.starts_with('/');
  if (has_count) rest.remove_prefix(1);
  const auto count = take_number(rest);
  if (!number || !has_count || !count || !rest.empty()) {
    return refuse("a part's number and how many there are, such as 3/8");
  }
  if (*count < 1 || *count > kMostParts) {
    return refuse(translated("at least one part and at most {}", kMostParts));
  }
  if (*number < 1 || *number > *count) {
    return refuse(translated("a part from 1/{0} to {0}/{0}", *count));
  }
  part = {static_cast<std::uint32_t>(*number), static_cast<std::uint32_t>(*count)};
  return {};
}

// What follows the paths and the target's format.
void add_flags(CLI::App& app, ConvertRequest& request) {
  add_sizes(app, request);
  add_mtp(app, request);
  add_text(app, "--hf-config", request.hf_config_dir, "DIR",
           "folder with config.json and tokenizer files");
  add_family(app, request.family, request.map_files, request.models_dir);
  add_list(app, "--include", request.include, "GLOB",
           "only source tensors of this name; repeatable");
  add_list(app, "--exclude", request.exclude, "GLOB", "not these; repeatable");
  add_policies(app, request);
  add_number(app, "--make-vocab-size-divisible-by", request.make_vocab_size_divisible_by,
             "pad the vocabulary with zero rows to a multiple of N x TP");
  add_shard_size(app, request.max_shard_bytes);
  add_source(app, request);
  add_replica(app, request);
  add_threads(app, request.threads);
  add_size(app, "--max-memory", request.max_memory_bytes, "default 256MiB");
  add_flag(app, "--digests", request.digests,
           "write digests of each tensor and file beside them, which verify checks");
  add_flag(app, "--sha256", request.sha256,
           "write integrity.json, the SHA-256 of each file, which verify and Megatron check");
  add_text(
      app, "--sign", request.sign, "KEY.pem",
      "write model.sig, the signed SHA-256 of each file, which verify and model_signing check");
  add_overwrite(app, request.overwrite);
}

}  // namespace

void add_part(CLI::App& app, std::string& plan, Part& part) {
  const auto take_plan = [&app, &plan](const std::string& file) {
    plan = file;
    make_needless(app, {"IN", "OUT", "--to"});
  };
  CLI::Option* const plan_option = add_checked(
      app, "--plan", "FILE", "do a part of what 'plan --save FILE' saved; with --part",
      [](const std::string&) { return std::string(); }, take_plan);
  const auto check_part = [](std::string& text) {
    Part ignored;
    return read_part(text, ignored);
  };
  CLI::Option* const part_option =
      add_checked(app, "--part", "I/N", "which part, from 1/N to N/N; 'publish FILE' ends them all",
                  check_part, [&part](const std::string& text) { read_part(text, part); });
  require_with(part_option, plan_option);
  require_with(plan_option, part_option);
}

Status refuse_beside_plan(const CLI::App& app) {
  if (given_word(app, "--plan").empty()) {
    return fail(Code::kUsage, "--plan: must not be empty; give the path of a saved plan");
  }
  const std::string given =
      given_besides(app, {"--plan", "--part", "--threads", "--max-memory", "--json"});
  if (given.empty()) return {};
  return fail(Code::kUsage, "{} does not go with --plan, which says what is converted", given);
}

void add_conversion(CLI::App& app, ConvertRequest& request) {
  add_path(app, "IN", request.input, "the path of a checkpoint");
  add_path(app, "OUT", request.output, "the path of the new checkpoint");
  require(add_target(app, request.format, ""));
  add_format(app, request.as, "IN");
  add_number(app, "--extend-vocab", request.extend_vocab,
             "give the vocabulary N rows; new ones are the mean of those that it has");
  add_upcycling(app, request);
  add_weight_form(app, request);
  add_adapter_names(app, request);
  add_flags(app, request);
}

void add_adapter_merge(CLI::App& app, ConvertRequest& request) {
  add_path(app, "BASE", request.input, "the path of the base model");
  add_path(app, "ADAPTER", request.adapter, "the folder of a PEFT adapter");
  add_path(app, "OUT", request.output, "the path of the merged model");
  request.format = "hf";
  add_target(app, request.format, "; default hf");
  add_format(app, request.as, "BASE");
  add_weight_form(app, request);
  add_flags(app, request);
}

void add_average(CLI::App& app, ConvertRequest& request, AverageArguments& average) {
  add_paths(app, "PATH", average.paths, "the path of a checkpoint, and last that of the new one");
  request.format = "hf";
  add_target(app, request.format, "; default hf");
  add_text(app, "--weights", average.weights, "W,W,...",
           "how much each checkpoint counts, adding up to 1 (default: all the same)");
  add_format(app, request.as, "each PATH");
  add_flags(app, request);
}

Status finish_average(const CLI::App& app, AverageArguments& average, ConvertRequest& request) {
  constexpr std::size_t kFewest = 3;
  std::vector<std::string>& paths = average.paths;
  if (paths.size() < kFewest) {
    return fail(Code::kUsage,
                "found {} path{}, expected the checkpoints that are averaged, at least two, and "
                "last the path of the new one",
                paths.size(), paths.size() == 1 ? "" : "s");
  }
  request.output = std::move(paths.back());
  paths.pop_back();
  request.input = std::move(paths.front());
  request.averaged.assign(std::make_move_iterator(paths.begin() + 1),
                          std::make_move_iterator(paths.end()));
  if (!is_given(app, "--weights")) return {};
  std::string_view rest = average.weights;
  while (true) {
    const std::string_view word = rest.substr(0, rest.find(','));
    double weight = 0.0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), weight);
    const bool is_whole = end == word.data() + word.size();
    if (error != std::errc() || !is_whole || !std::isfinite(weight)) {
      return fail(Code::kUsage, "--weights: found '{}', expected numbers such as 0.5,0.3,0.2",
                  printable(word));
    }
    request.weights.push_back(weight);
    if (word.size() == rest.size()) return {};
    rest.remove_prefix(word.size() + 1);
  }
}

Status finish_conversion(const CLI::App& app, ConvertRequest& request) {
  const TargetTraits& target = traits_of(request.format);
  for (const TargetFlag& flag : kTargetFlags) {
    if (!is_given(app, flag.name) || flag.applies(target)) continue;
    return fail(Code::kUsage, "{} does not apply to --to {}", flag.name, target.name);
  }
  if (target.has_components && request.components.empty()) {
    return fail(Code::kUsage,
                "--to {} needs a --component for each part of the model; for example --component "
                "language=tp=4 --component images=tp=1",
                target.name);
  }
  ParallelConfig& parallel = request.parallel;
  // Megatron-Core's own default for the experts' tensor parallelism.
  if (!is_given(app, "--etp")) parallel.expert_tensor = parallel.tensor;
  if (parallel.virtual_pipeline > 1 && parallel.pipeline == 1) {
    return fail(Code::kUsage, "--vpp {} needs several pipeline stages; give --pp too",
                parallel.virtual_pipeline);
  }
  return finish_job(app, request);
}

}  // namespace shardwright::cli
