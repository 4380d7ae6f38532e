// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/copied_head.h"

#include <algorithm>
#include <map>
#include <utility>

#include "format/carried_files.h"
#include "io/source_files.h"
#include "layout/rank_folder.h"
#include "model/config.h"
#include "state/document_names.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kBlockBytes = 4096;
constexpr std::uint64_t kBlocks = 32;

struct HeldTensor {
  const LocatedTensor* place = nullptr;
  std::uint32_t file = 0;
};

// Of a tensor and expert rank.
struct HeldEnds {
  std::optional<HeldTensor> embedding;
  std::optional<HeldTensor> head;
};

using Ends = std::map<std::pair<std::int64_t, std::int64_t>, HeldEnds>;

Ends ends_of(const std::vector<LegacyRankFile>& ranks, const LegacyAxes& axes) {
  Ends ends;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    HeldEnds& held = ends[{axes.ranks[i].tensor, axes.ranks[i].expert}];
    for (const LegacyModel& model : ranks[i].contents.models) {
      for (const LegacyTensor& tensor : model.tensors) {
        const HeldTensor here{&tensor.place, ranks[i].file};
        // Layers for multi-token prediction have a copy of it on the last stage.
        const bool is_first = !held.embedding || axes.ranks[i].pipeline == 0;
        if (is_first && tensor.name.ends_with("embedding.word_embeddings.weight")) {
          held.embedding = here;
        }
        if (tensor.name.ends_with("output_layer.weight")) held.head = here;
      }
    }
  }
  return ends;
}

bool is_constant_block(std::span<const std::byte> block) {
  return std::ranges::all_of(block, [&](std::byte byte) { return byte == block.front(); });
}

// Blocks from all over the two; what they hold in between is compared as that of any replica.
Result<bool> are_alike(const HeldTensor& head, const HeldTensor& embedding, SourceFiles& files,
                       bool& is_known) {
  const std::uint64_t length = head.place->range.length;
  const std::uint64_t block = std::min(length, kBlockBytes);
  std::vector<std::byte> left(static_cast<std::size_t>(block));
  std::vector<std::byte> right(left.size());
  for (std::uint64_t i = 0; i < kBlocks && block > 0; ++i) {
    const std::uint64_t offset = (length - block) / (kBlocks - 1) * i;
    SW_TRY(files.read_at(head.file, head.place->range.offset + offset, left));
    SW_TRY(files.read_at(embedding.file, embedding.place->range.offset + offset, right));
    if (left != right) return false;
    is_known = is_known || !is_constant_block(left);
    if (length == block) break;
  }
  return true;
}

Result<std::optional<bool>> told_beside(const Checkpoint& checkpoint) {
  const Directory& directory = *checkpoint.directory;
  const std::string run = SW_TRY(read_if_there(directory, kRunConfigFile, kMostTextBytes));
  if (!run.empty()) {
    // A file that can't be read is told of where it is carried along.
    const Arguments arguments = read_run_config(run).value_or(Arguments());
    if (const auto told = told_tying(arguments)) return told;
  }
  for (const char* const name : {"hf/config.json", "config.json"}) {
    const std::string text = SW_TRY(read_if_there(directory, name, kMostTextBytes));
    if (text.empty()) continue;
    const auto config = read_hf_config(text);
    if (!config) continue;
    if (const auto told = find_flag(config->values, "tie_word_embeddings")) return told;
  }
  return std::optional<bool>();
}

}  // namespace

std::optional<bool> told_tying(const Arguments& arguments) {
  if (const auto untied = find_flag(arguments, "untie_embeddings_and_output_weights")) {
    return !*untied;
  }
  return find_flag(arguments, "share_embeddings_and_output_weights");
}

Result<CopiedHead> find_copied_head(const Checkpoint& checkpoint,
                                    const std::vector<LegacyRankFile>& ranks,
                                    const LegacyAxes& axes) {
  const Ends ends = ends_of(ranks, axes);
  bool has_pair = false;
  for (const auto& [rank, held] : ends) {
    if (!held.head || !held.embedding) continue;
    if (!(held.head->place->shape == held.embedding->place->shape)) return CopiedHead();
    has_pair = true;
  }
  if (!has_pair) return CopiedHead();
  if (const auto told = SW_TRY(told_beside(checkpoint))) return CopiedHead{*told, false};
  bool is_known = false;
  for (const auto& [rank, held] : ends) {
    if (!held.head || !held.embedding) continue;
    const LocatedTensor& head = *held.head->place;
    const LocatedTensor& embedding = *held.embedding->place;
    const bool is_comparable = head.dtype == embedding.dtype &&
                               head.range.length == embedding.range.length &&
                               head.strides.empty() && embedding.strides.empty();
    if (!is_comparable) return CopiedHead();
    if (!SW_TRY(are_alike(*held.head, *held.embedding, *checkpoint.files, is_known))) {
      return CopiedHead();
    }
  }
  return CopiedHead{is_known, is_known};
}

}  // namespace shardwright
