// SPDX-License-Identifier: Apache-2.0
#include "cli/progress_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "testing/temporary_folder.h"

namespace shardwright::cli {
namespace {

TEST(ProgressText, TellsRateTimeAndMemory) {
  const ProgressSample sample{{1'200'000'000, 2'400'000'000}, 2.0, std::uint64_t{118} << 20};
  EXPECT_EQ(progress_text(sample, 100),
            "copying  50 %  1.20 GB of 2.40 GB  0.60 GB/s  ETA 2.00 s  RSS 118 MiB");
  EXPECT_EQ(progress_text(sample, 20), "copying  50 %  1.20…");
}

TEST(ProgressText, SaysNothingThatItDoesNotKnow) {
  EXPECT_EQ(progress_text({{0, 2'000}, 5.0, 0}, 100), "copying   0 %  0 bytes of 2.00 kB");
  EXPECT_EQ(progress_text({{1'000, 2'000}, 0.1, 0}, 100), "copying  50 %  1.00 kB of 2.00 kB");
  EXPECT_EQ(progress_text({{0, 0}, 0.0, 0}, 100), "copying 100 %  0 bytes of 0 bytes");
}

TEST(ProgressText, ReachesAHundredOnlyAtTheEnd) {
  EXPECT_EQ(progress_text({{999, 1'000}, 0.0, 0}, 13), "copying  99 …");
  EXPECT_EQ(progress_text({{1'001, 1'000}, 0.0, 0}, 13), "copying 100 …");
}

TEST(ProgressJson, HasNumbersAndNullForWhatIsNotKnown) {
  const auto early = nlohmann::json::parse(progress_json({{0, 2'000}, 5.0, 0}));
  EXPECT_EQ(early["event"], "progress");
  EXPECT_EQ(early["bytes_total"], 2'000);
  EXPECT_TRUE(early["bytes_per_second"].is_null());
  EXPECT_TRUE(early["eta_seconds"].is_null());
  const std::string line = progress_json({{500, 2'000}, 5.0, 7, RunPhase::kRead});
  EXPECT_EQ(line.find('\n'), line.size() - 1) << "one line";
  const auto later = nlohmann::json::parse(line);
  EXPECT_EQ(later["phase"], "read");
  EXPECT_EQ(later["bytes_per_second"], 100.0);
  EXPECT_EQ(later["eta_seconds"], 15.0);
  EXPECT_EQ(later["resident_bytes"], 7);
}

// A run of 125 seconds, a report each eighth of a second, told on a stream that is remembered.
class ToldRun {
 public:
  ToldRun(const ConsoleOptions& options, bool is_terminal) : fd_(::memfd_create("told", 0)) {
    Console console(
        Console::Streams{.output = fd_, .messages = fd_, .messages_are_terminal = is_terminal});
    EXPECT_TRUE(console.apply(options, "shardwright: test"));
    {
      ProgressLine line(console, [this] { return now_; });
      line.begin(RunPhase::kCompare, 3'000'000'000);
      now_ += 50.0;
      line.begin(RunPhase::kCopy, 1'000);
      for (int report = 0; report <= 1'000; ++report) {
        line.update({static_cast<std::uint64_t>(report), 1'000});
        now_ += 0.125;
      }
      line.begin(RunPhase::kPublish, 0);
    }
    EXPECT_EQ(console.exit_status(0), 0);
  }
  ~ToldRun() { ::close(fd_); }
  ToldRun(const ToldRun&) = delete;
  ToldRun& operator=(const ToldRun&) = delete;

  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(fd_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  int fd_;
  double now_ = 1'000.0;
};

std::size_t count_of(std::string_view text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(ProgressLine, WithoutATerminalIsALineEveryFivePercent) {
  const std::string text = ToldRun({}, false).text();
  EXPECT_THAT(text, testing::StartsWith("comparing what is stored twice: 3.00 GB\ncopying   5 %"));
  EXPECT_EQ(count_of(text, "\n"), 21u) << text;
  EXPECT_EQ(text.find('\r'), text.npos);
  EXPECT_THAT(text, testing::HasSubstr("copying  50 %  500 bytes of 1.00 kB"));
  EXPECT_THAT(text, testing::HasSubstr("ETA 1m03s")) << "the phase before it does not count";
}

TEST(ProgressLine, OnATerminalIsRewritten) {
  const std::string text = ToldRun({}, true).text();
  EXPECT_THAT(text, testing::StartsWith("\r\x1b[Kcomparing what is stored twice: 3.00 GB"));
  EXPECT_GT(count_of(text, "\r"), 900u);
  EXPECT_EQ(text.find('\n'), text.npos);
  EXPECT_THAT(text, testing::HasSubstr("publishing"));
  EXPECT_EQ(count_of(ToldRun({.progress = ProgressStyle::kPlain}, true).text(), "\n"), 21u);
}

TEST(ProgressLine, InJsonIsAnObjectASecond) {
  const std::string text = ToldRun({.progress = ProgressStyle::kJson}, true).text();
  std::vector<std::string> events;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const auto event = nlohmann::json::parse(text.substr(at, end - at));
    events.push_back(std::string(event["event"]) + " " + std::string(event["phase"]));
    at = end + 1;
  }
  EXPECT_EQ(events.size(), 3u + 126u);
  EXPECT_EQ(events[0], "phase compare");
  EXPECT_EQ(events[1], "phase copy");
  EXPECT_EQ(events[2], "progress copy");
  EXPECT_EQ(events.back(), "phase publish");
}

TEST(ProgressLine, IsSilentWhereNobodyWantsItButTheLogHasIt) {
  EXPECT_EQ(ToldRun({.progress = ProgressStyle::kNone}, true).text(), "");
  const TemporaryFolder folder;
  const std::string path = folder / "run.log";
  EXPECT_EQ(ToldRun({.quiet = true, .log_file = path}, true).text(), "");
  const std::string log = folder.get("run.log");
  EXPECT_EQ(count_of(log, "\n"), 23u) << log;
  EXPECT_THAT(log, testing::HasSubstr("Z shardwright: test\n"));
  EXPECT_THAT(log, testing::HasSubstr("Z copying  50 %"));
  EXPECT_THAT(log, testing::EndsWith("Z exit status 0\n"));
}

TEST(ResidentBytes, IsThatOfALivingProcess) {
  EXPECT_GT(resident_bytes(), std::uint64_t{100'000});
  EXPECT_LT(resident_bytes(), std::uint64_t{1} << 40);
}

}  // namespace
}  // namespace shardwright::cli
