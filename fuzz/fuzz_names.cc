// SPDX-License-Identifier: Apache-2.0
// Tensor names from files, taken apart: layer stacks, sharding rules, placements, patterns. Each
// line of the input is a name; its bytes give a shape and the sizes of the parallel axes.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/glob.h"
#include "base/text.h"
#include "expect.h"
#include "format/select.h"
#include "layout/extra_state.h"
#include "layout/layer_name.h"
#include "layout/piece_limit.h"
#include "layout/placement.h"
#include "layout/shard_rule.h"
#include "plan/canonical.h"
#include "shardwright/catalog.h"

namespace shardwright {
namespace {

std::vector<std::string> lines_of(std::string_view text) {
  constexpr std::size_t kMostLines = 64;
  std::vector<std::string> lines;
  while (!text.empty() && lines.size() < kMostLines) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Small extents, so that every element can be counted.
Dims shape_for(std::string_view name) {
  Dims shape;
  std::uint32_t hash = 2166136261;
  for (const char c : name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619;
  for (std::uint32_t axes = hash % 5; axes > 0; --axes) {
    hash = hash * 1664525 + 1013904223;
    shape.push_back((hash >> 16) % 9);
  }
  return shape;
}

void check_name(const std::string& name) {
  if (const auto layer = split_layer_name(name); layer && layer->index) {
    expect(*layer->index >= 0, "layers count from zero");
    const std::string joined = join_layer_name(layer->stack, *layer->index, layer->rest);
    const auto again = split_layer_name(joined);
    expect(again && again->index == layer->index && again->rest == layer->rest,
           "a name can be put together again");
  }
  for (int axes = 0; axes <= kMaxAxes; ++axes) {
    const ShardRule rule = shard_rule(name, axes, axes % 2 == 0);
    expect(rule.axis < axes, "the cut axis exists");
    expect(rule.expert_axis < axes || axes == 0, "the expert axis exists");
  }
  static_cast<void>(is_optimizer_name(name));
  expect(matches_glob("*", name), "a star matches everything");
  expect(!printable(name).contains('\n'), "a printable text is one line");
}

void check_placement(std::span<const TensorDesc> tensors, const ParallelConfig& config) {
  const Result<Placement> placement = Placement::make(tensors, config);
  if (!placement) return;
  for (const TensorDesc& tensor : tensors) {
    static_cast<void>(placement->rank_of_object(tensor.name));
    const Result<OwnedChunks> chunks = placement->place(tensor);
    if (!chunks) continue;
    StoredTensor stored{tensor, ChunkList(tensor.shape.size()), Encoding::kRaw};
    for (std::size_t i = 0; i < chunks->size(); ++i) {
      const OwnedChunk chunk = (*chunks)[i];
      expect(chunk.owner >= 0 && chunk.owner < placement->world_size(), "the owner exists");
      stored.chunks.push_back({chunk.box, 0, {}, {}});
    }
    expect(check_coverage(stored, Replicas::kForbidden).has_value(), "chunks cover the tensor");
  }
}

void check(std::string_view text) {
  const std::vector<std::string> names = lines_of(text);
  std::vector<TensorDesc> tensors;
  for (const std::string& name : names) {
    check_name(name);
    tensors.push_back({name, DType::kBF16, shape_for(name)});
    if (tensors.size() > 1) {
      const std::string& before = names[tensors.size() - 2];
      expect(!(natural_less(name, before) && natural_less(before, name)), "an order is strict");
      static_cast<void>(matches_glob(before, name));
    }
  }
  if (check_piece_count(tensors)) {
    static_cast<void>(extra_state_names(tensors, ModuleSpec::kTransformerEngine));
  }
  ParallelConfig config;
  const auto size_at = [&](std::size_t i) { return i < text.size() ? 1 + text[i] % 4 : 1; };
  config.tensor = std::max(1, size_at(0));
  config.pipeline = std::max(1, size_at(1));
  config.expert = std::max(1, size_at(2));
  check_placement(tensors, config);
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The bytes are characters of a text that nobody has checked.
  shardwright::check(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
