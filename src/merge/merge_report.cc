// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_report.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "base/translated.h"
#include "model/instances.h"

namespace shardwright {
namespace {

using Kind = MappingProblem::Kind;

std::string value_text(const ArgValue& value) {
  struct Text {
    std::string operator()(std::monostate) const { return "null"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(const std::string& text) const { return "'" + printable(text) + "'"; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return fmt::format("{}", number); }
    std::string operator()(const std::vector<std::int64_t>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
    std::string operator()(const std::vector<double>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
    std::string operator()(const std::vector<std::string>& list) const {
      return fmt::format("[{}]", fmt::join(list, ", "));
    }
  };
  return std::visit(Text(), value);
}

// What the whole model's config says of a part: its own object. Older files have the language
// model's settings at the top.
std::map<std::string, ArgValue, std::less<>> settings_of(const WholeModel& whole,
                                                         const ModelPart& part) {
  std::map<std::string, ArgValue, std::less<>> own;
  const std::string prefix = part.config + ".";
  for (const auto& [key, value] : whole.config.values) {
    if (key.starts_with(prefix)) own.emplace(key.substr(prefix.size()), value);
  }
  if (own.empty() && part.name == kLanguagePart) {
    own.insert(whole.config.values.begin(), whole.config.values.end());
  }
  // The whole model's may stand at the top, and win.
  if (part.name == kLanguagePart && whole.sizes.contains("tied")) {
    own.insert_or_assign("tie_word_embeddings", ArgValue{whole.sizes.at("tied") != 0});
  }
  return own;
}

Result<std::optional<HfConfig>> own_config(const OpenedPart& part) {
  if (part.checkpoint.hf_config.empty()) return std::nullopt;
  Result<HfConfig> config = read_hf_config(part.checkpoint.hf_config);
  if (!config) return std::unexpected(std::move(config.error()).within(part.path));
  return *std::move(config);
}

// Findings of one kind, one for each part.
class ByPart {
 public:
  ByPart(const std::vector<OpenedPart>& parts, const WholeModel& whole,
         std::span<const PlacedTensor> tensors)
      : parts_(parts), whole_(whole) {
    for (const PlacedTensor& tensor : tensors) givers_.emplace(tensor.desc.name, tensor.part);
  }

  void add(const std::string& tensor) {
    const auto giver = givers_.find(tensor);
    const ModelPart* part = giver != givers_.end() ? parts_[giver->second].part
                                                   : part_name(whole_.mapping->parts, tensor).part;
    names_[part == nullptr ? std::string() : part->name].push_back(tensor);
  }

  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& names() const {
    return names_;
  }

 private:
  const std::vector<OpenedPart>& parts_;
  const WholeModel& whole_;
  std::unordered_map<std::string_view, std::size_t> givers_;
  std::map<std::string, std::vector<std::string>> names_;
};

MergeFinding missing_finding(const std::string& part, std::vector<std::string> tensors,
                             bool may_lack) {
  if (may_lack) {
    std::string text = translated(
        "{} tensors are left out (--without {}): the model's own software will not find them",
        tensors.size(), part);
    return {"missing", Severity::kWarning, part, std::move(text), std::move(tensors)};
  }
  std::string text = translated(
      "found {} tensors of it in no folder; give --component {}=DIR with them, or --without {} to "
      "leave all of it out",
      tensors.size(), part, part);
  return {"missing", Severity::kError, part, std::move(text), std::move(tensors)};
}

MergeFinding unexpected_finding(const std::string& part, std::vector<std::string> tensors) {
  std::string text = translated(
      "found {} tensors that the model has no place for, expected only this part's, named as in "
      "the whole model or as in a checkpoint of the part alone",
      tensors.size());
  return {"unexpected", Severity::kError, part, std::move(text), std::move(tensors)};
}

// What a mapping's report says, in the words of parts.
void add_problems(const MappingReport& report, std::span<const std::string> without,
                  const ByPart& empty, std::vector<MergeFinding>& findings) {
  ByPart missing = empty;
  ByPart unexpected = empty;
  for (const MappingProblem& problem : report.problems) {
    if (problem.kind == Kind::kMissing) {
      for (const std::string& name : problem.tensors) missing.add(name);
    } else if (problem.kind == Kind::kUncovered) {
      for (const std::string& name : problem.tensors) unexpected.add(name);
    } else {
      // Settings that Megatron lacks are no obstacle among Hugging Face files.
      const bool is_grave = problem.kind != Kind::kConfig && problem.kind != Kind::kWayBack;
      findings.push_back({problem.kind == Kind::kShape ? "shape" : "family",
                          is_grave ? Severity::kError : Severity::kWarning,
                          {},
                          problem.reason,
                          problem.tensors});
    }
  }
  for (const auto& [part, names] : missing.names()) {
    const bool may_lack = std::ranges::find(without, part) != without.end();
    findings.push_back(missing_finding(part, names, may_lack));
  }
  for (const auto& [part, names] : unexpected.names()) {
    findings.push_back(unexpected_finding(part, names));
  }
}

// The last size of an adapter, or of an encoder that has one, is the language model's first.
void check_widths(const WholeModel& whole, std::vector<MergeFinding>& findings) {
  const auto hidden = whole.sizes.find("hidden");
  for (const ModelPart& part : whole.mapping->parts) {
    const auto width = whole.sizes.find(part.width);
    if (hidden == whole.sizes.end() || width == whole.sizes.end()) continue;
    if (width->second == hidden->second) continue;
    findings.push_back(
        {"width",
         Severity::kError,
         part.name,
         translated("config.json: found an output width of {}, expected the language model's "
                    "hidden size {}",
                    width->second, hidden->second),
         {}});
  }
}

}  // namespace

std::vector<MergeFinding> drop_doubled(const std::vector<OpenedPart>& parts,
                                       std::vector<PlacedTensor>& tensors) {
  std::unordered_map<std::string, std::size_t> givers;
  std::map<std::pair<std::size_t, std::size_t>, std::vector<std::string>> doubled;
  std::erase_if(tensors, [&](const PlacedTensor& tensor) {
    const auto [giver, is_new] = givers.emplace(tensor.desc.name, tensor.part);
    if (!is_new) doubled[{giver->second, tensor.part}].push_back(tensor.desc.name);
    return !is_new;
  });
  std::vector<MergeFinding> findings;
  for (auto& [pair, names] : doubled) {
    const OpenedPart& first = parts[pair.first];
    std::string text =
        translated("found {} tensors that {} ({}) has too, expected each in one folder",
                   names.size(), first.part->name, first.path);
    findings.push_back({"doubled", Severity::kError, parts[pair.second].part->name, std::move(text),
                        std::move(names)});
  }
  return findings;
}

Result<std::vector<MergeFinding>> add_tied_heads(const std::vector<OpenedPart>& parts,
                                                 const WholeModel& whole,
                                                 const FamilyChoice& choice, NamedTensors& named) {
  ModelSizes as_tied = whole.sizes;
  for (const CopyRule& rule : whole.mapping->copies) {
    if (rule.condition) as_tied[rule.condition->size] = rule.condition->non_zero ? 1 : 0;
  }
  std::map<std::string, PlacedTensor, std::less<>> by_name;
  for (const PlacedTensor& tensor : named.tensors) by_name.emplace(tensor.desc.name, tensor);
  std::vector<MergeFinding> findings;
  const std::vector<CopyInstance> copies = SW_TRY(copy_instances(*whole.mapping, as_tied));
  const CopyIndex index(copies);
  for (const CopyInstance& copy : copies) {
    if (holds(copy.rule->condition, whole.sizes) || by_name.contains(copy.hf)) continue;
    const auto original = index.stored_original(
        copy, [&](const std::string& name) { return by_name.contains(name); });
    if (!original) continue;
    PlacedTensor head = by_name.at(*original);
    const OpenedPart& part = parts[head.part];
    const std::optional<HfConfig> config = SW_TRY(own_config(part));
    if (!config || !SW_TRY(says_tied(*config, choice))) continue;
    head.desc.name = copy.hf;
    named.tensors.push_back(head);
    named.report.reset();
    by_name.emplace(copy.hf, std::move(head));
    findings.push_back({"tied",
                        Severity::kInfo,
                        part.part->name,
                        translated("{} is written as a copy of {}: the part's config says that "
                                   "they are one tensor, the whole model's that they are two",
                                   copy.hf, *original),
                        {copy.hf}});
  }
  return findings;
}

Result<std::vector<MergeFinding>> find_misfits(const std::vector<OpenedPart>& parts,
                                               const WholeModel& whole,
                                               std::span<const std::string> without,
                                               NamedTensors& named) {
  if (!named.report) {
    std::vector<TensorDesc> stored;
    for (const PlacedTensor& tensor : named.tensors) stored.push_back(tensor.desc);
    named.report = SW_TRY(report_fit(whole, stored));
  }
  std::vector<MergeFinding> findings;
  const ByPart by_part(parts, whole, named.tensors);
  add_problems(*named.report, without, by_part, findings);
  check_widths(whole, findings);
  std::set<std::string_view> present;
  for (const PlacedTensor& tensor : named.tensors) present.insert(tensor.desc.name);
  ByPart lost = by_part;
  for (const TensorDesc& key : whole.keys) {
    if (!present.contains(key.name)) lost.add(key.name);
  }
  for (const auto& [part, names] : lost.names()) {
    const bool is_told = std::ranges::any_of(findings, [&](const MergeFinding& finding) {
      return finding.kind == "missing" && finding.part == part;
    });
    const bool may_lack = std::ranges::find(without, part) != without.end();
    if (!is_told) findings.push_back(missing_finding(part, names, may_lack));
  }
  return findings;
}

Result<std::vector<MergeFinding>> compare_parts(const std::vector<OpenedPart>& parts,
                                                const WholeModel& whole) {
  std::vector<MergeFinding> findings;
  std::set<DType> types;
  std::vector<std::string> texts;
  for (const OpenedPart& part : parts) {
    std::set<std::string_view> own;
    for (const StoredTensor& tensor : part.checkpoint.catalog.tensors) {
      if (!is_castable_float(tensor.desc.dtype)) continue;
      types.insert(tensor.desc.dtype);
      own.insert(torch_name(tensor.desc.dtype));
    }
    texts.push_back(fmt::format("{} {}", part.part->name, fmt::join(own, translated(" and "))));
    const std::optional<HfConfig> config = SW_TRY(own_config(part));
    if (!config) continue;
    std::vector<std::string> different;
    for (const auto& [key, value] : settings_of(whole, *part.part)) {
      const auto said = config->values.find(key);
      if (said == config->values.end() || is_of_the_file(key)) continue;
      if (same_value(said->second, value)) continue;
      different.push_back(
          translated("{} {} (here {})", key, value_text(said->second), value_text(value)));
    }
    if (different.empty()) continue;
    findings.push_back({"config",
                        Severity::kWarning,
                        part.part->name,
                        translated("its own config.json says otherwise than the whole model's: {}",
                                   fmt::join(different, ", ")),
                        {}});
  }
  if (types.size() > 1) {
    findings.push_back(
        {"dtype",
         Severity::kWarning,
         {},
         translated("parts have different types: {}; each keeps its own", fmt::join(texts, ", ")),
         {}});
  }
  return findings;
}

}  // namespace shardwright
