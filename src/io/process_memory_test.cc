// SPDX-License-Identifier: Apache-2.0
#include "io/process_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardwright {
namespace {

std::uint64_t address_of(const void* memory) { return reinterpret_cast<std::uintptr_t>(memory); }

class ProcessMemory : public testing::Test {
 protected:
  void SetUp() override {
    const std::byte own{};
    std::byte read{};
    const Status status = read_process_memory(::getpid(), address_of(&own), {&read, 1});
    if (!status && status.error().code == Code::kPermission) {
      GTEST_SKIP() << "this system lets nobody read a process's memory: " << status.error().message;
    }
  }
};

TEST_F(ProcessMemory, IsReadWhereverTheProcessSays) {
  const std::vector<std::byte> theirs(3 << 20, std::byte{7});
  std::vector<std::byte> ours(theirs.size() - 5);
  ASSERT_TRUE(read_process_memory(::getpid(), address_of(theirs.data() + 5), ours));
  EXPECT_EQ(ours, std::vector<std::byte>(ours.size(), std::byte{7}));
}

TEST_F(ProcessMemory, OfAProcessThatEndedIsAnError) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) ::_exit(0);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  std::vector<std::byte> bytes(8);
  const Status status = read_process_memory(child, address_of(bytes.data()), bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
}

TEST_F(ProcessMemory, ThatIsNotThereIsAnError) {
  std::vector<std::byte> bytes(8);
  const Status status = read_process_memory(::getpid(), 8, bytes);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kIo);
}

}  // namespace
}  // namespace shardwright
