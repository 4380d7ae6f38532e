// SPDX-License-Identifier: Apache-2.0
#include "format/mlite/mlite_source.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <map>
#include <set>
#include <unordered_map>

#include "base/checked.h"
#include "base/fail.h"
#include "base/text.h"
#include "layout/layer_name.h"
#include "layout/merged_shards.h"
#include "layout/rank_order.h"
#include "layout/state_name.h"
#include "tensor/chunk_part.h"

namespace shardwright {
namespace {

constexpr std::string_view kPrefix = "model.";
constexpr std::string_view kStagePrefix = "model_pp";

// `model_pp1.layers.0.w` is stage 1 and `layers.0.w`; without stages it is stage 0.
struct StageName {
  std::int64_t stage = 0;
  std::string_view rest;
};

std::optional<StageName> split_stage(std::string_view name) {
  if (name.starts_with(kPrefix)) return StageName{0, name.substr(kPrefix.size())};
  if (!name.starts_with(kStagePrefix)) return std::nullopt;
  name.remove_prefix(kStagePrefix.size());
  StageName split;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), split.stage);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  split.rest = name.substr(static_cast<std::size_t>(end - name.data()) + 1);
  return split;
}

// Most models number the layers of each stage from 0; some number them through.
class LayerNumbers {
 public:
  static Result<LayerNumbers> make(const Catalog& catalog) {
    LayerNumbers numbers;
    for (const StoredTensor& tensor : catalog.tensors) {
      const auto stage = split_stage(tensor.desc.name);
      const auto layer = stage ? split_layer_name(stage->rest) : std::nullopt;
      if (!layer || !layer->index) continue;
      numbers.stacks_[std::string(layer->stack)][stage->stage].insert(*layer->index);
    }
    for (auto& [stack, stages] : numbers.stacks_) SW_TRY(numbers.settle(stack, stages));
    return numbers;
  }

  [[nodiscard]] std::string global_name(const StageName& name) const {
    const auto layer = split_layer_name(name.rest);
    if (!layer || !layer->index) return std::string(kPrefix) + std::string(name.rest);
    const auto first = first_.find({std::string(layer->stack), name.stage});
    const std::int64_t shift = first == first_.end() ? 0 : first->second;
    return std::string(kPrefix) + join_layer_name(layer->stack, *layer->index + shift, layer->rest);
  }

 private:
  using Stages = std::map<std::int64_t, std::set<std::int64_t>>;

  Status settle(const std::string& stack, const Stages& stages) {
    std::set<std::int64_t> seen;
    bool repeats = false;
    bool from_zero = true;
    for (const auto& [stage, layers] : stages) {
      for (const std::int64_t layer : layers) repeats |= !seen.insert(layer).second;
      from_zero &=
          *layers.begin() == 0 && *layers.rbegin() == static_cast<std::int64_t>(layers.size()) - 1;
    }
    if (!repeats) return {};
    if (!from_zero) {
      return fail(Code::kUnmatchedSource,
                  "{}: found layers in several stages that do not begin at 0 in each, expected the "
                  "numbers of a stage or those of the model",
                  stack);
    }
    std::int64_t first = 0;
    for (const auto& [stage, layers] : stages) {
      first_[{stack, stage}] = first;
      first += static_cast<std::int64_t>(layers.size());
    }
    return {};
  }

  std::map<std::string, Stages> stacks_;
  std::map<std::pair<std::string, std::int64_t>, std::int64_t> first_;
};

// What is not whole of an MLite source that can't be put together.
Status check_loss(const MliteLayout& layout) {
  if (layout.loss == MliteLoss::kNone) return {};
  const char* what =
      layout.loss == MliteLoss::kExperts
          ? "the experts of one EP rank only; those of the others were taken for replicas of them"
      : layout.loss == MliteLoss::kRows
          ? "the rows of one expert data rank only"
          : "the experts of one EP rank or the rows of one expert data rank only";
  return fail(Code::kLossySource,
              "tensor {}: found {} (MLite before its DTensor placements were right), expected {} "
              "experts over EP {}; the rest is not in these files",
              layout.lost, what, layout.experts, layout.expert);
}

