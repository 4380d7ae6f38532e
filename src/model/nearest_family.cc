// SPDX-License-Identifier: Apache-2.0
#include "model/nearest_family.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/translated.h"
#include "model/apply.h"
#include "model/config_values.h"
#include "model/mapping_report.h"

namespace shardwright {
namespace {

using ProblemKind = MappingProblem::Kind;

constexpr std::size_t kMostRivals = 6;
constexpr std::size_t kMostDifferences = 4;

struct Candidate {
  const Mapping* mapping = nullptr;
  MappingReport report;

  // More tensors taken, then fewer problems.
  [[nodiscard]] auto fit() const {
    return std::pair(report.taken, -static_cast<std::ptrdiff_t>(report.problems.size()));
  }
};

std::string lower_case(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

// Letters of the longest name of the family that is part of what config.json calls the model:
// `TinyLlamaForCausalLM` is called after llama.
std::size_t likeness(const Mapping& mapping, const HfConfig& config) {
  std::vector<std::string> called = {lower_case(config.model_type)};
  for (const std::string& name : config.architectures) called.push_back(lower_case(name));
  std::vector<std::string> names = {mapping.family};
  names.insert(names.end(), mapping.model_types.begin(), mapping.model_types.end());
  std::size_t longest = 0;
  for (const std::string& name : names) {
    const bool is_part = std::ranges::any_of(called, [&](const std::string& each) {
      return each.find(lower_case(name)) != std::string::npos;
    });
    if (is_part) longest = std::max(longest, name.size());
  }
  return longest;
}

// How many settings of the family config.json has, less those that it lacks: a family that asks for
// nothing in vain describes the model better than one that does.
std::ptrdiff_t settings_met(const Mapping& mapping, const HfConfig& config) {
  const Arguments values = in_section(config.values, mapping.config_section);
  std::ptrdiff_t met = 0;
  const auto count = [&](const std::vector<std::string>& keys) {
    if (keys.empty()) return;
    const bool is_there = std::ranges::any_of(
        keys, [&](const std::string& key) { return values.contains(flag_name(key).name); });
    met += is_there ? 1 : -1;
  };
  for (const SizeRule& rule : mapping.sizes) count(rule.hf);
  for (const ConfigRule& rule : mapping.config) count(rule.hf);
  return met;
}

// What config.json says for a family of which several fit the tensors alike.
class ConfigFit {
 public:
  ConfigFit(const Mapping& mapping, const HfConfig& config, std::span<const TensorDesc> hf)
      : is_variant_(check_variant(mapping, config).has_value()),
        likeness_(likeness(mapping, config)),
        settings_(settings_met(mapping, config)) {
    auto made = args_from_hf_config(mapping, config, hf);
    if (!made) return;
    doubts_ = made->notes.size();
    for (auto& [name, value] : made->values) arguments_.emplace(name, std::move(value));
  }

  [[nodiscard]] auto rank() const {
    return std::tuple(is_variant_, likeness_, -static_cast<std::ptrdiff_t>(doubts_), settings_);
  }
  [[nodiscard]] const Arguments& arguments() const { return arguments_; }

 private:
  bool is_variant_;
  std::size_t likeness_;
  std::ptrdiff_t settings_;
  std::size_t doubts_ = 0;
  Arguments arguments_;
};

// The elements of each Megatron tensor, as a text that is equal where they are.
std::multiset<std::string> elements_of(const Mapping& mapping, const HfConfig& config,
                                       std::span<const TensorDesc> hf) {
  std::multiset<std::string> elements;
  const Result<ModelSizes> sizes = sizes_from_hf_config(mapping, config);
  if (!sizes) return elements;
  const Result<Correspondence> made = map_from_hf(mapping, *sizes, hf);
  if (!made) return elements;
  for (const Block& block : made->blocks) {
    const MappedTensor& target = made->megatron[block.megatron];
    elements.insert(fmt::format("{} {} {} {} {} {} {} {}", target.desc.name, target.offset,
                                made->hf[block.hf].desc.name, to_string(block.hf_origin),
                                to_string(block.megatron_origin), to_string(block.shape),
                                to_string(block.hf_axis), to_string(block.hf_step)));
  }
  return elements;
}

// A family that fits as well as the first, and what it writes otherwise.
std::string difference(const ConfigFit& first, const ConfigFit& other, bool has_same_elements) {
  std::vector<std::string> told;
  std::set<std::string, std::less<>> names;
  for (const auto* fit : {&first, &other}) {
    for (const auto& [name, value] : fit->arguments()) names.insert(name);
  }
  std::size_t more = 0;
  for (const std::string& name : names) {
    const ArgValue* const a = find_set(first.arguments(), name);
    const ArgValue* const b = find_set(other.arguments(), name);
    if ((a == nullptr && b == nullptr) || (a != nullptr && b != nullptr && same_value(*a, *b))) {
      continue;
    }
    if (told.size() == kMostDifferences) {
      ++more;
      continue;
    }
    const auto text = [](const ArgValue* value) {
      return value == nullptr ? std::string("unset") : to_string(*value);
    };
    told.push_back(fmt::format("{} {} for {}", name, text(b), text(a)));
  }
  if (more > 0) told.push_back(translated("{} more arguments", more));
  if (!has_same_elements) told.emplace_back("other values of some tensors");
  return told.empty() ? "nothing otherwise" : fmt::format("{}", fmt::join(told, ", "));
}

std::vector<Candidate> best_fitting(std::span<const Mapping> mappings, const HfConfig& config,
                                    std::span<const TensorDesc> hf) {
  std::vector<Candidate> best;
  for (const Mapping& mapping : mappings) {
    Result<MappingReport> report = report_mapping(mapping, config, hf);
    if (!report || report->taken * 2 < hf.size()) continue;
    Candidate candidate{&mapping, *std::move(report)};
    if (!best.empty() && candidate.fit() < best.front().fit()) continue;
    if (!best.empty() && candidate.fit() > best.front().fit()) best.clear();
    best.push_back(std::move(candidate));
  }
  return best;
}

std::string problems_text(const MappingReport& report) {
  std::string text;
  const auto list = [&](ProblemKind kind, std::string_view words) {
    std::vector<std::string> names;
    for (const MappingProblem& problem : report.problems) {
      if (problem.kind == kind) names.push_back(numberless(problem.tensors[0]));
    }
    if (!names.empty()) text += fmt::format(", {} {}", words, name_list(names));
  };
  list(ProblemKind::kUncovered, "leaves");
  list(ProblemKind::kMissing, "misses");
  return text;
}

}  // namespace

std::string nearest_family(std::span<const Mapping> mappings, const HfConfig& config,
                           std::span<const TensorDesc> hf) {
  const std::vector<Candidate> best = best_fitting(mappings, config, hf);
  if (best.empty()) return {};
  std::vector<std::pair<const Candidate*, ConfigFit>> ranked;
  for (const Candidate& candidate : best) {
    ranked.emplace_back(&candidate, ConfigFit(*candidate.mapping, config, hf));
  }
  std::ranges::sort(ranked, [](const auto& a, const auto& b) {
    if (a.second.rank() != b.second.rank()) return a.second.rank() > b.second.rank();
    return a.first->mapping->family < b.first->mapping->family;
  });
  const auto& [first, first_fit] = ranked.front();
  const MappingReport& report = first->report;
  const bool is_tie = ranked.size() > 1 && ranked[1].second.rank() == first_fit.rank();
  std::string text = translated("{} {}, which takes {} of {} tensors{}",
                                is_tie ? "as near as any is" : "nearest is", first->mapping->family,
                                report.taken, report.hf_tensors, problems_text(report));
  if (ranked.size() == 1) return text;
  text += translated("; as many are taken by ");
  const auto elements = elements_of(*first->mapping, config, hf);
  for (std::size_t i = 1; i < std::min(ranked.size(), kMostRivals + 1); ++i) {
    const Mapping& rival = *ranked[i].first->mapping;
    const bool has_same = elements_of(rival, config, hf) == elements;
    text += fmt::format("{}{} (writes {})", i == 1 ? "" : ", ", rival.family,
                        difference(first_fit, ranked[i].second, has_same));
  }
  if (ranked.size() > kMostRivals + 1) {
    text += translated(" and {} more", ranked.size() - kMostRivals - 1);
  }
  return text + translated("; --family says which of them the model is");
}

}  // namespace shardwright
