// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "cli/run.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kPointer =
    "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n";

// One file of a checkpoint spoiled, and what messages must say of it.
struct Damage {
  std::string source;  ///< golden folder
  std::string file;
  std::function<void(const fs::path&)> spoil;
  std::string said;
};

std::function<void(const fs::path&)> replaced(const std::string& contents) {
  return [contents](const fs::path& path) {
    fs::permissions(path, fs::perms::owner_all);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << contents;
  };
}

void cut(const fs::path& path) {
  fs::permissions(path, fs::perms::owner_all);
  fs::resize_file(path, fs::file_size(path) / 2);
}

void removed(const fs::path& path) { fs::remove(path); }

const std::vector<Damage>& damages() {
  static const std::vector<Damage> all = [] {
    const std::string hf = "hf/llama3/hf";
    const std::string rank = "mp_rank_01_000/model_optim_rng.pt";
    const std::string legacy = "hf/llama3/legacy_tp2pp2ep1/iter_0000001";
    const std::string torch_dist = "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full/iter_0000010";
    const std::string weights = "model.safetensors";
    const std::string page = "<!DOCTYPE html><title>403</title>";
    return std::vector<Damage>{
        {hf, weights, replaced(kPointer), "Git LFS pointer"},
        {hf, weights, replaced(page), "web page"},
        {hf, weights, replaced(""), "is empty"},
        {hf, weights, replaced(std::string(5000, '\0')), "unfinished download"},
        {hf, weights, replaced("Entry not found"), "Entry not found"},
        {hf, weights, cut, "was cut"},
        {hf, "config.json", replaced(kPointer), "Git LFS pointer"},
        {hf, "config.json", replaced(page), "web page"},
        {hf, "config.json", replaced(""), "is empty"},
        {hf, "generation_config.json", replaced(kPointer), "Git LFS pointer"},
        {legacy, rank, replaced(kPointer), "Git LFS pointer"},
        {legacy, rank, replaced(""), "is empty"},
        {legacy, rank, cut, rank},
        {legacy, rank, removed, "mp_rank_01_000"},
        {torch_dist, ".metadata", replaced(kPointer), "Git LFS pointer"},
        {torch_dist, ".metadata", replaced(""), "is empty"},
        {torch_dist, ".metadata", cut, ".metadata"},
        {torch_dist, "__2_0.distcp", replaced(kPointer), "Git LFS pointer"},
        {torch_dist, "__2_0.distcp", replaced(""), "is empty"},
        {torch_dist, "__2_0.distcp", cut, "__2_0.distcp"},
        {torch_dist, "__2_0.distcp", removed, "__2_0.distcp"},
        {torch_dist, "common.pt", replaced(kPointer), "Git LFS pointer"},
        {torch_dist, "common.pt", cut, "common.pt"},
        {torch_dist, "metadata.json", replaced(kPointer), "metadata.json"},
    };
  }();
  return all;
}

struct Answer {
  int status = 0;
  std::string text;
};

Answer answer(const std::vector<std::string>& words) {
  Console::Capture capture;
  Console console(capture);
  const int status = run_command_line(words, console);
  return {status, capture.output + capture.messages};
}

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

void expect_one_clean_message(const Answer& answer, const Damage& damage, const std::string& path) {
  EXPECT_NE(answer.status, kExitFine);
  EXPECT_THAT(answer.text,
              AllOf(HasSubstr(damage.said), Not(HasSubstr(".partial-")), Not(HasSubstr("SW0999"))));
  std::istringstream lines(answer.text);
  for (std::string line; std::getline(lines, line);) {
    EXPECT_LE(count_of(line, path), 1u) << line;
    EXPECT_LE(count_of(line, damage.file + ": " + damage.file), 0u) << line;
  }
}

TEST(MalformedInput, EachCommandSaysWhatIsWrongOnce) {
  int number = 0;
  for (const Damage& damage : damages()) {
    const TemporaryFolder folder;
    const std::string path = folder / "in";
    fs::copy(golden_path(damage.source), path, fs::copy_options::recursive);
    damage.spoil(fs::path(path) / damage.file);
    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"inspect", path},
             {"plan", path, folder / "out", "--to", "safetensors"},
             {"convert", path, folder / "out", "--to", "safetensors"},
             {"verify", path},
             {"hash", path},
             {"diff", path, golden_path(damage.source)},
             {"show", path, "embedding.word_embeddings.weight"}}) {
      SCOPED_TRACE(std::to_string(number) + " " + words[0] + " " + damage.file);
      expect_one_clean_message(answer(words), damage, path);
    }
    EXPECT_FALSE(fs::exists(folder / "out"));
    ++number;
  }
}

// A file that is cut is one defect; the tensors that it would hold are not missing besides.
TEST(MalformedInput, AnUnreadableFileIsOneFinding) {
  for (const Damage& damage : damages()) {
    if (damage.file != "model.safetensors" && damage.file != ".metadata") continue;
    const TemporaryFolder folder;
    const std::string path = folder / "in";
    fs::copy(golden_path(damage.source), path, fs::copy_options::recursive);
    damage.spoil(fs::path(path) / damage.file);
    const Answer verified = answer({"verify", path});
    EXPECT_EQ(verified.status, kExitFindings) << damage.said;
    EXPECT_EQ(count_of(verified.text, "error["), 1u) << verified.text;
    EXPECT_EQ(count_of(verified.text, "warning["), 0u) << verified.text;
  }
}

}  // namespace
}  // namespace shardwright::cli
