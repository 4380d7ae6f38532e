// SPDX-License-Identifier: Apache-2.0
#include "verify/view.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "convert/correspond.h"
#include "convert/dequantise.h"
#include "convert/exact_values.h"
#include "convert/families.h"
#include "convert/fsdp_source.h"
#include "convert/mimo_source.h"
#include "format/torch_items.h"
#include "io/source_files.h"
#include "layout/piece_limit.h"
#include "layout/shard_rule.h"
#include "layout/state_name.h"
#include "model/apply.h"
#include "plan/canonical.h"
#include "plan/draft.h"
#include "verify/named_replicas.h"

namespace shardwright {
namespace {

bool is_vocabulary(const TensorDesc& desc) {
  const int axes = desc.shape.size();
  return axes > 0 && shard_rule(desc.name, axes, false).vocabulary;
}

// States that have their model tensor's shape are canonical as it is; others (buckets, flattened
// ones) stay what they are.
std::vector<CanonicalTensor> canonical_with_states(const Catalog& catalog, bool& has_model_shapes) {
  std::unordered_map<std::string_view, const TensorDesc*> by_name;
  for (const StoredTensor& tensor : catalog.tensors) {
    const auto replica = parse_named_replica(tensor.desc.name);
    by_name.emplace(replica ? replica->name : tensor.desc.name, &tensor.desc);
  }
  std::vector<CanonicalTensor> tensors;
  std::set<std::string_view> taken;
  for (std::uint32_t i = 0; i < catalog.tensors.size(); ++i) {
    const TensorDesc& desc = catalog.tensors[i].desc;
    // Replicas by name were compared: one of them is the tensor.
    const auto replica = parse_named_replica(desc.name);
    const std::string_view name = replica ? replica->name : std::string_view(desc.name);
    if (replica && !taken.insert(name).second) continue;
    if (!is_optimizer_name(name)) {
      append_canonical(catalog, i, name, tensors);
      continue;
    }
    // A chained optimizer numbers its parts, which differ between layouts.
    const std::optional<StateName> state = split_state_name(name);
    const auto model = by_name.find(state ? state->tensor : std::string_view());
    if (model != by_name.end() && model->second->shape == desc.shape) {
      append_canonical(catalog, i, state->bare, tensors);
    } else {
      tensors.push_back({{std::string(name), desc.dtype, desc.shape}, i, -1});
      has_model_shapes = false;
    }
  }
  return tensors;
}

class Maker {
 public:
  Maker(Checkpoint checkpoint, Naming naming, const ProofOptions& options) : options_(options) {
    view_.checkpoint = std::move(checkpoint);
    view_.naming = naming;
  }

  Result<View> make() {
    SW_TRY(locate_items(view_.checkpoint.catalog, *view_.checkpoint.files));
    const bool is_hf = is_hf_model(view_.checkpoint);
    if (view_.naming == Naming::kStored) {
      tensors_ = draft_identity(catalog(), {});
    } else if (is_hf) {
      SW_TRY(draft_hf());
    } else {
      SW_TRY(draft_megatron());
    }
    fill_plan();
    if (view_.naming == Naming::kCanonical && !is_hf) cut_padding();
    SW_TRY(check_plan(view_.plan));
    return std::move(view_);
  }

 private:
  [[nodiscard]] const Catalog& catalog() const { return view_.checkpoint.catalog; }

  Status draft_hf() {
    const ConvertRequest request = request_of(options_);
    const std::vector<Mapping> mappings = SW_TRY(load_mappings_of(request, view_.checkpoint));
    const ModelFacts facts =
        SW_TRY(find_model_facts(request, view_.checkpoint, mappings, {}, view_.notes));
    view_.family = facts.mapping->family;
    const ModelTensors model = SW_TRY(model_tensors(catalog(), facts.config_text));
    tell_quantised(model, DType::kBF16, view_.notes);
    declare_quantised(model, view_.checkpoint.catalog, view_.plan.quantised);
    const Correspondence correspondence =
        SW_TRY(correspond_from_hf(facts, model, catalog(), *view_.checkpoint.files, view_.notes));
    tensors_ =
        SW_TRY(draft_from_hf(correspondence, catalog(), {std::nullopt, LayerKeys::kAllNumbered}));
    std::vector<DraftTensor> exact = SW_TRY(keep_exact_values(
        correspondence, catalog(), tensors_, *view_.checkpoint.files, view_.notes));
    std::ranges::move(exact, std::back_inserter(tensors_));
    for (const DraftTensor& tensor : tensors_) {
      if (tensor.true_rows) view_.vocabulary = tensor.true_rows;
    }
    name_for_spec(ModuleSpec::kTransformerEngine, tensors_);
    return {};
  }

