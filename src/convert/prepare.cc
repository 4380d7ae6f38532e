// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "convert/constants.h"
#include "convert/copies.h"
#include "convert/families.h"
#include "convert/hf_target.h"
#include "convert/megatron_target.h"
#include "convert/model_facts.h"
#include "convert/replicas.h"
#include "convert/select.h"
#include "convert/source_keys.h"
#include "format/torch_items.h"
#include "layout/module_spec.h"
#include "layout/piece_limit.h"
#include "model/apply.h"
#include "plan/canonical.h"
#include "shardwright/convert.h"

namespace shardwright {
namespace {

std::vector<TensorDesc> descs_of(const Catalog& catalog) {
  std::vector<TensorDesc> descs;
  for (const StoredTensor& tensor : catalog.tensors) descs.push_back(tensor.desc);
  return descs;
}

std::vector<TensorDesc> descs_of(const std::vector<CanonicalTensor>& tensors) {
  std::vector<TensorDesc> descs;
  for (const CanonicalTensor& tensor : tensors) descs.push_back(tensor.desc);
  return descs;
}

bool looks_like_megatron(const Catalog& catalog) {
  return std::any_of(catalog.tensors.begin(), catalog.tensors.end(), [](const auto& tensor) {
    return tensor.desc.name.find("decoder.") != std::string::npos ||
           tensor.desc.name.find("embedding.word_embeddings.") != std::string::npos;
  });
}

// One preparation, step by step. `catalog_` is what of the source is wanted.
class Preparation {
 public:
  explicit Preparation(const ConvertRequest& request) { result_.request = request; }

  Result<PreparedConversion> run() {
    result_.source = SW_TRY(open_checkpoint(request().input));
    catalog_ = SW_TRY(select_entries(result_.source.catalog, request(), result_.notes));
    if (catalog_.tensors.empty()) {
      return fail(Code::kUsage, "{}: nothing is left to convert", request().input);
    }
    SW_TRY(locate_items(catalog_, *source().files));
    SW_TRY(tell_unread_optimizer());
    SW_TRY(compare_replicas());
    SW_TRY(make_drafts());
    fill_renames();
    result_.plan.source = std::move(catalog_);
    result_.plan.source.objects.clear();  // the target's parts name the ones that go along
    if (request().format == TargetFormat::kTorchDist) {
      SW_TRY(plan_torch_dist(parts_, request().parallel, result_.plan));
    } else if (request().format == TargetFormat::kLegacy) {
      SW_TRY(plan_legacy(parts_, request(), result_.plan));
    } else {
      SW_TRY(plan_safetensors(parts_, request().max_shard_bytes, result_.plan));
    }
    SW_TRY(check_plan(result_.plan));
    return std::move(result_);
  }

 private:
  [[nodiscard]] const ConvertRequest& request() const { return result_.request; }
  [[nodiscard]] const Checkpoint& source() const { return result_.source; }
  [[nodiscard]] bool is_from_hf() const { return source().location.container == Container::kHf; }
  [[nodiscard]] bool is_to_legacy() const { return request().format == TargetFormat::kLegacy; }
  [[nodiscard]] bool is_from_legacy() const {
    return source().location.container == Container::kLegacy;
  }

  Status tell_unread_optimizer() {
    if (!source().has_unread_optimizer) return {};
    if (request().optimizer == OptimizerPolicy::kKeep) {
      return fail(Code::kOptimizerUnsupported,
                  "{}: found optimizer state in the files of a legacy checkpoint, which is not "
                  "converted yet; convert without it (--optimizer drop)",
                  request().input);
    }
    result_.notes.push_back(
        "optimizer state is dropped: that of legacy checkpoints is not read yet");
    return {};
  }

  Status compare_replicas() {
    const ReplicaReport report =
        SW_TRY(check_replicas(catalog_, request().check_replicas, *source().files));
    if (report.compared > 0) {
      result_.notes.push_back(
          fmt::format("{} replicas agree with what they repeat ({} bytes compared)",
                      report.compared, report.bytes));
    }
    return {};
  }

  Status make_drafts() {
    if (request().format == TargetFormat::kSafetensors) return draft_own_names();
    if (request().format == TargetFormat::kHf) {
      return is_from_hf() ? draft_hf_from_hf() : draft_hf_from_megatron();
    }
    return is_from_hf() ? draft_megatron_from_hf() : draft_megatron_from_megatron();
  }

