// SPDX-License-Identifier: Apache-2.0
#include "verify/statistics.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "verify/planted_fixture.h"

namespace shardwright {
namespace {

TEST(Statistics, AreThoseOfShowForEachTensor) {
  const std::string path = golden_path("hf/llama3/hf");
  View view = make_view(open_checkpoint(path).value(), Naming::kStored, {}).value();
  const auto all = statistics_of(view, {}).value();
  ASSERT_EQ(all.size(), view.plan.target.tensors.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    const TensorDesc& desc = view.plan.target.tensors[i].desc;
    const TensorReport shown = show_tensor(path, desc.name, {}).value();
    EXPECT_EQ(all[i].moments.least, shown.least) << desc.name;
    EXPECT_EQ(all[i].moments.greatest, shown.greatest) << desc.name;
    EXPECT_EQ(all[i].moments.zero, shown.zero) << desc.name;
    EXPECT_NEAR(all[i].moments.average(), *shown.mean, 1e-12) << desc.name;
    EXPECT_NEAR(all[i].moments.deviation(), *shown.deviation, 1e-12) << desc.name;
  }
}

// Tensors of many tiles are put together in one order, so sums are the same to the last bit.
TEST(Statistics, DoNotDependOnThreads) {
  const Planted planted;
  std::vector<float> values(3'000'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(static_cast<float>(i % 7), static_cast<int>(i % 40) - 20);
  }
  std::string payload(values.size() * sizeof(float), '\0');
  std::memcpy(payload.data(), values.data(), payload.size());
  planted.put_header("model.safetensors",
                     R"({"w":{"dtype":"F32","shape":[3000000],"data_offsets":[0,12000000]}})",
                     payload);
  std::vector<TensorStatistics> found;
  for (const int threads : {1, 5}) {
    const View view =
        make_view(open_checkpoint(planted.path()).value(), Naming::kStored, {}).value();
    found.push_back(statistics_of(view, {.threads = threads}).value().at(0));
  }
  EXPECT_EQ(found[0].moments.mean, found[1].moments.mean);
  EXPECT_EQ(found[0].moments.squares, found[1].moments.squares);
  EXPECT_EQ(found[0].magnitudes.counts, found[1].magnitudes.counts);
  std::uint64_t counted = found[0].moments.zero;
  for (const std::uint64_t count : found[0].magnitudes.counts) counted += count;
  EXPECT_EQ(counted, values.size());
}

// Neither sums nor squares of numbers that are numbers are infinite.
TEST(Moments, OfTheLargestNumbersAreFinite) {
  constexpr double kMost = std::numeric_limits<double>::max();
  const auto of = [](const std::vector<double>& values) {
    Moments moments;
    for (const double value : values) moments.take(value);
    return moments;
  };
  EXPECT_EQ(of({1e308, 1e308}).average(), 1e308);
  EXPECT_EQ(of({1e308, 1e308}).deviation(), 0.0);
  EXPECT_EQ(of({kMost, -kMost}).average(), 0.0);
  EXPECT_EQ(of({kMost, -kMost}).deviation(), kMost);
  EXPECT_EQ(of({1e200, 3e200}).average(), 2e200);
  EXPECT_EQ(of({1e200, 3e200}).deviation(), 1e200);
  for (const auto& [left, right] : std::vector<std::pair<std::vector<double>, std::vector<double>>>{
           {{kMost}, {-kMost}}, {{1.0, 2.0, 3.0}, {1e300, -1e300}}, {{1e300, -1e300}, {1.0}}}) {
    Moments joined = of(left);
    joined.add(of(right));
    std::vector<double> all = left;
    all.insert(all.end(), right.begin(), right.end());
    const Moments whole = of(all);
    EXPECT_NEAR(joined.deviation() / whole.deviation(), 1.0, 1e-12);
    EXPECT_LE(std::fabs(joined.average() - whole.average()), 1e-12 * whole.deviation());
    EXPECT_EQ(joined.count, whole.count);
  }
  Moments parts;
  for (int i = 0; i < 3; ++i) parts.add(of({1e308, 1e308}));
  EXPECT_EQ(parts.average(), 1e308);
  EXPECT_EQ(parts.deviation(), 0.0);
}

TEST(Magnitudes, CountByPowersOfTwo) {
  Magnitudes magnitudes;
  for (const double value : {1.0, -1.5, 1.999, 2.0, 0.5, 0.0, 1e-300, 1e300})
    magnitudes.take(value);
  magnitudes.take(std::nan(""));
  magnitudes.take(HUGE_VAL);
  const auto at = [&](int exponent) {
    return magnitudes.counts.at(static_cast<std::size_t>(exponent - Magnitudes::kLeastExponent));
  };
  EXPECT_EQ(at(0), 3u);
  EXPECT_EQ(at(1), 1u);
  EXPECT_EQ(at(-1), 1u);
  // What is beyond both ends is in the outermost ones.
  EXPECT_EQ(magnitudes.counts.front(), 1u);
  EXPECT_EQ(magnitudes.counts.back(), 1u);
  std::uint64_t all = 0;
  for (const std::uint64_t count : magnitudes.counts) all += count;
  EXPECT_EQ(all, 7u);
}

}  // namespace
}  // namespace shardwright