  Status draft_megatron() {
    if (is_fsdp(view_.checkpoint)) {
      view_.checkpoint.catalog =
          SW_TRY(canonical_from_fsdp(catalog(), view_.checkpoint.arguments, view_.notes));
    }
    if (is_mimo(catalog())) {
      const ConvertRequest request = request_of(options_);
      const std::vector<Mapping> mappings = SW_TRY(load_mappings(request));
      static_cast<void>(
          SW_TRY(to_standard_names(mappings, request.family, view_.checkpoint.catalog)));
    }
    SW_TRY(check_piece_count(descs_of(catalog())));
    const std::vector<Error> drifted = SW_TRY(compare_named_replicas(view_.checkpoint, options_));
    if (!drifted.empty()) return std::unexpected(drifted.front());
    for (const CanonicalTensor& tensor :
         canonical_with_states(catalog(), view_.states_have_model_shapes)) {
      tensors_.push_back(
          {tensor.desc, {{view_of_canonical(tensor)}, std::nullopt, 0.0}, std::nullopt});
    }
    find_vocabulary();
    name_for_spec(ModuleSpec::kTransformerEngine, tensors_);
    return {};
  }

  // Where the family is known its config tells; else the arguments; else every stored row counts.
  void find_vocabulary() {
    view_.vocabulary = options_.vocab_size;
    const ConvertRequest request = request_of(options_);
    const auto mappings = load_mappings_of(request, view_.checkpoint);
    if (!mappings) return;
    std::vector<TensorDesc> descs;
    for (const DraftTensor& tensor : tensors_) descs.push_back(tensor.desc);
    std::vector<std::string> unused;
    const auto facts = find_model_facts(request, view_.checkpoint, *mappings, descs, unused);
    if (facts) view_.family = facts->mapping->family;
    if (facts && !view_.vocabulary) {
      const auto rows = facts->sizes.find("vocab");
      if (rows != facts->sizes.end()) view_.vocabulary = rows->second;
    }
    if (!view_.vocabulary) view_.vocabulary = true_vocabulary(view_.checkpoint.arguments);
  }

  void fill_plan() {
    std::ranges::sort(tensors_, {}, [](const DraftTensor& tensor) { return tensor.desc.name; });
    Plan& plan = view_.plan;
    plan.source = std::move(view_.checkpoint.catalog);
    for (DraftTensor& tensor : tensors_) {
      ChunkList whole(tensor.desc.shape.size());
      whole.push_back({Box::whole(tensor.desc.shape), 0, {}, {}});
      plan.target.tensors.push_back({std::move(tensor.desc), std::move(whole), Encoding::kRaw});
      plan.tensors.push_back(std::move(tensor.recipe));
    }
  }

  void cut_padding() {
    if (view_.vocabulary) {
      cut_vocabulary(view_, *view_.vocabulary);
      return;
    }
    for (const StoredTensor& tensor : view_.plan.target.tensors) {
      if (!is_vocabulary(tensor.desc)) continue;
      view_.notes.push_back(
          fmt::format("{}: vocabulary tensors are taken with all {} stored rows; --vocab-size "
                      "leaves padding out",
                      view_.checkpoint.location.path, tensor.desc.shape[0]));
      return;
    }
  }

  const ProofOptions& options_;
  View view_;
  std::vector<DraftTensor> tensors_;
};

}  // namespace

ConvertRequest request_of(const ProofOptions& options) {
  ConvertRequest request;
  request.family = options.family;
  request.hf_config_dir = options.hf_config_dir;
  request.map_files = options.map_files;
  request.models_dir = options.models_dir;
  return request;
}

bool is_beside_the_model(std::string_view name) {
  return is_optimizer_name(name) || name.starts_with(kHfExtraPrefix);
}

bool is_hf_model(const Checkpoint& checkpoint) {
  return checkpoint.location.container == Container::kHf &&
         (!checkpoint.hf_config.empty() || !has_megatron_names(checkpoint.catalog));
}

Naming natural_naming(const Checkpoint& checkpoint) {
  const bool is_canonical =
      is_hf_model(checkpoint) || is_fsdp(checkpoint) || has_megatron_names(checkpoint.catalog);
  return is_canonical ? Naming::kCanonical : Naming::kStored;
}

Result<View> make_view(Checkpoint checkpoint, Naming naming, const ProofOptions& options) {
  const std::string path = checkpoint.location.path;
  Result<View> view = Maker(std::move(checkpoint), naming, options).make();
  if (!view) return std::unexpected(std::move(view).error().within(path));
  return view;
}

void cut_vocabulary(View& view, std::int64_t rows) {
  std::int64_t cut = 0;
  for (std::size_t i = 0; i < view.plan.tensors.size(); ++i) {
    StoredTensor& tensor = view.plan.target.tensors[i];
    if (!is_vocabulary(tensor.desc) || tensor.desc.shape[0] <= rows) continue;
    cut = tensor.desc.shape[0] - rows;
    DraftTensor draft{tensor.desc, std::move(view.plan.tensors[i]), std::nullopt};
    resize_rows(draft, rows);
    tensor.desc = std::move(draft.desc);
    tensor.chunks = ChunkList(tensor.desc.shape.size());
    tensor.chunks.push_back({Box::whole(tensor.desc.shape), 0, {}, {}});
    view.plan.tensors[i] = std::move(draft.recipe);
  }
  if (cut > 0) {
    view.notes.push_back(fmt::format("{}: {} padding rows of the vocabulary are left out, {} count",
                                     view.checkpoint.location.path, cut, rows));
  }
}

}  // namespace shardwright
