// SPDX-License-Identifier: Apache-2.0
#include "plan/repeated_tensors.h"

#include <gtest/gtest.h>

#include <memory>

namespace shardwright {
namespace {

const TensorView kWhole{Box::whole({4}), 0, {0}, {0}, {1}};
const TensorView kSecond{Box::whole({4}), 1, {0}, {0}, {1}};

struct Part {
  TensorView view = kWhole;
  DType dtype = DType::kBF16;
  std::int64_t pieces = 1;
  std::int64_t shift = 0;  // of their borders
  double add = 0.0;
  std::optional<double> fill = std::nullopt;
  std::shared_ptr<const Quantising> quantising = nullptr;
};

std::vector<bool> repeated(const std::vector<Part>& parts) {
  Plan plan;
  for (const Part& part : parts) {
    StoredTensor tensor{{"t", part.dtype, {4}}, ChunkList(1), Encoding::kTorchItem};
    const std::int64_t rows = 4 / part.pieces;
    const auto file = static_cast<std::uint32_t>(plan.tensors.size());
    for (std::int64_t i = 0; i < part.pieces; ++i) {
      const std::int64_t from = i == 0 ? 0 : i * rows + part.shift;
      const std::int64_t to = i + 1 == part.pieces ? 4 : (i + 1) * rows + part.shift;
      tensor.chunks.push_back({Box{{from}, {to - from}}, file, {}, {}});
    }
    plan.target.tensors.push_back(std::move(tensor));
    plan.tensors.push_back({{part.view}, part.fill, part.add, part.quantising});
  }
  return repeated_tensors(plan);
}

TEST(RepeatedTensors, AreOfOneRecipeAndOfTheSamePieces) {
  using Repeats = std::vector<bool>;
  EXPECT_EQ(repeated({{}, {}, {}}), (Repeats{false, true, true})) << "each in a file of its own";
  EXPECT_EQ(repeated({{}, {.view = kSecond}, {}}), (Repeats{false, false, false}));
  EXPECT_EQ(repeated({{}, {.dtype = DType::kF16}}), (Repeats{false, false}));
  EXPECT_EQ(repeated({{}, {.pieces = 2}, {.pieces = 2}}), (Repeats{false, false, true}));
  EXPECT_EQ(repeated({{.pieces = 2}, {.pieces = 2, .shift = 1}}), (Repeats{false, false}));
  EXPECT_EQ(repeated({{}, {.add = 1.0}}), (Repeats{false, false}));
  EXPECT_EQ(repeated({{}, {.fill = 0.0}}), (Repeats{false, false}));
  const auto form = std::make_shared<const Quantising>();
  EXPECT_EQ(repeated({{}, {.quantising = form}, {}}), (Repeats{false, false, false}));
  EXPECT_EQ(repeated({}), Repeats());
  for (int part = 0; part < 4; ++part) {
    TensorView view{{{1}, {2}}, 0, {1}, {0}, {1}};
    const Part front{.view = view, .fill = 0.0};
    (part == 0   ? view.box.origin
     : part == 1 ? view.box.shape
     : part == 2 ? view.source_origin
                 : view.step)[0] += 1;
    EXPECT_EQ(repeated({front, {.view = view, .fill = 0.0}}), (Repeats{false, false})) << part;
  }
}

}  // namespace
}  // namespace shardwright
