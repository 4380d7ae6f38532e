// SPDX-License-Identifier: Apache-2.0
#include "exec/plan_fingerprint.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <set>
#include <string>

namespace shardwright {
namespace {

// A plan of one tensor that is stored as values of fp8.
Plan quantising_plan(const std::function<void(Quantising&)>& change) {
  Plan plan;
  const Dims shape{256, 128};
  Quantising form{Quantising::Scheme::kFp8, Quantising::Part::kValues, shape, 128, 128, false};
  change(form);
  StoredTensor tensor{{"w", DType::kF8E4M3, shape}, ChunkList(2)};
  tensor.chunks.push_back({Box::whole(shape), 0, {0, 256 * 128}, {}});
  plan.target.tensors.push_back(std::move(tensor));
  const TensorView whole{Box::whole(shape), 0, {0, 0}, {0, 1}, {1, 1}};
  plan.tensors.push_back(
      {{whole}, std::nullopt, 0.0, std::make_shared<const Quantising>(std::move(form))});
  return plan;
}

// Parts and a resumed run believe each other's bytes where fingerprints agree.
TEST(PlanFingerprint, TellsEachWayToQuantiseApart) {
  const std::function<void(Quantising&)> changes[] = {
      [](Quantising& /*form*/) {},
      [](Quantising& form) { form.scheme = Quantising::Scheme::kMxfp4; },
      [](Quantising& form) { form.part = Quantising::Part::kScales; },
      [](Quantising& form) { form.shape = {128, 128}; },
      [](Quantising& form) { form.block_rows = 64; },
      [](Quantising& form) { form.block_columns = 64; },
      [](Quantising& form) { form.has_exponents = true; },
  };
  std::set<std::string> seen;
  for (const auto& change : changes) {
    EXPECT_TRUE(seen.insert(fingerprint_of(quantising_plan(change))).second) << seen.size();
    EXPECT_TRUE(seen.contains(fingerprint_of(quantising_plan(change))));
  }
  Plan plain = quantising_plan(changes[0]);
  plain.tensors[0].quantising = nullptr;
  EXPECT_FALSE(seen.contains(fingerprint_of(plain)));
}

}  // namespace
}  // namespace shardwright
