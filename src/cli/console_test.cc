// SPDX-License-Identifier: Apache-2.0
#include "cli/console.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>

namespace shardwright::cli {
namespace {

using ::testing::HasSubstr;

// A stream that remembers what was written to it.
class Recorder {
 public:
  Recorder() : fd_(::memfd_create("recorder", 0)) {}
  ~Recorder() { ::close(fd_); }
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] std::string text() const {
    std::string text(static_cast<std::size_t>(::lseek(fd_, 0, SEEK_END)), '\0');
    EXPECT_EQ(::pread(fd_, text.data(), text.size(), 0), static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  int fd_;
};

TEST(Console, SeparatesDataFromMessages) {
  const Recorder out;
  const Recorder err;
  Console console({.output = out.fd(), .messages = err.fd(), .colour = true});
  console.print("data\n");
  console.message("a\x1b[2Jb");
  console.error(Error{Code::kTargetExists, "out: found a folder\nx", 0});
  console.status_line("50 %");
  EXPECT_EQ(console.exit_status(kExitFindings), kExitFindings);
  EXPECT_EQ(out.text(), "data\n");
  EXPECT_EQ(err.text(), "a\\x1b[2Jb\nerror[SW0107]: out: found a folder\\nx\n");
  EXPECT_EQ(console.bold("x"), "x");
}

TEST(Console, SaysInChineseWhatACodeMeans) {
  const Recorder err;
  Console console({.messages = err.fd()});
  console.speak(Language::kChinese);
  console.error(Error{Code::kNotFound, "x: found nothing", 0});
  EXPECT_EQ(err.text(), "error[SW0101] 文件或文件夹不存在: x: found nothing\n");
}

TEST(Console, ColoursAndProgressNeedATerminal) {
  const Recorder out;
  const Recorder err;
  Console console({.output = out.fd(),
                   .messages = err.fd(),
                   .output_is_terminal = true,
                   .messages_are_terminal = true,
                   .colour = true});
  console.status_line("50 %");
  console.error(Error{Code::kIo, "x: y", 0});
  EXPECT_EQ(err.text(), "\r\x1b[K50 %\r\x1b[K\x1b[1;31merror[SW0103]:\x1b[0m x: y\n");
  EXPECT_EQ(console.bold("x"), "\x1b[1mx\x1b[0m");
}

TEST(Console, QuietKeepsDataWarningsAndErrors) {
  const Recorder out;
  const Recorder err;
  Console console({.output = out.fd(), .messages = err.fd()});
  console.note("told");
  ASSERT_TRUE(console.apply({.quiet = true}, ""));
  console.note("not told");
  console.message("warning: w");
  console.print("data\n");
  EXPECT_EQ(out.text(), "data\n");
  EXPECT_EQ(err.text(), "note: told\nwarning: w\n");
}

TEST(Console, InJsonEveryMessageIsAnObject) {
  const Recorder out;
  const Recorder err;
  Console console({.output = out.fd(), .messages = err.fd()});
  ASSERT_TRUE(console.apply({.progress = ProgressStyle::kJson}, ""));
  console.note("a \"note\"");
  console.message("warning: w");
  console.error(Error{Code::kIo, "x: y", 0});
  EXPECT_EQ(err.text(),
            "{\"event\": \"note\", \"text\": \"a \\\"note\\\"\"}\n"
            "{\"event\": \"message\", \"text\": \"warning: w\"}\n"
            "{\"event\": \"error\", \"code\": \"SW0103\", \"text\": \"x: y\"}\n");
}

TEST(Console, ALogThatCannotBeWrittenIsAWarning) {
  const Recorder out;
  const Recorder err;
  Console console({.output = out.fd(), .messages = err.fd()});
  ASSERT_TRUE(console.apply({.log_file = "/dev/full"}, "began"));
  EXPECT_EQ(console.exit_status(kExitFine), kExitFine);
  EXPECT_THAT(err.text(), HasSubstr("warning: --log-file: not everything is in it"));
}

TEST(Console, ABrokenPipeIsNoFailure) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const Recorder err;
  Console console({.output = ends[1], .messages = err.fd()});
  console.print("data\n");
  console.print("more\n");
  EXPECT_EQ(console.exit_status(kExitFine), kExitFine);
  EXPECT_EQ(err.text(), "");
  ::close(ends[1]);
}

TEST(Console, AnOutputThatIsFullIsAnError) {
  const int full = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(full, 0);
  const Recorder err;
  Console console({.output = full, .messages = err.fd()});
  console.print("data\n");
  EXPECT_EQ(console.exit_status(kExitFine), kExitFailure);
  EXPECT_THAT(err.text(), HasSubstr("error[SW0103]: standard output"));
  ::close(full);
}

}  // namespace
}  // namespace shardwright::cli
