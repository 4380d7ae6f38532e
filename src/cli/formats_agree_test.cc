// SPDX-License-Identifier: Apache-2.0
// Every command takes a folder for the same checkpoint, or asks for the same choice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/run.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<std::string>;

struct Ran {
  int status = 0;
  std::string output;
  std::string messages;
};

Ran run(const Words& words) {
  Console::Capture capture;
  Console console(capture);
  const int status = run_command_line(words, console);
  return {status, capture.output, capture.messages};
}

Ran run_json(Words words) {
  words.emplace_back("--json");
  return run(words);
}

class FormatsAgree : public ::testing::Test {
 protected:
  // Copies of these are put together to make the folders.
  static void SetUpTestSuite() {
    made_ = std::make_unique<TemporaryFolder>();
    fs::copy(golden_path("hf/llama3/hf"), *made_ / "hf", fs::copy_options::recursive);
    for (const char* format : {"torch_dist", "legacy", "fsdp_dtensor", "dcp"}) {
      const Ran ran = run({"convert", *made_ / "hf", *made_ / format, "--to", format});
      ASSERT_EQ(ran.status, kExitFine) << format << ": " << ran.messages;
    }
    const Ran kept =
        run({"convert", *made_ / "torch_dist", *made_ / "safetensors", "--to", "safetensors"});
    ASSERT_EQ(kept.status, kExitFine) << kept.messages;
  }
  static void TearDownTestSuite() { made_.reset(); }

