// SPDX-License-Identifier: Apache-2.0
// Conversions whose parts are written by processes that don't talk, which are threads here.
#include "shardwright/parts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <thread>

#include "convert/golden.h"
#include "convert/part_journals.h"
#include "convert/saved_plan.h"
#include "exec/payload_place.h"
#include "io/partial_outputs.h"
#include "testing/golden_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// Smaller than tensors of the golden files: some are done in several pieces.
constexpr std::uint64_t kSmallPieces = 700;

struct PartsWay {
  std::string name;
  std::string golden;
  std::string format;
  ParallelConfig parallel;
  bool digests = false;
  std::string family = {};  // where nothing names it, each part would try them all
};

std::map<std::string, std::string> files_in(const TemporaryFolder& place, const std::string& name) {
  std::map<std::string, std::string> files;
  const fs::path root = place.path() / name;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    if (!entry.is_regular_file()) continue;
    const std::string path = fs::relative(entry.path(), root).string();
    files[path] = place.get(name + "/" + path);
  }
  return files;
}

// Of what must fail; no code at all where it does not.
Error error_of(const Result<ConvertReport>& report) {
  EXPECT_FALSE(report);
  return report ? Error{Code::kInternal, "", 0} : report.error();
}

class PartsOf : public testing::Test {
 protected:
  void plan_for(const PartsWay& way, const std::string& output = "out") {
    ConvertRequest request;
    request.input = place_ / "in";
    request.output = place_ / output;
    request.format = way.format;
    request.parallel = way.parallel;
    request.digests = way.digests;
    request.family = way.family;
    request.threads = 2;
    plan_ = save_plan(prepare_conversion(request).value()).value();
    plan_.piece_bytes = kSmallPieces;
    plan_.file = place_ / "p.plan";
  }
  void copy_source(const std::string& golden) {
    fs::copy(golden_path(golden), place_ / "in", fs::copy_options::recursive);
  }

  // What a process of its own does.
  Result<ConvertReport> do_part(Part part, const RunOptions& options = {}) const {
    const PreparedConversion conversion = SW_TRY(prepare_conversion(plan_.request));
    return run_part(conversion, plan_, part, options);
  }
  Result<ConvertReport> publish(const RunOptions& options = {}) const {
    const PreparedConversion conversion = SW_TRY(prepare_conversion(plan_.request));
    return publish_parts(conversion, plan_, options);
  }
  void do_parts(std::uint32_t count, std::vector<std::uint32_t> numbers) const {
    for (const std::uint32_t number : numbers) {
      const auto report = do_part({number, count});
      EXPECT_TRUE(report) << report.error().text();
    }
  }

  std::string folder() const {
    return parts_folder(fs::canonical(place_.path()) / "out", parts_id_of(plan_));
  }
  std::string journal(Part part) const { return folder() + "/" + part_journal_name(part); }
  // The bytes of each part.
  std::vector<std::uint64_t> shares(std::uint32_t count) const {
    const PreparedConversion conversion = prepare_conversion(plan_.request).value();
    const PieceList pieces(conversion.plan, plan_.piece_bytes);
    std::vector<std::uint64_t> bytes;
    for (const auto& share : pieces_of_parts(pieces, count)) {
      bytes.push_back(0);
      for (const std::uint32_t piece : share) bytes.back() += pieces.bytes(piece);
    }
    return bytes;
  }

  TemporaryFolder place_;
  SavedPlan plan_;
};

const PartsWay kReshard{"reshard", "hf/llama3/hf", "torch_dist", {.tensor = 2}};

class PartsOfEach : public PartsOf, public testing::WithParamInterface<PartsWay> {
 protected:
  void SetUp() override {
    copy_source(GetParam().golden);
    plan_for(GetParam(), "alone");
    const auto alone = convert_now(plan_.request);
    ASSERT_TRUE(alone) << alone.error().text();
    expected_ = files_in(place_, "alone");
    plan_for(GetParam());
  }
  void expect_published() {
    const auto report = publish();
    ASSERT_TRUE(report) << report.error().text();
    EXPECT_EQ(files_in(place_, "out"), expected_);
    EXPECT_FALSE(fs::exists(folder()));
    fs::remove_all(place_ / "out");
  }

  std::map<std::string, std::string> expected_;
};

TEST_P(PartsOfEach, WriteTheSameBytesWhateverTheirNumberAndOrder) {
  for (const std::uint32_t count : {1U, 3U, 8U}) {
    for (std::uint32_t number = count; number > 0; --number) do_parts(count, {number});
    expect_published();
  }
}

