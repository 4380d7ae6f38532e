// SPDX-License-Identifier: Apache-2.0
#include "canonical/mlite_naming.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "canonical/prediction_source.h"
#include "canonical/renamed_catalog.h"
#include "format/mlite/mlite_source.h"
#include "format/mlite/rank_files.h"
#include "layout/layer_name.h"
#include "layout/state_name.h"
#include "model/config.h"
#include "model/own_names.h"
#include "tensor/chunk_part.h"

namespace shardwright {
namespace {

constexpr std::string_view kModel = "model.";
constexpr std::string_view kRouter = ".mlp.router.weight";

// What modules compute anew, and MLite's first writers saved too.
bool is_computed(std::string_view name) {
  constexpr std::array<std::string_view, 4> kEndings = {".inv_freq", ".cos_cached", ".sin_cached",
                                                        ".local_tokens_per_expert"};
  return std::ranges::any_of(kEndings,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

// Experts of one Megatron tensor, by their numbers.
using Experts = std::map<std::int64_t, const StoredTensor*>;

class MliteRenaming {
 public:
  MliteRenaming(const Catalog& source, const OwnNames& own, const ModelSizes& sizes,
                const MliteLayout& layout)
      : source_(source), own_(own), sizes_(sizes), layout_(layout), result_(source, sizes) {
    for (const StoredTensor& tensor : source.tensors) {
      shapes_.emplace(tensor.desc.name, tensor.desc.shape);
    }
  }

  // With states, which are called after their parameters, or without.
  Result<Catalog> run(bool with_states, Notes& notes) {
    std::vector<std::string> others;
    for (const StoredTensor& tensor : source_.tensors) {
      const auto state = with_states ? split_state_name(tensor.desc.name) : std::nullopt;
      std::string_view name = state ? state->tensor : tensor.desc.name;
      if (!name.starts_with(kModel)) {
        others.push_back(tensor.desc.name);
        continue;
      }
      if (state) SW_TRY(check_parameter(tensor, name));
      name.remove_prefix(kModel.size());
      prefix_ = state ? state->prefix : std::string_view();
      if (!own_.ignores(name) && !is_computed(name)) SW_TRY(add(tensor, name));
    }
    for (const std::string& name : order_) SW_TRY(add_stack(name, experts_.at(name)));
    if (!others.empty()) {
      notes.push_back(translated("{} tensors that are no parameters are left out: {}",
                                 others.size(), name_list(others)));
    }
    Catalog result = result_.take();
    result.objects.clear();
    return result;
  }

 private:
  Status add(const StoredTensor& stored, std::string_view name) {
    const OwnNameRule* rule = own_.find(name);
    if (rule == nullptr) {
      return fail(
          Code::kUnmatchedSource,
          "tensor {}: found no such name among those of MLite's models of {} ({}); --to dcp "
          "and --to safetensors keep any",
          stored.desc.name, fmt::join(own_.families, translated(" and ")), own_.names);
    }
    const std::vector<Binding> numbers = *rule->match(name);
    const std::int64_t ranks = rule->stack.empty() ? layout_.tensor : layout_.expert_tensor;
    const bool is_in_rank_order = rule->has_rank_parts && ranks > 1;
    if (is_in_rank_order)
      in_order_.push_back(SW_TRY(in_model_order(stored, *rule, numbers, ranks)));
    const StoredTensor& tensor = is_in_rank_order ? in_order_.back() : stored;
    if (rule->megatron.size() > 1) return add_parts(tensor, *rule, numbers);
    const std::string megatron = SW_TRY(name_of(rule->megatron[0], numbers));
    if (rule->stack.empty()) {
      StoredTensor& target =
          *SW_TRY(result_.begin(tensor, {megatron, tensor.desc.dtype, tensor.desc.shape}));
      target.chunks = tensor.chunks;
      return {};
    }
    const auto expert = std::ranges::find(numbers, rule->stack, &Binding::name);
    const auto [found, is_new] = experts_.try_emplace(megatron);
    if (is_new) order_.push_back(megatron);
    if (!found->second.emplace(expert->value, &tensor).second) {
      return fail(Code::kDuplicateName, "tensors {} and {}: both are expert {} of {}",
                  tensor.desc.name, found->second.at(expert->value)->desc.name, expert->value,
                  megatron);
    }
    return {};
  }

  // States that are not cut as their parameters were not put in order with them.
  [[nodiscard]] Status check_parameter(const StoredTensor& state,
                                       std::string_view parameter) const {
    const auto found = shapes_.find(parameter);
    if (found != shapes_.end() && found->second == state.desc.shape) return {};
    return fail(
        Code::kUnmatchedSource,
        "tensor {}: no parameter beside it has its name and its pieces, so its place in the "
        "model is not known; convert without states (--optimizer drop)",
        state.desc.name);
  }

  Result<std::string> name_of(const NameTemplate& megatron,
                              const std::vector<Binding>& numbers) const {
    return std::string(prefix_) + SW_TRY(megatron.render(Scope{sizes_, numbers}));
  }

  // How many rows each part of a tensor has: as config.json says, else all alike. One that is a
  // single tensor of Megatron's has gate and up.
  Result<std::vector<std::int64_t>> rows_of_parts(const StoredTensor& tensor,
                                                  const OwnNameRule& rule,
                                                  const std::vector<Binding>& numbers) const {
    constexpr std::size_t kGateAndUp = 2;
    const Dims& shape = tensor.desc.shape;
    const std::size_t count = rule.megatron.size() > 1 ? rule.megatron.size() : kGateAndUp;
    std::vector<std::int64_t> rows(rule.extents.empty() ? count : 0,
                                   shape.empty() ? 0 : shape[0] / static_cast<std::int64_t>(count));
    for (const SizeExpr& extent : rule.extents) {
      rows.push_back(SW_TRY(extent.evaluate(Scope{sizes_, numbers})));
    }
    std::int64_t left = shape.empty() ? -1 : shape[0];
    for (const std::int64_t each : rows) left = each > left ? -1 : left - each;
    if (left == 0) return rows;
    return fail(Code::kShapeMismatch, "tensor {}: found {}, expected rows {} by config.json",
                tensor.desc.name, to_string(shape), fmt::join(rows, " + "));
  }

  // Each tensor rank holds its share of every part, one behind the other, and the file has rank
  // after rank. Source: _split_gate_up and _tp_linear_attn_* of MLite's models, which save what a
  // rank holds as Shard(0).
  Result<StoredTensor> in_model_order(const StoredTensor& tensor, const OwnNameRule& rule,
                                      const std::vector<Binding>& numbers,
                                      std::int64_t ranks) const {
    const std::vector<std::int64_t> rows = SW_TRY(rows_of_parts(tensor, rule, numbers));
    for (const std::int64_t each : rows) {
      if (each % ranks == 0) continue;
      return fail(Code::kShapeMismatch,
                  "tensor {}: found a part of {} rows (as gate or up), expected a multiple of the "
                  "{} tensor ranks that share it out",
                  tensor.desc.name, each, ranks);
    }
    StoredTensor result = tensor;
    result.chunks = ChunkList(tensor.desc.shape.size());
    Box piece = Box::whole(tensor.desc.shape);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      std::int64_t part = 0;
      for (const std::int64_t each : rows) {
        const std::int64_t own = each / ranks;
        piece.shape[0] = own;
        Dims origin = piece.origin;
        origin[0] = part + rank * own;
        append_moved(tensor, piece, origin, result.chunks);
        piece.origin[0] += own;
        part += each;
      }
    }
    return result;
  }

  // Rows that Megatron has in several tensors.
  Status add_parts(const StoredTensor& tensor, const OwnNameRule& rule,
                   const std::vector<Binding>& numbers) {
    const std::vector<std::int64_t> rows = SW_TRY(rows_of_parts(tensor, rule, numbers));
    Box piece = Box::whole(tensor.desc.shape);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      piece.shape[0] = rows[i];
      const std::string name = SW_TRY(name_of(rule.megatron[i], numbers));
      StoredTensor& target = *SW_TRY(result_.begin(tensor, {name, tensor.desc.dtype, piece.shape}));
      Dims origin = piece.origin;
      origin[0] = 0;
      append_moved(tensor, piece, origin, target.chunks);
      piece.origin[0] += rows[i];
    }
    return {};
  }

  Status add_stack(const std::string& name, const Experts& experts) {
    const StoredTensor& first = *experts.begin()->second;
    const auto count = static_cast<std::int64_t>(experts.size());
    if (experts.rbegin()->first != count - 1) {
      return fail(Code::kUnmatchedSource, "tensor {}: found {} experts, expected all from 0 to {}",
                  name, count, experts.rbegin()->first);
    }
    if (first.desc.shape.size() >= kMaxAxes) {
      return fail(Code::kShapeMismatch, "tensor {}: found {}, expected rows and columns",
                  first.desc.name, to_string(first.desc.shape));
    }
    Dims shape{count};
    for (const std::int64_t extent : first.desc.shape) shape.push_back(extent);
    StoredTensor& target = *SW_TRY(result_.begin(first, {name, first.desc.dtype, shape}));
    for (const auto& [expert, tensor] : experts) {
      if (!(tensor->desc.shape == first.desc.shape) || tensor->desc.dtype != first.desc.dtype) {
        return fail(Code::kShapeMismatch, "tensor {}: found {} {}, expected {} {} as of expert 0",
                    tensor->desc.name, torch_name(tensor->desc.dtype),
                    to_string(tensor->desc.shape), torch_name(first.desc.dtype),
                    to_string(first.desc.shape));
      }
      for (std::size_t i = 0; i < tensor->chunks.size(); ++i) {
        target.chunks.push_back(lifted(tensor->chunks[i], expert));
      }
    }
    return {};
  }

  const Catalog& source_;
  const OwnNames& own_;
  const ModelSizes& sizes_;
  const MliteLayout& layout_;
  RenamedCatalog result_;
  std::unordered_map<std::string_view, Dims> shapes_;
  std::string_view prefix_;                 // of the state that is added
  std::deque<StoredTensor> in_order_;       // rows put in the model's order; experts_ points here
  std::map<std::string, Experts> experts_;  // by the Megatron tensor
  std::vector<std::string> order_;          // of those
};

Result<OwnNames> names_of_family(const std::string& path, const std::string& family) {
  std::vector<OwnNames> all = SW_TRY(built_in_mlite_names());
  std::vector<std::string> known;
  for (OwnNames& own : all) {
    if (std::ranges::find(own.families, family) != own.families.end()) return std::move(own);
    known.insert(known.end(), own.families.begin(), own.families.end());
  }
  return fail(Code::kNoFamily,
              "{}: config.json is of the family {}, whose names in MLite are not known; there are "
              "those of {}; --to dcp and --to safetensors keep any",
              path, family, fmt::join(known, ", "));
}

// What MLite does not save: of each router that lacks it, if the model has it.
class UnsavedBuffers {
 public:
  UnsavedBuffers(const OwnNames& own, const ModelSizes& sizes, const Catalog& catalog)
      : own_(own), sizes_(sizes) {
    for (const StoredTensor& tensor : catalog.tensors) {
      if (!is_optimizer_name(tensor.desc.name)) present_.insert(tensor.desc.name);
    }
  }