// Stages are numbered through: a number that is missing was a stage.
Status check_stages(const Catalog& catalog) {
  std::set<std::int64_t> stages;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (const auto name = split_stage(tensor.desc.name)) stages.insert(name->stage);
  }
  std::int64_t next = 0;
  for (const std::int64_t stage : stages) {
    if (stage != next) {
      return fail(Code::kLossySource,
                  "model_pp{}: found tensors of pipeline stage {}, but none of stage {}", stage,
                  stage, next);
    }
    ++next;
  }
  return {};
}

// The way out of what is lost; where sizes do not agree, the message has another.
std::unexpected<Error> refused(const Error& error) {
  if (error.code != Code::kLossySource) return std::unexpected(error);
  return fail(Code::kLossySource,
              "{}; save again with a corrected MLite, or take what is there with --accept-loss",
              error.message);
}

// The tensors that are named as the model's parameters; optimizer states under other names need not
// be cut as those are.
Catalog without_states(const Catalog& catalog) {
  Catalog own{catalog.files, {}, {}};
  std::ranges::copy_if(
      catalog.tensors, std::back_inserter(own.tensors),
      [](const StoredTensor& tensor) { return split_stage(tensor.desc.name).has_value(); });
  return own;
}

Result<MliteLayout> whole_layout(const Catalog& catalog, const SourceOptions& options) {
  const Catalog own = without_states(catalog);
  MliteLayout layout = SW_TRY(read_mlite_layout(
      own.tensors.empty() ? catalog : own,
      {options.source_expert, options.source_expert_tensor, options.source_tensor}));
  SW_TRY(check_loss(layout));
  SW_TRY(check_stages(catalog));
  return layout;
}

class Relabelling {
 public:
  Relabelling(const Catalog& source, const MliteLayout& layout, const LayerNumbers& numbers)
      : source_(source), layout_(layout), numbers_(numbers) {
    result_.files = source.files;
    result_.objects = source.objects;
    for (const StoredTensor& tensor : source.tensors)
      parameters_.emplace(tensor.desc.name, &tensor);
  }

  Result<Catalog> run(std::vector<std::string>& notes) {
    for (const StoredTensor& tensor : source_.tensors) SW_TRY(add(tensor));
    if (!foreign_.empty()) {
      notes.push_back(translated(
          "{}: no parameters of the model by name; they go along as they are stored, with the "
          "numbers that experts and layers had on their ranks",
          name_list(foreign_)));
    }
    if (!guessed_.empty()) {
      notes.push_back(translated(
          "{} tensors: no file name tells who wrote which of their pieces, so their rows are taken "
          "in MLite's own order (data ranks before the others): {}",
          guessed_.size(), name_list(guessed_)));
    }
    return std::move(result_);
  }

 private:
  Status add(const StoredTensor& tensor) {
    const auto state = state_of_parameter(tensor);
    const auto stage = split_stage(state ? state->tensor : tensor.desc.name);
    if (!stage) {
      foreign_.push_back(tensor.desc.name);
      return pass(tensor, tensor.desc.name);
    }
    const std::string name =
        std::string(state ? state->prefix : std::string_view()) + numbers_.global_name(*stage);
    if (const auto expert = split_mlite_expert(name)) return add_expert(tensor, name, *expert);
    const auto merged = is_merged(tensor);
    if (!merged) return std::unexpected(merged.error());
    if (!*merged) return pass(tensor, name);
    return add_pieces(tensor, {layout_.data, 1, layout_.tensor}, 0,
                      [&](std::int64_t) { return name; });
  }