TEST_P(PartsOfEach, WriteTheSameBytesAtOnce) {
  for (const std::uint32_t count : {8U}) {
    std::vector<std::optional<Error>> errors(count);
    std::vector<std::jthread> threads;
    for (std::uint32_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        const auto report = do_part({i + 1, count});
        if (!report) errors[i] = report.error();
      });
    }
    threads.clear();
    for (const auto& error : errors) EXPECT_FALSE(error) << error->text();
    expect_published();
  }
}

TEST_P(PartsOfEach, ShareOutEveryByteOnce) {
  const std::uint64_t whole = shares(1).front();
  std::uint64_t sum = 0;
  for (const std::uint64_t share : shares(8)) {
    sum += share;
    EXPECT_LT(share, whole / 4);
  }
  EXPECT_EQ(sum, whole);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, PartsOfEach,
    testing::Values(
        kReshard, PartsWay{"legacy", "hf/llama3/hf", "legacy", {.tensor = 2, .pipeline = 2}},
        PartsWay{"hf", "mcore/dense_te/v0.16.1/tp2pp2-torch_dist-full", "hf", {}, false, "llama"},
        PartsWay{"digests", "hf/llama3/hf", "hf", {}, true}),
    [](const auto& way) { return way.param.name; });

class Parts : public PartsOf {
 protected:
  void SetUp() override {
    copy_source(kReshard.golden);
    plan_for(kReshard);
  }
};

TEST_F(Parts, AreMissingWhereTheyAreNotDone) {
  EXPECT_EQ(error_of(publish()).code, Code::kPartsMissing);
  EXPECT_FALSE(fs::exists(folder())) << "publish begins nothing";
  do_parts(8, {8, 1, 4, 2, 7, 6});
  const std::string before = place_.tree();
  const auto report = publish();
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, Code::kPartsMissing);
  EXPECT_THAT(report.error().message,
              HasSubstr("out: parts 3/8 and 5/8 are missing; run them again"));
  EXPECT_EQ(place_.tree(), before);
  do_parts(8, {3});
  EXPECT_THAT(error_of(publish()).message, HasSubstr("out: part 5/8 is missing; run it again"));
  do_parts(8, {5});
  EXPECT_TRUE(publish());
}

// What is written but was not told to be durable is not done.
TEST_F(Parts, AreMissingWithoutTheirEnd) {
  do_parts(2, {1, 2});
  fs::resize_file(journal({2, 2}), fs::file_size(journal({2, 2})) - 1);
  EXPECT_THAT(error_of(publish()).message, HasSubstr("part 2/2 is missing"));
  const auto again = do_part({2, 2});
  ASSERT_TRUE(again) << again.error().text();
  EXPECT_EQ(again->bytes_written, 0U);
  EXPECT_EQ(again->bytes_resumed, shares(2)[1]);
  EXPECT_EQ(again->files_written, 0U);
  EXPECT_TRUE(publish());
}

TEST_F(Parts, OfDifferentCountsAreNotMixed) {
  do_parts(2, {1});
  do_parts(3, {1, 3});
  const auto mixed = publish();
  ASSERT_FALSE(mixed);
  EXPECT_EQ(mixed.error().code, Code::kPartsMissing);
  EXPECT_THAT(mixed.error().message, HasSubstr("2 different counts"));
  do_parts(3, {2});
  EXPECT_TRUE(publish()) << "all of one count are there";
  EXPECT_EQ(place_.tree().find("journal"), std::string::npos);
}

// As if it had been killed: its journal ends in the middle.
TEST_F(Parts, ThatWereKilledWriteOnlyTheRest) {
  const std::uint64_t whole = shares(3)[1];
  for (const std::uint64_t cut : {13, 60, 200}) {
    do_parts(3, {1, 2, 3});
    const std::uint64_t size = fs::file_size(journal({2, 3}));
    ASSERT_GT(size, 400U);
    fs::resize_file(journal({2, 3}), size - cut);
    const auto again = do_part({2, 3});
    ASSERT_TRUE(again) << again.error().text();
    EXPECT_GT(again->bytes_written, 0U) << cut;
    EXPECT_LT(again->bytes_written, whole / 2) << cut;
    EXPECT_EQ(again->bytes_written + again->bytes_resumed, whole) << cut;
    EXPECT_TRUE(publish());
    fs::remove_all(place_ / "out");
  }
  // A journal of which nothing is left says nothing.
  do_parts(3, {1, 2, 3});
  fs::resize_file(journal({2, 3}), 5);
  EXPECT_EQ(do_part({2, 3})->bytes_written, whole);
  EXPECT_TRUE(publish());
}