  [[nodiscard]] bool are_missing() const {
    return !own_.buffers.empty() && std::ranges::any_of(present_, [&](const std::string& name) {
      if (!name.ends_with(kRouter)) return false;
      const std::string router = name.substr(0, name.size() - std::string_view("weight").size());
      return !present_.contains(router + "expert_bias") && !present_.contains(router + "tid2eid");
    });
  }

  // What a tensor of the Hugging Face model is here; nothing where it is not missing.
  [[nodiscard]] Result<std::string> missing_name(std::string_view hf) const {
    for (const UnsavedBuffer& buffer : own_.buffers) {
      const auto numbers = buffer.hf.match(hf);
      if (!numbers) continue;
      std::string name = SW_TRY(buffer.megatron.render(Scope{sizes_, *numbers}));
      name = of_prediction_layer(std::move(name));
      const std::string router = name.substr(0, name.rfind('.') + 1) + "weight";
      if (present_.contains(router) && !present_.contains(name)) return name;
    }
    return std::string();
  }

 private:
  // Hugging Face numbers prediction layers behind the others.
  [[nodiscard]] std::string of_prediction_layer(std::string name) const {
    const auto layers = sizes_.find("layers");
    const auto layer = split_layer_name(name);
    const bool is_behind = layer && layer->index && layer->stack == "decoder.layers" &&
                           layers != sizes_.end() && *layer->index >= layers->second;
    if (!is_behind) return name;
    return fmt::format("mtp.layers.{}.transformer_layer.{}", *layer->index - layers->second,
                       layer->rest);
  }