  Status draft_own_names() {
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    const std::size_t objects = catalog_.objects.size();
    if (objects > 0) {
      result_.notes.push_back(
          fmt::format("{} opaque entries are left out: safetensors holds tensors only", objects));
    }
    return {};
  }

  Status draft_hf_from_hf() {
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    return finish_hf(request(), source(), nullptr, parts_, result_.notes);
  }

  Status draft_megatron_from_megatron() {
    if (!looks_like_megatron(catalog_)) {
      return fail(Code::kNoFamily,
                  "{}: found no Megatron tensor names, expected decoder.* or embedding.*; "
                  "--to safetensors keeps any names",
                  request().input);
    }
    parts_.tensors = draft_identity(catalog_, {request().dtype, LayerKeys::kAutomatic});
    if (is_to_legacy()) {
      SW_TRY(check_piece_count(descs_of(catalog_)));
      parts_.tensors = draft_layers(catalog_, {request().dtype, LayerKeys::kNumbered});
    } else if (is_from_legacy() && !lists_layers(source().arguments)) {
      parts_.tensors = stack_layers(std::move(parts_.tensors));
    }
    rename_for_spec();
    SW_TRY(finish_from_megatron(request(), source(), catalog_, parts_, result_.notes));
    for (const auto& [name, object] : source().artifacts) {
      parts_.artifacts.emplace_back(parts_.folder + "hf/" + name, object);
    }
    if (!source().source_keys.empty()) {
      parts_.files.push_back({parts_.folder + "hf/source_keys.json", source().source_keys});
    }
    for (const auto& [name, object] : source().companions) {
      parts_.artifacts.emplace_back(parts_.folder + name, object);
    }
    return {};
  }

