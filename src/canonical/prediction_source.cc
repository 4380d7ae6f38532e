// SPDX-License-Identifier: Apache-2.0
#include "canonical/prediction_source.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "canonical/hf_model.h"
#include "canonical/prediction_layers.h"
#include "codec/json_text.h"
#include "compare/copies.h"
#include "format/config_edits.h"
#include "format/targets.h"
#include "model/apply.h"

namespace shardwright {
namespace {

// Sizes of two models that should be one, but for those that count prediction layers.
Status check_sizes(const std::string& path, const ModelFacts& facts, const ModelFacts& other) {
  if (facts.mapping->family != other.mapping->family) {
    return fail(Code::kShapeMismatch, "--mtp from={}: found a {}, expected a {} as the source is",
                path, other.mapping->family, facts.mapping->family);
  }
  std::set<std::string, std::less<>> counted;
  for (const IndexRule& index : facts.mapping->indices) {
    if (index.observed) counted.insert(index.size);
  }
  for (const auto& [name, size] : facts.sizes) {
    const auto theirs = other.sizes.find(name);
    if (theirs == other.sizes.end() || theirs->second == size || counted.contains(name)) continue;
    return fail(Code::kShapeMismatch,
                "--mtp from={}: found {} {}, expected {} as in the source; the layers of another "
                "model don't fit",
                path, name, theirs->second, size);
  }
  return {};
}

void set_numbers(const nlohmann::ordered_json& reference, nlohmann::ordered_json& object,
                 bool& changed) {
  for (const std::string_view key : kPredictionKeys) {
    const auto number = reference.find(key);
    if (number == reference.end() || (object.contains(key) && object[key] == *number)) continue;
    object[key] = *number;
    changed = true;
  }
}

}  // namespace

Status check_prediction_source(const ConvertRequest& request, bool is_from_hf) {
  if (request.mtp_from.empty()) return {};
  const TargetNames names = traits_of(request.format).names;
  const bool keeps_names = names == TargetNames::kStored;
  if (!keeps_names && (is_from_hf || names == TargetNames::kHf)) return {};
  return fail(Code::kUsage,
              "--mtp from={} needs Hugging Face names on one side; this conversion reads and "
              "writes those of {}",
              request.mtp_from, keeps_names ? "the source" : "Megatron");
}

std::unexpected<Error> refuse_own_layers(const ConvertRequest& request, std::string_view tensor) {
  return fail(Code::kUsage,
              "--mtp from={}: the source has prediction layers of its own (tensor {}); --mtp "
              "keep takes those",
              request.mtp_from, tensor);
}

Result<PredictionSource> open_prediction_source(const ConvertRequest& request,
                                                const ModelFacts& facts) {
  const std::string& path = request.mtp_from;
  PredictionSource from;
  from.checkpoint = SW_TRY(open_hf_model(path, FormatChoice{.flag = ""}, "--mtp from=" + path));
  from.folder = std::move(from.checkpoint.directory);
  FamilyChoice reference = request;
  reference.hf_config_dir.clear();
  const Mappings mappings = SW_TRY(load_mappings(reference, from.checkpoint));
  std::vector<std::string> unused;
  const ModelFacts other =
      SW_TRY(find_model_facts(reference, from.checkpoint, mappings, {}, unused));
  SW_TRY(check_sizes(path, facts, other));
  const Catalog& catalog = from.checkpoint.catalog;
  const ModelTensors model =
      SW_TRY(model_tensors(catalog, other.config_text, from.checkpoint.files.get()));
  const Correspondence all = SW_TRY(map_from_hf(*other.mapping, other.sizes, model.tensors));
  from.tensors = prediction_tensors(all);
  if (from.tensors.empty()) {
    return fail(Code::kUsage, "--mtp from={}: that model has no prediction layers", path);
  }
  const std::set<std::string, std::less<>> wanted(from.tensors.begin(), from.tensors.end());
  for (const std::string& name : from.tensors) {
    if (!model.is_quantised(name)) continue;
    return fail(Code::kUsage,
                "--mtp from={}: tensor {} is quantised; multiply the model out first (--to hf "
                "--dtype bfloat16)",
                path, name);
  }
  std::vector<HfCopy> copies;
  for (const HfCopy& copy : all.copies) {
    if (wanted.contains(copy.desc.name)) copies.push_back(copy);
  }
  const auto differing = SW_TRY(find_differing_copies(copies, catalog, *from.checkpoint.files));
  std::erase_if(copies, [&](const HfCopy& copy) { return differing.contains(copy.desc.name); });
  from.copies = std::move(copies);
  return from;
}

void add_prediction_tensors(const std::vector<std::string>& names, const PredictionSource& from,
                            Checkpoint& source, Catalog& selected) {
  const std::set<std::string_view> wanted(names.begin(), names.end());
  std::unordered_map<std::uint32_t, std::uint32_t> numbers;  // of its files, here
  for (StoredTensor tensor : from.checkpoint.catalog.tensors) {
    if (!wanted.contains(tensor.desc.name)) continue;
    const std::uint32_t file = tensor.chunks.file(0);
    auto known = numbers.find(file);
    if (known == numbers.end()) {
      const std::string& name = from.checkpoint.catalog.files[file];
      known = numbers.emplace(file, source.files->add(from.folder, name)).first;
      for (Catalog* catalog : {&source.catalog, &selected}) {
        catalog->files.resize(known->second);
        catalog->files.push_back(name);
      }
    }
    tensor.chunks.set_location(0, known->second, tensor.chunks.range(0));
    source.catalog.tensors.push_back(tensor);
    selected.tensors.push_back(std::move(tensor));
  }
}

std::vector<DraftTensor> draft_prediction_layers(const PredictionSource& from,
                                                 const Catalog& selected,
                                                 const DraftOptions& options,
                                                 std::span<const DraftTensor> exported) {
  std::unordered_map<std::string_view, const DraftTensor*> made;
  for (const DraftTensor& draft : exported) made.emplace(draft.desc.name, &draft);
  const std::vector<DraftTensor> stored = draft_identity(selected, options);
  std::unordered_map<std::string_view, const DraftTensor*> taken;
  for (const DraftTensor& draft : stored) taken.emplace(draft.desc.name, &draft);
  std::vector<DraftTensor> drafts;
  for (const std::string& name : from.tensors) {
    const auto copy = std::ranges::find(
        from.copies, name, [](const HfCopy& each) -> const std::string& { return each.desc.name; });
    const auto original = copy == from.copies.end() ? made.end() : made.find(copy->original);
    drafts.push_back(original == made.end() ? *taken.at(name) : *original->second);
    drafts.back().desc.name = name;
  }
  return drafts;
}

std::string taken_note(const PredictionSource& from) {
  return translated("{} tensors of prediction layers are taken from {}: {}", from.tensors.size(),
                    printable(from.checkpoint.location.path), fmt::join(from.tensors, ", "));
}

Result<std::string> with_prediction_numbers(const std::string& config,
                                            const std::string& reference) {
  nlohmann::ordered_json document = SW_TRY(parse_ordered_json(config, "config.json"));
  const nlohmann::ordered_json other = SW_TRY(parse_ordered_json(reference, "config.json"));
  bool changed = false;
  set_numbers(other, document, changed);
  const auto own = document.find("text_config");
  const auto theirs = other.find("text_config");
  if (own != document.end() && own->is_object() && theirs != other.end() && theirs->is_object()) {
    set_numbers(*theirs, *own, changed);
  }
  return changed ? document.dump(2) + "\n" : config;
}

}  // namespace shardwright
