// SPDX-License-Identifier: Apache-2.0
#include "cli/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>
#include <string_view>

#include "base/glob.h"
#include "base/text.h"
#include "base/translated.h"
#include "cli/quantity.h"
#include "format/targets.h"
#include "plan/canonical.h"

namespace shardwright::cli {
namespace {

void add_tensor(const StoredTensor& tensor, CatalogSummary& summary) {
  // Readers have checked that both numbers exist.
  const auto elements = static_cast<std::uint64_t>(element_count(tensor.desc.shape).value_or(0));
  const std::uint64_t bytes = elements * static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
  ++summary.tensors;
  if (is_optimizer_name(tensor.desc.name)) ++summary.optimizer_tensors;
  summary.elements += elements;
  summary.bytes += bytes;
  summary.chunks += tensor.chunks.size();
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    summary.chunk_bytes += static_cast<std::uint64_t>(tensor.chunks.box(i).volume()) *
                           static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
  }
  DTypeShare& share = summary.dtypes[tensor.desc.dtype];
  ++share.tensors;
  share.bytes += bytes;
}

}  // namespace

CatalogSummary summarize(const Catalog& catalog) {
  CatalogSummary summary;
  std::vector<bool> used(catalog.files.size());
  for (const StoredTensor& tensor : catalog.tensors) {
    add_tensor(tensor, summary);
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) used[tensor.chunks.file(i)] = true;
  }
  for (const StoredObject& object : catalog.objects) used[object.file] = true;
  summary.objects = catalog.objects.size();
  summary.files = static_cast<std::uint64_t>(std::count(used.begin(), used.end(), true));
  return summary;
}

std::string facts_text(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, value);
  }
  return text;
}

std::vector<UnusualSize> unusual_sizes(const ParallelConfig& parallel) {
  std::vector<UnusualSize> sizes;
  const auto add = [&](std::string_view flag, std::string_view name, std::int64_t size,
                       std::int64_t usual) {
    if (size != usual) sizes.push_back({flag, name, size});
  };
  add("--tp", "TP", parallel.tensor, 1);
  add("--pp", "PP", parallel.pipeline, 1);
  add("--vpp", "VPP", parallel.virtual_pipeline, 1);
  add("--ep", "EP", parallel.expert, 1);
  add("--etp", "ETP", parallel.expert_tensor, parallel.tensor);
  add("--encoder-tp", "encoder TP", parallel.encoder_tensor, 0);
  return sizes;
}

std::string layout_text(const ParallelConfig& parallel, std::int64_t shards) {
  Facts facts;
  for (const UnusualSize& size : unusual_sizes(parallel)) {
    facts.emplace_back(size.name, std::to_string(size.size));
  }
  std::string text = facts_text(facts);
  if (shards > 1) text += (text.empty() ? "" : ", ") + translated("{} ranks", shards);
  return text.empty() ? translated("one rank") : text;
}

std::string target_text(const ConvertRequest& request) {
  const TargetTraits& traits = traits_of(request.format);
  std::string text(traits.name);
  if (traits.has_grid) text += ", " + layout_text(request.parallel, request.shards);
  return text;
}

std::string resumed_text(std::uint64_t bytes) {
  if (bytes == 0) return "";
  return translated(", besides {} of an earlier run", format_bytes(bytes));
}

std::uint64_t replicas_of(const StoredTensor& tensor) {
  const ChunkList& chunks = tensor.chunks;
  const auto is_before = [](const Box& a, const Box& b) {
    if (a.origin == b.origin) return std::ranges::lexicographical_compare(a.shape, b.shape);
    return std::ranges::lexicographical_compare(a.origin, b.origin);
  };
  // Most writers store chunks in order, so no two are alike and none need be sorted.
  bool is_ascending = true;
  for (std::size_t i = 1; is_ascending && i < chunks.size(); ++i) {
    is_ascending = is_before(chunks.box(i - 1), chunks.box(i));
  }
  if (is_ascending) return chunks.empty() ? 0 : 1;
  std::vector<Box> boxes;
  boxes.reserve(chunks.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) boxes.push_back(chunks.box(i));
  std::ranges::sort(boxes, is_before);
  std::uint64_t most = 0;
  for (std::size_t i = 0, begin = 0; i < boxes.size(); ++i) {
    if (!(boxes[i] == boxes[begin])) begin = i;
    most = std::max<std::uint64_t>(most, i - begin + 1);
  }
  return most;
}

std::vector<std::size_t> matching_tensors(const Catalog& catalog,
                                          const std::vector<std::string>& globs) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < catalog.tensors.size(); ++i) {
    const std::string& name = catalog.tensors[i].desc.name;
    const bool wanted =
        globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) {
          return matches_glob(glob, name);
        });
    if (wanted) found.push_back(i);
  }
  std::sort(found.begin(), found.end(), [&](std::size_t a, std::size_t b) {
    return natural_less(catalog.tensors[a].desc.name, catalog.tensors[b].desc.name);
  });
  return found;
}

}  // namespace shardwright::cli
