// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "shardwright/plan.h"

namespace shardwright::adapted {
namespace {

using testing::HasSubstr;

StoredTensor stored(const std::string& name, DType dtype, const Dims& shape) {
  StoredTensor tensor{{name, dtype, shape}, ChunkList(shape.size())};
  const auto bytes = static_cast<std::uint64_t>(byte_count(shape, dtype).value());
  tensor.chunks.push_back({Box::whole(shape), 0, {0, bytes}, {}});
  return tensor;
}

// A [4, 6] matrix with a product of rank 2 added.
Plan adapted_plan() {
  Plan plan;
  plan.source.files = {"a"};
  plan.source.tensors = {stored("w", DType::kBF16, {4, 6}), stored("b", DType::kF32, {4, 2}),
                         stored("a", DType::kF32, {2, 6})};
  plan.target.files = {"t"};
  plan.target.tensors = {stored("t", DType::kBF16, {4, 6})};
  plan.file_sizes = {48};
  plan.tensors = {{{{Box{{0, 0}, {4, 6}}, 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0.0}};
  plan.adapted = {{0, 1, 2, 0, 1, 0.5F, nullptr}};
  return plan;
}

TEST(CheckAdapted, AcceptsWhatFits) {
  Plan plan = adapted_plan();
  const Status status = check_plan(plan);
  EXPECT_TRUE(status) << status.error().text();
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 48U + 4 * 2 * 4 + 2 * 6 * 4);
  plan.adapted[0].factors = std::make_shared<const std::vector<float>>(4, 2.0F);
  EXPECT_TRUE(check_plan(plan));
}

// Columns that three experts share out: 4 rows of 2 values, 3 apart, in rows of 6.
void deal_columns(Plan& plan, const Dims& strides, std::uint64_t bytes) {
  plan.source.tensors[1].chunks = ChunkList(2);
  plan.source.tensors[1].chunks.push_back({Box::whole({4, 2}), 0, {4, bytes}, strides});
}

TEST(CheckAdapted, AFactorMayBeAPartOfAMatrix) {
  Plan plan = adapted_plan();
  constexpr std::uint64_t kSpan = (3 * 6 + 3 + 1) * 4;
  plan.file_sizes = {48};
  deal_columns(plan, {6, 3}, kSpan);
  const Status status = check_plan(plan);
  EXPECT_TRUE(status) << status.error().text();
  for (const auto& [strides, bytes] :
       {std::pair(Dims{6, 3}, kSpan - 4), std::pair(Dims{6, 3}, kSpan + 4),
        std::pair(Dims{-6, 3}, kSpan), std::pair(Dims{6, 0}, std::uint64_t{(3 * 6 + 1) * 4})}) {
    deal_columns(plan, strides, bytes);
    const Status refused = check_plan(plan);
    ASSERT_FALSE(refused) << to_string(strides) << " " << bytes;
    EXPECT_THAT(refused.error().message, HasSubstr("one whole chunk"));
  }
}

TEST(CheckAdapted, RefusesWhatDoesNot) {
  struct Case {
    const char* what;
    std::function<void(Plan&)> edit;
    const char* message;
  };
  const Case cases[] = {
      {"no such values", [](Plan& plan) { plan.adapted[0].values = 9; }, "not there"},
      {"no such left factor", [](Plan& plan) { plan.adapted[0].out = 9; }, "not there"},
      {"no such right factor", [](Plan& plan) { plan.adapted[0].in = 9; }, "not there"},
      {"the same axis twice", [](Plan& plan) { plan.adapted[0].in_axis = 0; }, "the shape"},
      {"an axis that is not there", [](Plan& plan) { plan.adapted[0].in_axis = 2; }, "the shape"},
      {"factors of the other axes",
       [](Plan& plan) {
         plan.adapted[0].out_axis = 1;
         plan.adapted[0].in_axis = 0;
       },
       "the shape"},
      {"another rank",
       [](Plan& plan) { plan.source.tensors[2] = stored("a", DType::kF32, {3, 6}); }, "the shape"},
      {"a matrix without a right factor", [](Plan& plan) { plan.adapted[0].in.reset(); },
       "the shape"},
      {"a factor with holes", [](Plan& plan) { plan.source.tensors[2].chunks = ChunkList(2); },
       "one whole chunk"},
      {"no finite scale",
       [](Plan& plan) { plan.adapted[0].scale = std::numeric_limits<float>::infinity(); },
       "finite"},
      {"a factor too few",
       [](Plan& plan) {
         plan.adapted[0].factors = std::make_shared<const std::vector<float>>(3, 2.0F);
       },
       "one factor for each row"},
      {"two for one tensor", [](Plan& plan) { plan.adapted.push_back(plan.adapted[0]); }, "twice"},
  };
  for (const Case& each : cases) {
    Plan plan = adapted_plan();
    each.edit(plan);
    const Status status = check_plan(plan);
    ASSERT_FALSE(status) << each.what;
    EXPECT_EQ(status.error().code, Code::kPlanInvalid) << each.what;
    EXPECT_THAT(status.error().message, HasSubstr(each.message)) << each.what;
  }
}

TEST(CheckAdapted, FactorsOfOtherTypesAreNamed) {
  for (const std::uint32_t which : {1U, 2U}) {
    Plan plan = adapted_plan();
    StoredTensor& factor = plan.source.tensors[which];
    factor = stored(factor.desc.name, DType::kI32, factor.desc.shape);
    plan.source.files = {"weights", "weights", "factor"};
    factor.chunks = ChunkList(2);
    factor.chunks.push_back(
        {Box::whole(factor.desc.shape),
         2,
         {0, static_cast<std::uint64_t>(factor.desc.shape[0] * factor.desc.shape[1] * 4)},
         {}});
    const Status status = check_plan(plan);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, Code::kDtypeUnsupported);
    EXPECT_THAT(status.error().message,
                HasSubstr("factor: tensor " + factor.desc.name + ": found int32"));
  }
}

// Five [4, 6] matrices in one tensor, each with a product of its own.
Plan plan_of_matrices() {
  Plan plan = adapted_plan();
  plan.source.tensors = {stored("w", DType::kBF16, {5, 4, 6}), stored("b", DType::kF32, {5, 4, 2}),
                         stored("a", DType::kF32, {5, 2, 6})};
  plan.adapted = {{0, 1, 2, 1, 2, 0.5F, nullptr, 0}};
  plan.tensors[0].views = ViewList();
  plan.tensors[0].views.push_back({Box{{0, 0}, {4, 6}}, 0, {3, 0, 0}, {1, 2}, {1, 1}});
  return plan;
}

TEST(CheckAdapted, MatricesInOneTensor) {
  const Plan sound = plan_of_matrices();
  const Status status = check_plan(sound);
  EXPECT_TRUE(status) << status.error().text();
  struct Case {
    const char* what;
    std::function<void(Plan&)> edit;
  };
  const Case cases[] = {
      {"counted by no axis", [](Plan& plan) { plan.adapted[0].each_axis.reset(); }},
      {"counted by rows", [](Plan& plan) { plan.adapted[0].each_axis = 1; }},
      {"counted by columns", [](Plan& plan) { plan.adapted[0].each_axis = 2; }},
      {"counted by an axis that is not there", [](Plan& plan) { plan.adapted[0].each_axis = 3; }},
      {"fewer left factors",
       [](Plan& plan) { plan.source.tensors[1] = stored("b", DType::kF32, {4, 4, 2}); }},
      {"fewer right factors",
       [](Plan& plan) { plan.source.tensors[2] = stored("a", DType::kF32, {4, 2, 6}); }},
      {"one factor for all",
       [](Plan& plan) { plan.source.tensors[1] = stored("b", DType::kF32, {4, 2}); }},
      {"another rank",
       [](Plan& plan) { plan.source.tensors[2] = stored("a", DType::kF32, {5, 3, 6}); }},
      {"counted by rows, as many as there are",
       [](Plan& plan) {
         plan.source.tensors = {stored("w", DType::kBF16, {5, 5, 6}),
                                stored("b", DType::kF32, {5, 5, 2}),
                                stored("a", DType::kF32, {5, 2, 6})};
         plan.adapted[0].each_axis = 1;
       }},
      {"lengths of DoRA",
       [](Plan& plan) {
         plan.adapted[0].factors = std::make_shared<const std::vector<float>>(4, 2.0F);
       }},
  };
  for (const Case& each : cases) {
    Plan plan = plan_of_matrices();
    each.edit(plan);
    const Status refused = check_plan(plan);
    ASSERT_FALSE(refused) << each.what;
    EXPECT_EQ(refused.error().code, Code::kPlanInvalid) << each.what;
  }
}

// Float64 would lose bits, and quantised values mean nothing alone.
TEST(CheckAdapted, RefusesValuesThatFloat32DoesNotHold) {
  for (const DType dtype : {DType::kF64, DType::kF8E4M3, DType::kI64}) {
    Plan plan = adapted_plan();
    plan.source.tensors[0] = stored("w", dtype, {4, 6});
    const Status refused = check_plan(plan);
    ASSERT_FALSE(refused) << torch_name(dtype);
    EXPECT_EQ(refused.error().code, Code::kDtypeUnsupported) << torch_name(dtype);
  }
}

}  // namespace
}  // namespace shardwright::adapted