TEST_F(Parts, AreNotWrittenOverWhatTheyDidNotMake) {
  do_parts(2, {1, 2});
  const std::string file = folder() + "/iter_0000000/.metadata";
  const std::uint64_t size = fs::file_size(file);
  fs::resize_file(file, size + 1);
  for (const Error& told : {error_of(do_part({2, 2})), error_of(publish())}) {
    EXPECT_EQ(told.code, Code::kCannotResume);
    EXPECT_THAT(told.message, HasSubstr(fmt::format(
                                  "{}: found a file of {} bytes, expected an unfinished file of "
                                  "at most {} bytes",
                                  file, size + 1, size)));
  }
  fs::remove(file);
  do_parts(2, {2});
  EXPECT_TRUE(publish());
}

TEST_F(Parts, ThatAreStoppedGoOn) {
  const std::atomic<bool> cancelled = true;
  RunOptions options;
  options.cancelled = &cancelled;
  const auto stopped = do_part({1, 1}, options);
  ASSERT_FALSE(stopped);
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  EXPECT_THAT(stopped.error().message, HasSubstr("the same command goes on"));
  EXPECT_TRUE(fs::exists(folder()));
  EXPECT_TRUE(do_part({1, 1}));
  EXPECT_EQ(error_of(publish(options)).code, Code::kCancelled);
  EXPECT_TRUE(fs::exists(folder())) << "what could not be published is not lost";
  EXPECT_TRUE(publish());
}

TEST_F(Parts, ThatCouldNotAppearCanBePublishedAgain) {
  do_parts(2, {1, 2});
  std::atomic<bool> cancelled = false;
  RunOptions options;
  options.cancelled = &cancelled;
  options.on_phase = [&](RunPhase phase, std::uint64_t) {
    cancelled = phase == RunPhase::kPublish;
  };
  EXPECT_EQ(error_of(publish(options)).code, Code::kCancelled);
  EXPECT_TRUE(publish());
}

TEST_F(Parts, ThatArePublishedAreNotSaidToBeMissing) {
  EXPECT_THAT(error_of(publish()).message, HasSubstr("no part of it is written"));
  do_parts(1, {1});
  EXPECT_TRUE(publish());
  for (const Error& told : {error_of(publish()), error_of(do_part({1, 1}))}) {
    EXPECT_EQ(told.code, Code::kTargetExists);
    EXPECT_THAT(told.message, HasSubstr("an earlier 'publish' has done it"));
  }
  plan_.request.overwrite = true;
  const Error again = error_of(publish());
  EXPECT_EQ(again.code, Code::kPartsMissing);
  EXPECT_THAT(again.message, HasSubstr("an earlier 'publish' has done it"));
  fs::resize_file(plan_.request.output + "/latest_checkpointed_iteration.txt", 0);
  EXPECT_THAT(error_of(publish()).message, HasSubstr("no part of it is written"));
  plan_.request.overwrite = false;
  for (const Error& told : {error_of(publish()), error_of(do_part({1, 1}))}) {
    EXPECT_EQ(told.code, Code::kTargetExists);
    EXPECT_THAT(told.message, HasSubstr("found a folder that is not empty"));
  }
}

TEST_F(Parts, ArePublishedOnlyAsTheyWereWritten) {
  do_parts(3, {1, 2, 3});
  {
    const PreparedConversion conversion = prepare_conversion(plan_.request).value();
    const PieceList pieces(conversion.plan, plan_.piece_bytes);
    const PayloadPlace place = place_of(conversion.plan, pieces.runs(5).front()).value();
    std::fstream file(folder() + "/" + conversion.plan.target.files[place.file],
                      std::ios::in | std::ios::out | std::ios::binary);
    file.seekg(static_cast<std::streamoff>(place.offset));
    const char byte = static_cast<char>(~file.get());
    file.seekp(static_cast<std::streamoff>(place.offset));
    file.put(byte);
  }
  const auto damaged = publish();
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().code, Code::kPartsMissing);
  EXPECT_THAT(damaged.error().message, HasSubstr("not as it was written"));
  std::uint64_t written = 0;
  for (std::uint32_t number = 1; number <= 3; ++number) {
    written += do_part({number, 3}).value().bytes_written;
  }
  EXPECT_GT(written, 0U);
  EXPECT_LE(written, 3 * kSmallPieces) << "only the piece that is damaged";
  EXPECT_TRUE(publish());
}

TEST_F(Parts, AreRefusedWhereTheSourceChanged) {
  do_parts(2, {1, 2});
  for (const auto& entry : fs::directory_iterator(place_ / "in")) {
    if (entry.path().extension() != ".safetensors") continue;
    fs::last_write_time(entry, fs::last_write_time(entry) + std::chrono::seconds(1));
    break;
  }
  for (const auto& report : {do_part({1, 2}), publish()}) {
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::kCannotResume);
    EXPECT_THAT(report.error().message, HasSubstr("p.plan"));
    EXPECT_THAT(report.error().message, HasSubstr("files of the source changed"));
  }
}

