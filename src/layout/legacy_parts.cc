// SPDX-License-Identifier: Apache-2.0
#include "layout/legacy_parts.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/fail.h"
#include "layout/adapter_shards.h"
#include "layout/idle_head.h"
#include "layout/latent_fusion.h"
#include "layout/layer_name.h"
#include "layout/mixer_parts.h"
#include "layout/plain_norms.h"
#include "layout/shard_contents.h"
#include "layout/shard_rule.h"

namespace shardwright {
namespace {

using ByName = TensorsByName;

bool ends_with(std::string_view name, std::string_view suffix) { return name.ends_with(suffix); }

// A run of a rank's tensor along its first axis: a part of a tensor of its own in torch_dist, or a
// half of a gated MLP's.
struct Segment {
  std::string_view suffix;  // behind the canonical name
  std::int64_t rows = 0;    // of the rank
  std::int64_t before = 0;  // rows of the canonical tensor in front of this half, on all ranks
};

std::int64_t extent(const TensorDesc* tensor, int axis) {
  return tensor == nullptr || tensor->shape.size() <= axis ? 0 : tensor->shape[axis];
}

// The name of the MLP's second weight for one of its first linear's parameters; else empty.
std::string second_weight_of(std::string_view name) {
  constexpr std::string_view kFirst = "linear_fc1.";
  const std::size_t at = name.rfind(kFirst);
  if (at == std::string_view::npos) return {};
  std::string second = std::string(name.substr(0, at)) + "linear_fc2.";
  std::string_view parameter = name.substr(at + kFirst.size());
  if (parameter.starts_with("bias")) {
    return second + "weight" + std::string(parameter.substr(4));
  }
  return parameter.starts_with("weight") ? second + std::string(parameter) : std::string();
}

bool is_gated_first(const TensorDesc& tensor, const ByName& by_name) {
  const std::string second = second_weight_of(tensor.name);
  const auto found = by_name.find(second);
  if (second.empty() || found == by_name.end() || tensor.shape.empty()) return false;
  return is_gated(tensor.shape[0], extent(found->second, found->second->shape.size() - 1));
}

// `linear_fc1.weight` of what all of a rank's experts are in; else empty.
std::string_view stacked_linear(std::string_view name) {
  constexpr std::string_view kBefore = ".mlp.experts.";
  const std::size_t at = name.rfind(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view linear = name.substr(at + kBefore.size());
  const bool is_known = linear == "linear_fc1.weight" || linear == "linear_fc1.bias" ||
                        linear == "linear_fc2.weight" || linear == "linear_fc2.bias";
  return is_known ? linear : std::string_view();
}

class Splitter {
 public:
  Splitter(std::span<const TensorDesc> tensors, const LegacyStage& stage)
      : tensors_(tensors),
        stage_(stage),
        plain_norms_(tensors),
        gated_(tensors),
        has_idle_head_(stage.output_is_embedding && has_idle_head(tensors)) {
    for (const TensorDesc& tensor : tensors) by_name_.emplace(tensor.name, &tensor);
  }

  Result<std::vector<LegacyPart>> split(const TensorDesc& tensor) const {
    if (ends_with(tensor.name, ".experts.weight1") || ends_with(tensor.name, ".experts.weight2")) {
      return split_grouped(tensor);
    }
    if (const std::string_view linear = stacked_linear(tensor.name); !linear.empty()) {
      return split_stacked(tensor, linear);
    }
    SW_TRY(check_latent(tensor));
    CanonicalName canonical =
        canonical_from_legacy(tensor.name, stage_.first_layers, plain_norms_.has(tensor.name));
    if (stage_.output_is_embedding && ends_with(canonical.name, "output_layer.weight") &&
        !stage_.heads.has(tensor)) {
      if (has_idle_head_) return std::vector<LegacyPart>();
      const std::size_t at = canonical.name.rfind("output_layer.weight");
      canonical.name.replace(at, std::string::npos, "embedding.word_embeddings.weight");
    }
    if (is_fused_latent(canonical.name)) return split_latent(tensor, canonical.name);
    const bool is_qkv = canonical.name.find(".linear_qkv.") != std::string::npos &&
                        canonical.name.find("layer_norm") == std::string::npos;
    if (is_qkv && stage_.qkv_order != QkvOrder::kByGroup) return split_qkv(tensor, canonical.name);
    SW_TRY(check_adapter_shares(tensor, gated_, stage_.config));
    const std::vector<Segment> segments = segments_of(tensor);
    std::vector<LegacyPart> parts;
    std::int64_t row = 0;
    for (const Segment& segment : segments) {
      parts.push_back(SW_TRY(make_part(tensor, canonical, segment, segments.size(), row)));
      row += segment.rows;
    }
    return parts;
  }

 private:
  // How a tensor is shared out: along which axis, over how many ranks, and which of them this is.
  struct Share {
    int axis = -1;
    std::int64_t parts = 1;
    std::int64_t rank = 0;
  };

  [[nodiscard]] std::int64_t ways_of(std::string_view name, bool is_expert) const {
    return is_expert ? stage_.config.expert_tensor
                     : tensor_size_of(name, stage_.towers, stage_.config.tensor);
  }

  [[nodiscard]] Share share_of(const TensorDesc& tensor, std::string_view canonical,
                               int axes) const {
    const ShardRule rule = stage_.heads.settled(shard_rule(canonical, axes, false), tensor);
    if (rule.is_expert) {
      return {rule.axis, stage_.config.expert_tensor, stage_.rank.expert_tensor};
    }
    if (const std::int64_t cuts = patch_cuts(tensor, tensors_); cuts > 1) {
      return {0, cuts, stage_.rank.tensor % cuts};
    }
    const std::int64_t parts = ways_of(tensor.name, false);
    return {rule.axis, parts, stage_.rank.tensor % parts};
  }

  // All of the tensor is one segment, unless it is put together from several.
  [[nodiscard]] std::vector<Segment> segments_of(const TensorDesc& tensor) const {
    std::vector<Segment> mixer;
    for (const MixerPart& part : mixer_parts(tensor, by_name_)) {
      mixer.push_back({part.suffix, part.rows});
    }
    if (!mixer.empty()) return mixer;
    const std::int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
    const std::optional<AdapterTensor> adapter = adapter_tensor(tensor.name);
    const bool is_in_two =
        adapter ? shard_rule(tensor.name, tensor.shape.size(), gated_.has(tensor)).in_two
                : is_gated_first(tensor, by_name_);
    if (!is_in_two) return {{"", rows}};
    const std::int64_t ways = ways_of(tensor.name, is_expert_tensor(tensor.name));
    std::vector<Segment> halves = {{"", rows / 2, 0}, {"", rows / 2, rows / 2 * ways}};
    if (stage_.gate_is_second) std::swap(halves[0].before, halves[1].before);
    return halves;
  }

  // Of a rank. Not all layers need have as many (drafts): the router beside them tells.
  [[nodiscard]] std::int64_t experts_of(std::string_view name) const {
    const std::size_t at = name.find(".experts.");
    if (at == std::string_view::npos) return stage_.experts_per_rank;
    const auto router = by_name_.find(std::string(name.substr(0, at)) + ".router.weight");
    if (router == by_name_.end()) return stage_.experts_per_rank;
    const std::int64_t all = extent(router->second, 0);
    const bool is_shared_out = all > 0 && all % stage_.config.expert == 0;
    return is_shared_out ? all / stage_.config.expert : stage_.experts_per_rank;
  }

  [[nodiscard]] Result<std::int64_t> expert_number(const TensorDesc& tensor,
                                                   std::int64_t local) const {
    const std::int64_t experts = experts_of(tensor.name);
    if (local >= 0 && local < experts) return stage_.rank.expert * experts + local;
    return fail(Code::kUnsupportedFormat, "tensor {}: found expert {}, expected {} on each rank",
                tensor.name, local, experts);
  }

  Result<LegacyPart> make_part(const TensorDesc& tensor, const CanonicalName& canonical,
                               const Segment& segment, std::size_t segments,
                               std::int64_t row) const {
    LegacyPart part;
    part.canonical.name = canonical.name + std::string(segment.suffix);
    part.canonical.dtype = tensor.dtype;
    const Dims row_major = row_major_strides(tensor.shape);
    if (canonical.expert) {
      part.canonical.shape.push_back(stage_.config.expert * experts_of(tensor.name));
      part.box.origin.push_back(SW_TRY(expert_number(tensor, *canonical.expert)));
      part.box.shape.push_back(1);
      part.strides.push_back(0);
    }
    const int lead = canonical.expert ? 1 : 0;
    const int axes = tensor.shape.size() + lead;
    const Share share = share_of(tensor, part.canonical.name, axes);
    for (int axis = 0; axis < tensor.shape.size(); ++axis) {
      const bool is_segmented = axis == 0 && segments > 1;
      const std::int64_t own = is_segmented ? segment.rows : tensor.shape[axis];
      const bool is_cut = share.axis == axis + lead;
      const bool in_halves = is_segmented && segment.suffix.empty();
      const std::int64_t total = is_cut ? own * share.parts : own;
      part.canonical.shape.push_back(in_halves ? 2 * total : total);
      part.box.origin.push_back((is_cut ? share.rank * own : 0) + (in_halves ? segment.before : 0));
      part.box.shape.push_back(own);
      part.strides.push_back(row_major[axis]);
    }
    if (segments > 1) {
      if (row + segment.rows > tensor.shape[0] || segment.rows <= 0) {
        return fail(Code::kShapeMismatch, "tensor {}: found {} rows, which its parts don't make up",
                    tensor.name, tensor.shape[0]);
      }
      part.offset = row * row_major[0];
    }
    return part;
  }

  // A fused down-projection is cut along its rows, whose two parts each are.
  Result<std::vector<LegacyPart>> split_latent(const TensorDesc& tensor,
                                               const std::string& name) const {
    const std::string up =
        tensor.name.substr(0, tensor.name.rfind(".linear_")) + ".linear_q_up_proj.weight";
    const std::int64_t ways = stage_.config.tensor;
    const LatentRows rows =
        SW_TRY(latent_rows(name, extent(&tensor, 0), extent(find(up), 1), ways));
    std::vector<LegacyPart> parts;
    std::int64_t row = 0;
    for (const auto& [part, own] :
         {std::pair(rows.query, rows.queries), std::pair(rows.key_value, rows.keys_values)}) {
      const Dims strides = row_major_strides(tensor.shape);
      LegacyPart piece{{part, tensor.dtype, tensor.shape}, Box::whole(tensor.shape), 0, strides};
      piece.canonical.shape[0] = own * ways;
      piece.box.origin[0] = stage_.rank.tensor * own;
      piece.box.shape[0] = own;
      piece.offset = row * strides[0];
      parts.push_back(std::move(piece));
      row += own;
    }
    return parts;
  }

  // The older orders of a query-key-value weight or bias: a part for each of the three of each
  // head. Source: fix_query_key_value_ordering in megatron/training/checkpointing.py.
  Result<std::vector<LegacyPart>> split_qkv(const TensorDesc& tensor,
                                            const std::string& name) const {
    const std::int64_t heads = stage_.heads_per_rank;
    const std::int64_t rows = extent(&tensor, 0);
    if (heads <= 0 || rows % (3 * heads) != 0) {
      return fail(Code::kShapeMismatch, "tensor {}: found {} rows, expected those of {} heads",
                  tensor.name, rows, heads);
    }
    const std::int64_t size = rows / (3 * heads);
    const bool by_head = stage_.qkv_order == QkvOrder::kByHead;
    const Dims row_major = row_major_strides(tensor.shape);
    TensorDesc canonical{name, tensor.dtype, tensor.shape};
    canonical.shape[0] = rows * stage_.config.tensor;
    std::vector<LegacyPart> parts;
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t j = 0; j < 3; ++j) {
        LegacyPart part{canonical, Box::whole(tensor.shape), 0, row_major};
        part.box.origin[0] = stage_.rank.tensor * rows + (head * 3 + j) * size;
        part.box.shape[0] = size;
        const std::int64_t first = by_head ? head * size * 3 + j : (j * heads + head) * size;
        part.offset = first * row_major[0];
        if (by_head) part.strides[0] = 3 * row_major[0];
        parts.push_back(part);
      }
    }
    return parts;
  }

  // GroupedMLP of Megatron-Core 0.16 and before: `weight1` has the shape (hidden, experts * width),
  // but its memory is a [hidden, width] matrix for each expert in turn; `weight2` likewise is a
  // [width, hidden] matrix for each. torch_dist has the transposes.
  Result<std::vector<LegacyPart>> split_grouped(const TensorDesc& tensor) const {
    const bool is_first = ends_with(tensor.name, "weight1");
    const std::int64_t experts = experts_of(tensor.name);
    const std::string stem = tensor.name.substr(0, tensor.name.size() - 1);
    const TensorDesc* first = find(stem + "1");
    const TensorDesc* second = find(stem + "2");
    if (experts == 0 || tensor.shape.size() != 2 || extent(first, 1) % experts != 0 ||
        extent(second, 0) % experts != 0 || extent(first, 0) != extent(second, 1)) {
      return fail(Code::kShapeMismatch, "tensor {}: found shape {}, expected those of {} experts",
                  tensor.name, to_string(tensor.shape), experts);
    }
    const std::int64_t hidden = extent(first, 0);
    const std::int64_t rows = extent(first, 1) / experts;
    const std::int64_t columns = extent(second, 0) / experts;
    const std::int64_t ways = stage_.config.expert_tensor;
    const std::int64_t rank = stage_.rank.expert_tensor;
    const CanonicalName layer = canonical_from_legacy(stem, stage_.first_layers, false);
    const std::string module = layer.name.substr(0, layer.name.size() - 6) + "experts.";
    const std::int64_t all = stage_.config.expert * experts;
    std::vector<LegacyPart> parts;
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::int64_t number = stage_.rank.expert * experts + e;
      if (!is_first) {
        parts.push_back(
            {{module + "linear_fc2.weight", tensor.dtype, {all, hidden, columns * ways}},
             {{number, 0, rank * columns}, {1, hidden, columns}},
             e * columns * hidden,
             {0, 1, hidden}});
        continue;
      }
      const bool gated = is_gated(rows, columns);
      const std::int64_t own = gated ? rows / 2 : rows;
      for (std::int64_t half = 0; half < (gated ? 2 : 1); ++half) {
        parts.push_back({{module + "linear_fc1.weight", tensor.dtype, {all, rows * ways, hidden}},
                         {{number, half * own * ways + rank * own, 0}, {1, own, hidden}},
                         e * hidden * rows + half * own,
                         {0, 1, rows}});
      }
    }
    return parts;
  }

