// SPDX-License-Identifier: Apache-2.0
#include "canonical/dora_factors.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/fail.h"
#include "base/text.h"
#include "compare/tensor_values.h"
#include "exec/threads.h"
#include "plan/canonical.h"

namespace shardwright {
namespace {

// The whole of a source tensor in float32, as a target tensor.
void add_target(std::uint32_t source, Plan& plan) {
  TensorDesc desc = plan.source.tensors[source].desc;
  desc.dtype = DType::kF32;
  const int axes = desc.shape.size();
  plan.tensors.push_back({{view_of_canonical({desc, source, -1})}, std::nullopt, 0.0});
  plan.target.tensors.push_back({std::move(desc), ChunkList(axes)});
}

// One conversion's worth of weights: target 2i is the tensor, 2i + 1 its lengths.
Plan plan_of(const Plan& whole, const std::vector<LearnedLengths>& learned) {
  Plan plan;
  plan.source = whole.source;
  plan.quantised = whole.quantised;
  plan.adapted = whole.adapted;
  for (const LearnedLengths& each : learned) {
    add_target(whole.adapted[each.adapted].values, plan);
    add_target(each.lengths, plan);
  }
  return plan;
}

std::vector<float> floats_of(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Result<std::vector<double>> sums_of_squares(TensorValues& values, std::size_t target,
                                            const Dims& shape, int out_axis) {
  std::vector<double> sums(static_cast<std::size_t>(shape[out_axis]), 0.0);
  const TileGrid grid = values.grid(target);
  for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
    const Box tile = grid.tile(ordinal);
    const std::vector<float> block = floats_of(SW_TRY(values.read(target, tile)));
    for (std::int64_t i = 0; i < std::ssize(block); ++i) {
      const std::int64_t along = out_axis == 0 ? i / tile.shape[1] : i % tile.shape[1];
      const double value = block[static_cast<std::size_t>(i)];
      sums[static_cast<std::size_t>(tile.origin[out_axis] + along)] += value * value;
    }
  }
  return sums;
}

Result<std::vector<float>> lengths_in(TensorValues& values, std::size_t target) {
  std::vector<float> lengths;
  const TileGrid grid = values.grid(target);
  for (std::int64_t ordinal = 0; ordinal < grid.count(); ++ordinal) {
    const std::vector<float> block = floats_of(SW_TRY(values.read(target, grid.tile(ordinal))));
    lengths.insert(lengths.end(), block.begin(), block.end());
  }
  return lengths;
}

Result<std::vector<float>> factors_of(TensorValues& values, std::size_t target,
                                      const TensorDesc& desc, int out_axis) {
  std::vector<float> factors = SW_TRY(lengths_in(values, target + 1));
  const std::vector<double> sums = SW_TRY(sums_of_squares(values, target, desc.shape, out_axis));
  for (std::size_t i = 0; i < factors.size(); ++i) {
    const auto length = static_cast<float>(std::sqrt(sums[i]));
    factors[i] /= length;
    if (std::isfinite(factors[i])) continue;
    return fail(Code::kValueOverflow,
                "tensor {}: the weights of output {} have the length {}, which DoRA cannot scale",
                printable(desc.name), i, length);
  }
  return factors;
}

}  // namespace

Status set_dora_factors(Plan& plan, const std::vector<LearnedLengths>& learned, SourceFiles& files,
                        int threads) {
  if (learned.empty()) return {};
  const Plan reading = plan_of(plan, learned);
  std::atomic<std::size_t> next = 0;
  const int most = static_cast<int>(std::min<std::size_t>(learned.size(), 1 << 10));
  return run_on_threads(std::clamp(threads, 1, most), {}, [&]() -> Status {
    TensorValues values(reading, files);
    for (std::size_t i = next++; i < learned.size(); i = next++) {
      AdaptedSource& adapted = plan.adapted[learned[i].adapted];
      adapted.factors = std::make_shared<const std::vector<float>>(
          SW_TRY(factors_of(values, 2 * i, reading.target.tensors[2 * i].desc, adapted.out_axis)));
    }
    return {};
  });
}

}  // namespace shardwright