  // Where an optimizer's state is cut as its parameter is, it goes where that goes.
  [[nodiscard]] std::optional<StateName> state_of_parameter(const StoredTensor& tensor) const {
    const auto state = split_state_name(tensor.desc.name);
    if (!state) return std::nullopt;
    const auto found = parameters_.find(state->tensor);
    if (found == parameters_.end()) return std::nullopt;
    const StoredTensor& parameter = *found->second;
    if (!(tensor.desc.shape == parameter.desc.shape)) return std::nullopt;
    for (int axis = 0; axis < tensor.desc.shape.size(); ++axis) {
      if (cuts_of(tensor, axis) != cuts_of(parameter, axis)) return std::nullopt;
    }
    return state;
  }

  Status pass(const StoredTensor& tensor, const std::string& name) {
    StoredTensor& target = *SW_TRY(target_of(name, tensor.desc, tensor.desc.shape));
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i)
      target.chunks.push_back(tensor.chunks[i]);
    return {};
  }

  Status add_expert(const StoredTensor& tensor, const std::string& name,
                    const MliteExpert& expert) {
    const std::int64_t local = layout_.experts / layout_.expert;
    const std::string stem = name.substr(0, name.find_last_not_of("0123456789") + 1);
    const MergedSizes sizes{layout_.expert_data, layout_.expert, layout_.expert_tensor};
    const auto name_of = [&](std::int64_t rank) {
      return stem + std::to_string(rank * local + expert.local);
    };
    const int inner_axis = expert.layer == 1 ? 0 : 1;
    // Rows that data ranks alone cut lie in order, and they need not cut evenly.
    const bool moves_rows = sizes.outer > 1 || (inner_axis == 0 && sizes.inner > 1);
    if (!moves_rows && expert.local < local) return pass(tensor, name_of(0));
    const std::int64_t blocks = sizes.fsdp * sizes.outer * (inner_axis == 0 ? sizes.inner : 1);
    if (tensor.desc.shape.empty() || expert.local >= local || cuts_of(tensor, 0) != blocks) {
      return fail(Code::kUnmatchedSource,
                  "tensor {}: found expert {} of a rank in {} pieces, expected one of {} in {} as "
                  "the experts beside it",
                  tensor.desc.name, expert.local,
                  tensor.desc.shape.empty() ? 1 : cuts_of(tensor, 0), local, blocks);
    }
    return add_pieces(tensor, sizes, inner_axis, name_of);
  }

  // Rows that TP and FSDP share out lie with FSDP's index first; other tensors lie as they are.
  [[nodiscard]] Result<bool> is_merged(const StoredTensor& tensor) const {
    if (layout_.tensor == 1 || tensor.desc.shape.empty()) return false;
    const std::int64_t cuts = cuts_of(tensor, 0);
    const std::int64_t rows = tensor.desc.shape[0];
    const bool has_columns = tensor.desc.shape.size() > 1 && cuts_of(tensor, 1) > 1;
    const std::int64_t each = ceil_div(rows, layout_.data);
    const std::int64_t alone = each == 0 ? 1 : ceil_div(rows, each);
    if (has_columns || cuts == alone || cuts == 1) return false;
    if (cuts == layout_.data * layout_.tensor) return true;
    return fail(Code::kUsage,
                "tensor {}: found {} pieces, expected {} (DP) or {} (DP x TP {}); give --source-tp",
                tensor.desc.name, cuts, alone, layout_.data * layout_.tensor, layout_.tensor);
  }

  // Rows whose FSDP cut lies inside the others' are in order already.
  MergedSizes sizes_to_undo(const StoredTensor& tensor, const MergedSizes& sizes, int inner_axis) {
    const MergedRanks ranks{sizes.outer * sizes.inner, inner_axis == 0 ? 1 : sizes.inner};
    const auto order = order_of_ranks(source_, tensor, ranks);
    if (!order && sizes.fsdp > 1 && ranks.others > 1) guessed_.push_back(tensor.desc.name);
    if (order != FsdpOrder::kInside) return sizes;
    return {1, sizes.outer, 1};
  }

  template <class NameOf>
  Status add_pieces(const StoredTensor& tensor, const MergedSizes& merged, int inner_axis,
                    const NameOf& name_of) {
    const MergedSizes sizes = sizes_to_undo(tensor, merged, inner_axis);
    if (!divides_evenly(tensor.desc.shape, sizes, inner_axis)) {
      return fail(Code::kNotDivisible, "tensor {}: found {}, expected multiples of {} x {} x {}",
                  tensor.desc.name, to_string(tensor.desc.shape), sizes.fsdp, sizes.outer,
                  sizes.inner);
    }
    const Dims shape = logical_shape(tensor.desc.shape, sizes);
    for (const MergedPiece& piece : merged_pieces(tensor.desc.shape, sizes, inner_axis)) {
      StoredTensor& target = *SW_TRY(target_of(name_of(piece.outer), tensor.desc, shape));
      append_moved(tensor, piece.stored, piece.logical.origin, target.chunks);
    }
    return {};
  }

  // The tensor of that name, new or begun by another stage.
  Result<StoredTensor*> target_of(const std::string& name, const TensorDesc& desc,
                                  const Dims& shape) {
    const auto [found, is_new] = by_name_.emplace(name, result_.tensors.size());
    if (is_new) {
      result_.tensors.push_back(
          {{name, desc.dtype, shape}, ChunkList(shape.size()), Encoding::kRaw});
    }
    StoredTensor& target = result_.tensors[found->second];
    if (target.desc.dtype == desc.dtype && target.desc.shape == shape) return &target;
    return fail(Code::kShapeMismatch, "tensor {}: found {} and {} in different stages", name,
                to_string(target.desc.shape), to_string(shape));
  }

  const Catalog& source_;
  const MliteLayout& layout_;
  const LayerNumbers& numbers_;
  Catalog result_;
  std::unordered_map<std::string_view, const StoredTensor*> parameters_;  // and all other tensors
  std::unordered_map<std::string, std::size_t> by_name_;
  std::vector<std::string> foreign_;
  std::vector<std::string> guessed_;  // whose pieces lie in an order that nothing tells
};

}  // namespace

