// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tensor/chunk_index.h"
#include "tensor/convert.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::int64_t kBytes = std::int64_t{4} << 20;  // one tile

// Rows of `run` bytes out of a source whose rows are eight times as long: one of eight column
// shards.
void copies_column_shards(benchmark::State& state) {
  const std::int64_t run = state.range(0);
  const std::int64_t rows = kBytes / run;
  const std::vector<std::byte> source(static_cast<std::size_t>(8 * kBytes), std::byte{1});
  std::vector<std::byte> target(static_cast<std::size_t>(kBytes));
  const CopyLoops loops{{rows, run / 2}, {run, 2}, {8 * run, 2}};
  for (auto _ : state) {
    strided_copy(loops, 2, source.data(), target.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(copies_column_shards)->Arg(64)->Arg(512)->Arg(4096);

void copies_a_transpose(benchmark::State& state) {
  constexpr std::int64_t kSide = 1024;
  const std::vector<std::byte> source(kSide * kSide * 2, std::byte{1});
  std::vector<std::byte> target(kSide * kSide * 2);
  const CopyLoops loops{{kSide, kSide}, {kSide * 2, 2}, {2, kSide * 2}};
  for (auto _ : state) {
    strided_copy(loops, 2, source.data(), target.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kSide * kSide * 2);
}
BENCHMARK(copies_a_transpose);

void converts_f32_to_bf16(benchmark::State& state) {
  const std::int64_t count = kBytes / 4;
  const std::vector<float> source(static_cast<std::size_t>(count), 1.0F / 3.0F);
  std::vector<std::uint16_t> target(static_cast<std::size_t>(count));
  const auto from = std::as_bytes(std::span(source));
  const auto to = std::as_writable_bytes(std::span(target));
  for (auto _ : state) {
    const Status status =
        convert_run({DType::kF32, DType::kBF16, 0.0}, count, from.data(), 4, to.data(), 2);
    if (!status) state.SkipWithError("it failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kBytes);
}
BENCHMARK(converts_f32_to_bf16);

// The chunks of all experts of a model: layers x experts x the two halves of a gated projection.
ChunkList expert_chunks(std::int64_t layers, std::int64_t experts) {
  ChunkList chunks(4);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    for (std::int64_t expert = 0; expert < experts; ++expert) {
      for (const std::int64_t half : {0, 1}) {
        chunks.push_back({{{layer, expert, half * 128, 0}, {1, 1, 128, 512}}, 0, {}, {}});
      }
    }
  }
  return chunks;
}

void finds_one_chunk_of_many(benchmark::State& state) {
  const std::int64_t layers = state.range(0);
  const ChunkList chunks = expert_chunks(layers, 128);
  const ChunkIndex index(chunks);
  std::vector<std::uint32_t> found;
  std::int64_t turn = 0;
  for (auto _ : state) {
    found.clear();
    const Box box{{turn % layers, (turn * 37) % 128, 128, 0}, {1, 1, 128, 512}};
    index.find(box, found);
    if (found.size() != 1) state.SkipWithError("it found another number of chunks");
    ++turn;
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(finds_one_chunk_of_many)->Arg(4)->Arg(40)->Arg(400);

void builds_a_chunk_index(benchmark::State& state) {
  const ChunkList chunks = expert_chunks(400, 128);
  for (auto _ : state) benchmark::DoNotOptimize(ChunkIndex(chunks));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(chunks.size()));
}
BENCHMARK(builds_a_chunk_index)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright
