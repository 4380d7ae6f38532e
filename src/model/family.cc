// SPDX-License-Identifier: Apache-2.0
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "model/apply.h"
#include "model/config.h"
#include "model/head_rules.h"
#include "model/mapping_report.h"
#include "model/unsaid_arguments.h"

namespace shardwright {
namespace {

using Candidates = std::vector<const Mapping*>;

std::string families_of(const Candidates& candidates) {
  std::vector<std::string> names;
  for (const Mapping* mapping : candidates) names.push_back(mapping->family);
  return fmt::format("{}", fmt::join(names, ", "));
}

bool lists(const std::vector<std::string>& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

// By its own name, or as the language model that has the same layers beneath another head or none.
// One word may name a language model and a vision-language model (Qwen3_5), which model_type tells
// apart.
bool has_architecture(const Mapping& mapping, std::string_view architecture,
                      std::string_view model_type) {
  if (lists(mapping.architectures, architecture)) return true;
  std::string stem = headless_stem(architecture);
  constexpr std::string_view kBase = "Model";  // without any head
  if (stem.empty() && architecture.ends_with(kBase)) {
    stem = architecture.substr(0, architecture.size() - kBase.size());
  }
  if (stem.empty() || (!model_type.empty() && !lists(mapping.model_types, model_type))) {
    return false;
  }
  constexpr std::array<std::string_view, 4> kLanguage = {"ForCausalLM", "LMHeadModel",
                                                         "ForConditionalGeneration", "TextModel"};
  const auto has_stem = [&] {
    return std::ranges::any_of(kLanguage, [&](std::string_view end) {
      return lists(mapping.architectures, stem + std::string(end));
    });
  };
  if (has_stem()) return true;
  // Only the classes with heads say that a part of a vision-language model is its language model.
  constexpr std::string_view kText = "Text";
  if (!stem.ends_with(kText)) return false;
  stem.resize(stem.size() - kText.size());
  return has_stem();
}

bool is_named(const Mapping& mapping, const HfConfig& config) {
  if (config.architectures.empty()) return lists(mapping.model_types, config.model_type);
  return std::ranges::any_of(config.architectures, [&](const std::string& architecture) {
    return has_architecture(mapping, architecture, config.model_type);
  });
}

bool has_needed_args(const Mapping& mapping, const Arguments& args) {
  return std::ranges::all_of(mapping.needs_args, [&](const NeededArg& needed) {
    const ArgValue* value = first_said(args, needed.name).value;
    return value != nullptr && (!needed.value || same_value(*value, *needed.value));
  });
}

/// A family that arguments and tensors don't fit, and what stands in its way.
struct NearMiss {
  const Mapping* mapping = nullptr;
  MappingTrial found;

  [[nodiscard]] std::size_t count() const {
    return found.missing.size() + found.surplus.size() + found.mismatches;
  }
  [[nodiscard]] bool is_like(const NearMiss& other) const {
    return found.missing == other.found.missing && found.surplus == other.found.surplus &&
           found.mismatches == other.found.mismatches;
  }
};

// What a family has in all layers and the model in none tells of another family; what other layers
// have, or stands outside them, was lost where something else is in its place.
bool seems_renamed(const MappingTrial& found, std::span<const TensorDesc> canonical) {
  if (found.surplus.size() > found.missing.size()) return false;
  std::set<std::string, std::less<>> kinds;
  for (const TensorDesc& tensor : canonical) kinds.insert(numberless(tensor.name));
  return std::ranges::all_of(found.missing, [&](const std::string& name) {
    const std::string kind = numberless(name);
    return kind == name || kinds.contains(kind);
  });
}

bool fits_arguments(const Mapping& mapping, const Arguments& args,
                    std::span<const TensorDesc> canonical, std::vector<NearMiss>& misses) {
  // More of them are another model's; of one that only lacks tensors half may be lost.
  constexpr std::size_t kLeastPerSurplus = 4;
  if (!mapping.inferred || !has_needed_args(mapping, args)) return false;
  const Result<ModelSizes> sizes = sizes_from_args(mapping, args);
  if (!sizes) return false;
  NearMiss miss{&mapping, {}};
  FromMegatronOptions options;
  options.trial = &miss.found;
  if (map_from_megatron(mapping, *sizes, canonical, nullptr, options)) return true;
  const bool has_surplus = !miss.found.surplus.empty();
  const std::size_t least = has_surplus ? kLeastPerSurplus : 2;
  if (miss.count() == 0 || miss.count() * least > canonical.size()) return false;
  if (!has_surplus || seems_renamed(miss.found, canonical)) misses.push_back(std::move(miss));
  return false;
}

// Which families the model would be of but for the fewest tensors: the same ones.
std::vector<NearMiss> nearest_misses(const std::vector<NearMiss>& misses) {
  const auto fewest = std::ranges::min_element(misses, {}, &NearMiss::count);
  if (fewest == misses.end()) return {};
  std::vector<NearMiss> nearest;
  std::ranges::copy_if(misses, std::back_inserter(nearest),
                       [&](const NearMiss& each) { return each.is_like(*fewest); });
  return nearest;
}

std::unexpected<Error> near_miss(const std::vector<NearMiss>& nearest, std::size_t tensors) {
  Candidates candidates;
  for (const NearMiss& each : nearest) candidates.push_back(each.mapping);
  const std::string families = families_of(candidates);
  const MappingTrial& found = nearest.front().found;
  const auto& missing = found.missing;
  if (!found.surplus.empty()) {
    return fail(
        Code::kUnmatchedSource,
        "no known family matches these arguments and {} tensors; nearest is {}, which has no "
        "rule for {} and lacks {}; check their names, or name the family (--family)",
        tensors, families, name_list(found.surplus), name_list(missing));
  }
  if (!missing.empty()) {
    return fail(
        Code::kUnmatchedTarget,
        "no known family matches these arguments and {} tensors; nearest is {}, which needs "
        "{} more: {}; check that no part was lost, or name the family (--family)",
        tensors, families, missing.size(), name_list(missing));
  }
  return fail(Code::kShapeMismatch,
              "no known family matches these arguments and {} tensors; nearest is {}: {}", tensors,
              families, found.mismatch->message);
}

std::string one_of(std::span<const ArgValue> values) {
  std::vector<std::string> texts;
  for (const ArgValue& value : values) texts.push_back(to_string(value));
  return fmt::format("{}", fmt::join(texts, translated(" or ")));
}

std::unexpected<Error> ambiguous(const Candidates& candidates) {
  return fail(Code::kAmbiguousFamily, "{} families fit ({}); name the right one with --family",
              candidates.size(), families_of(candidates));
}

}  // namespace

bool names_one_of(const HfConfig& config, std::span<const Mapping> mappings) {
  return std::ranges::any_of(mappings,
                             [&](const Mapping& mapping) { return is_named(mapping, config); });
}

Status check_variant(const Mapping& mapping, const HfConfig& config) {
  for (const NeededConfig& needed : mapping.needs_config) {
    const auto [key, value] = first_said(config.values, needed.key);
    const auto is_it = [said = value](const ArgValue& known) { return same_value(known, *said); };
    if (needed.values.empty()) {
      if (value != nullptr) continue;
      return fail(Code::kNoFamily, "config.json has no {}, which family {} needs", key,
                  mapping.family);
    }
    if (value == nullptr || std::ranges::any_of(needed.values, is_it)) continue;
    return fail(Code::kNoFamily,
                "config.json: found {} = {}, expected {}: family {} knows no other; name another "
                "family with --family, or extend this one with a mapping file of your own (--map)",
                key, to_string(*value), one_of(needed.values), mapping.family);
  }
  return {};
}

Result<const Mapping*> find_family(std::span<const Mapping> mappings, const HfConfig& config) {
  Candidates candidates;
  for (const Mapping& mapping : mappings) {
    if (is_named(mapping, config)) candidates.push_back(&mapping);
  }
  const auto other_type = [&](const Mapping* mapping) {
    return !lists(mapping->model_types, config.model_type);
  };
  if (!std::ranges::all_of(candidates, other_type)) {
    std::erase_if(candidates, other_type);
  }
  const auto other_variant = [&](const Mapping* mapping) {
    return !check_variant(*mapping, config).has_value();
  };
  if (!candidates.empty() && std::ranges::all_of(candidates, other_variant)) {
    return std::unexpected(check_variant(*candidates[0], config).error());
  }
  std::erase_if(candidates, other_variant);
  if (candidates.size() > 1) return ambiguous(candidates);
  if (candidates.size() == 1) return candidates[0];
  std::vector<std::string> known;
  for (const Mapping& mapping : mappings) {
    for (const std::string& name : mapping.architectures) {
      if (!lists(known, name)) known.push_back(name);
    }
  }
  const std::string wanted =
      config.architectures.empty() ? config.model_type : config.architectures[0];
  const std::string_view near = nearest_of(wanted, known);
  return fail(
      Code::kNoFamily,
      "config.json: no known family has the architecture '{}' (model_type '{}'){}; name one "
      "with --family (see 'shardwright map list')",
      wanted, config.model_type, near.empty() ? "" : translated(", near to {}", near));
}

Result<const Mapping*> find_family(std::span<const Mapping> mappings, std::string_view name) {
  const auto found = std::ranges::find(mappings, name, &Mapping::family);
  if (found != mappings.end()) return &*found;
  std::vector<std::string> names;
  std::vector<std::string> meant;  // by what its config.json says
  for (const Mapping& mapping : mappings) {
    names.push_back(mapping.family);
    const bool is_said = lists(mapping.architectures, name) || lists(mapping.model_types, name);
    if (is_said && !lists(meant, mapping.family)) meant.push_back(mapping.family);
  }
  const std::string_view near = nearest_of(name, names);
  if (meant.empty() && !near.empty()) meant.emplace_back(near);
  return fail(Code::kNoFamily, "no family is called '{}'; {}", name,
              meant.empty() ? translated("see 'shardwright map list'")
                            : translated("did you mean {}?", fmt::join(meant, ", ")));
}

Result<const Mapping*> find_family(std::span<const Mapping> mappings, const Arguments& args,
                                   std::span<const TensorDesc> canonical) {
  Candidates candidates;
  std::vector<NearMiss> misses;
  for (const Mapping& mapping : mappings) {
    if (fits_arguments(mapping, args, canonical, misses)) candidates.push_back(&mapping);
  }
  // One whose config.json has no word for what the run computed is none, where another has.
  const auto is_unsaid = [&](const Mapping* each) {
    return !check_unsaid_arguments(*each, args).has_value();
  };
  if (!std::ranges::all_of(candidates, is_unsaid)) std::erase_if(candidates, is_unsaid);
  // A family that asks for arguments of its own and gets them describes the model better than one
  // whose tensors merely look the same, and the more it asks for the better.
  std::size_t most = 0;
  for (const Mapping* mapping : candidates) most = std::max(most, mapping->needs_args.size());
  std::erase_if(candidates, [&](const Mapping* each) { return each->needs_args.size() < most; });
  if (candidates.size() > 1) return ambiguous(candidates);
  if (candidates.size() == 1) return candidates[0];
  const std::vector<NearMiss> nearest = nearest_misses(misses);
  if (!nearest.empty()) return near_miss(nearest, canonical.size());
  return fail(
      Code::kNoFamily,
      "no known family matches these arguments and {} tensors{} (see 'shardwright map list'); "
      "name one with --family to see what does not fit, or give --hf-config",
      canonical.size(),
      canonical.empty() ? "" : translated(", such as {}", canonical.front().name));
}

}  // namespace shardwright