  // The data of one of them: the folder of its iteration, where it has one.
  static std::string data_of(const std::string& format) {
    const fs::path iteration = fs::path(*made_ / format) / "iter_0000000";
    return fs::exists(iteration) ? iteration.string() : *made_ / format;
  }
  void put(const std::string& format, const std::string& where) const {
    fs::create_directories(place_ / where);
    fs::copy(data_of(format), place_ / where,
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
    for (const auto& entry : fs::recursive_directory_iterator(place_ / where)) {
      fs::permissions(entry, fs::perms::owner_all, fs::perm_options::add);
    }
  }

  // What each command that shows a format says of a folder; those that show none must succeed.
  std::map<std::string, std::string> shown(const Words& more = {}) const {
    const std::string path = place_ / "x";
    std::map<std::string, std::string> formats;
    const auto ask = [&](const std::string& name, Words words) {
      words.insert(words.end(), more.begin(), more.end());
      const Ran ran = run_json(words);
      EXPECT_NE(ran.status, kExitFailure) << name << ": " << ran.messages;
      const auto json = nlohmann::json::parse(ran.output, nullptr, false);
      if (json.is_discarded()) return;
      const auto& holder = name == "plan" ? json["source"] : json;
      if (holder.contains("format")) formats[name] = holder["format"];
    };
    ask("inspect", {"inspect", path});
    ask("verify", {"verify", path});
    ask("diagnose", {"diagnose", path});
    ask("plan", {"plan", path, place_ / "out", "--to", "safetensors", "--optimizer", "drop"});
    ask("hash", {"hash", path, "--own-names"});
    ask("diff", {"diff", path, *made_ / "hf", "--own-names"});
    return formats;
  }
  void expect_all(const std::string& format, const Words& more = {}) const {
    const auto formats = shown(more);
    for (const char* command : {"inspect", "verify", "diagnose", "plan"}) {
      ASSERT_TRUE(formats.contains(command)) << command;
      EXPECT_EQ(formats.at(command), format) << command;
    }
  }

  static std::unique_ptr<TemporaryFolder> made_;
  TemporaryFolder place_;
};

std::unique_ptr<TemporaryFolder> FormatsAgree::made_;

// What is made of a Hugging Face model keeps its names in DCP files, and these show.
std::string shown_as(const std::string& format) { return format == "dcp" ? "hf_dcp" : format; }

TEST_F(FormatsAgree, OnEachFormat) {
  for (const char* format : {"hf", "torch_dist", "legacy", "fsdp_dtensor", "dcp"}) {
    SCOPED_TRACE(format);
    fs::remove_all(place_ / "x");
    put(format, "x");
    expect_all(shown_as(format));
  }
}

TEST_F(FormatsAgree, OnFoldersOfOtherSoftware) {
  struct Row {
    const char* format;
    const char* where;
    std::vector<std::pair<const char*, const char*>> files;
  };
  const std::vector<Row> rows = {
      {"torch_dist", "x/actor/dist_ckpt", {{"x/actor/huggingface/config.json", "{}"}}},
      {"torch_dist",
       "x/global_step_10/actor/dist_ckpt",
       {{"x/latest_checkpointed_iteration.txt", "10"}}},
      {"torch_dist", "x/weights", {{"x/context/io.json", "{}"}}},
      {"dcp", "x/checkpoints/global_step_3", {}},
      {"legacy", "x/release", {{"x/latest_checkpointed_iteration.txt", "release"}}},
      {"fsdp_dtensor", "x", {{"x/metadata.json", R"({"sharded_backend": "fsdp_dtensor"})"}}},
      {"torch_dist", "x", {{"x/mp_rank_00_000/distrib_optim.pt", "x"}}},
      {"hf", "x/checkpoint-20", {{"x/checkpoint-3/config.json", "{}"}}},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(std::string(row.format) + " in " + row.where);
    fs::remove_all(place_ / "x");
    put(row.format, row.where);
    for (const auto& [path, contents] : row.files) place_.put(path, contents);
    expect_all(shown_as(row.format));
  }
}

TEST_F(FormatsAgree, ThatTwoCheckpointsNeedAChoice) {
  put("hf", "x");
  put("legacy", "x");
  put("hf", "hf");
  const std::string x = place_ / "x";
  const std::string hf = place_ / "hf";
  const std::vector<Words> commands = {
      {"inspect", x},
      {"plan", x, place_ / "out", "--to", "hf"},
      {"convert", x, place_ / "out", "--to", "torch_dist"},
      {"verify", x},
      {"verify", hf, "--against", x},
      {"diff", x, hf},
      {"diff", hf, x},
      {"hash", x},
      {"show", x, "model.norm.weight"},
      {"split", x, place_ / "out"},
  };
  for (const Words& words : commands) {
    const Ran ran = run(words);
    EXPECT_EQ(ran.status, kExitFailure) << words[0];
    const bool is_other =
        words[0] == "verify" ? words[1] == hf : words[0] == "diff" && words[1] == hf;
    EXPECT_THAT(ran.messages,
                AllOf(HasSubstr("error[SW0323]"), HasSubstr(x + " holds two checkpoints: legacy ("),
                      HasSubstr(" and hf ("),
                      HasSubstr(is_other ? "with --other-as FORMAT" : "with --as FORMAT")))
        << words[0];
  }
  EXPECT_FALSE(fs::exists(place_ / "out"));
  const Ran diagnosed = run({"diagnose", x});
  EXPECT_THAT(diagnosed.output,
              AllOf(HasSubstr("L23 warning: " + x + " holds 2 checkpoints"), HasSubstr("ambiguous"),
                    HasSubstr("shardwright convert " + x + " --as legacy OUT")));
}

TEST_F(FormatsAgree, OnTheChosenOne) {
  put("hf", "x");
  put("legacy", "x");
  expect_all("hf", {"--as", "hf"});
  expect_all("legacy", {"--as=legacy"});
  const std::string x = place_ / "x";
  const Ran equal = run({"diff", x, x, "--as", "hf", "--other-as", "legacy"});
  EXPECT_EQ(equal.status, kExitFine) << equal.output << equal.messages;
  EXPECT_THAT(equal.output, HasSubstr("EQUAL"));
  const Ran proven = run({"verify", x, "--as", "legacy", "--against", x, "--other-as", "hf"});
  EXPECT_EQ(proven.status, kExitFine) << proven.output << proven.messages;
  EXPECT_EQ(run({"show", x, "model.norm.weight", "--as", "hf"}).status, kExitFine);
  const Ran wrong = run({"hash", x, "--as", "torch_dist"});
  EXPECT_EQ(wrong.status, kExitFailure);
  EXPECT_THAT(wrong.messages, AllOf(HasSubstr("--as torch_dist: " + x + " holds legacy ("),
                                    HasSubstr("no torch_dist")));
  EXPECT_THAT(run({"inspect", x, "--as", "huggingfac"}).messages, HasSubstr("no such format"));
  EXPECT_THAT(run({"diagnose", x, "--as", "legcy"}).messages, HasSubstr("did you mean legacy?"));
}

// A dialect shows in tensors' names once the checkpoint is open.
TEST_F(FormatsAgree, OnDialects) {
  put("fsdp_dtensor", "x");
  expect_all("fsdp_dtensor", {"--as", "fsdp_dtensor"});
  expect_all("fsdp_dtensor", {"--as", "dcp"});
  EXPECT_THAT(run({"inspect", place_ / "x", "--as", "mimo"}).messages,
              HasSubstr("x holds fsdp_dtensor, no mimo"));
}

// A target that keeps the source's names makes no Hugging Face model of it.
TEST_F(FormatsAgree, OnTensorsThatAreNoHfModel) {
  put("safetensors", "x");
  const std::string x = place_ / "x";
  expect_all("safetensors");
  expect_all("safetensors", {"--as", "safetensors"});
  expect_all("safetensors", {"--as", "hf"});
  const auto json = nlohmann::json::parse(run_json({"inspect", x}).output);
  EXPECT_EQ(json["container"], "hf");
  EXPECT_THAT(run({"inspect", *made_ / "hf", "--as", "safetensors"}).messages,
              HasSubstr("holds hf, no safetensors"));
  EXPECT_THAT(run({"split", x, place_ / "out"}).messages,
              HasSubstr("found a safetensors checkpoint, expected a Hugging Face model"));
  // Tensors in Hugging Face's names need no file that says which model it is.
  put("hf", "bare");
  fs::remove(place_ / "bare/config.json");
  EXPECT_EQ(nlohmann::json::parse(run_json({"inspect", place_ / "bare"}).output)["format"], "hf");
  const Ran ran = run({"convert", place_ / "bare", place_ / "again", "--to", "torch_dist",
                       "--hf-config", *made_ / "hf"});
  EXPECT_EQ(ran.status, kExitFine) << ran.messages;
}

// They are read by their names, as every command reads them.
TEST_F(FormatsAgree, ThatMegatronsNamesAreMegatrons) {
  put("safetensors", "x");
  for (const char* format : {"torch_dist", "legacy"}) {
    const std::string again = place_ / format;
    const Ran ran = run({"convert", place_ / "x", again, "--to", format});
    ASSERT_EQ(ran.status, kExitFine) << ran.messages;
    const Ran equal = run({"diff", again, *made_ / "torch_dist"});
    EXPECT_EQ(equal.status, kExitFine) << equal.output << equal.messages;
  }
  // Layers that are stored one by one are stacked, as torch_dist has those of such a model.
  const std::string apart = place_ / "apart";
  ASSERT_EQ(run({"convert", *made_ / "legacy", apart, "--to", "safetensors"}).status, kExitFine);
  const std::string stacked = place_ / "stacked";
  ASSERT_EQ(run({"convert", apart, stacked, "--to", "torch_dist"}).status, kExitFine);
  EXPECT_EQ(run({"diff", stacked, *made_ / "torch_dist", "--own-names"}).status, kExitFine);
  const Ran hf =
      run({"convert", place_ / "x", place_ / "hf", "--to", "hf", "--hf-config", *made_ / "hf"});
  ASSERT_EQ(hf.status, kExitFine) << hf.messages;
  EXPECT_EQ(run({"diff", place_ / "hf", *made_ / "hf", "--own-names"}).status, kExitFine);
}

TEST_F(FormatsAgree, ThatAnUnknownBackendIsNotRead) {
  put("dcp", "x");
  place_.put("x/metadata.json", R"({"sharded_backend": "later"})");
  const std::string x = place_ / "x";
  for (const Words& words : std::vector<Words>{{"inspect", x}, {"hash", x}, {"verify", x}}) {
    EXPECT_THAT(run(words).messages,
                AllOf(HasSubstr("SW0301"), HasSubstr("names the backend 'later'")));
  }
  EXPECT_THAT(run({"diagnose", x}).output, HasSubstr("names the backend 'later'"));
}

}  // namespace
}  // namespace shardwright::cli