  const OwnNames& own_;
  const ModelSizes& sizes_;
  std::unordered_set<std::string> present_;
};

Status add_unsaved_buffers(const ConvertRequest& request, const OwnNames& own,
                           const ModelSizes& sizes, Checkpoint& checkpoint, Catalog& wanted,
                           Notes& notes) {
  const UnsavedBuffers buffers(own, sizes, wanted);
  if (!buffers.are_missing()) return {};
  const std::string& folder = request.hf_config_dir;
  std::unordered_map<std::string, std::string> names;  // here, by Hugging Face's
  // A folder with config.json alone is no model.
  Result<Checkpoint> model = open_checkpoint(folder.empty() ? request.input : folder);
  if (model && model->location.traits.is_hf_model) {
    for (const StoredTensor& tensor : model->catalog.tensors) {
      std::string name = SW_TRY(buffers.missing_name(tensor.desc.name));
      if (!name.empty() && tensor.chunks.size() == 1)
        names.emplace(tensor.desc.name, std::move(name));
    }
  }
  if (names.empty()) {
    return fail(
        Code::kConfigMissing,
        "{}: the routers' buffers (expert_bias, tid2eid) are missing: MLite neither saves nor "
        "trains them; give the model that the run began with, weights included, as "
        "--hf-config",
        request.input);
  }
  PredictionSource from;
  from.checkpoint = *std::move(model);
  from.folder = std::move(from.checkpoint.directory);
  for (const auto& [hf, name] : names) from.tensors.push_back(hf);
  const std::size_t before = wanted.tensors.size();
  add_prediction_tensors(from.tensors, from, checkpoint, wanted);
  for (std::size_t i = before; i < wanted.tensors.size(); ++i) {
    std::string& name = wanted.tensors[i].desc.name;
    name = names.at(name);
  }
  notes.push_back(translated("{} buffers that MLite does not save, {} the first, are those of {}",
                             names.size(), wanted.tensors[before].desc.name, folder));
  return {};
}

Arguments arguments_of(const ArgsFromConfig& made, const Catalog& catalog) {
  Arguments arguments(made.values.begin(), made.values.end());
  const bool predicts = std::ranges::any_of(catalog.tensors, [](const StoredTensor& tensor) {
    return is_prediction_layer(tensor.desc.name);
  });
  if (!predicts) arguments.erase("mtp_num_layers");
  // MLite's modules are those of Transformer Engine.
  arguments.insert_or_assign("transformer_impl", std::string("transformer_engine"));
  return arguments;
}

}  // namespace

Status name_mlite_as_megatron(const ConvertRequest& request, Checkpoint& checkpoint,
                              Catalog& wanted, Notes& notes) {
  SourceOptions options = request;
  options.accept_loss = false;
  const MliteLayout layout = SW_TRY(whole_mlite_layout(wanted, options));
  const std::string text = SW_TRY(config_text_of(request, checkpoint));
  if (text.empty()) {
    return fail(Code::kConfigMissing,
                "{}: MLite saves no config.json, without which its names are not converted; give "
                "the model's folder with --hf-config, or keep them with --to dcp or safetensors",
                request.input);
  }
  const HfConfig config = SW_TRY(read_hf_config(text));
  const Mappings mappings = SW_TRY(load_mappings(request, config));
  const Mapping* const mapping = SW_TRY(chosen_family(request, mappings, config));
  const OwnNames own = SW_TRY(names_of_family(request.input, mapping->family));
  const ModelSizes sizes = SW_TRY(sizes_from_hf_config(*mapping, config));
  const Catalog global = SW_TRY(global_from_mlite(wanted, options, notes, RankRows::kAreSorted));
  // Without a common state there is none that goes on with them.
  const bool with_states =
      request.optimizer != OptimizerPolicy::kDrop && !checkpoint.common_state.empty();
  wanted = SW_TRY(MliteRenaming(global, own, sizes, layout).run(with_states, notes));
  SW_TRY(add_unsaved_buffers(request, own, sizes, checkpoint, wanted, notes));
  const ArgsFromConfig made = SW_TRY(args_from_hf_config(*mapping, config));
  checkpoint.arguments = arguments_of(made, wanted);
  leave_rank_files(checkpoint, "they list states without names", notes);
  notes.push_back(translated("names are those of MLite ({}) and become Megatron's", own.names));
  return {};
}

bool tells_sizes(const SourceOptions& options) {
  return options.source_expert || options.source_expert_tensor || options.source_tensor;
}

std::unexpected<Error> refuse_sizes(std::string_view paths) {
  return fail(
      Code::kUsage,
      "{}: --source-ep, --source-etp and --source-tp describe an MLite checkpoint, and this "
      "is none that was saved with such sizes; leave them out or correct them",
      paths);
}

}  // namespace shardwright
