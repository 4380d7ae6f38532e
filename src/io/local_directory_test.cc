// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/endian.h"
#include "io/beneath.h"
#include "io/file_limit.h"
#include "io/memory_directory.h"
#include "shardwright/storage.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string read_text(const ReadableFile& file, std::uint64_t offset, std::size_t length) {
  std::string text(length, '?');
  EXPECT_TRUE(file.read_at(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result.has_value());
  return result ? Error{} : result.error();
}

std::vector<std::string> names_of(const std::vector<DirectoryEntry>& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) {
    names.push_back(entry.name +
                    (entry.is_directory ? "/" : ":" + std::to_string(entry.size_bytes)));
  }
  return names;
}

/// Both kinds of directory must keep the same rules.
class AnyDirectory : public ::testing::TestWithParam<bool> {
 protected:
  AnyDirectory() {
    if (GetParam()) {
      directory_ = open_local_directory(folder_.path().string()).value();
    } else {
      directory_ = std::make_unique<MemoryDirectory>();
    }
  }
  void put(std::string_view path, std::string_view contents) {
    auto file = directory_->create(path, contents.size()).value();
    EXPECT_TRUE(file->write_at(0, as_bytes(contents)));
  }
  TemporaryFolder folder_;
  std::unique_ptr<Directory> directory_;
};

INSTANTIATE_TEST_SUITE_P(LocalAndMemory, AnyDirectory, ::testing::Bool());

TEST_P(AnyDirectory, ReadsWhatWasWritten) {
  auto file = directory_->create("deep/er/data", 10).value();
  EXPECT_TRUE(file->write_at(4, as_bytes("efghij")));
  EXPECT_TRUE(file->write_at(0, as_bytes("abcd")));
  file->start_writeback(0, 10);
  EXPECT_TRUE(file->sync());
  const auto reader = directory_->open("deep/er/data").value();
  EXPECT_EQ(reader->size(), 10u);
  EXPECT_EQ(read_text(*reader, 0, 10), "abcdefghij");
  EXPECT_EQ(read_text(*reader, 3, 4), "defg");
  EXPECT_EQ(read_text(*reader, 10, 0), "");
  EXPECT_THAT(reader->name(), HasSubstr("/deep/er/data"));
}

TEST_P(AnyDirectory, ReservedBytesThatNobodyWroteAreZero) {
  auto file = directory_->create("data", 3).value();
  EXPECT_TRUE(file->write_at(1, as_bytes("x")));
  EXPECT_EQ(read_whole(*directory_, "data", 100).value(), std::string("\0x\0", 3));
}

TEST_P(AnyDirectory, WritesMorePiecesThanOneSystemCallTakes) {
  std::string expected;
  std::vector<std::string> parts;
  for (int i = 0; i < 5000; ++i)
    parts.push_back(std::string(static_cast<std::size_t>(i % 7), char('a' + i % 26)));
  std::vector<std::span<const std::byte>> pieces;
  for (const std::string& part : parts) {
    expected += part;
    pieces.push_back(as_bytes(part));
  }
  auto file = directory_->create("data", expected.size() + 2).value();
  EXPECT_TRUE(file->write_at(2, pieces));
  EXPECT_EQ(read_whole(*directory_, "data", 1 << 20).value(), std::string(2, '\0') + expected);
  EXPECT_EQ(error_of(file->write_at(3, pieces)).code, Code::kInternal);
}

TEST_P(AnyDirectory, RefusesToReadPastTheEnd) {
  put("data", "12345");
  const auto reader = directory_->open("data").value();
  std::vector<std::byte> buffer(3);
  const Error error = error_of(reader->read_at(3, buffer));
  EXPECT_EQ(error.code, Code::kShortRead);
  EXPECT_THAT(error.message, HasSubstr("data@3: found a file of 5 bytes (5 when it was opened), "
                                       "expected 3 bytes from here"));
  EXPECT_EQ(error_of(reader->read_at(~std::uint64_t{0}, buffer)).code, Code::kShortRead);
}

