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
#include "model/arguments.h"
#include "model/config.h"

namespace shardwright::cli {
namespace {

struct NamedArgument {
  std::string_view argument;
  std::string_view shown;
};

constexpr std::array kLayoutArguments = {
    NamedArgument{"tensor_model_parallel_size", "TP"},
    NamedArgument{"pipeline_model_parallel_size", "PP"},
    NamedArgument{"virtual_pipeline_model_parallel_size", "VPP"},
    NamedArgument{"expert_model_parallel_size", "EP"},
    NamedArgument{"expert_tensor_parallel_size", "ETP"},
    NamedArgument{"context_parallel_size", "CP"},
    NamedArgument{"data_parallel_size", "DP"},
};

constexpr std::array kModelArguments = {
    NamedArgument{"num_layers", "layers"},
    NamedArgument{"hidden_size", "hidden"},
    NamedArgument{"ffn_hidden_size", "ffn"},
    NamedArgument{"num_attention_heads", "heads"},
    NamedArgument{"num_query_groups", "query groups"},
    NamedArgument{"kv_channels", "head size"},
    NamedArgument{"num_experts", "experts"},
    NamedArgument{"moe_router_topk", "top-k"},
    NamedArgument{"padded_vocab_size", "vocabulary"},
};

// config.json has several names for some of these; the first that is there counts.
constexpr std::array kConfigValues = {
    NamedArgument{"num_hidden_layers", "layers"},
    NamedArgument{"hidden_size", "hidden"},
    NamedArgument{"intermediate_size", "ffn"},
    NamedArgument{"num_attention_heads", "heads"},
    NamedArgument{"num_key_value_heads", "query groups"},
    NamedArgument{"head_dim", "head size"},
    NamedArgument{"num_experts", "experts"},
    NamedArgument{"num_local_experts", "experts"},
    NamedArgument{"n_routed_experts", "experts"},
    NamedArgument{"num_experts_per_tok", "top-k"},
    NamedArgument{"vocab_size", "vocabulary"},
};

void add_facts(std::span<const NamedArgument> wanted, const Arguments& values, Facts& facts) {
  for (const NamedArgument& name : wanted) {
    const auto found = values.find(name.argument);
    if (found == values.end() || std::holds_alternative<std::monostate>(found->second)) continue;
    const bool known = std::any_of(facts.begin(), facts.end(),
                                   [&](const auto& fact) { return fact.first == name.shown; });
    if (!known) facts.emplace_back(name.shown, to_string(found->second));
  }
}

void add_tensor(const StoredTensor& tensor, CatalogSummary& summary) {
  // Readers have checked that both numbers exist.
  const auto elements = static_cast<std::uint64_t>(element_count(tensor.desc.shape).value_or(0));
  const std::uint64_t bytes = elements * static_cast<std::uint64_t>(bytes_of(tensor.desc.dtype));
  ++summary.tensors;
  if (tensor.desc.name.starts_with("optimizer.")) ++summary.optimizer_tensors;
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

Facts layout_facts(const Checkpoint& checkpoint) {
  Facts facts;
  add_facts(kLayoutArguments, checkpoint.arguments, facts);
  std::erase_if(facts, [](const auto& fact) { return fact.second == "1"; });
  return facts;
}

Facts model_facts(const Checkpoint& checkpoint) {
  Facts facts;
  add_facts(kModelArguments, checkpoint.arguments, facts);
  if (!facts.empty() || checkpoint.hf_config.empty()) return facts;
  // A config that cannot be read matters to a conversion, not to a look at the tensors.
  const Result<HfConfig> config = read_hf_config(checkpoint.hf_config);
  if (!config) return {{"config.json", config.error().message}};
  for (const std::string& name : config->architectures) facts.emplace_back("architecture", name);
  add_facts(kConfigValues, config->values, facts);
  return facts;
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

std::string layout_text(const ParallelConfig& parallel) {
  Facts facts;
  for (const UnusualSize& size : unusual_sizes(parallel)) {
    facts.emplace_back(size.name, std::to_string(size.size));
  }
  return facts.empty() ? "one rank" : facts_text(facts);
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
