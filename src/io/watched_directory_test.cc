// SPDX-License-Identifier: Apache-2.0
#include "io/watched_directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "io/memory_directory.h"
#include "io/source_files.h"
#include "testing/temporary_folder.h"

namespace shardwright {
namespace {

using ::testing::HasSubstr;

TEST(WatchedDirectory, NoticesEveryChangeOfAFileThatWasOpened) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "a.bin";
  const auto touch = [](const std::filesystem::path& file, int seconds) {
    const auto time = std::filesystem::last_write_time(file);
    std::filesystem::last_write_time(file, time + std::chrono::seconds(seconds));
  };
  const std::vector<std::pair<std::string, std::function<void()>>> changes = {
      {"it was written to", [&] { touch(path, 5); }},
      {"100 bytes became 200", [&] { std::filesystem::resize_file(path, 200); }},
      {"another file has taken its place",
       [&] {
         const std::filesystem::path other = folder.path() / "b.bin";
         std::filesystem::copy_file(path, other);
         std::filesystem::rename(other, path);
       }},
      {"its state was changed", [&] { ::chmod(path.c_str(), 0600); }},
      {"it is not there any more", [&] { std::filesystem::remove(path); }},
  };
  for (const auto& [how, make] : changes) {
    std::ofstream(path, std::ios::binary) << std::string(100, 'x');
    const WatchedDirectory watched(open_local_directory(folder.path().string()).value());
    const auto file = watched.open("a.bin").value();
    EXPECT_TRUE(watched.check_unchanged()) << how;
    make();
    const Status status = watched.check_unchanged();
    ASSERT_FALSE(status) << how;
    EXPECT_EQ(status.error().code, Code::kSourceChanged);
    EXPECT_THAT(status.error().message, HasSubstr("a.bin: changed while it was read: " + how));
    const auto again = watched.open("a.bin");
    ASSERT_FALSE(again) << how;
    const Code expected = std::filesystem::exists(path) ? Code::kSourceChanged : Code::kNotFound;
    EXPECT_EQ(again.error().code, expected) << how;
    std::filesystem::remove(path);
  }
}

TEST(WatchedDirectory, CaresOnlyForWhatWasOpened) {
  const TemporaryFolder folder;
  std::ofstream(folder.path() / "a.bin") << "a";
  const WatchedDirectory watched(open_local_directory(folder.path().string()).value());
  std::filesystem::resize_file(folder.path() / "a.bin", 5);
  EXPECT_EQ(watched.open("a.bin").value()->size(), 5u);
  std::ofstream(folder.path() / "b.bin") << "b";
  EXPECT_TRUE(watched.check_unchanged());
}

TEST(WatchedDirectory, LooksIntoWhatMayChange) {
  auto memory = std::make_unique<MemoryDirectory>();
  MemoryDirectory& inner = *memory;
  inner.put("run.log", "began");
  const WatchedDirectory watched(std::move(memory));
  EXPECT_EQ(watched.look_into("run.log").value()->size(), 5U);
  inner.put("run.log", "began and ended");
  EXPECT_TRUE(watched.check_unchanged());
  EXPECT_TRUE(watched.open("run.log"));
}

// What is copied later is as long as it was when the copy was planned.
TEST(WatchedDirectory, CaresForWhatItWasAskedFor) {
  auto memory = std::make_unique<MemoryDirectory>();
  MemoryDirectory& inner = *memory;
  inner.put("f", "contents");
  const WatchedDirectory watched(std::move(memory));
  EXPECT_EQ(watched.version("f").value().size_bytes, 8U);
  inner.put("f", "longer contents");
  EXPECT_EQ(watched.open("f").error().code, Code::kSourceChanged);
  EXPECT_EQ(watched.check_unchanged().error().code, Code::kSourceChanged);
}

TEST(WatchedDirectory, AsksEveryDirectoryOfTheSourceFiles) {
  const auto make = [](MemoryDirectory*& inner) {
    auto memory = std::make_unique<MemoryDirectory>();
    memory->put("f", "contents");
    inner = memory.get();
    return std::make_shared<const WatchedDirectory>(std::move(memory));
  };
  for (const bool of_the_second : {false, true}) {
    MemoryDirectory* first = nullptr;
    MemoryDirectory* second = nullptr;
    const auto own = make(first);
    const auto other = make(second);
    SourceFiles files(*own, {"f"}, 1);
    const std::uint32_t number = files.add(other, "f");
    std::byte byte{};
    ASSERT_TRUE(files.read_at(0, 0, std::span(&byte, 1)));
    ASSERT_TRUE(files.read_at(number, 0, std::span(&byte, 1)));
    EXPECT_TRUE(files.check_unchanged());
    (of_the_second ? second : first)->touch("f", 99);
    EXPECT_EQ(files.check_unchanged().error().code, Code::kSourceChanged);
    // The first was closed for the second.
    EXPECT_EQ(files.read_at(0, 0, std::span(&byte, 1)).has_value(), of_the_second);
  }
}

}  // namespace
}  // namespace shardwright
