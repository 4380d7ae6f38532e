// SPDX-License-Identifier: Apache-2.0
#include "plan/quantising.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>

#include "plan/repeated_tensors.h"

namespace shardwright::quantising {
namespace {

using Part = Quantising::Part;
using Scheme = Quantising::Scheme;

Quantising fp8(const Dims& shape, Part part) { return {Scheme::kFp8, part, shape, 128, 96, false}; }

Quantising fp4(const Dims& shape, Part part) { return {Scheme::kMxfp4, part, shape, 1, 32, true}; }

TEST(Quantising, HasAScaleForEachBlockPartialOnesToo) {
  EXPECT_EQ(scale_shape(fp8({3, 257, 96}, Part::kValues)), (Dims{3, 3, 1}));
  EXPECT_EQ(value_shape(fp8({3, 257, 96}, Part::kValues)), (Dims{3, 257, 96}));
  EXPECT_EQ(scale_shape(fp4({3, 5, 64}, Part::kValues)), (Dims{3, 5, 2}));
  EXPECT_EQ(value_shape(fp4({3, 5, 64}, Part::kValues)), (Dims{3, 5, 2, 16}));
}

TEST(Quantising, FindsTheBlocksOfARegion) {
  const Quantising values = fp8({300, 200}, Part::kValues);
  const Box blocks = blocks_of(values, Box{{127, 96}, {2, 100}});
  EXPECT_EQ(blocks, (Box{{0, 1}, {2, 2}}));
  EXPECT_EQ(matrix_of_blocks(values, blocks), (Box{{0, 96}, {256, 104}}));
  const Box last = blocks_of(values, Box{{299, 0}, {1, 1}});
  EXPECT_EQ(matrix_of_blocks(values, last), (Box{{256, 0}, {44, 96}}));
  EXPECT_EQ(blocks_of(fp8({300, 200}, Part::kScales), Box{{1, 1}, {2, 1}}), (Box{{1, 1}, {2, 1}}));
  const Quantising pairs = fp4({3, 5, 64}, Part::kValues);
  EXPECT_EQ(blocks_of(pairs, Box{{2, 1, 1, 4}, {1, 3, 1, 8}}), (Box{{2, 1, 1}, {1, 3, 1}}));
  EXPECT_EQ(matrix_of_blocks(pairs, Box{{2, 1, 1}, {1, 3, 1}}), (Box{{2, 1, 32}, {1, 3, 32}}));
}

TEST(Quantising, ChecksShapesAndTypes) {
  const Quantising values = fp8({300, 200}, Part::kValues);
  const Quantising scales = fp8({300, 200}, Part::kScales);
  EXPECT_TRUE(check_quantising(values, {"w", DType::kF8E4M3, {300, 200}}));
  EXPECT_FALSE(check_quantising(values, {"w", DType::kBF16, {300, 200}}));
  EXPECT_FALSE(check_quantising(values, {"w", DType::kF8E4M3, {300, 201}}));
  EXPECT_TRUE(check_quantising(scales, {"s", DType::kF32, {3, 3}}));
  EXPECT_FALSE(check_quantising(scales, {"s", DType::kF32, {3, 2}}));
  EXPECT_FALSE(check_quantising(scales, {"s", DType::kBF16, {3, 3}}));
  EXPECT_FALSE(check_quantising(scales, {"s", DType::kF8E8M0, {3, 3}}));
  Quantising powers = scales;
  powers.has_exponents = true;
  EXPECT_TRUE(check_quantising(powers, {"s", DType::kF8E8M0, {3, 3}}));
  EXPECT_TRUE(check_quantising(powers, {"s", DType::kF32, {3, 3}}));
  EXPECT_TRUE(check_quantising(fp4({5, 64}, Part::kValues), {"w", DType::kU8, {5, 2, 16}}));
  EXPECT_TRUE(check_quantising(fp4({5, 64}, Part::kScales), {"s", DType::kU8, {5, 2}}));
  EXPECT_FALSE(check_quantising(fp4({5, 64}, Part::kScales), {"s", DType::kF32, {5, 2}}));
  EXPECT_FALSE(check_quantising(fp4({5, 60}, Part::kScales), {"s", DType::kU8, {5, 2}}));
  EXPECT_FALSE(check_quantising(fp8({300}, Part::kValues), {"w", DType::kF8E4M3, {300}}));
}

StoredTensor in_file(const std::string& name, DType dtype, const Dims& shape, std::uint64_t at) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), 0, {at, bytes}, {}});
  return tensor;
}

TEST(Quantising, IsProvenByTheMatrixNotByWhatIsStored) {
  Plan plan;
  plan.source.files = {"s"};
  plan.source.tensors = {in_file("w", DType::kBF16, {300, 200}, 0)};
  plan.target.files = {"t"};
  plan.target.tensors = {in_file("w", DType::kF8E4M3, {300, 200}, 0),
                         in_file("s", DType::kF32, {3, 3}, 60000)};
  plan.file_sizes = {60036};
  const TensorView whole{Box{{0, 0}, {300, 200}}, 0, {0, 0}, {0, 1}, {1, 1}};
  for (const Part part : {Part::kValues, Part::kScales}) {
    plan.tensors.push_back(
        {{whole}, std::nullopt, 0.0, std::make_shared<const Quantising>(fp8({300, 200}, part))});
  }
  const Status status = check_plan(plan);
  ASSERT_TRUE(status) << status.error().text();
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 2U * 300 * 200 * 2);
  EXPECT_EQ(repeated_tensors(plan), (std::vector<bool>{false, false}));

  EXPECT_EQ(made_region(plan.tensors[0], Box{{130, 0}, {1, 1}}), (Box{{128, 0}, {128, 96}}));
  EXPECT_EQ(made_region(plan.tensors[1], Box{{2, 2}, {1, 1}}), (Box{{256, 192}, {44, 8}}));
  EXPECT_EQ(made_region({}, Box{{130, 0}, {1, 1}}), (Box{{130, 0}, {1, 1}}));

  Plan holed = plan;
  holed.tensors[1].views = {{Box{{0, 0}, {299, 200}}, 0, {0, 0}, {0, 1}, {1, 1}}};
  EXPECT_EQ(check_plan(holed).error().code, Code::kHole);
  Plan whole_numbers = plan;
  whole_numbers.source.tensors[0].desc.dtype = DType::kI16;
  EXPECT_EQ(check_plan(whole_numbers).error().code, Code::kDtypeUnsupported);
}

}  // namespace
}  // namespace shardwright::quantising
