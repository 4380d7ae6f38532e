// SPDX-License-Identifier: Apache-2.0
#include "cli/args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstdlib>

namespace shardwright::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

template <class T>
T parsed(const Words& words) {
  const Result<Command> command = parse_arguments(words);
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
                                                            "--threads",
                                                            "7",
                                                            "--max-memory",
                                                            "512MiB",
                                                            "--overwrite",
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
  EXPECT_EQ(request.format, TargetFormat::kTorchDist);
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
  EXPECT_EQ(request.threads, 7);
  EXPECT_EQ(request.max_memory_bytes, std::uint64_t{512} << 20);
  EXPECT_TRUE(request.overwrite);
  EXPECT_EQ(request.family, "llama");
  EXPECT_THAT(request.map_files, ElementsAre("m1.json", "m2.json"));
  EXPECT_EQ(request.make_vocab_size_divisible_by, 128);
  EXPECT_EQ(request.models_dir, "dir");
  EXPECT_TRUE(command.json);
}

TEST(ParseArguments, HasDefaults) {
  const auto command = parsed<ConvertCommand>({"convert", "in", "out", "--to", "hf"});
  EXPECT_EQ(command.request.format, TargetFormat::kHf);
  EXPECT_EQ(command.request.parallel.tensor, 1);
  EXPECT_EQ(command.request.dtype, std::nullopt);
  EXPECT_EQ(command.request.optimizer, OptimizerPolicy::kDefault);
  EXPECT_EQ(command.request.threads, 0);
  EXPECT_EQ(command.request.max_shard_bytes, 5'000'000'000u);
  EXPECT_EQ(command.request.max_memory_bytes, std::uint64_t{256} << 20);
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
  const auto demo = parsed<DemoCommand>({"demo", "--keep", "k", "--checkpoint", "c", "--json"});
  EXPECT_EQ(demo.keep, "k");
  EXPECT_EQ(demo.checkpoint, "c");
  EXPECT_TRUE(demo.json);
}

struct Refusal {
  Words words;
  std::string message;
};

TEST(ParseArguments, ComponentsBelongToMimo) {
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {convert_with({"--mtp", "some"}), "expected keep or drop or from=DIR"},
      {convert_with({"--mtp", "from="}), "found 'from=', expected from=DIR"},
      {convert_with({"--component", "language=tp=2"}), "--component: found it with --to"},
      {convert_with({"--world-size", "2"}), "--world-size: found it with --to"},
      {{"convert", "a", "b", "--to", "mimo"}, "--component: found none with --to mimo"},
      {{"convert", "a", "b", "--to", "mimo", "--tp", "2"}, "--tp: found it with --to mimo"},
      {{"convert", "a", "b", "--to", "mimo", "--component", "language=vpp=2"}, "the key 'vpp'"},
  };
  for (const auto& [words, message] : cases) {
    const auto command = parse_arguments(words);
    ASSERT_FALSE(command) << message;
    EXPECT_THAT(command.error().message, HasSubstr(message));
  }
}