TEST_P(AnyDirectory, RefusesToWritePastTheReservedSize) {
  auto file = directory_->create("data", 4).value();
  EXPECT_EQ(error_of(file->write_at(1, as_bytes("abcd"))).code, Code::kInternal);
  EXPECT_EQ(error_of(file->write_at(~std::uint64_t{0}, as_bytes("ab"))).code, Code::kInternal);
  EXPECT_EQ(read_whole(*directory_, "data", 9).value(), std::string(4, '\0'));
}

TEST_P(AnyDirectory, RefusesPathsThatAreNotPlain) {
  put("a", "x");
  const std::string nul("a\0b", 3);
  const std::string too_long(256, 'n');
  for (const std::string& path :
       {std::string(""), std::string("/a"), std::string("/etc/passwd"), std::string(".."),
        std::string("../a"), std::string("b/../a"), std::string("b/.."), std::string("./a"),
        std::string("b//a"), std::string("a/"), nul, too_long}) {
    EXPECT_EQ(error_of(directory_->open(path)).code, Code::kPathEscapes) << path;
    EXPECT_EQ(error_of(directory_->create(path, 1)).code, Code::kPathEscapes) << path;
    if (!path.empty()) {
      EXPECT_EQ(error_of(directory_->list(path)).code, Code::kPathEscapes) << path;
      EXPECT_FALSE(directory_->exists(path)) << path;
    }
  }
  EXPECT_EQ(names_of(directory_->list("").value()), std::vector<std::string>{"a:1"});
}

TEST_P(AnyDirectory, DotsInsideANameAreFine) {
  put("..a/b..c/...", "x");
  EXPECT_TRUE(directory_->exists("..a/b..c/..."));
}

TEST_P(AnyDirectory, NeverReplacesAFile) {
  put("data", "old");
  const Error error = error_of(directory_->create("data", 7));
  EXPECT_EQ(error.code, Code::kTargetExists);
  EXPECT_THAT(error.message, HasSubstr("data: found something there"));
  EXPECT_EQ(read_whole(*directory_, "data", 9).value(), "old");
}

TEST_P(AnyDirectory, ListsOneFolderSorted) {
  put("b/z", "1");
  put("b/a", "22");
  put("b-x", "");
  put("c/d/e", "");
  EXPECT_THAT(names_of(directory_->list("").value()), ElementsAre("b/", "b-x:0", "c/"));
  EXPECT_THAT(names_of(directory_->list("b").value()), ElementsAre("a:2", "z:1"));
  EXPECT_EQ(error_of(directory_->list("absent")).code, Code::kNotFound);
  EXPECT_TRUE(directory_->exists("c/d"));
  EXPECT_TRUE(directory_->exists(""));
  EXPECT_FALSE(directory_->exists("c/e"));
}

TEST_P(AnyDirectory, NamesTheMissingFile) {
  const Error error = error_of(directory_->open("no/such"));
  EXPECT_EQ(error.code, Code::kNotFound);
}

TEST_P(AnyDirectory, ReadsAWholeFileUpToALimit) {
  put("data", "12345");
  EXPECT_EQ(read_whole(*directory_, "data", 5).value(), "12345");
  const Error error = error_of(read_whole(*directory_, "data", 4));
  EXPECT_EQ(error.code, Code::kLimit);
  EXPECT_THAT(error.message, HasSubstr("found 5 bytes, expected at most 4"));
}