  // One parameter for all of a rank's experts (moe_single_grouped_weight), which are its first
  // axis.
  Result<std::vector<LegacyPart>> split_stacked(const TensorDesc& tensor,
                                                std::string_view linear) const {
    const std::string stem = tensor.name.substr(0, tensor.name.size() - linear.size());
    const std::int64_t experts = experts_of(tensor.name);
    const int axes = linear.ends_with("weight") ? 3 : 2;
    if (tensor.shape.size() != axes || experts == 0 || tensor.shape[0] != experts) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found shape {}, expected {} axes and the rank's {} experts along the "
                  "first, as moe_single_grouped_weight has them",
                  tensor.name, to_string(tensor.shape), axes, experts);
    }
    const std::string module =
        canonical_from_legacy(stem + "linear", stage_.first_layers, false).name;
    TensorDesc canonical{module.substr(0, module.size() - 6) + "experts." + std::string(linear),
                         tensor.dtype, tensor.shape};
    canonical.shape[0] = stage_.config.expert * experts;
    const TensorDesc* const second = find(stem + "linear_fc2.weight");
    const bool is_gated_pair = linear.starts_with("linear_fc1") && second != nullptr &&
                               is_gated(tensor.shape[1], extent(second, second->shape.size() - 1));
    const ShardRule rule = shard_rule(canonical.name, axes, is_gated_pair);
    const std::int64_t halves = is_gated_pair ? 2 : 1;
    const Dims strides = row_major_strides(tensor.shape);
    std::vector<LegacyPart> parts;
    for (std::int64_t half = 0; half < halves; ++half) {
      LegacyPart part{canonical, Box::whole(tensor.shape), 0, strides};
      part.box.origin[0] = stage_.rank.expert * experts;
      if (rule.axis > 0) {
        const std::int64_t own = tensor.shape[rule.axis] / halves;
        const std::int64_t all = own * stage_.config.expert_tensor;
        part.canonical.shape[rule.axis] = halves * all;
        part.box.origin[rule.axis] = half * all + stage_.rank.expert_tensor * own;
        part.box.shape[rule.axis] = own;
        part.offset = half * own * strides[rule.axis];
      }
      parts.push_back(std::move(part));
    }
    return parts;
  }

  // MindSpeed's latent attention has names and orders of its own.
  [[nodiscard]] Status check_latent(const TensorDesc& tensor) const {
    constexpr std::string_view kWhole = ".linear_qkv.weight";
    const std::size_t at = tensor.name.rfind(kWhole);
    const bool is_whole = at != std::string::npos && tensor.name.ends_with(kWhole);
    const bool is_latent =
        is_whole && find(tensor.name.substr(0, at) + ".linear_kv_up_proj.weight") != nullptr;
    if (!is_latent && !tensor.name.contains("mtp.final_layernorms.")) return {};
    return fail(Code::kUnsupportedFormat,
                "tensor {}: found one of MindSpeed's own names for latent attention and "
                "multi-token prediction (linear_qkv of [q_a; kv_a], q_layernorm, kv_layernorm, "
                "mtp.final_layernorms.N), which are not read; MindSpeed-LLM's convert_ckpt.py "
                "makes a Hugging Face model of it",
                tensor.name);
  }

  [[nodiscard]] const TensorDesc* find(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  std::span<const TensorDesc> tensors_;
  const LegacyStage& stage_;
  PlainNorms plain_norms_;
  GatedFirsts gated_;
  bool has_idle_head_;
  ByName by_name_;
};

}  // namespace

Result<std::vector<std::vector<LegacyPart>>> legacy_parts(std::span<const TensorDesc> tensors,
                                                          const LegacyStage& stage) {
  const Splitter splitter(tensors, stage);
  std::vector<std::vector<LegacyPart>> parts;
  for (const TensorDesc& tensor : tensors) parts.push_back(SW_TRY(splitter.split(tensor)));
  return parts;
}

}  // namespace shardwright
