// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "shardwright/plan.h"

namespace shardwright {
namespace {

// Copies a [4, 6] float tensor from one chunk to one chunk.
Plan identity_plan() {
  Plan plan;
  const TensorDesc desc{"w", DType::kF32, {4, 6}};
  StoredTensor tensor{desc, ChunkList(2), Encoding::kRaw};
  tensor.chunks.push_back({Box{{0, 0}, {4, 6}}, 0, {0, 96}, {}});
  plan.source.files = {"a"};
  plan.source.tensors = {tensor};
  plan.target.files = {"b"};
  plan.target.tensors = {tensor};
  plan.file_sizes = {96};
  plan.tensors = {{{{Box{{0, 0}, {4, 6}}, 0, {0, 0}, {0, 1}, {1, 1}}}, std::nullopt, 0.0}};
  return plan;
}

void edit_view(Plan& plan, const std::function<void(TensorView&)>& edit) {
  TensorView view = plan.tensors[0].views[0];
  edit(view);
  plan.tensors[0].views.set(0, view);
}

TEST(CheckPlan, AcceptsACopy) {
  const Plan plan = identity_plan();
  EXPECT_TRUE(check_plan(plan));
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 96U);
  EXPECT_EQ(cost_of(plan).bytes_written, 96U);
}

TEST(CheckPlan, NamesTargetElementsWithoutSource) {
  Plan plan = identity_plan();
  edit_view(plan, [](TensorView& view) { view.box.shape = {3, 6}; });
  const Status status = check_plan(plan);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kHole);
  EXPECT_NE(status.error().message.find("[3:4, 0:6]"), std::string::npos) << status.error().message;
  plan.tensors[0].fill = 0.0;
  EXPECT_TRUE(check_plan(plan));
}

TEST(CheckPlan, RefusesTwoSourcesForOneElement) {
  Plan plan = identity_plan();
  plan.tensors[0].views.push_back(plan.tensors[0].views[0]);
  EXPECT_EQ(check_plan(plan).error().code, Code::kOverlap);
  plan.tensors[0].fill = 0.0;
  EXPECT_EQ(check_plan(plan).error().code, Code::kOverlap);
}

TEST(CheckPlan, RefusesANewObjectWithoutBytes) {
  Plan plan = identity_plan();
  plan.target.objects = {{"state", 0, {96, 0}}};
  plan.objects = {{false, 0, std::make_shared<const std::string>()}};
  EXPECT_TRUE(check_plan(plan));
  plan.objects[0].bytes = nullptr;
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
}

TEST(CheckPlan, RefusesHolesInTheSource) {
  Plan plan = identity_plan();
  plan.source.tensors[0].chunks = ChunkList(2);
  plan.source.tensors[0].chunks.push_back({Box{{0, 0}, {4, 5}}, 0, {0, 80}, {}});
  const Status status = check_plan(plan);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Code::kHole);
  EXPECT_EQ(status.error().message.substr(0, 7), "source:");
}

TEST(CheckPlan, RefusesViewsThatLeaveTheirTensors) {
  Plan plan = identity_plan();
  edit_view(plan, [](TensorView& view) { view.source_origin = {0, 1}; });
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
  plan = identity_plan();
  edit_view(plan, [](TensorView& view) { view.source = 1; });
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
  plan = identity_plan();
  edit_view(plan, [](TensorView& view) { view.axis = {0, 0}; });
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
}

TEST(CheckPlan, LetsAViewRepeatWhatItReads) {
  Plan plan = identity_plan();
  edit_view(plan, [](TensorView& view) { view.axis = {0, -1}; });
  const Status status = check_plan(plan);
  EXPECT_TRUE(status) << status.error().message;
  edit_view(plan, [](TensorView& view) { view.source_origin = {0, 1000}; });
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
}

TEST(CheckPlan, RefusesConversionsThatDoNotExist) {
  Plan plan = identity_plan();
  plan.target.tensors[0].desc.dtype = DType::kI32;
  EXPECT_EQ(check_plan(plan).error().code, Code::kDtypeUnsupported);
}

TEST(CheckPlan, RefusesATargetWrittenTwice) {
  Plan plan = identity_plan();
  plan.target.tensors[0].chunks.push_back(plan.target.tensors[0].chunks[0]);
  EXPECT_EQ(check_plan(plan).error().code, Code::kOverlap);
}

// A [4, 6] tensor of e4m3 in blocks of 2 x 4, so [2, 2] scales, becomes bfloat16.
Plan quantised_plan() {
  Plan plan = identity_plan();
  plan.source.tensors[0].desc.dtype = DType::kF8E4M3;
  plan.source.tensors[0].chunks.set_location(0, 0, {0, 24});
  StoredTensor scales{{"scales", DType::kF32, {2, 2}}, ChunkList(2), Encoding::kRaw};
  scales.chunks.push_back({Box{{0, 0}, {2, 2}}, 0, {24, 16}, {}});
  plan.source.tensors.push_back(scales);
  plan.target.tensors[0].desc.dtype = DType::kBF16;
  plan.quantised = {{0, 1, {2, 4}, {2, 1}}};
  return plan;
}

TEST(CheckPlan, AcceptsValuesWithTheirScales) {
  const Plan plan = quantised_plan();
  EXPECT_TRUE(check_plan(plan));
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 24U + 16U);
}

TEST(CheckPlan, RefusesScalesThatDoNotCoverTheirValues) {
  const auto code = [](auto change) {
    Plan plan = quantised_plan();
    change(plan);
    const Status status = check_plan(plan);
    return status ? Code::kInternal : status.error().code;
  };
  const std::vector<std::function<void(Plan&)>> wrong = {
      [](Plan& plan) { plan.quantised[0].block = {1, 4}; },   // four rows of scales
      [](Plan& plan) { plan.quantised[0].stride = {3, 1}; },  // the last one lies behind the end
      [](Plan& plan) { plan.quantised[0].stride = {-1, 1}; },
      [](Plan& plan) { plan.quantised[0].block = {0, 4}; },
      [](Plan& plan) { plan.quantised[0].block = {2}; },
      [](Plan& plan) { plan.quantised[0].scales = 0; },
      [](Plan& plan) { plan.quantised[0].scales = 2; },
      [](Plan& plan) { plan.quantised[0].values = 7; },
      [](Plan& plan) { plan.quantised.push_back(plan.quantised[0]); },
      [](Plan& plan) { plan.source.tensors[1].desc.dtype = DType::kU32; },
      [](Plan& plan) { plan.source.tensors[1].chunks.set_location(0, 0, {24, 12}); },
      [](Plan& plan) { plan.source.tensors[1].chunks.set_strides(0, {1, 2}); },
      [](Plan& plan) { plan.source.tensors[0].desc.dtype = DType::kU8; },
      [](Plan& plan) { plan.source.tensors[0].chunks.set_location(0, 0, {0, 23}); },
  };
  for (std::size_t i = 0; i < wrong.size(); ++i) EXPECT_EQ(code(wrong[i]), Code::kPlanInvalid) << i;
  EXPECT_EQ(code([](Plan& plan) { plan.target.tensors[0].desc.dtype = DType::kI32; }),
            Code::kDtypeUnsupported);
  EXPECT_EQ(code([](Plan& plan) { plan.quantised.clear(); }), Code::kDtypeUnsupported);
}

}  // namespace
}  // namespace shardwright
