// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

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

TEST(CheckPlan, AcceptsACopy) {
  const Plan plan = identity_plan();
  EXPECT_TRUE(check_plan(plan));
  EXPECT_EQ(cost_of(plan).payload_bytes_read, 96U);
  EXPECT_EQ(cost_of(plan).bytes_written, 96U);
}

TEST(CheckPlan, NamesTargetElementsWithoutSource) {
  Plan plan = identity_plan();
  plan.tensors[0].views[0].box.shape = {3, 6};
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
  plan.tensors[0].views[0].source_origin = {0, 1};
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
  plan = identity_plan();
  plan.tensors[0].views[0].source = 1;
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
  plan = identity_plan();
  plan.tensors[0].views[0].axis = {0, 0};
  EXPECT_EQ(check_plan(plan).error().code, Code::kPlanInvalid);
  plan = identity_plan();
  plan.tensors[0].views[0].axis = {0, -1};
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

}  // namespace
}  // namespace shardwright