TEST_P(AnyDirectory, IsUsedByManyThreadsAtOnce) {
  constexpr std::size_t kThreads = 8;
  constexpr std::size_t kPerThread = 1000;
  auto shared = directory_->create("shared", kThreads * kPerThread).value();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < kPerThread; ++i) {
        const std::string letter(1, static_cast<char>('a' + t));
        EXPECT_TRUE(shared->write_at(t * kPerThread + i, as_bytes(letter)));
      }
      put("own/" + std::to_string(t), "mine");
      EXPECT_TRUE(directory_->exists("own/" + std::to_string(t)));
    });
  }
  for (auto& thread : threads) thread.join();
  const std::string all = read_whole(*directory_, "shared", 1 << 20).value();
  for (std::size_t t = 0; t < kThreads; ++t) {
    EXPECT_EQ(all.substr(t * kPerThread, kPerThread),
              std::string(kPerThread, static_cast<char>('a' + t)));
  }
  EXPECT_EQ(directory_->list("own").value().size(), kThreads);
}

class LocalDirectoryTest : public ::testing::Test {
 protected:
  std::unique_ptr<Directory> open() { return open_local_directory(root_.path().string()).value(); }
  TemporaryFolder outside_;
  TemporaryFolder root_;
};

TEST_F(LocalDirectoryTest, NamesAMissingRoot) {
  const Error error = error_of(open_local_directory(root_ / "absent"));
  EXPECT_EQ(error.code, Code::kNotFound);
  EXPECT_THAT(error.message, HasSubstr("absent"));
  root_.put("file", "x");
  EXPECT_EQ(error_of(open_local_directory(root_ / "file")).code, Code::kNotFound);
  EXPECT_EQ(error_of(open_local_directory("")).code, Code::kNotFound);
  EXPECT_EQ(error_of(open_local_directory(std::string("/\0x", 3))).code, Code::kNotFound);
}

TEST_F(LocalDirectoryTest, SaysHowMuchAFileShrank) {
  root_.put("data", "0123456789");
  const auto reader = open()->open("data").value();
  fs::resize_file(root_ / "data", 4);
  std::vector<std::byte> buffer(8);
  const Error error = error_of(reader->read_at(0, buffer));
  EXPECT_EQ(error.code, Code::kShortRead);
  EXPECT_THAT(error.message, HasSubstr("data@0: found a file of 4 bytes (10 when it was opened), "
                                       "expected 8 bytes"));
}

TEST_F(LocalDirectoryTest, RefusesAFolderLinkThatLeadsOut) {
  outside_.put("secret", "x");
  fs::create_directory_symlink(outside_.path(), root_ / "sub");
  fs::create_directory_symlink("..", root_ / "up");
  const auto directory = open();
  const Error error = error_of(directory->open("sub/secret"));
  EXPECT_EQ(error.code, Code::kPathEscapes);
  EXPECT_THAT(error.message, HasSubstr("found a link that leads out of the directory"));
  EXPECT_EQ(error_of(directory->list("sub")).code, Code::kPathEscapes);
  EXPECT_TRUE(directory->exists("sub/secret")) << "opening it tells what is wrong";
  EXPECT_EQ(error_of(directory->list("up")).code, Code::kPathEscapes);
  const auto entries = directory->list("").value();
  ASSERT_EQ(entries.size(), 2U);
  for (const DirectoryEntry& entry : entries) {
    EXPECT_TRUE(entry.is_directory);
    EXPECT_EQ(entry.problem.value_or(Error{}).code, Code::kPathEscapes) << entry.name;
  }
}

TEST_F(LocalDirectoryTest, FollowsAFolderLinkThatStaysInside) {
  root_.put("real/data", "x");
  fs::create_directory_symlink("real", root_ / "latest");
  EXPECT_EQ(read_whole(*open(), "latest/data", 9).value(), "x");
}

