// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "exec/dequantise_region.h"

namespace shardwright {
namespace {

constexpr std::int64_t kRows = 512;
constexpr std::int64_t kColumns = 4096;  // bf16: one tile

// A tile of e4m3 in blocks of 128 x 128, or of fp4 in groups of 32, out of the cache.
void multiplies_a_tile(benchmark::State& state, DType dtype, std::int64_t rows_per_scale,
                       std::int64_t columns_per_scale) {
  const bool is_fp4 = dtype == DType::kF4E2M1X2;
  const std::int64_t scales_per_row = kColumns / columns_per_scale;
  const std::vector<std::byte> values(static_cast<std::size_t>(kRows * kColumns), std::byte{0x2d});
  const std::vector<std::byte> scales(
      static_cast<std::size_t>(4 * kRows / rows_per_scale * scales_per_row), std::byte{0x3f});
  std::vector<std::byte> target(static_cast<std::size_t>(kRows * kColumns * 2));
  SourcePiece piece;
  piece.box = Box::whole({kRows, kColumns});
  piece.strides = {kColumns, 1};
  piece.dtype = dtype;
  piece.per_byte = is_fp4 ? 2 : 1;
  const DType scale_type = is_fp4 ? DType::kF8E8M0 : DType::kF32;
  Catalog catalog;
  catalog.files = {"v", "s"};
  catalog.tensors = {{{"v", dtype, {kRows, kColumns}}, ChunkList(2)},
                     {{"s", scale_type, {kRows / rows_per_scale, scales_per_row}}, ChunkList(2)}};
  catalog.tensors[1].chunks.push_back(
      {Box::whole(catalog.tensors[1].desc.shape), 1, {0, scales.size()}, {}});
  const QuantisedSource source{0, 1, {rows_per_scale, columns_per_scale}, {scales_per_row, 1}};
  piece.quantised = {&source, &catalog, {0, 0}, {0, 1}, {1, 1}};
  const LoadedRegion loaded{piece, piece.box, values.data(), 0, {scales.data(), 0}};
  for (auto _ : state) {
    const Status status =
        dequantise_region(loaded, {dtype, DType::kBF16, 0.0}, target.data(), {kColumns * 2, 2});
    if (!status) state.SkipWithError("it failed");
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * kRows * kColumns * 2);  // of bf16
}
BENCHMARK_CAPTURE(multiplies_a_tile, fp8_blocks, DType::kF8E4M3, 128, 128);
BENCHMARK_CAPTURE(multiplies_a_tile, fp8_rows, DType::kF8E4M3, 1, kColumns);
BENCHMARK_CAPTURE(multiplies_a_tile, mxfp4, DType::kF4E2M1X2, 1, 32);

}  // namespace
}  // namespace shardwright
