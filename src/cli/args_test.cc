// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cstdlib>

namespace shardwright::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

Result<Command> command_of(const Words& words) {
  Result<Request> request = parse_arguments(words);
  if (!request) return std::unexpected(request.error());
  return std::move(request->command);
}

template <class T>
T parsed(const Words& words) {
  const Result<Command> command = command_of(words);
  EXPECT_TRUE(command) << (command ? "" : command.error().message);
  if (!command || !std::holds_alternative<T>(*command)) {
    ADD_FAILURE() << "another command";
    return {};
  }
  return std::get<T>(*command);
}

Words convert_with(const Words& more) {
  Words words = {"convert", "in", "out", "--to", "torch_dist"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ParseArguments, ReadsAWholeConversion) {
  const auto command = parsed<ConvertCommand>(convert_with({"--tp",
                                                            "4",
                                                            "--pp=2",
                                                            "--vpp",
                                                            "3",
                                                            "--ep",
                                                            "8",
                                                            "--etp",
                                                            "1",
                                                            "--hf-config",
                                                            "cfg",
                                                            "--dtype",
                                                            "bfloat16",
                                                            "--include",
                                                            "a*",
                                                            "--include",
                                                            "b*",
                                                            "--exclude=[x]",
                                                            "--optimizer",
                                                            "drop",
                                                            "--check-replicas",
                                                            "sample",
                                                            "--replica",
                                                            "0",
                                                            "--threads",
                                                            "7",
                                                            "--max-memory",
                                                            "512MiB",
                                                            "--overwrite",
                                                            "--accept-loss",
                                                            "--family",
                                                            "llama",
                                                            "--map",
                                                            "m1.json",
                                                            "--map",
                                                            "m2.json",
                                                            "--make-vocab-size-divisible-by",
                                                            "128",
                                                            "--models",
                                                            "dir",
                                                            "--json"}));
  const ConvertRequest& request = command.request;
  EXPECT_EQ(request.input, "in");
  EXPECT_EQ(request.output, "out");
  EXPECT_EQ(request.format, "torch_dist");
  EXPECT_EQ(request.parallel.tensor, 4);
  EXPECT_EQ(request.parallel.pipeline, 2);
  EXPECT_EQ(request.parallel.virtual_pipeline, 3);
  EXPECT_EQ(request.parallel.expert, 8);
  EXPECT_EQ(request.parallel.expert_tensor, 1);
  EXPECT_EQ(request.hf_config_dir, "cfg");
  EXPECT_EQ(request.dtype, DType::kBF16);
  EXPECT_THAT(request.include, ElementsAre("a*", "b*"));
  EXPECT_THAT(request.exclude, ElementsAre("[x]"));
  EXPECT_EQ(request.optimizer, OptimizerPolicy::kDrop);
  EXPECT_EQ(request.check_replicas, ReplicaCheck::kSample);
  EXPECT_EQ(request.replica, 0);
  EXPECT_EQ(request.threads, 7);
  EXPECT_EQ(request.max_memory_bytes, std::uint64_t{512} << 20);
  EXPECT_TRUE(request.overwrite);
  EXPECT_TRUE(request.accept_loss);
  EXPECT_EQ(request.family, "llama");
  EXPECT_THAT(request.map_files, ElementsAre("m1.json", "m2.json"));
  EXPECT_EQ(request.make_vocab_size_divisible_by, 128);
  EXPECT_EQ(request.models_dir, "dir");
  EXPECT_TRUE(command.json);
}

TEST(ParseArguments, HasDefaults) {
  const auto command = parsed<ConvertCommand>({"convert", "in", "out", "--to", "hf"});
  EXPECT_EQ(command.request.format, "hf");
  EXPECT_EQ(command.request.parallel.tensor, 1);
  EXPECT_EQ(command.request.dtype, std::nullopt);
  EXPECT_EQ(command.request.optimizer, OptimizerPolicy::kDefault);
  EXPECT_EQ(command.request.threads, 0);
  EXPECT_EQ(command.request.max_shard_bytes, 5'000'000'000u);
  EXPECT_EQ(command.request.max_memory_bytes, std::nullopt);
  EXPECT_FALSE(command.request.overwrite);
  EXPECT_FALSE(command.json);
  EXPECT_EQ(parsed<ConvertCommand>(convert_with({"--dtype", "keep"})).request.dtype, std::nullopt);
}

TEST(ParseArguments, ExpertsFollowTensorParallelism) {
  EXPECT_EQ(parsed<ConvertCommand>(convert_with({"--tp", "4"})).request.parallel.expert_tensor, 4);
}

TEST(ParseArguments, AListDoesNotSwallowPaths) {
  const auto command = parsed<ConvertCommand>(
      {"convert", "--include", "a", "in", "--exclude", "b", "out", "--to", "safetensors"});
  EXPECT_EQ(command.request.input, "in");
  EXPECT_EQ(command.request.output, "out");
  EXPECT_THAT(command.request.include, ElementsAre("a"));
}

TEST(ParseArguments, PathsMayLookLikeFlagsAfterTwoDashes) {
  const auto command = parsed<ConvertCommand>({"convert", "--to", "hf", "--", "--in", "-tp"});
  EXPECT_EQ(command.request.input, "--in");
  EXPECT_EQ(command.request.output, "-tp");
}

TEST(ParseArguments, DryRunIsAPlan) {
  const auto plan = parsed<PlanCommand>(convert_with({"--dry-run", "--json"}));
  EXPECT_EQ(plan.request.input, "in");
  EXPECT_TRUE(plan.json);
  EXPECT_TRUE(parsed<PlanCommand>({"plan", "in", "out", "--to", "hf", "-v"}).verbose);
}

TEST(ParseArguments, ReadsInspectAndDemo) {
  const auto inspect = parsed<InspectCommand>(
      {"inspect", "path", "--tensors", "a*", "--tensors", "b", "--depth", "9", "--limit", "5"});
  EXPECT_EQ(inspect.path, "path");
  EXPECT_THAT(inspect.tensors, ElementsAre("a*", "b"));
  EXPECT_EQ(inspect.depth, 9);
  EXPECT_EQ(inspect.limit, 5);
  EXPECT_FALSE(inspect.tree);
  EXPECT_TRUE(parsed<InspectCommand>({"inspect", "path", "--tree"}).tree);
  const auto demo = parsed<DemoCommand>({"demo", "--keep", "k", "--checkpoint", "c", "--json"});
  EXPECT_EQ(demo.keep, "k");
  EXPECT_EQ(demo.checkpoint, "c");
  EXPECT_TRUE(demo.json);
}

struct Refusal {
  Words words;
  std::string message;
};

TEST(ParseArguments, ReadsReportsAndPagesOfPlans) {
  const auto one = parsed<ReportCommand>({"report", "a", "--open"});
  EXPECT_EQ(one.request.path, "a");
  EXPECT_EQ(one.request.other, "");
  EXPECT_EQ(one.output, "report.html");
  EXPECT_TRUE(one.open);
  EXPECT_FALSE(one.overwrite || one.request.statistics || one.request.verify);
  const auto two = parsed<ReportCommand>({"report", "a", "b", "-o", "x.html", "--overwrite",
                                          "--statistics", "--verify", "--tolerance", "0.5"});
  EXPECT_EQ(two.request.other, "b");
  EXPECT_EQ(two.output, "x.html");
  EXPECT_EQ(two.request.tolerance, 0.5);
  EXPECT_TRUE(two.overwrite && two.request.statistics && two.request.verify);
  EXPECT_EQ(parsed<PlanCommand>({"plan", "a", "b", "--to", "hf", "--html", "p"}).html, "p");
}

TEST(ParseArguments, ComponentsBelongToMimo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {convert_with({"--mtp", "some"}), "expected keep or drop or from=DIR"},
      {convert_with({"--mtp", "from="}), "found 'from=', expected from=DIR"},
      {convert_with({"--component", "language=tp=2"}), "--component does not apply to --to"},
      {convert_with({"--world-size", "2"}), "--world-size does not apply to --to"},
      {{"convert", "a", "b", "--to", "mimo"},
       "--to mimo needs a --component for each part of the model"},
      {{"convert", "a", "b", "--to", "mimo", "--tp", "2"}, "--tp does not apply to --to mimo"},
      {{"convert", "a", "b", "--to", "mimo", "--component", "language=vpp=2"},
       "--component: 'language=vpp=2': found the key 'vpp', expected tp"},
  };
  for (const auto& [words, message] : cases) {
    const auto command = command_of(words);
    ASSERT_FALSE(command) << message;
    EXPECT_THAT(command.error().message, HasSubstr(message));
  }
}

TEST(ParseArguments, TakesWhatOthersCallTheSame) {
  const auto request_with = [](Words words) {
    const auto command = command_of(words);
    EXPECT_TRUE(command) << words.back() << ": " << command.error().message;
    return command ? std::get<ConvertCommand>(*command).request : ConvertRequest{};
  };
  using Dtype = std::pair<const char*, DType>;
  for (const auto& [name, dtype] :
       {Dtype{"bf16", DType::kBF16}, Dtype{"BF16", DType::kBF16},
        Dtype{"torch.bfloat16", DType::kBF16}, Dtype{"fp16", DType::kF16},
        Dtype{"half", DType::kF16}, Dtype{"f16", DType::kF16}, Dtype{"fp32", DType::kF32},
        Dtype{"float", DType::kF32}, Dtype{"Float32", DType::kF32}}) {
    EXPECT_EQ(request_with(convert_with({"--dtype", name})).dtype, dtype) << name;
  }
  using Target = std::pair<const char*, std::string_view>;
  for (const auto& [name, format] :
       {Target{"HF", "hf"}, Target{"huggingface", "hf"}, Target{"torch-dist", "torch_dist"},
        Target{"DCP", "dcp"}, Target{"fsdp-dtensor", "fsdp_dtensor"}}) {
    EXPECT_EQ(request_with({"convert", "a", "b", "--to", name}).format, format) << name;
  }
}

TEST(ParseArguments, ReadsTheJobThatFilesAreFor) {
  using enum TpReplicas;
  const auto read = [](const Words& more) {
    const ConvertRequest request = parsed<ConvertCommand>(convert_with(more)).request;
    return std::pair(request.tp_replicas, request.data_ranks);
  };
  EXPECT_EQ(read({}), std::pair(kCollapse, std::optional<std::int64_t>()));
  EXPECT_EQ(read({"--tp-replicas", "expand"}).first, kExpand);
  EXPECT_EQ(read({"--dp", "8"}), std::pair(kCollapse, std::optional<std::int64_t>(8)));
  EXPECT_EQ(read({"--dp=8", "--for", "stock"}).first, kCollapse);
  EXPECT_EQ(read({"--dp", "8", "--for", "replicas"}).first, kExpand);
  EXPECT_EQ(read({"--dp", "8", "--tp-replicas", "expand"}).first, kExpand);
  EXPECT_EQ(read({"--dp", "8", "--for", "replicas", "--tp-replicas=expand"}).first, kExpand);
}

TEST(ParseArguments, RefusesAJobThatContradictsItself) {
  const std::vector<Refusal> refusals = {
      {convert_with({"--for", "stock"}), "--for stock needs --dp N"},
      {convert_with({"--dp", "2", "--for", "stock", "--tp-replicas", "expand"}),
       "--for stock and --tp-replicas expand contradict each other"},
      {convert_with({"--dp", "2", "--for", "replicas", "--tp-replicas", "collapse"}),
       "--for replicas and --tp-replicas collapse contradict each other"},
      {convert_with({"--dp", "0"}), "--dp: found '0'"},
      {convert_with({"--dp", "2", "--for", "me"}), "--for: found 'me', expected stock or replicas"},
      {convert_with({"--tp-replicas", "fold"}), "expected collapse or expand"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Command> command = command_of(refusal.words);
    ASSERT_FALSE(command) << refusal.message;
    EXPECT_EQ(command.error().code, Code::kUsage);
    EXPECT_THAT(command.error().message, HasSubstr(refusal.message));
  }
  for (const char* to : {"hf", "legacy", "mimo", "fsdp_dtensor", "dcp", "safetensors"}) {
    for (const Words& flag : {Words{"--tp-replicas", "expand"}, Words{"--tp-replicas", "collapse"},
                              Words{"--dp", "2"}, Words{"--for", "stock"}}) {
      const Words words = {"convert", "in", "out", "--to", to, flag[0], flag[1]};
      const Result<Command> command = command_of(words);
      ASSERT_FALSE(command) << to << flag[0];
      EXPECT_THAT(command.error().message, HasSubstr(flag[0] + " does not apply to --to " + to));
    }
  }
}

TEST(ParseArguments, ReadsAPartOfASavedPlan) {
  EXPECT_EQ(parsed<PlanCommand>({"plan", "in", "out", "--to", "hf", "--save", "p"}).save, "p");
  const auto part = parsed<ConvertCommand>({"convert", "--plan", "p", "--part", "3/8", "--threads",
                                            "2", "--max-memory", "1GiB", "--json"});
  EXPECT_EQ(part.plan, "p");
  EXPECT_EQ(part.part.number, 3U);
  EXPECT_EQ(part.part.count, 8U);
  EXPECT_EQ(part.request.threads, 2);
  EXPECT_EQ(part.request.max_memory_bytes, std::uint64_t{1} << 30);
  EXPECT_TRUE(part.json);
  EXPECT_EQ(parsed<ConvertCommand>({"convert", "in", "out", "--to", "hf"}).plan, "");
  const auto publish = parsed<PublishCommand>({"publish", "p", "--threads", "3", "--json"});
  EXPECT_EQ(publish.plan, "p");
  EXPECT_EQ(publish.request.threads, 3);
  EXPECT_TRUE(publish.json);
}

TEST(ParseArguments, TakesNothingBesideASavedPlanThatItSays) {
  for (const char* part : {"0/8", "9/8", "1/0", "3", "3/", "/8", "3/8x", "-1/8", "a/b", "",
                           "1/65537", "99999999999999999999/8"}) {
    const Result<Command> command = command_of({"convert", "--plan", "p", "--part", part});
    ASSERT_FALSE(command) << part;
    EXPECT_THAT(command.error().message, StartsWith("--part: found '")) << part;
  }
  const std::vector<std::pair<Words, std::string>> refused = {
      {{"in", "out"}, "IN does not go with --plan"},
      {{"--to", "hf"}, "--to does not go with --plan"},
      {{"--tp", "2"}, "--tp does not go with --plan"},
      {{"--resume"}, "--resume does not go with --plan"},
      {{"--dry-run"}, "--dry-run does not go with --plan"},
      {{"--include", "a"}, "--include does not go with --plan"}};
  for (const auto& [more, message] : refused) {
    Words words = {"convert", "--plan", "p", "--part", "1/2"};
    words.insert(words.end(), more.begin(), more.end());
    const Result<Command> command = command_of(words);
    ASSERT_FALSE(command) << message;
    EXPECT_THAT(command.error().message, HasSubstr(message));
  }
  EXPECT_THAT(command_of({"convert", "--plan", "p"}).error().message, HasSubstr("--part"));
  EXPECT_THAT(command_of({"convert", "in", "out", "--to", "hf", "--part", "1/2"}).error().message,
              HasSubstr("--plan"));
  EXPECT_THAT(command_of({"convert", "--plan", "", "--part", "1/2"}).error().message,
              HasSubstr("--plan: must not be empty"));
}

TEST(ParseArguments, RefusesWithTheFlagsName) {
  const std::vector<Refusal> refusals = {
      {{}, "shardwright: name a command: inspect, plan"},
      {{"covnert"},
       "found 'covnert', expected inspect, plan, convert, publish, diagnose, verify, diff, hash, "
       "show, locality, index, clean, explain, map, merge, split, merge-adapter, average, report, "
       "demo, "
       "completion or man; did you mean convert"},
      {{"--halp"}, "did you mean --help?"},
      {{"xyzzyxyzzy"}, "see 'shardwright --help'"},
      {{""}, "found ''"},
      {{"help", "plam"}, "did you mean plan?"},
      {{"convert"}, "IN is missing"},
      {{"convert", "in"}, "OUT is missing"},
      {{"convert", "in", "out"}, "--to is missing"},
      {{"convert", "in", "", "--to", "hf"},
       "OUT: must not be empty; give the path of the new checkpoint"},
      {{"convert", "a", "b", "c", "--to", "hf"},
       "'c' is one argument too many; it takes IN OUT --to FORMAT"},
      {{"convert", "a", "b", "--to", "torch_dst"}, "did you mean torch_dist?"},
      {{"convert", "a", "b", "--to", "mcore"}, "did you mean torch_dist (what Megatron-Core saves"},
      {{"convert", "a", "b", "--to", "Megatron"}, "or legacy (mp_rank folders)?"},
      {{"convert", "a", "b", "--to", "zarr"},
       "expected hf, torch_dist, legacy, mimo, fsdp_dtensor, dcp or safetensors"},
      {{"convert", "a", "b", "--to"}, "--to"},
      {{"convert", "a", "b", "--to", "hf", "--tp", "2"}, "--tp does not apply to --to hf"},
      {{"convert", "a", "b", "--to", "safetensors", "--etp", "1"},
       "--etp does not apply to --to safetensors"},
      {{"convert", "a", "b", "--to", "hf", "--make-vocab-size-divisible-by", "8"},
       "does not apply to --to hf"},
      {convert_with({"--max-shard-size", "5GB"}),
       "--max-shard-size does not apply to --to torch_dist"},
      {convert_with({"--tp", "0"}), "--tp: found '0', expected a whole number from 1"},
      {convert_with({"--tp", "-1"}), "--tp: found '-1'"},
      {convert_with({"--tp="}), "--tp"},
      {convert_with({"--pp", "two"}), "--pp: found 'two'"},
      {convert_with({"--ep", "99999999999999999999"}), "--ep: found"},
      {convert_with({"--tp", "2", "--tp", "4"}), "--tp"},
      {convert_with({"--vpp", "2"}), "--vpp 2 needs several pipeline stages; give --pp too"},
      {convert_with({"--threads", "0"}), "--threads: found '0'"},
      {convert_with({"--threads", "5000"}), "--threads: found '5000'"},
      {{"split", "a", "b", "--threads", "5000"}, "from 1 to 4096"},
      {{"hash", "a", "--threads", "5000"}, "from 1 to 4096"},
      {convert_with({"--max-memory", "256M"}), "write it like 5GB or 256MiB"},
      {convert_with({"--dtype", "int8"}), "--dtype: found 'int8', expected keep, bfloat16"},
      {convert_with({"--dtype", "bfloat61"}), "did you mean bfloat16?"},
      {convert_with({"--optimizer", "maybe"}), "expected keep or drop"},
      {convert_with({"--check-replicas", "some"}), "expected all, sample or none"},
      {convert_with({"--replica", "-1"}), "expected a rank's number from 0 to 1048575"},
      {{"hash", "a", "--replica", "1048576"}, "expected a rank's number from 0 to 1048575"},
      {convert_with({"--spec", "apex"}), "expected te or local"},
      {convert_with({"--overwite"}), "convert: unknown flag --overwite; did you mean --overwrite?"},
      {convert_with({"--frobnicate=1"}), "unknown flag --frobnicate; see 'shardwright convert"},
      {convert_with({"-x"}), "unknown flag -x"},
      {{"inspect"}, "PATH is missing"},
      {{"inspect", "a", "b"}, "'b' is one argument too many; it takes PATH"},
      {{"inspect", "a", "hash"}, "inspect: 'hash' is one argument too many; it takes PATH"},
      {{"inspect", "a", "--depth", "0"},
       "--depth: found '0', expected a whole number from 1 to 100"},
      {{"inspect", "a", "--depth", "101"}, "from 1 to 100"},
      {{"inspect", "a", "--tp", "2"}, "unknown flag --tp"},
      {{"diagnose"}, "PATH is missing"},
      {{"diagnose", "a", "--ep", "0"}, "--ep: found '0'"},
      {{"diagnose", "a", "--lang", "de"}, "--lang: found 'de', expected en or zh"},
      {{"convert", "--plan", "p", "--part", "1/1", "--threads", "abc"}, "--threads: found 'abc'"},
      {{"convert", "--part", "0/1", "--plan", "p"}, "--part: found '0/1'"},
      {{"explain"}, "CODE is missing; give a code such as SW0307 or L07"},
      {{"diff", "a", "--tolerance", "1"}, "B is missing; give the path of a second checkpoint"},
      {{"diff", "a", "b", "--tolerance", "-1"},
       "--tolerance: found '-1', expected a number such as"},
      {{"diff", "a", "b", "--tolerance", "inf"}, "--tolerance: found 'inf'"},
      {{"diff", "a", "b", "--tolerance", "1x"}, "--tolerance: found '1x'"},
      {{"verify", "a", "--other-as", "hf"}, "--other-as requires --against"},
      {{"inspect", "a", "--tree", "--json"}, "--tree is for people"},
      {{"report"}, "PATH is missing"},
      {{"report", "a", "b", "c"}, "report: 'c' is one argument too many; it takes PATH [PATH2]"},
      {{"report", "a", "--tolerance", "1"}, "--tolerance is for two checkpoints; give PATH2 too"},
      {{"report", "a", "--other-as", "hf"}, "--other-as is for two checkpoints"},
      {{"report", "a", ""}, "must not be empty"},
      {{"split", "a"}, "OUT is missing; give the path of the folder for its parts"},
      {{"merge", "o", "--component", "images"}, "--component: found 'images', expected NAME=DIR"},
      {{"merge", "o", "--component", "=x"}, "--component: found '=x'"},
      {{"merge", "o", "--component", "x="}, "--component: found 'x='"},
      {{"convert", "--part", "1/2", "a", "b"}, "convert: --part requires --plan"},
      {{"convert", "--", "-a", "-b", "--to", "hf"},
       "convert: '--to' stands behind '--', where all words are paths"},
      {{"convert", "a", "b", "--to", "hf", "--tp", "1", "--tp", "2"},
       "convert: --tp is given more than once"},
      {{"verify", "a", "--lang", "en", "--lang", "zh"}, "verify: --lang is given more than once"},
      {{"convert", "a", "b", "--to", "hf", "--tp"}, "convert: --tp is given without its value"},
      {{"demo", "x"}, "demo: 'x' is one argument too many; it takes none"},
      {{"demo", "--kep", "x"}, "did you mean --keep?"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Command> command = command_of(refusal.words);
    ASSERT_FALSE(command) << ::testing::PrintToString(refusal.words);
    EXPECT_EQ(command.error().code, Code::kUsage);
    EXPECT_THAT(command.error().message, HasSubstr(refusal.message));
  }
}

// The spellings of Megatron-LM, its checkpoint tools, Megatron-Bridge and LoongForge, and what
// people write.
TEST(ParseArguments, KnowsEverySpellingOfEverySize) {
  using Size = std::int64_t ParallelConfig::*;
  const std::vector<std::pair<std::string, Size>> cases = {
      {"--tp", &ParallelConfig::tensor},
      {"--tensor-model-parallel-size", &ParallelConfig::tensor},
      {"--tensor-parallel-size", &ParallelConfig::tensor},
      {"--tp-size", &ParallelConfig::tensor},
      {"--target-tp", &ParallelConfig::tensor},
      {"--target-tensor-parallel-size", &ParallelConfig::tensor},
      {"--target-tensor-model-parallel-size", &ParallelConfig::tensor},
      {"--pp", &ParallelConfig::pipeline},
      {"--pp-size", &ParallelConfig::pipeline},
      {"--pipeline-model-parallel-size", &ParallelConfig::pipeline},
      {"--target-pipeline-parallel-size", &ParallelConfig::pipeline},
      {"--target-pipeline-model-parallel-size", &ParallelConfig::pipeline},
      {"--vpp", &ParallelConfig::virtual_pipeline},
      {"--num-virtual-stages-per-pipeline-rank", &ParallelConfig::virtual_pipeline},
      {"--virtual-pipeline-model-parallel-size", &ParallelConfig::virtual_pipeline},
      {"--target-virtual-pipeline-model-parallel-size", &ParallelConfig::virtual_pipeline},
      {"--ep", &ParallelConfig::expert},
      {"--expert-model-parallel-size", &ParallelConfig::expert},
      {"--target-expert-parallel-size", &ParallelConfig::expert},
      {"--etp", &ParallelConfig::expert_tensor},
      {"--expert-tensor-parallel-size", &ParallelConfig::expert_tensor},
      {"--target-expert-tensor-parallel-size", &ParallelConfig::expert_tensor},
  };
  for (const auto& [flag, size] : cases) {
    Words words = convert_with({flag, "3"});
    if (size == &ParallelConfig::virtual_pipeline) words.insert(words.end(), {"--pp", "2"});
    EXPECT_EQ(parsed<ConvertCommand>(words).request.parallel.*size, 3) << flag;
  }
  for (const char* flag : {"--encoder-tp", "--encoder-tensor-model-parallel-size",
                           "--encoder-tensor-parallel-size", "--encoder-tp-size"}) {
    const auto command =
        parsed<ConvertCommand>({"convert", "in", "out", "--to", "legacy", "--tp", "2", flag, "2"});
    EXPECT_EQ(command.request.parallel.encoder_tensor, 2) << flag;
  }
  const auto diagnose = parsed<DiagnoseCommand>({"diagnose", "a", "--expert-parallel-size", "2"});
  EXPECT_EQ(diagnose.request.believed, (AxisSizes{.expert = 2}));
}

// A flag that would be ignored is a misunderstanding that should not wait until the end.
TEST(ParseArguments, RefusesWhatMeansNothingForTheTarget) {
  const std::vector<std::array<std::string, 3>> cases = {
      {"--tp", "2", "hf"},
      {"--pp", "2", "dcp"},
      {"--vpp", "2", "safetensors"},
      {"--ep", "2", "hf"},
      {"--etp", "2", "mimo"},
      {"--component", "language=tp=1", "legacy"},
      {"--world-size", "2", "torch_dist"},
      {"--encoder-tp", "2", "torch_dist"},
      {"--naming", "megatron", "torch_dist"},
      {"--shards", "2", "hf"},
      {"--max-shard-size", "1GB", "torch_dist"},
      {"--spec", "te", "hf"},
      {"--make-vocab-size-divisible-by", "8", "hf"},
  };
  for (const auto& [flag, value, target] : cases) {
    const auto command = command_of(Words{"convert", "a", "b", "--to", target, flag, value});
    ASSERT_FALSE(command) << flag;
    EXPECT_EQ(command.error().message, flag + " does not apply to --to " + target);
  }
}

TEST(ParseArguments, SaysWhichFlagWhatWasGivenAndWhatIsAllowed) {
  const auto message = [](const Words& words) { return command_of(words).error().message; };
  EXPECT_EQ(message(convert_with({"--tp", "0"})),
            "--tp: found '0', expected a whole number from 1 to 1000000000");
  EXPECT_EQ(message({"map", "check", "x", "--hff", "y"}),
            "map: unknown flag --hff; did you mean --hf?");
  EXPECT_EQ(message({"--tp", "2", "convert", "a", "b"}),
            "--tp belongs behind the command: shardwright convert ... --tp");
}

TEST(ParseArguments, FlagsOfTheConsoleMayStandBeforeTheCommand) {
  const auto console = [](Words words) { return parse_arguments(words).value().console; };
  const ConsoleOptions both =
      console({"-q", "--log-file", "a.log", "inspect", "ckpt", "--progress", "json"});
  EXPECT_TRUE(both.quiet);
  EXPECT_EQ(both.log_file, "a.log");
  EXPECT_EQ(both.progress, ProgressStyle::kJson);
  EXPECT_EQ(console({"--progress", "plain", "inspect", "ckpt", "--progress", "json"}).progress,
            ProgressStyle::kJson);
  EXPECT_EQ(command_of({"--lang", "zh"}).error().code, Code::kUsage);
}

TEST(ParseArguments, EveryCommandSpeaksTheLanguageThatIsAskedFor) {
  const auto language = [](Words words) {
    const Language asked = asked_language(words);
    EXPECT_EQ(parse_arguments(words).value().console.language, asked);
    return asked;
  };
  ASSERT_EQ(::setenv("LC_ALL", "zh_CN.UTF-8", 1), 0);
  EXPECT_EQ(language({"explain", "L07"}), Language::kChinese);
  EXPECT_EQ(language({"verify", "ckpt", "--lang", "en"}), Language::kEnglish);
  ASSERT_EQ(::setenv("LC_ALL", "C.UTF-8", 1), 0);
  EXPECT_EQ(language({"explain", "L07"}), Language::kEnglish);
  EXPECT_EQ(language({"inspect", "ckpt", "--lang=zh"}), Language::kChinese);
  EXPECT_EQ(language({"diff", "--lang", "zh", "zh", "en"}), Language::kChinese);
  EXPECT_EQ(language({"--lang", "zh", "inspect", "ckpt"}), Language::kChinese);
  EXPECT_EQ(language({"--lang", "zh", "inspect", "ckpt", "--lang", "en"}), Language::kEnglish);
  EXPECT_EQ(language({"inspect", "--", "--lang=zh"}), Language::kEnglish);
  EXPECT_EQ(asked_language(Words{"nonsense", "--lang", "zh"}), Language::kChinese);
  EXPECT_EQ(asked_language(Words{"inspect", "zh"}), Language::kEnglish);
  ASSERT_EQ(::unsetenv("LC_ALL"), 0);
}

TEST(ParseArguments, HelpOfAnActionIsItsCommands) {
  const std::string text = parsed<ShowText>({"map", "--help"}).text;
  EXPECT_EQ(parsed<ShowText>({"map", "check", "x", "-h"}).text, text);
  EXPECT_EQ(text.find("--help", text.find("--help") + 1), std::string::npos) << "shown once";
}

TEST(ParseArguments, NumbersAreDecimal) {
  EXPECT_EQ(parsed<ConvertCommand>(convert_with({"--tp", "010"})).request.parallel.tensor, 10);
}

TEST(ParseArguments, APathMayHaveACommandsName) {
  EXPECT_EQ(parsed<InspectCommand>({"inspect", "hash"}).path, "hash");
  EXPECT_EQ(parsed<IndexCommand>({"index", "rebuild", "rebuild"}).path, "rebuild");
  EXPECT_TRUE(parsed<IndexCommand>({"index", "--json", "rebuild", "d"}).json);
}

TEST(ParseArguments, ReadsWhatTheCallerOfDiagnoseBelieves) {
  const auto command = parsed<DiagnoseCommand>(
      {"diagnose", "ckpt", "--tp", "4", "--ep=1", "--json", "--check-replicas"});
  EXPECT_EQ(command.request.path, "ckpt");
  EXPECT_EQ(command.request.believed, (AxisSizes{.tensor = 4, .expert = 1}));
  EXPECT_TRUE(command.request.check_replicas);
  EXPECT_TRUE(command.json);
  EXPECT_EQ(parsed<DiagnoseCommand>({"diagnose", "ckpt"}).request.believed, AxisSizes());
  EXPECT_EQ(parsed<ExplainCommand>({"explain", "L07"}).code, "L07");
}

TEST(ParseArguments, ReadsWhatToTryAMappingOn) {
  const auto check = parsed<MapCommand>({"map", "check", "a.json", "--hf", "model", "--json"});
  EXPECT_EQ(check.check.file, "a.json");
  EXPECT_EQ(check.check.hf_dir, "model");
  EXPECT_TRUE(check.json);
  EXPECT_EQ(parsed<MapCommand>({"map", "list"}).check.file, "");

  const std::vector<Refusal> refusals = {
      {{"map"}, "map: name a command: check or list; see 'shardwright map --help'"},
      {{"map", "chek", "a"}, "map: found 'chek', expected check or list; did you mean check?"},
      {{"map", "list", "--hf", "x"}, "map: --hf goes with another of its commands; see"},
      {{"map", "list", "x"}, "map: 'x' is one argument too many"},
      {{"clean"}, "DIR is missing; give the folder that outputs were written in"},
      {{"clean", "a", "--yes"}, "clean: unknown flag --yes"},
      {{"index", "a"}, "index: found 'a', expected rebuild"},
      {{"index", "rebuild"}, "DIR is missing; give the folder of a Hugging Face model"},
      {{"map", "check", "--hf", "x"}, "FILE is missing"},
      {{"map", "check", "x"}, "--hf is missing"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Command> command = command_of(refusal.words);
    ASSERT_FALSE(command) << refusal.message;
    EXPECT_THAT(command.error().message, HasSubstr(refusal.message));
  }
}

TEST(ParseArguments, HelpBeginsWithExamplesAndWinsOverMistakes) {
  EXPECT_THAT(parsed<ShowText>({"explain", "--help"}).text, HasSubstr("shardwright explain CODE"));
  for (const std::string name : {"inspect", "plan", "convert", "diagnose", "map", "demo"}) {
    const std::string text = parsed<ShowText>({name, "--help"}).text;
    EXPECT_THAT(text, StartsWith("Examples:\n  shardwright " + name));
    EXPECT_THAT(text, HasSubstr("Usage: shardwright " + name));
    EXPECT_THAT(text, HasSubstr("--json"));
    EXPECT_EQ(text.find("--models"), std::string::npos);
    EXPECT_EQ(parsed<ShowText>({"help", name}).text, text);
    EXPECT_EQ(parsed<ShowText>({name, "a", "b", "c", "--nonsense", "-h"}).text, text);
  }
  const std::string overview = parsed<ShowText>({"--help"}).text;
  EXPECT_THAT(overview, StartsWith("Examples:\n"));
  for (const std::string name : {"inspect", "plan", "convert", "demo"}) {
    EXPECT_THAT(overview, HasSubstr("\n  " + name + " "));
  }
  EXPECT_EQ(parsed<ShowText>({"-h"}).text, overview);
  EXPECT_EQ(parsed<ShowText>({"help"}).text, overview);
}

TEST(ParseArguments, TellsItsVersion) {
  EXPECT_EQ(parsed<ShowText>({"--version"}).text, "shardwright " SHARDWRIGHT_VERSION "\n");
  EXPECT_TRUE(parsed<ShowText>({"--version"}).is_version);
  EXPECT_FALSE(parsed<ShowText>({"--help"}).is_version);
}

TEST(ParseArguments, TakesTheModelsFolderFromTheEnvironment) {
  ASSERT_EQ(::setenv("SHARDWRIGHT_MODELS", "from-env", 1), 0);
  EXPECT_EQ(parsed<DemoCommand>({"demo"}).models, "from-env");
  EXPECT_EQ(parsed<DemoCommand>({"demo", "--models", "flag"}).models, "flag");
  ASSERT_EQ(::unsetenv("SHARDWRIGHT_MODELS"), 0);
  EXPECT_EQ(parsed<DemoCommand>({"demo"}).models, "");
}

TEST(AsksForJson, LooksAtFlagsOnly) {
  EXPECT_TRUE(asks_for_json(Words{"nonsense", "--json"}));
  EXPECT_FALSE(asks_for_json(Words{"inspect", "--", "--json"}));
  EXPECT_FALSE(asks_for_json(Words{"inspect", "json"}));
}

RC_GTEST_PROP(ParseArguments, NeverThrows, ()) {
  const auto word = rc::gen::oneOf(
      rc::gen::element<std::string>("convert", "inspect", "--to", "hf", "--tp", "-v", "--", "-h",
                                    "[", "--include", "=", "--=", "-", "--to=hf", "[a,b]", "help"),
      rc::gen::container<std::string>(rc::gen::element('-', '=', 'a', '[', ']', ',', '"', '%')));
  const auto words = *rc::gen::container<Words>(word);
  const Result<Command> command = command_of(words);
  RC_ASSERT(command.has_value() || command.error().code == Code::kUsage);
}

TEST(ParseArguments, EveryCommandSaysHowItTells) {
  for (const Words& words :
       {Words{"inspect", "x"}, Words{"plan", "a", "b", "--to", "hf"}, Words{"explain", "L01"},
        Words{"convert", "a", "b", "--to", "hf"}, Words{"diagnose", "x"}, Words{"verify", "x"},
        Words{"diff", "a", "b"}, Words{"hash", "x"}, Words{"show", "x", "t"},
        Words{"locality", "x"}, Words{"index", "rebuild", "x"}, Words{"clean", "x"},
        Words{"map", "list"}, Words{"merge", "x", "--component", "a=b", "--config", "c"},
        Words{"split", "a", "b"}, Words{"demo"}, Words{"publish", "p"},
        Words{"convert", "--plan", "p", "--part", "1/1"}}) {
    Words told = words;
    told.insert(told.end(), {"--progress", "JSON", "-q", "--log-file", "run.log"});
    const auto request = parse_arguments(told);
    ASSERT_TRUE(request) << words.front() << ": " << request.error().message;
    EXPECT_EQ(request->console.progress, ProgressStyle::kJson) << words.front();
    EXPECT_TRUE(request->console.quiet) << words.front();
    EXPECT_EQ(request->console.log_file, "run.log") << words.front();
    const auto usual = parse_arguments(words);
    ASSERT_TRUE(usual);
    EXPECT_EQ(usual->console.progress, ProgressStyle::kAuto);
    EXPECT_FALSE(usual->console.quiet);
    EXPECT_EQ(usual->console.log_file, "");
  }
  EXPECT_EQ(command_of({"hash", "x", "--progress", "bar"}).error().message,
            "--progress: found 'bar', expected auto, plain, json or none");
}

}  // namespace
}  // namespace shardwright::cli
