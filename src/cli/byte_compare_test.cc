// SPDX-License-Identifier: Apache-2.0
#include "cli/byte_compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "io/memory_directory.h"

namespace shardwright::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Tensor {
  std::string name;
  DType dtype;
  Dims shape;
  std::string bytes;
};

// A checkpoint with one file per tensor, each behind a byte that is not compared.
Checkpoint checkpoint_of(const std::vector<Tensor>& tensors) {
  auto directory = std::make_unique<MemoryDirectory>();
  Checkpoint checkpoint;
  for (const Tensor& tensor : tensors) {
    const auto file = static_cast<std::uint32_t>(checkpoint.catalog.files.size());
    directory->put(tensor.name, "?" + tensor.bytes);
    checkpoint.catalog.files.push_back(tensor.name);
    StoredTensor stored{{tensor.name, tensor.dtype, tensor.shape}, ChunkList(tensor.shape.size())};
    stored.chunks.push_back({Box::whole(tensor.shape), file, {1, tensor.bytes.size()}, {}});
    checkpoint.catalog.tensors.push_back(std::move(stored));
  }
  checkpoint.directory = std::move(directory);
  return checkpoint;
}

TEST(CompareBytes, FindsEqualOnesEqual) {
  // Longer than a block, and not a multiple of one.
  const std::string large(static_cast<std::size_t>(3 << 20) + 5, 'x');
  const auto length = static_cast<std::int64_t>(large.size());
  const Tensor one{"one", DType::kU8, {length}, large};
  const Tensor two{"two", DType::kI16, {2}, "abcd"};
  const Tensor none{"none", DType::kF32, {0, 3}, ""};
  const auto result =
      compare_bytes(checkpoint_of({one, two, none}), checkpoint_of({none, two, one}));
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->tensors, 3u);
  EXPECT_EQ(result->bytes, large.size() + 4);
  EXPECT_THAT(result->differences, IsEmpty());
}

TEST(CompareBytes, FindsASingleByteAtTheEnd) {
  std::string large(static_cast<std::size_t>(1 << 20) + 1, 'x');
  const auto length = static_cast<std::int64_t>(large.size());
  const Checkpoint a = checkpoint_of({{"t", DType::kU8, {length}, large}});
  large.back() = 'y';
  const auto result = compare_bytes(a, checkpoint_of({{"t", DType::kU8, {length}, large}}));
  ASSERT_TRUE(result);
  EXPECT_THAT(result->differences, ElementsAre("t has other bytes"));
}

TEST(CompareBytes, NamesEveryDifference) {
  const Checkpoint a = checkpoint_of({{"dtype", DType::kU8, {2}, "ab"},
                                      {"gone", DType::kU8, {1}, "a"},
                                      {"shape", DType::kU8, {2, 1}, "ab"}});
  const Checkpoint b = checkpoint_of({{"dtype", DType::kI8, {2}, "ab"},
                                      {"new", DType::kU8, {1}, "a"},
                                      {"shape", DType::kU8, {1, 2}, "ab"}});
  const auto result = compare_bytes(a, b);
  ASSERT_TRUE(result);
  EXPECT_THAT(result->differences,
              ElementsAre("dtype is int8 (2,), not uint8 (2,)", "gone is missing",
                          "shape is uint8 (1, 2), not uint8 (2, 1)", "new is new"));
}

TEST(CompareBytes, RefusesPieces) {
  const Checkpoint whole = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  Checkpoint archive = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  archive.catalog.tensors[0].encoding = Encoding::kTorchItem;
  Checkpoint pieces = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  pieces.catalog.tensors[0].chunks = ChunkList(1);
  pieces.catalog.tensors[0].chunks.push_back({{{0}, {1}}, 0, {1, 1}, {}});
  pieces.catalog.tensors[0].chunks.push_back({{{1}, {1}}, 0, {2, 1}, {}});
  Checkpoint cut = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  cut.catalog.tensors[0].chunks = ChunkList(1);
  cut.catalog.tensors[0].chunks.push_back({{{0}, {2}}, 0, {1, 1}, {}});
  for (const Checkpoint* other : {&archive, &pieces, &cut}) {
    const auto result = compare_bytes(whole, *other);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Code::kUnsupportedFormat);
    EXPECT_THAT(result.error().message, HasSubstr("tensor t in pieces"));
  }
}

TEST(CompareBytes, TellsWhenAFileIsShort) {
  const Checkpoint a = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  Checkpoint b = checkpoint_of({{"t", DType::kU8, {2}, "ab"}});
  auto directory = std::make_unique<MemoryDirectory>();
  directory->put("t", "?a");
  b.directory = std::move(directory);
  const auto result = compare_bytes(a, b);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kShortRead);
}

}  // namespace
}  // namespace shardwright::cli
