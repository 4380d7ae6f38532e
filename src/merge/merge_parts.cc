// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_parts.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <unordered_set>

#include "base/fail.h"
#include "canonical/dequantise.h"
#include "canonical/families.h"
#include "format/nothing_stored.h"
#include "model/arguments.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostCombinations = 512;

std::string part_names(const Mapping& mapping) {
  std::vector<std::string> names;
  for (const ModelPart& part : mapping.parts) names.push_back(part.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Result<const ModelPart*> find_part(const Mapping& mapping, std::string_view name,
                                   std::string_view flag) {
  const auto found = std::ranges::find(mapping.parts, name, &ModelPart::name);
  if (found != mapping.parts.end()) return &*found;
  return fail(Code::kUsage, "{} {}: {} has no such part; it has {}", flag, name, mapping.family,
              part_names(mapping));
}

std::vector<std::string> names_of(const Catalog& catalog) {
  std::vector<std::string> names;
  for (const StoredTensor& tensor : catalog.tensors) names.push_back(tensor.desc.name);
  return names;
}

// How badly a list of names fits the model.
class Fit {
 public:
  explicit Fit(const WholeModel& whole) : whole_(whole) {
    for (const TensorDesc& key : whole.keys) keys_.insert(key.name);
  }

  // How many, and the report about it.
  Result<std::size_t> misfits(NamedTensors& named) const {
    std::unordered_set<std::string_view> seen;
    std::vector<TensorDesc> once;
    std::size_t misfits = 0;
    for (const PlacedTensor& tensor : named.tensors) {
      if (!seen.insert(tensor.desc.name).second) {
        ++misfits;
      } else {
        once.push_back(tensor.desc);
        if (!keys_.empty() && !keys_.contains(tensor.desc.name)) ++misfits;
      }
    }
    if (!keys_.empty()) return misfits;
    named.report = SW_TRY(report_fit(whole_, once));
    for (const MappingProblem& problem : named.report->problems) misfits += problem.tensors.size();
    return misfits;
  }

 private:
  const WholeModel& whole_;
  std::unordered_set<std::string_view> keys_;
};

// Every way to choose one of each list, by numbers.
class Combinations {
 public:
  explicit Combinations(std::vector<std::size_t> sizes)
      : sizes_(std::move(sizes)), chosen_(sizes_.size(), 0) {}

  [[nodiscard]] const std::vector<std::size_t>& chosen() const { return chosen_; }
  // False after the last one.
  bool next() {
    for (std::size_t i = sizes_.size(); i-- > 0;) {
      if (++chosen_[i] < sizes_[i]) return true;
      chosen_[i] = 0;
    }
    return false;
  }

 private:
  std::vector<std::size_t> sizes_;
  std::vector<std::size_t> chosen_;
};

std::vector<PlacedTensor> place_tensors(const std::vector<OpenedPart>& parts,
                                        const std::vector<std::vector<PartNaming>>& namings,
                                        const std::vector<std::size_t>& chosen) {
  std::vector<PlacedTensor> placed;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const PartNaming& naming = namings[p][chosen[p]];
    const std::vector<StoredTensor>& tensors = parts[p].checkpoint.catalog.tensors;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      placed.push_back({tensors[i].desc, p, i});
      placed.back().desc.name = naming.whole(tensors[i].desc.name);
    }
  }
  return placed;
}

// A whole model's names are those of several parts: not one of them would be this part's alone.
Status refuse_whole(const Mapping& mapping, const OpenedPart& opened) {
  std::set<const ModelPart*> owners;
  for (const StoredTensor& tensor : opened.checkpoint.catalog.tensors) {
    owners.insert(part_name(mapping.parts, tensor.desc.name).part);
  }
  owners.erase(nullptr);
  if (owners.size() < 2) return {};
  std::vector<std::string> found;
  for (const ModelPart& part : mapping.parts) {
    if (owners.contains(&part)) found.push_back(part.name);
  }
  return fail(Code::kUsage,
              "--component {}: found tensors of {} in {}, named as in a whole model, expected this "
              "part's alone; `split` that model first and give its folder {}",
              opened.part->name, fmt::join(found, ", "), opened.path, opened.part->name);
}

}  // namespace

bool says_tied(const HfConfig& config, const Mapping* family) {
  if (family != nullptr) {
    const Result<ModelSizes> sizes = sizes_from_hf_config(*family, config);
    if (sizes && sizes->contains("tied")) return sizes->at("tied") != 0;
  }
  return is_true(config.values, "tie_word_embeddings");
}

Result<bool> says_tied(const HfConfig& config, const FamilyChoice& choice) {
  FamilyChoice own = choice;
  own.family.clear();
  const Mappings mappings = SW_TRY(load_mappings(own, config));
  const Result<const Mapping*> family = find_family(mappings, config);
  return says_tied(config, family ? *family : nullptr);
}

Result<MappingReport> report_fit(const WholeModel& whole, std::span<const TensorDesc> stored) {
  const QuantisationConfig quantisation = SW_TRY(read_quantisation_config(whole.config_text));
  const ModelTensors model = SW_TRY(join_scales(stored, quantisation));
  return report_mapping(*whole.mapping, whole.config, model.tensors);
}

std::unexpected<Error> no_parts(const Mapping& mapping) {
  return fail(Code::kNoFamily,
              "family {} cannot be taken apart: its mapping file does not say what each "
              "part's tensors are called ('hf' in components)",
              mapping.family);
}

Result<std::vector<OpenedPart>> open_parts(const MergeRequest& request, const Mapping& mapping) {
  if (mapping.parts.empty()) return no_parts(mapping);
  std::set<std::string, std::less<>> seen;
  std::vector<OpenedPart> parts;
  for (const PartFolder& folder : request.parts) {
    const ModelPart* part = SW_TRY(find_part(mapping, folder.name, "--component"));
    if (!seen.insert(folder.name).second) {
      return fail(Code::kUsage, "--component {} is given twice; give one folder for each part",
                  folder.name);
    }
    parts.push_back(
        {part, folder.path, SW_TRY(open_checkpoint(folder.path, FormatChoice{request.as}))});
    const Checkpoint& opened = parts.back().checkpoint;
    SW_TRY(check_something_stored(opened.catalog, folder.path));
    if (opened.location.traits.is_hf_model) {
      SW_TRY(refuse_whole(mapping, parts.back()));
      continue;
    }
    return fail(Code::kUsage,
                "--component {}: found a {} checkpoint in {}, expected Hugging Face files; convert "
                "it with --to hf first",
                folder.name, opened.location.format, folder.path);
  }
  for (const std::string& name : request.without) {
    SW_TRY(find_part(mapping, name, "--without"));
    if (seen.contains(name)) {
      return fail(Code::kUsage, "--without {} contradicts --component {}; give one of the two",
                  name, name);
    }
  }
  return parts;
}

Result<NamedTensors> name_tensors(const std::vector<OpenedPart>& parts, const WholeModel& whole) {
  std::vector<std::vector<PartNaming>> namings;
  std::vector<std::size_t> sizes;
  std::size_t combinations = 1;
  for (const OpenedPart& opened : parts) {
    namings.push_back(SW_TRY(
        namings_of(whole.mapping->parts, *opened.part, names_of(opened.checkpoint.catalog))));
    sizes.push_back(namings.back().size());
    combinations *= sizes.back();
    if (combinations <= kMostCombinations) continue;
    return fail(Code::kLimit, "family {}: found more than {} ways to name the parts' tensors",
                whole.mapping->family, kMostCombinations);
  }
  const Fit fit(whole);
  Combinations all(std::move(sizes));
  NamedTensors best;
  std::optional<std::size_t> least;
  do {
    NamedTensors placed{place_tensors(parts, namings, all.chosen()), std::nullopt};
    const std::size_t misfits = SW_TRY(fit.misfits(placed));
    if (least && *least <= misfits) continue;
    least = misfits;
    best = std::move(placed);
  } while (*least > 0 && all.next());
  return best;
}

PartReport part_report(std::string name, std::string path,
                       std::span<const StoredTensor* const> tensors) {
  PartReport report{std::move(name), std::move(path), tensors.size(), 0, {}};
  for (const StoredTensor* tensor : tensors) {
    report.bytes += tensor->chunks.range(0).length;
    ++report.dtypes[tensor->desc.dtype];
  }
  return report;
}

}  // namespace shardwright
