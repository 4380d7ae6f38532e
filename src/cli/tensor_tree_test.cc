// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_tree.h"

#include <gmock/gmock.h>

#include <numeric>

namespace shardwright::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string tree_of(const std::vector<TensorDesc>& descs, std::int64_t depth = 0) {
  Catalog catalog;
  std::vector<std::size_t> all;
  for (const TensorDesc& desc : descs) {
    all.push_back(catalog.tensors.size());
    catalog.tensors.push_back({desc, ChunkList(desc.shape.size())});
  }
  return tensor_tree_text(catalog, all, depth);
}

TensorDesc bf16(std::string name, Dims shape) { return {std::move(name), DType::kBF16, shape}; }

TEST(TensorTree, FoldsNumberedModulesThatAreAlike) {
  std::vector<TensorDesc> tensors{bf16("head.weight", {4, 8})};
  for (int layer = 0; layer < 12; ++layer) {
    tensors.push_back(bf16("layers." + std::to_string(layer) + ".a.weight", {8, 8}));
    tensors.push_back(bf16("layers." + std::to_string(layer) + ".b", {8}));
  }
  EXPECT_EQ(tree_of(tensors),
            "module        tensors      bytes  tensor\n"
            "head                1   64 bytes\n"
            "  weight            1   64 bytes  bfloat16 (4, 8)\n"
            "layers             24    1.73 kB\n"
            "  {0..11}          24    1.73 kB\n"
            "    a               1  128 bytes\n"
            "      weight        1  128 bytes  bfloat16 (8, 8)\n"
            "    b               1   16 bytes  bfloat16 (8,)\n");
}

// One of another shape, and one that is missing, end the run.
TEST(TensorTree, FoldsNothingElse) {
  const std::string text = tree_of({bf16("l.0.w", {8}),
                                    bf16("l.1.w", {8}),
                                    bf16("l.2.w", {9}),
                                    bf16("l.4.w", {8}),
                                    bf16("l.5.w", {8}),
                                    {"l.6.w", DType::kF16, {8}},
                                    bf16("l.07.w", {8})});
  for (const char* run : {"{0..1}", "\n  2 ", "{4..5}", "\n  6 ", "\n  07 "}) {
    EXPECT_THAT(text, HasSubstr(run));
  }
}

TEST(TensorTree, EndsAtItsDepth) {
  const std::string text = tree_of({bf16("a.b.c.d", {2}), bf16("a.b.c.e", {2})}, 2);
  EXPECT_THAT(text, HasSubstr("\n  b"));
  EXPECT_THAT(text, Not(HasSubstr("c")));
  EXPECT_EQ(tree_of({}), "");
}

// A module may have a tensor's own name, and a name may be nothing but dots.
TEST(TensorTree, TakesAnyNames) {
  EXPECT_THAT(tree_of({bf16("a", {2}), bf16("a.b", {3})}),
              HasSubstr("\na             2  10 bytes  bfloat16 (2,)\n  b"));
  const std::string dots(100'000, '.');
  EXPECT_THAT(tree_of({bf16(dots, {2}), bf16("", {2})}), HasSubstr("bfloat16 (2,)"));
}

}  // namespace
}  // namespace shardwright::cli