TEST_F(Parts, AreRefusedWhereThePlanIsAnother) {
  plan_.request.dtype = DType::kF32;
  for (const auto& report : {do_part({1, 2}), publish()}) {
    ASSERT_FALSE(report);
    EXPECT_EQ(report.error().code, Code::kCannotResume);
    EXPECT_THAT(report.error().message, HasSubstr("planned otherwise"));
  }
  EXPECT_EQ(place_.tree().find("parts-"), std::string::npos);
}

TEST_F(Parts, AreRefusedBeyondTheirCount) {
  for (const Part part : {Part{0, 8}, Part{9, 8}, Part{1, kMostParts + 1}}) {
    EXPECT_EQ(error_of(do_part(part)).code, Code::kUsage) << part_text(part);
  }
  EXPECT_EQ(place_.tree().find("parts-"), std::string::npos);
}

// What guards the source is compared once, by the first part.
TEST_F(Parts, AreOfASourceThatIsSound) {
  ConvertRequest request = plan_.request;
  request.output = place_ / "guarded";
  request.format = "hf";
  request.digests = true;
  ASSERT_TRUE(convert_now(request));
  fs::remove_all(place_ / "in");
  fs::rename(place_ / "guarded", place_ / "in");
  std::fstream file(place_ / "in/model.safetensors",
                    std::ios::in | std::ios::out | std::ios::binary);
  ASSERT_TRUE(file.seekp(-1, std::ios::end));
  file.put('!');
  file.close();
  plan_for(kReshard);
  EXPECT_EQ(error_of(do_part({1, 2})).code, Code::kDigestMismatch);
  EXPECT_TRUE(do_part({2, 2}));
  EXPECT_THAT(error_of(publish()).message, HasSubstr("part 1/2 is missing"));
}

TEST_F(Parts, AreDoneByOneProcessAtATime) {
  do_parts(2, {1, 2});
  {
    const auto held = PieceJournal::hold(journal({2, 2})).value();
    const auto second = do_part({2, 2});
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, Code::kTargetExists);
    EXPECT_THAT(second.error().message, HasSubstr("another process works on this now"));
    EXPECT_EQ(error_of(publish()).code, Code::kTargetExists) << "it may still write";
    EXPECT_TRUE(do_part({1, 2}));
  }
  EXPECT_TRUE(publish());
}

TEST_F(Parts, OfAnotherPlanAreNotMixedIn) {
  do_parts(2, {1, 2});
  const std::string first = folder();
  plan_for({"other", kReshard.golden, "torch_dist", {.tensor = 1}});
  EXPECT_NE(folder(), first);
  EXPECT_EQ(error_of(publish()).code, Code::kPartsMissing);
  do_parts(1, {1});
  EXPECT_TRUE(publish());
  EXPECT_TRUE(fs::exists(first));
}

// Two models whose files have equal names, sizes and times: only where they lie tells them apart.
TEST_F(Parts, OfAnotherSourceHaveAnotherFolder) {
  const std::string before = parts_id_of(plan_);
  SavedPlan other = plan_;
  other.request.input += "-of-the-next-step";
  EXPECT_NE(parts_id_of(other), before);
}

TEST_F(Parts, AreListedAndRemovedAsLeftovers) {
  do_parts(2, {1});
  const auto outputs = list_partial_outputs(place_.path()).value();
  ASSERT_EQ(outputs.size(), 1U);
  EXPECT_EQ(outputs[0].path, folder());
  EXPECT_EQ(outputs[0].target, "out");
  EXPECT_EQ(outputs[0].process, 0);
  EXPECT_EQ(outputs[0].state, PartialState::kAbandoned);
  EXPECT_EQ(remove_partial_output(outputs[0]).value(), PartialState::kAbandoned);
  EXPECT_FALSE(fs::exists(folder()));
}

TEST(PartJournal, IsNamedByItsPart) {
  EXPECT_EQ(part_journal_name({3, 8}), ".shardwright-journal-3-of-8");
  const auto part = part_of_journal(".shardwright-journal-3-of-8");
  ASSERT_TRUE(part);
  EXPECT_EQ(part_text(*part), "3/8");
  for (const char* name :
       {".shardwright-journal", ".shardwright-journal-3", ".shardwright-journal-3-of-",
        ".shardwright-journal-0-of-8", ".shardwright-journal-9-of-8",
        ".shardwright-journal-3-of-8x", ".shardwright-journal-03-of-8",
        ".shardwright-journal-1-of-99999999", "common.pt"}) {
    EXPECT_FALSE(part_of_journal(name)) << name;
  }
}

}  // namespace
}  // namespace shardwright