  Status draft_megatron_from_hf() {
    const std::vector<Mapping> mappings = SW_TRY(load_mappings(request()));
    const ModelFacts facts =
        SW_TRY(find_model_facts(request(), source(), mappings, {}, result_.notes));
    result_.family = facts.mapping->family;
    const std::vector<TensorDesc> hf = descs_of(catalog_);
    correspondence_ = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, hf));
    FromHfOptions options;
    options.differing_copies =
        SW_TRY(find_differing_copies(correspondence_.copies, catalog_, *source().files));
    for (const HfCopy& copy : correspondence_.copies) {
      const bool differs = options.differing_copies.contains(copy.desc.name);
      result_.notes.push_back(differs
                                  ? fmt::format("{} differs from {} and is kept as hf_extra",
                                                copy.desc.name, copy.original)
                                  : fmt::format("{} repeats {} bit by bit and is not stored twice",
                                                copy.desc.name, copy.original));
    }
    if (!options.differing_copies.empty()) {
      correspondence_ = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, hf, options));
    }
    for (const std::string& name : correspondence_.ignored) {
      result_.notes.push_back(fmt::format("{} is ignored: Megatron computes it", name));
    }
    parts_.tensors = SW_TRY(draft_from_hf(
        correspondence_, catalog_,
        {request().dtype, is_to_legacy() ? LayerKeys::kNumbered : layer_keys(facts)}));
    rename_for_spec();
    SW_TRY(finish_from_hf(request(), source(), facts, parts_, result_.notes));
    for (const auto& [name, object] : source().artifacts) {
      parts_.artifacts.emplace_back(parts_.folder + "hf/" + name, object);
    }
    return {};
  }

  void rename_for_spec() {
    std::vector<TensorDesc> descs;
    for (const DraftTensor& tensor : parts_.tensors) descs.push_back(tensor.desc);
    descs = names_in_spec(descs, request().spec);
    for (std::size_t i = 0; i < descs.size(); ++i) parts_.tensors[i].desc.name = descs[i].name;
  }

  // Training may have moved them to values that only their own dtype holds.
  void tell_rounded() {
    std::set<std::uint32_t> rounded;
    for (const Block& block : correspondence_.blocks) {
      const MappedTensor& hf = correspondence_.hf[block.hf];
      const DType held = correspondence_.megatron[block.megatron].desc.dtype;
      if (hf.pinned_dtype && hf.desc.dtype != held) rounded.insert(block.hf);
    }
    if (rounded.empty()) return;
    const TensorDesc& first = correspondence_.hf[*rounded.begin()].desc;
    result_.notes.push_back(
        fmt::format("{} and {} more are rounded to {}, the dtype that they were imported in",
                    first.name, rounded.size() - 1, torch_name(first.dtype)));
  }

  // Megatron numbers the layers of a model whose arguments list each layer's kind, or alternate
  // kinds, even if they are all alike.
  static bool lists_layers(const Arguments& arguments) {
    const auto found = arguments.find("moe_layer_freq");
    if (found == arguments.end()) return false;
    const auto* every = std::get_if<std::int64_t>(&found->second);
    return (every != nullptr && *every > 1) ||
           std::holds_alternative<std::vector<std::int64_t>>(found->second);
  }

  static LayerKeys layer_keys(const ModelFacts& facts) {
    if (!facts.config) return LayerKeys::kAutomatic;
    const Result<ArgsFromConfig> args = args_from_hf_config(*facts.mapping, *facts.config);
    if (!args) return LayerKeys::kAutomatic;
    const Arguments values(args->values.begin(), args->values.end());
    return lists_layers(values) ? LayerKeys::kNumbered : LayerKeys::kAutomatic;
  }

  Status draft_hf_from_megatron() {
    const std::vector<Mapping> mappings = SW_TRY(load_mappings(request()));
    SW_TRY(check_piece_count(descs_of(catalog_)));
    const std::vector<CanonicalTensor> canonical = canonical_tensors(catalog_);
    const std::vector<TensorDesc> descs = descs_of(canonical);
    const ModelFacts facts =
        SW_TRY(find_model_facts(request(), source(), mappings, descs, result_.notes));
    result_.family = facts.mapping->family;
    std::vector<TensorDesc> keys;
    if (!source().source_keys.empty()) keys = SW_TRY(read_source_keys(source().source_keys));
    const HfWanted wanted{keys};
    correspondence_ = SW_TRY(
        map_from_megatron(*facts.mapping, facts.sizes, descs, keys.empty() ? nullptr : &wanted));
    SW_TRY(check_constants(correspondence_, canonical, catalog_, *source().files));
    parts_.tensors =
        SW_TRY(draft_to_hf(correspondence_, canonical, {request().dtype, LayerKeys::kAutomatic}));
    tell_rounded();
    add_copies();
    order_like(keys);
    return finish_hf(request(), source(), &facts, parts_, result_.notes);
  }

  // A copy is made of the same pieces as its original.
  void add_copies() {
    std::unordered_map<std::string, std::size_t> by_name;
    for (std::size_t i = 0; i < parts_.tensors.size(); ++i) {
      by_name.emplace(parts_.tensors[i].desc.name, i);
    }
    for (const HfCopy& copy : correspondence_.copies) {
      const auto original = by_name.find(copy.original);
      if (original == by_name.end()) continue;
      DraftTensor tensor = parts_.tensors[original->second];
      tensor.desc.name = copy.desc.name;
      parts_.tensors.push_back(std::move(tensor));
    }
  }

  void order_like(const std::vector<TensorDesc>& keys) {
    std::unordered_map<std::string_view, std::size_t> position;
    for (std::size_t i = 0; i < keys.size(); ++i) position.emplace(keys[i].name, i);
    const auto place = [&](const DraftTensor& tensor) {
      const auto found = position.find(tensor.desc.name);
      return found == position.end() ? keys.size() : found->second;
    };
    std::stable_sort(parts_.tensors.begin(), parts_.tensors.end(),
                     [&](const auto& a, const auto& b) { return place(a) < place(b); });
  }

  void fill_renames() {
    for (const DraftTensor& tensor : parts_.tensors) {
      RenamedTensor rename{{}, tensor.desc.name};
      std::unordered_set<std::uint32_t> seen;
      for (const TensorView& view : tensor.recipe.views) {
        if (!seen.insert(view.source).second) continue;
        rename.source.push_back(catalog_.tensors[view.source].desc.name);
      }
      result_.renames.push_back(std::move(rename));
    }
  }

  PreparedConversion result_;
  Catalog catalog_;
  Correspondence correspondence_;
  TargetParts parts_;
};

}  // namespace

Result<PreparedConversion> prepare_conversion(const ConvertRequest& request) {
  return Preparation(request).run();
}

}  // namespace shardwright
