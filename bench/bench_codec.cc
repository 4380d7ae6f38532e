// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/crc32.h"
#include "base/endian.h"
#include "codec/pickle_decode.h"
#include "codec/pickle_encode.h"
#include "codec/torch_item.h"

namespace shardwright {
namespace {

void sums_crc32(benchmark::State& state) {
  const std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(0)), std::byte{7});
  for (auto _ : state) benchmark::DoNotOptimize(crc32(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(sums_crc32)->Arg(1 << 10)->Arg(1 << 22);

void combines_crc32(benchmark::State& state) {
  std::uint32_t crc = 1;
  for (auto _ : state) crc = crc32_combine(crc, 0x12345678, std::uint64_t{4} << 20);
  benchmark::DoNotOptimize(crc);
}
BENCHMARK(combines_crc32);

// A state dict of many small tensors, as a pickle holds it.
std::string many_tensors(std::int64_t count) {
  pickle::Document document;
  const pickle::Value root = document.dict();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::string key = std::to_string(i);
    const pickle::Value storage = document.persistent_id(
        document.tuple({document.string("storage"), document.global("torch", "BFloat16Storage"),
                        document.string(key), document.string("cpu"), document.integer(4096)}));
    const pickle::Value tensor = document.reduce(
        document.global("torch._utils", "_rebuild_tensor_v2"),
        document.tuple({storage, document.integer(0),
                        document.tuple({document.integer(64), document.integer(64)}),
                        document.tuple({document.integer(64), document.integer(1)}),
                        document.boolean(false), document.ordered_dict()}));
    document.set(root, "decoder.layers." + key + ".mlp.linear_fc1.weight", tensor);
  }
  document.set_root(root);
  return pickle::encode(document, pickle::Protocol::kTwo).value_or("");
}

void decodes_a_pickle(benchmark::State& state) {
  const std::string bytes = many_tensors(state.range(0));
  for (auto _ : state) {
    const Result<pickle::Document> document = pickle::decode(as_bytes(bytes));
    if (!document) state.SkipWithError("it is no pickle");
    benchmark::DoNotOptimize(document);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes.size()));
}
BENCHMARK(decodes_a_pickle)->Arg(100)->Arg(5'000);

void frames_an_item(benchmark::State& state) {
  for (auto _ : state) {
    const Result<TensorItem> item = TensorItem::make(DType::kBF16, {1, 1, 160, 512}, 4096);
    if (!item) state.SkipWithError("it can't be laid out");
    benchmark::DoNotOptimize(item->head());
    benchmark::DoNotOptimize(item->tail(1));
  }
}
BENCHMARK(frames_an_item);

}  // namespace
}  // namespace shardwright