TEST_F(LocalDirectoryTest, NeverWritesThroughALink) {
  outside_.put("victim", "precious");
  fs::create_directory_symlink(outside_.path(), root_ / "sub");
  fs::create_symlink(outside_ / "victim", root_ / "file");
  fs::create_symlink(outside_ / "new", root_ / "dangling");
  root_.put("real/x", "");
  fs::create_directory_symlink("real", root_ / "inside");
  const auto directory = open();
  EXPECT_EQ(error_of(directory->create("sub/new", 1)).code, Code::kPathEscapes);
  EXPECT_EQ(error_of(directory->create("inside/new", 1)).code, Code::kPathEscapes);
  EXPECT_EQ(error_of(directory->create("file", 1)).code, Code::kTargetExists);
  EXPECT_EQ(error_of(directory->create("dangling", 1)).code, Code::kTargetExists);
  EXPECT_EQ(outside_.tree(), "victim");
  EXPECT_EQ(outside_.get("victim"), "precious");
}

TEST_F(LocalDirectoryTest, AFileThatDoesNotFitLeavesNothingBehind) {
  const auto directory = open();
  const Error error = error_of(directory->create("huge", std::uint64_t{1} << 62));
  EXPECT_THAT(error.message, HasSubstr("huge: cannot reserve 4611686018427387904 bytes"));
  EXPECT_EQ(error_of(directory->create("wider", ~std::uint64_t{0})).code, Code::kLimit);
  EXPECT_EQ(root_.tree(), "");
}

TEST_F(LocalDirectoryTest, ReservesTheBytesBeforehand) {
  auto file = open()->create("data", 1 << 20).value();
  struct stat status{};
  ASSERT_EQ(::stat((root_ / "data").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 1 << 20);
  EXPECT_EQ(status.st_blocks * 512, 1 << 20) << "the test's file system can reserve";
}

TEST_F(LocalDirectoryTest, AFileThatIsTakenAwayIsNotMadeDurable) {
  const auto directory = open();
  auto stays = directory->create("stays", 4).value();
  EXPECT_TRUE(stays->sync());
  auto removed = directory->create("removed", 4).value();
  fs::remove(root_ / "removed");
  EXPECT_THAT(error_of(removed->sync()).message, HasSubstr("removed while it was being written"));
  // Another process that writes the same file makes it anew, and has its own part of it alone.
  auto anew = directory->reopen("removed", 4).value();
  EXPECT_TRUE(anew->sync());
  EXPECT_FALSE(removed->sync());
}

TEST_F(LocalDirectoryTest, StaysWithItsFolderWhenAnotherTakesItsName) {
  root_.put("a/data", "mine");
  const auto directory = open_local_directory(root_ / "a").value();
  fs::rename(root_ / "a", root_ / "b");
  root_.put("a/data", "other");
  EXPECT_EQ(read_whole(*directory, "data", 9).value(), "mine");
}

TEST_F(LocalDirectoryTest, WalkingWithoutTheKernelsHelpFollowsNoLink) {
  root_.put("real/deep/data", "x");
  fs::create_directory_symlink("real", root_ / "inside");
  fs::create_directory_symlink(outside_.path(), root_ / "out");
  root_.put("file", "");
  const UniqueFd root(::open(root_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const UniqueFd found = walk_to_folder(root.get(), "real/deep").value();
  EXPECT_EQ(::faccessat(found.get(), "data", F_OK, 0), 0);
  EXPECT_EQ(error_of(walk_to_folder(root.get(), "inside")).code, Code::kPathEscapes);
  EXPECT_EQ(error_of(walk_to_folder(root.get(), "out")).code, Code::kPathEscapes);
  EXPECT_EQ(error_of(walk_to_folder(root.get(), "real/absent")).code, Code::kNotFound);
  EXPECT_EQ(error_of(walk_to_folder(root.get(), "file")).code, Code::kNotFound);
}

TEST(FileLimit, IsRaisedToTheHardOne) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit lowered{before.rlim_max / 2, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &lowered), 0);
  EXPECT_EQ(raise_open_file_limit(), before.rlim_max);
  rlimit after{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &after), 0);
  EXPECT_EQ(after.rlim_cur, before.rlim_max);
  EXPECT_EQ(raise_open_file_limit(), before.rlim_max) << "a second call changes nothing";
}

}  // namespace
}  // namespace shardwright
