// SPDX-License-Identifier: Apache-2.0
// Tensors of sharded trainers' checkpoints, put together as their names and chunks tell: MLite's
// experts, Megatron-FSDP's halves, strided shards. A line of the input is a tensor: its name, its
// shape, how often each axis is cut, and which rank wrote the first chunk.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "expect.h"
#include "format/fsdp_dtensor/fsdp_source.h"
#include "format/mlite/mlite_source.h"
#include "layout/fsdp_name.h"
#include "layout/rank_order.h"
#include "layout/strided_shards.h"
#include "shardwright/convert_request.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostCuts = 12;
constexpr std::size_t kMostTensors = 48;
constexpr std::uint32_t kRanks = 16;

std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = std::min(text.find(end), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

std::vector<std::int64_t> numbers_of(std::string_view text) {
  std::vector<std::int64_t> numbers;
  while (!text.empty() && numbers.size() < static_cast<std::size_t>(kMaxAxes)) {
    const std::string_view word = take_until(text, ',');
    std::int64_t number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number);
    numbers.push_back(std::max<std::int64_t>(0, number));
  }
  return numbers;
}

// Chunks that share the tensor out as torch.chunk does, axis by axis; each in its rank's file.
void cut(StoredTensor& tensor, const std::vector<std::int64_t>& cuts, std::uint32_t rank) {
  const Dims& shape = tensor.desc.shape;
  std::vector<Box> boxes = {Box::whole(shape)};
  for (int axis = 0; axis < shape.size(); ++axis) {
    const auto place = static_cast<std::size_t>(axis);
    const std::int64_t wanted = place < cuts.size() ? cuts[place] : 1;
    const std::int64_t count = std::clamp<std::int64_t>(wanted, 1, kMostCuts);
    std::vector<Box> pieces;
    for (const Box& box : boxes) {
      for (std::int64_t i = 0; i < count && pieces.size() < 64; ++i) {
        const ShardRows rows = chunk_of({0, shape[axis]}, count, i);
        pieces.push_back(box);
        pieces.back().origin[axis] = rows.offset;
        pieces.back().shape[axis] = rows.rows;
      }
    }
    boxes = std::move(pieces);
  }
  for (const Box& box : boxes) {
    const std::int64_t bytes = *byte_count(box.shape, tensor.desc.dtype);
    tensor.chunks.push_back({box, rank++ % kRanks, {0, static_cast<std::uint64_t>(bytes)}, Dims()});
  }
}

Catalog catalog_of(std::string_view text) {
  Catalog catalog;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    catalog.files.push_back("__" + std::to_string(rank) + "_0.distcp");
  }
  while (!text.empty() && catalog.tensors.size() < kMostTensors) {
    std::string_view line = take_until(text, '\n');
    StoredTensor tensor;
    tensor.desc.name = take_until(line, '|');
    tensor.desc.dtype = DType::kBF16;
    for (const std::int64_t extent : numbers_of(take_until(line, '|'))) {
      tensor.desc.shape.push_back(extent);
    }
    if (!byte_count(tensor.desc.shape, tensor.desc.dtype)) continue;
    tensor.chunks = ChunkList(tensor.desc.shape.size());
    tensor.encoding = Encoding::kRaw;
    const std::vector<std::int64_t> cuts = numbers_of(take_until(line, '|'));
    const std::vector<std::int64_t> rank = numbers_of(line);
    cut(tensor, cuts, rank.empty() ? 0 : static_cast<std::uint32_t>(rank[0] % kRanks));
    catalog.tensors.push_back(std::move(tensor));
  }
  return catalog;
}

void expect_inside(const Catalog& catalog) {
  for (const StoredTensor& tensor : catalog.tensors) {
    expect(byte_count(tensor.desc.shape, tensor.desc.dtype).has_value(), "a shape can be counted");
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      expect(tensor.chunks.file(i) < catalog.files.size(), "a chunk's file exists");
      expect(contains(Box::whole(tensor.desc.shape), tensor.chunks.box(i)),
             "a chunk lies inside its tensor");
    }
  }
}

void check_names(const Catalog& catalog) {
  for (const StoredTensor& tensor : catalog.tensors) {
    static_cast<void>(split_fsdp_group_entry(tensor.desc.name));
    static_cast<void>(rank_of_file(tensor.desc.name));
    const auto name = split_fsdp_name(tensor.desc.name);
    if (!name) continue;
    const auto again = split_fsdp_name(join_fsdp_name(*name));
    expect(again && again->role == name->role, "a name can be put together again");
  }
}

void check_sources(const Catalog& catalog, std::string_view text) {
  ConvertRequest request;
  std::vector<std::string> notes;
  const auto size_at = [&](std::size_t i) -> std::optional<std::int64_t> {
    if (i >= text.size() || text[i] % 4 == 0) return std::nullopt;
    return std::int64_t{1} << (text[i] & 62);
  };
  request.source_expert = size_at(text.size() / 3);
  request.source_expert_tensor = size_at(text.size() / 2);
  request.source_tensor = size_at(text.size() / 4);
  for (int given = 0; given < 2; ++given) {
    if (has_mlite_names(catalog)) {
      const Result<Catalog> global = global_from_mlite(catalog, request, notes);
      if (global) expect_inside(*global);
    }
    request = ConvertRequest();
  }
  const Result<Catalog> canonical = canonical_from_fsdp(catalog, Arguments{}, notes);
  if (canonical) expect_inside(*canonical);
}

// The rows that were claimed, and others that items hold: what comes out fits the tensor.
void check_strided(std::string_view text) {
  std::vector<ShardClaim> claims;
  for (std::size_t i = 0; i + 2 < text.size() && claims.size() < 40; i += 3) {
    claims.push_back({text[i] & 31, text[i + 1] & 7, text[i + 2] & 7});
  }
  const std::int64_t extent = static_cast<std::int64_t>(text.size() % 33);
  const auto rows = true_shard_rows(extent, claims);
  if (!rows) return;
  std::int64_t total = 0;
  expect(rows->size() == claims.size(), "every claim has its rows");
  for (const ShardRows& shard : *rows) {
    expect(shard.offset >= 0 && shard.offset + shard.rows <= extent, "rows lie inside the tensor");
    total += shard.rows;
  }
  expect(total == extent, "no row is lost or there twice");
}

}  // namespace
}  // namespace shardwright

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // The bytes are characters of a text that nobody has checked.
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const shardwright::Catalog catalog = shardwright::catalog_of(text);
  shardwright::check_names(catalog);
  shardwright::check_sources(catalog, text);
  shardwright::check_strided(text);
  return 0;
}