TEST(ParseArguments, RefusesWithTheFlagsName) {
  const std::vector<Refusal> refusals = {
      {{}, "found no command"},
      {{"covnert"},
       "found 'covnert', expected inspect, plan, convert, diagnose, verify, diff, hash, show, "
       "index, explain, map, merge, split or demo; did you "
       "mean convert"},
      {{"--halp"}, "did you mean --help?"},
      {{"xyzzyxyzzy"}, "see 'shardwright --help'"},
      {{""}, "found ''"},
      {{"help", "plam"}, "did you mean plan?"},
      {{"convert"}, "IN: found nothing"},
      {{"convert", "in"}, "OUT: found nothing"},
      {{"convert", "in", "out"}, "--to: found nothing"},
      {{"convert", "in", "", "--to", "hf"}, "OUT: found nothing"},
      {{"convert", "a", "b", "c", "--to", "hf"}, "found one argument too many, 'c'"},
      {{"convert", "a", "b", "--to", "torchdist"}, "did you mean torch_dist?"},
      {{"convert", "a", "b", "--to", "zarr"},
       "expected hf, torch_dist, legacy, mimo, safetensors, fsdp_dtensor or dcp"},
      {{"convert", "a", "b", "--to"}, "--to"},
      {{"convert", "a", "b", "--to", "hf", "--tp", "2"}, "--tp: found it with --to hf"},
      {{"convert", "a", "b", "--to", "safetensors", "--etp", "1"}, "--etp: found it with"},
      {{"convert", "a", "b", "--to", "hf", "--make-vocab-size-divisible-by", "8"}, "no meaning"},
      {convert_with({"--max-shard-size", "5GB"}),
       "--max-shard-size: found it with --to torch_dist"},
      {convert_with({"--tp", "0"}), "--tp: found '0', expected a whole number from 1"},
      {convert_with({"--tp", "-1"}), "--tp: found '-1'"},
      {convert_with({"--tp="}), "--tp"},
      {convert_with({"--pp", "two"}), "--pp: found 'two'"},
      {convert_with({"--ep", "99999999999999999999"}), "--ep: found"},
      {convert_with({"--tp", "2", "--tp", "4"}), "--tp"},
      {convert_with({"--vpp", "2"}), "--vpp: found 2 with 1 pipeline stage"},
      {convert_with({"--threads", "0"}), "--threads: found '0'"},
      {convert_with({"--threads", "5000"}), "--threads: found '5000'"},
      {{"split", "a", "b", "--threads", "5000"}, "from 1 to 4096"},
      {{"hash", "a", "--threads", "5000"}, "from 1 to 4096"},
      {convert_with({"--max-memory", "256M"}), "write it like 5GB or 256MiB"},
      {convert_with({"--dtype", "bf16"}), "--dtype: found 'bf16', expected keep, bfloat16"},
      {convert_with({"--dtype", "bfloat61"}), "did you mean bfloat16?"},
      {convert_with({"--optimizer", "maybe"}), "expected keep or drop"},
      {convert_with({"--check-replicas", "some"}), "expected all, sample or none"},
      {convert_with({"--spec", "apex"}), "expected te or local"},
      {convert_with({"--overwite"}),
       "found the unknown flag --overwite; did you mean --overwrite?"},
      {convert_with({"--frobnicate=1"}), "unknown flag --frobnicate; see 'shardwright convert"},
      {convert_with({"-x"}), "unknown flag -x"},
      {{"inspect"}, "PATH: found nothing"},
      {{"inspect", "a", "b"}, "found one argument too many, 'b'"},
      {{"inspect", "a", "--depth", "0"}, "--depth: found '0'"},
      {{"inspect", "a", "--depth", "101"}, "from 1 to 100"},
      {{"inspect", "a", "--tp", "2"}, "unknown flag --tp"},
      {{"diagnose"}, "PATH: found nothing"},
      {{"diagnose", "a", "--ep", "0"}, "--ep: found '0'"},
      {{"diagnose", "a", "--lang", "de"}, "--lang: found 'de'"},
      {{"explain"}, "CODE: found nothing"},
      {{"demo", "x"}, "found one argument too many, 'x', expected none"},
      {{"demo", "--kep", "x"}, "did you mean --keep?"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Command> command = parse_arguments(refusal.words);
    ASSERT_FALSE(command) << ::testing::PrintToString(refusal.words);
    EXPECT_EQ(command.error().code, Code::kUsage);
    EXPECT_THAT(command.error().message, HasSubstr(refusal.message));
  }
}

TEST(ParseArguments, ReadsWhatTheCallerOfDiagnoseBelieves) {
  const auto command = parsed<DiagnoseCommand>(
      {"diagnose", "ckpt", "--tp", "4", "--ep=1", "--json", "--check-replicas", "--lang", "zh"});
  EXPECT_EQ(command.request.path, "ckpt");
  EXPECT_EQ(command.request.believed, (AxisSizes{.tensor = 4, .expert = 1}));
  EXPECT_TRUE(command.request.check_replicas);
  EXPECT_TRUE(command.json);
  EXPECT_EQ(command.language, Language::kChinese);
  EXPECT_EQ(parsed<DiagnoseCommand>({"diagnose", "ckpt"}).request.believed, AxisSizes());
  const auto explain = parsed<ExplainCommand>({"explain", "L07", "--lang=en"});
  EXPECT_EQ(explain.code, "L07");
  EXPECT_EQ(explain.language, Language::kEnglish);
}

TEST(ParseArguments, ReadsWhatToTryAMappingOn) {
  const auto check = parsed<MapCommand>({"map", "check", "a.json", "--hf", "model", "--json"});
  EXPECT_EQ(check.check.file, "a.json");
  EXPECT_EQ(check.check.hf_dir, "model");
  EXPECT_TRUE(check.json);
  EXPECT_EQ(parsed<MapCommand>({"map", "list"}).check.file, "");

  const std::vector<Refusal> refusals = {
      {{"map"}, "map: found '', expected check or list"},
      {{"map", "list", "--hf", "x"}, "map list: found a file or --hf"},
      {{"map", "check", "--hf", "x"}, "FILE: found nothing"},
      {{"map", "check", "x"}, "--hf: found nothing"},
  };
  for (const Refusal& refusal : refusals) {
    const Result<Command> command = parse_arguments(refusal.words);
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
  const Result<Command> command = parse_arguments(words);
  RC_ASSERT(command.has_value() || command.error().code == Code::kUsage);
}

}  // namespace
}  // namespace shardwright::cli