Result<MliteLayout> whole_mlite_layout(const Catalog& catalog, const SourceOptions& options) {
  Result<MliteLayout> layout = whole_layout(catalog, options);
  return layout ? std::move(layout) : Result<MliteLayout>(refused(layout.error()));
}

Status check_mlite(const Catalog& catalog, const SourceOptions& options) {
  const Result<MliteLayout> whole = whole_layout(catalog, options);
  return whole || options.accept_loss ? Status() : refused(whole.error());
}

Result<Catalog> global_from_mlite(const Catalog& catalog, const SourceOptions& options,
                                  std::vector<std::string>& notes, RankRows rows) {
  const Result<MliteLayout> whole = whole_layout(catalog, options);
  if (!whole && options.accept_loss) {
    notes.push_back(
        translated("--accept-loss: {}; tensors keep their stored names and order of rows",
                   whole.error().message));
    return catalog;
  }
  if (!whole) return refused(whole.error());
  const MliteLayout& layout = *whole;
  const LayerNumbers numbers = SW_TRY(LayerNumbers::make(catalog));
  notes.push_back(
      translated("MLite, saved with EP {}, ETP {}, EDP {}, TP {}: experts get their global numbers",
                 layout.expert, layout.expert_tensor, layout.expert_data, layout.tensor));
  if (rows == RankRows::kStay && (layout.tensor > 1 || layout.expert_tensor > 1)) {
    notes.emplace_back(
        "rows of fc1, gate_up and qkv stay in the order of the tensor-parallel ranks that had "
        "them: nothing in the files says whether they were put in the model's own order");
  }
  return Relabelling(catalog, layout, numbers).run(notes);
}

}  // namespace shardwright
