// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <vector>

#include "layout/load_plan.h"
#include "layout/state_name.h"

namespace shardwright {
namespace {

constexpr std::int64_t kLayers = 64;
constexpr std::int64_t kHidden = 1024;

// A sparse model with its optimizer states; each expert has 96 chunks in each layer at TP8.
std::vector<TensorDesc> sparse_model(std::int64_t experts) {
  const std::string layers = "decoder.layers.";
  std::vector<TensorDesc> tensors = {
      {"embedding.word_embeddings.weight", DType::kBF16, {32000, kHidden}},
      {layers + "self_attention.linear_qkv.layer_norm_weight", DType::kBF16, {kLayers, kHidden}},
      {layers + "self_attention.linear_qkv.weight", DType::kBF16, {kLayers, 2048, kHidden}},
      {layers + "self_attention.linear_proj.weight", DType::kBF16, {kLayers, kHidden, kHidden}},
      {layers + "mlp.router.weight", DType::kBF16, {kLayers, experts, kHidden}},
      {layers + "mlp.experts.experts.linear_fc1.weight",
       DType::kBF16,
       {kLayers, experts, 1024, kHidden}},
      {layers + "mlp.experts.experts.linear_fc2.weight",
       DType::kBF16,
       {kLayers, experts, kHidden, 512}},
      {"output_layer.weight", DType::kBF16, {32000, kHidden}}};
  const std::size_t count = tensors.size();
  for (const std::string_view kind : kStateKinds) {
    for (std::size_t i = 0; i < count; ++i) {
      tensors.push_back({join_state_name(kind, tensors[i].name), DType::kF32, tensors[i].shape});
    }
  }
  return tensors;
}

// What a job of `layout` saves: each piece in the file of one of its holders in turn.
Catalog saved_by(const std::vector<TensorDesc>& tensors, const JobLayout& layout) {
  Catalog catalog;
  for (std::int64_t rank = 0; rank < layout.world_size(); ++rank) {
    catalog.files.push_back("__" + std::to_string(rank) + "_0.distcp");
  }
  std::int64_t turn = 0;
  for (const TensorDesc& tensor : tensors) {
    const JobShards shards = layout.place(tensor).value();
    StoredTensor stored{tensor, ChunkList(tensor.shape.size()), Encoding::kTorchItem};
    stored.chunks.reserve(shards.pieces.size());
    for (std::size_t piece = 0; piece < shards.pieces.size(); ++piece) {
      const RankRuns holders = layout.holders(shards, piece);
      const Box box = shards.pieces[piece].box;
      const auto bytes = static_cast<std::uint64_t>(box.volume() * bytes_of(tensor.dtype));
      const auto file = static_cast<std::uint32_t>(holders[turn++ % holders.size()]);
      stored.chunks.push_back({box, file, {0, bytes + 1600}, {}});
    }
    catalog.tensors.push_back(std::move(stored));
  }
  return catalog;
}

void plan_one(benchmark::State& state, const ParallelConfig& from, const ParallelConfig& to,
              std::int64_t data) {
  const std::vector<TensorDesc> tensors = sparse_model(state.range(0));
  const Catalog catalog = saved_by(tensors, JobLayout::make(tensors, from, data).value());
  const JobLayout layout = JobLayout::make(tensors, to, data).value();
  std::vector<std::uint32_t> which;
  std::size_t chunks = 0;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    which.push_back(i);
    chunks += catalog.tensors[i].chunks.size();
  }
  for (auto _ : state) {
    const LoadNeeds needs = needs_of(catalog, which, layout).value();
    const auto plans = plan_loads(needs);
    if (plans[2].reads.size() < chunks) state.SkipWithError("it lost chunks");
    benchmark::DoNotOptimize(plans);
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  state.counters["chunks"] = static_cast<double>(chunks);
  state.counters["ranks"] = static_cast<double>(layout.world_size());
  state.counters["peak_MiB"] = static_cast<double>(usage.ru_maxrss) / 1024;
}

constexpr ParallelConfig kSaved{.tensor = 8, .pipeline = 4, .expert = 4, .expert_tensor = 8};

// Experts by data-parallel size: TP8 PP4 DP32 are 1,024 ranks, 160 experts a million chunks.
void plans_a_load_of_the_layout_that_saved(benchmark::State& state) {
  plan_one(state, kSaved, kSaved, state.range(1));
}
BENCHMARK(plans_a_load_of_the_layout_that_saved)
    ->Args({16, 32})
    ->Args({160, 4})
    ->Args({160, 32})
    ->Unit(benchmark::kMillisecond);

void plans_a_load_of_another_layout(benchmark::State& state) {
  ParallelConfig other = kSaved;
  other.pipeline = 2;
  other.expert = 8;
  plan_one(state, kSaved, other, 2 * state.range(1));
}
BENCHMARK(plans_a_load_of_another_layout)
    ->Args({16, 16})
    ->Args({160, 4})
    ->Args({160, 16})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright
