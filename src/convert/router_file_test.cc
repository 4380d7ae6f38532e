// SPDX-License-Identifier: Apache-2.0
#include "convert/router_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "tensor/convert.h"

namespace shardwright {
namespace {

RouterWeights some_weights(DType dtype) {
  return {{"decoder.layers.0.mlp.router.weight", "decoder.layers.3.mlp.router.weight"},
          1001,
          dtype,
          0.5,
          1234};
}

std::string bytes_of_file(const ReadableFile& file, std::uint64_t offset, std::uint64_t count) {
  std::string bytes(count, '\0');
  EXPECT_TRUE(file.read_at(offset, std::as_writable_bytes(std::span(bytes))));
  return bytes;
}

// What Python's integers give by the rule of docs/recipes/edit.md.
TEST(RouterFile, HasTheSameNumbersOnEveryMachine) {
  const auto file = make_router_file("router", some_weights(DType::kF64));
  const std::string bytes = bytes_of_file(*file, 1001 * 8, 1001 * 8);
  const auto at = [&](std::size_t index) {
    double value = 0.0;
    std::memcpy(&value, bytes.data() + index * 8, 8);
    return value;
  };
  EXPECT_EQ(at(0), -0x1.75c992e800000p-4);
  EXPECT_EQ(at(1), -0x1.9bbe930c00000p-3);
  EXPECT_EQ(at(2), 0x1.8b6aa88800000p-1);
  EXPECT_EQ(at(1000), -0x1.05b9a02f00000p-1);
}

TEST(RouterFile, IsTheSameInPiecesAndRoundedOnce) {
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    const auto file = make_router_file("router", some_weights(dtype));
    const std::uint64_t size = file->size();
    ASSERT_EQ(size, 2 * 1001 * static_cast<std::uint64_t>(bytes_of(dtype)));
    const std::string whole = bytes_of_file(*file, 0, size);
    std::string joined;
    for (std::uint64_t at = 0; at < size; at += 7) {
      joined += bytes_of_file(*file, at, std::min<std::uint64_t>(7, size - at));
    }
    EXPECT_EQ(joined, whole);
    const auto exact = make_router_file("router", some_weights(DType::kF64));
    const std::string wide = bytes_of_file(*exact, 0, exact->size());
    std::string rounded(size, '\0');
    ASSERT_TRUE(convert_run({DType::kF64, dtype, 0.0}, 2 * 1001,
                            reinterpret_cast<const std::byte*>(wide.data()), 8,
                            reinterpret_cast<std::byte*>(rounded.data()), bytes_of(dtype)));
    EXPECT_EQ(whole, rounded);
  }
}

TEST(RouterFile, IsOtherwiseOfAnotherSeedAndLayer) {
  RouterWeights weights = some_weights(DType::kF32);
  const std::string one = bytes_of_file(*make_router_file("router", weights), 0, 8008);
  EXPECT_NE(one.substr(0, 4004), one.substr(4004));
  const FileVersion version = make_router_file("router", weights)->version();
  weights.deviation *= 2;
  EXPECT_NE(make_router_file("router", weights)->version().modified_ns, version.modified_ns);
  weights.deviation /= 2;
  weights.seed = 1235;
  EXPECT_NE(make_router_file("router", weights)->version().modified_ns, version.modified_ns);
  EXPECT_NE(bytes_of_file(*make_router_file("router", weights), 0, 8008), one);
}

TEST(RouterFile, EndsWhereItEnds) {
  const auto file = make_router_file("router", some_weights(DType::kF32));
  std::byte byte{};
  const Status status = file->read_at(file->size(), std::span(&byte, 1));
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kShortRead);
}

}  // namespace
}  // namespace shardwright
