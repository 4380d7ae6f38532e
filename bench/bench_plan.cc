// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "plan/lower.h"

namespace shardwright {
namespace {

constexpr std::int64_t kLayers = 400;
constexpr std::int64_t kExperts = 128;
constexpr std::int64_t kRows = 256;
constexpr std::int64_t kColumns = 512;

// One stacked tensor of 102,400 chunks that becomes the same tensor, whole.
Plan stacked_plan() {
  const Dims shape{kLayers, kExperts, kRows, kColumns};
  StoredTensor source{{"experts", DType::kBF16, shape}, ChunkList(4), Encoding::kRaw};
  constexpr std::uint64_t kChunkBytes = kRows / 2 * kColumns * 2;
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    for (std::int64_t expert = 0; expert < kExperts; ++expert) {
      for (const std::int64_t half : {std::int64_t{0}, std::int64_t{1}}) {
        const Box box{{layer, expert, half * kRows / 2, 0}, {1, 1, kRows / 2, kColumns}};
        source.chunks.push_back({box, 0, {source.chunks.size() * kChunkBytes, kChunkBytes}, {}});
      }
    }
  }
  Plan plan;
  plan.source.files = {"source"};
  plan.source.tensors.push_back(std::move(source));
  StoredTensor target{{"experts", DType::kBF16, shape}, ChunkList(4), Encoding::kRaw};
  target.chunks.push_back({Box::whole(shape), 0, {0, 0}, {}});
  plan.target.tensors.push_back(std::move(target));
  TensorRecipe recipe;
  recipe.views.push_back({Box::whole(shape), 0, {0, 0, 0, 0}, {0, 1, 2, 3}, {1, 1, 1, 1}});
  plan.tensors.push_back(std::move(recipe));
  return plan;
}

void prepares_lowering(benchmark::State& state) {
  const Plan plan = stacked_plan();
  for (auto _ : state) benchmark::DoNotOptimize(Lowering(plan));
}
BENCHMARK(prepares_lowering)->Unit(benchmark::kMillisecond);

// Tile by tile, as the executor does: 16 experts at a time.
void lowers_a_stacked_tensor(benchmark::State& state) {
  const Plan plan = stacked_plan();
  const Lowering lowering(plan);
  std::vector<SourcePiece> pieces;
  std::int64_t count = 0;
  for (auto _ : state) {
    count = 0;
    for (std::int64_t layer = 0; layer < kLayers; ++layer) {
      for (std::int64_t expert = 0; expert < kExperts; expert += 16) {
        pieces.clear();
        lowering.lower(0, {{layer, expert, 0, 0}, {1, 16, kRows, kColumns}}, pieces);
        count += static_cast<std::int64_t>(pieces.size());
      }
    }
    if (count != 2 * kLayers * kExperts) state.SkipWithError("it lost pieces");
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(lowers_a_stacked_tensor)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright
