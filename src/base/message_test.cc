// SPDX-License-Identifier: Apache-2.0
#include "base/message.h"

#include <gtest/gtest.h>

namespace shardwright {
namespace {

TEST(Message, GivesBackWhatWasPutIn) {
  const std::string bytes =
      MessageWriter(7).number(1234567890123).text("a\0b").numbers({1, 0xffffffff}).text("").take();
  MessageReader reader(bytes);
  EXPECT_EQ(reader.kind().value(), 7);
  EXPECT_EQ(reader.number().value(), 1234567890123U);
  EXPECT_EQ(reader.text().value(), "a\0b");
  EXPECT_EQ(reader.numbers().value(), (std::vector<std::uint32_t>{1, 0xffffffff}));
  EXPECT_EQ(reader.text().value(), "");
  EXPECT_EQ(reader.number().error().code, Code::kInternal);
}

TEST(Message, HoldsAnErrorAsItIs) {
  const std::string bytes = MessageWriter().error({Code::kIo, "a: cannot read", 5}).take();
  MessageReader reader(bytes);
  const Error error = reader.error().value();
  EXPECT_EQ(error.code, Code::kIo);
  EXPECT_EQ(error.message, "a: cannot read");
  EXPECT_EQ(error.os_errno, 5);
}

TEST(Message, BelievesNoLengthThatIsLongerThanItself) {
  const std::string whole = MessageWriter(1).text("text").numbers({1, 2, 3}).take();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const std::string cut = whole.substr(0, length);
    MessageReader reader(cut);
    EXPECT_FALSE(reader.kind() && reader.text() && reader.numbers()) << length;
  }
  const std::string huge = MessageWriter(1).number(std::uint64_t{1} << 62).take();
  MessageReader numbers(huge);
  ASSERT_TRUE(numbers.kind());
  EXPECT_EQ(numbers.numbers().error().code, Code::kInternal);
}

}  // namespace
}  // namespace shardwright
