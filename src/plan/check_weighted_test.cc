// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <memory>

#include "shardwright/plan.h"

namespace shardwright::weighted {
namespace {

using testing::HasSubstr;

StoredTensor stored(const std::string& name, DType dtype, const Dims& shape) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), 0, {0, bytes}, {}});
  return tensor;
}

TensorView whole_of(std::uint32_t source) { return {Box::whole({4}), source, {0}, {0}, {1}}; }

// The sum of two tensors.
Plan plan_of_sum() {
  Plan plan;
  plan.source.files = {"f"};
  plan.source.tensors = {stored("a", DType::kBF16, {4}), stored("b", DType::kF32, {4}),
                         stored("c", DType::kF32, {4})};
  plan.target.files = {"t"};
  plan.target.tensors = {stored("t", DType::kBF16, {4})};
  plan.file_sizes = {8};
  plan.tensors = {{{whole_of(0), whole_of(1)}, std::nullopt, 0.0}};
  plan.weighted = {{0, 0.5F, 0, 0.0}, {1, 0.5F, 1, -1.0}};
  return plan;
}

// Its values, of a matrix.
void quantise_sum(Plan& plan) {
  const Dims shape{1, 4};
  const auto view = [&](std::uint32_t source) {
    return TensorView{Box::whole(shape), source, {0, 0}, {0, 1}, {1, 1}};
  };
  plan.source.tensors = {stored("a", DType::kF32, shape), stored("b", DType::kF32, shape)};
  plan.weighted[1].add = 0.0;
  plan.target.tensors = {stored("t", DType::kF8E4M3, shape)};
  plan.tensors[0].views = {view(0), view(1)};
  plan.tensors[0].quantising = std::make_shared<const Quantising>(
      Quantising{Quantising::Scheme::kFp8, Quantising::Part::kValues, shape});
}

TEST(CheckWeighted, AcceptsOneSourceOfEachTerm) {
  const Plan plan = plan_of_sum();
  const Status status = check_plan(plan);
  EXPECT_TRUE(status) << status.error().text();
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 8U + 16U);
}

TEST(CheckWeighted, LowHalvesAreIntegersOfFloat32) {
  Plan plan = plan_of_sum();
  plan.source.tensors[1] = stored("b", DType::kI16, {4});
  plan.weighted = {{0, 1.0F, 0, 0.0}, {1, 1.0F, 1, 0.0, true}};
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid) << "of bfloat16";
  plan.target.tensors = {stored("t", DType::kF32, {4})};
  plan.file_sizes = {16};
  EXPECT_TRUE(check_plan(plan));
  plan.source.tensors[1] = stored("b", DType::kI32, {4});
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
}

TEST(CheckWeighted, RefusesWhatIsNoSum) {
  struct Case {
    const char* what;
    std::function<void(Plan&)> edit;
    Code code;
    const char* message;
  };
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const Case cases[] = {
      {"no such tensor", [](Plan& p) { p.weighted[0].values = 9; }, Code::kPlanInvalid,
       "not there"},
      {"no number", [=](Plan& p) { p.weighted[0].weight = nan; }, Code::kPlanInvalid,
       "finite number"},
      {"one tensor twice", [](Plan& p) { p.weighted[1].values = 0; }, Code::kPlanInvalid,
       "two terms"},
      {"a tensor that is no term", [](Plan& p) { p.tensors[0].views.push_back(whole_of(2)); },
       Code::kPlanInvalid, "other tensors"},
      {"a constant besides", [](Plan& p) { p.tensors[0].add = 1.0; }, Code::kPlanInvalid,
       "a constant"},
      {"what is quantised", quantise_sum, Code::kPlanInvalid, "a sum is quantised"},
      {"one term twice", [](Plan& p) { p.weighted[1].term = 0; }, Code::kOverlap, "tensor t"},
      {"a term with a hole",
       [](Plan& p) { p.tensors[0].views.set(1, {{{0}, {3}}, 1, {0}, {0}, {1}}); }, Code::kHole,
       "tensor t"},
      {"double precision", [](Plan& p) { p.source.tensors[1] = stored("b", DType::kF64, {4}); },
       Code::kDtypeUnsupported, "tensor b: found float64"},
      {"integers", [](Plan& p) { p.source.tensors[1] = stored("b", DType::kI64, {4}); },
       Code::kDtypeUnsupported, "tensor b: found int64"},
  };
  for (const Case& each : cases) {
    Plan plan = plan_of_sum();
    each.edit(plan);
    const Status status = check_plan(plan);
    ASSERT_FALSE(status) << each.what;
    EXPECT_EQ(status.error().code, each.code) << each.what << ": " << status.error().text();
    EXPECT_THAT(status.error().message, HasSubstr(each.message)) << each.what;
  }
}

}  // namespace
}  // namespace shardwright::weighted
