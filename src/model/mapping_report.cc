// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_report.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/edit_distance.h"
#include "base/fail.h"
#include "base/text.h"
#include "model/apply.h"
#include "model/assemble.h"
#include "model/instances.h"
#include "model/kept_alike.h"

namespace shardwright {
namespace {

using ProblemKind = MappingProblem::Kind;

class Reporter {
 public:
  Reporter(const Mapping& mapping, const ModelSizes& sizes, const TensorIndex& hf)
      : mapping_(mapping), sizes_(sizes), hf_(hf) {}

  Status run(MappingReport& report) {
    const Selection selection =
        SW_TRY((Selector(mapping_, sizes_, Side::kHf, hf_, nullptr).select()));
    SW_TRY(claim_outside_rules(report));
    Assembler assembler(mapping_, sizes_);
    for (const Instance& instance : selection.instances) {
      const bool is_whole = SW_TRY(claim(instance));
      if (!is_whole) continue;
      const Status added = assembler.add_from_hf(instance, hf_);
      if (!added)
        add(ProblemKind::kShape, first_name(instance), instance.rule, added.error().message);
    }
    for (const TensorDesc& desc : hf_.tensors()) {
      const auto made = alike_in_megatron(mapping_, desc.name);
      if (!made || owners_.contains(desc.name)) continue;
      take(desc.name, "/alike");
      megatron_.emplace(*made, "/alike");
    }
    for (const TensorDesc& desc : hf_.tensors()) {
      if (!owners_.contains(desc.name)) add(ProblemKind::kUncovered, desc.name, nullptr, {});
    }
    report.taken = hf_.tensors().size() - uncovered_;
    report.megatron_tensors = megatron_.size();
    report.problems = std::move(problems_);
    name_nearest(report.problems);
    return {};
  }

 private:
  Status claim_outside_rules(MappingReport& report) {
    const std::vector<CopyInstance> copies = SW_TRY(copy_instances(mapping_, sizes_));
    for (const CopyInstance& copy : copies) {
      if (hf_.contains(copy.hf)) take(copy.hf, "/copies");
    }
    for (const std::string& name : SW_TRY(ignored_names(mapping_, sizes_))) {
      if (!hf_.contains(name)) continue;
      take(name, "/ignore");
      report.ignored.push_back(name);
    }
    return {};
  }

  void take(const std::string& name, const std::string& rule) {
    const auto [owner, is_first] = owners_.emplace(name, rule);
    if (is_first) return;
    add_at(ProblemKind::kCoveredTwice, name, rule, translated("{} takes it too", owner->second));
  }

  // Whether the rule's tensors all exist and nobody else makes what it makes.
  Result<bool> claim(const Instance& instance) {
    const Rule& rule = *instance.rule;
    bool is_whole = true;
    const std::vector<std::string> names = SW_TRY(hf_names(mapping_, sizes_, instance));
    for (const std::string& name : names) {
      if (hf_.contains(name)) {
        const bool is_free = !owners_.contains(name);
        take(name, rule.path);
        is_whole = is_whole && is_free;
      } else {
        add(ProblemKind::kMissing, name, &rule, {});
        is_whole = false;
      }
    }
    const Scope scope{sizes_, instance.bindings};
    for (const NameTemplate& target : rule.megatron) {
      const std::string name = SW_TRY(target.render(scope));
      const auto [maker, is_first] = megatron_.emplace(name, rule.path);
      if (is_first) continue;
      add(ProblemKind::kProducedTwice, name, &rule, translated("{} makes it too", maker->second));
      is_whole = false;
    }
    return is_whole;
  }

  std::string first_name(const Instance& instance) const {
    const Result<std::string> name =
        instance.rule->megatron[0].render(Scope{sizes_, instance.bindings});
    return name ? *name : instance.rule->megatron[0].text();
  }

  void add(ProblemKind kind, const std::string& name, const Rule* rule, std::string reason) {
    if (kind == ProblemKind::kUncovered) ++uncovered_;
    add_at(kind, name, rule == nullptr ? "" : rule->path, std::move(reason));
  }

  // All layers have the same problem: it is told once, with the reason of the first.
  void add_at(ProblemKind kind, const std::string& name, const std::string& rule,
              std::string reason) {
    const std::string key = fmt::format("{} {} {}", problem_name(kind), rule, numberless(name));
    const auto [place, is_new] = places_.emplace(key, problems_.size());
    if (is_new) problems_.push_back({kind, {}, rule, std::move(reason), {}});
    problems_[place->second].tensors.push_back(name);
  }

  // Who is missing is often there under another name.
  static void name_nearest(std::vector<MappingProblem>& problems) {
    const auto shapes_of = [&](ProblemKind kind) {
      std::vector<std::string> shapes;
      for (const MappingProblem& problem : problems) {
        if (problem.kind == kind) shapes.push_back(numberless(problem.tensors[0]));
      }
      return shapes;
    };
    const std::vector<std::string> uncovered = shapes_of(ProblemKind::kUncovered);
    const std::vector<std::string> missing = shapes_of(ProblemKind::kMissing);
    for (MappingProblem& problem : problems) {
      if (problem.kind != ProblemKind::kUncovered && problem.kind != ProblemKind::kMissing)
        continue;
      problem.nearest = nearest_of(numberless(problem.tensors[0]),
                                   problem.kind == ProblemKind::kUncovered ? missing : uncovered);
    }
  }

  const Mapping& mapping_;
  const ModelSizes& sizes_;
  const TensorIndex& hf_;
  std::unordered_map<std::string, std::string> owners_;    // HF name → the rule that takes it
  std::unordered_map<std::string, std::string> megatron_;  // likewise, the rule that makes it
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t uncovered_ = 0;
  std::vector<MappingProblem> problems_;
};

void add_problem(ProblemKind kind, const Error& error, MappingReport& report) {
  report.problems.push_back({kind, {}, {}, error.message, {}});
}

// What only shows when everything else fits: elements that no rule takes, and the way back.
void check_both_ways(const Mapping& mapping, const ModelSizes& sizes,
                     std::span<const TensorDesc> hf, MappingReport& report) {
  const Result<Correspondence> there = map_from_hf(mapping, sizes, hf);
  if (!there) return add_problem(ProblemKind::kShape, there.error(), report);
  std::vector<TensorDesc> canonical;
  for (const MappedTensor& tensor : there->megatron) canonical.push_back(tensor.desc);
  const HfWanted wanted{hf};
  const Result<Correspondence> back = map_from_megatron(mapping, sizes, canonical, &wanted);
  if (!back) add_problem(ProblemKind::kWayBack, back.error(), report);
}

}  // namespace

std::string_view problem_name(MappingProblem::Kind kind) {
  switch (kind) {
    case ProblemKind::kUncovered:
      return "uncovered";
    case ProblemKind::kMissing:
      return "missing";
    case ProblemKind::kCoveredTwice:
      return "covered_twice";
    case ProblemKind::kProducedTwice:
      return "produced_twice";
    case ProblemKind::kShape:
      return "shape";
    case ProblemKind::kConfig:
      return "config";
    case ProblemKind::kWayBack:
      return "way_back";
  }
  return "";
}

std::string numberless(std::string_view name) {
  std::string text;
  while (true) {
    const std::size_t dot = std::min(name.find('.'), name.size());
    const std::string_view part = name.substr(0, dot);
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const bool is_number = !part.empty() && std::ranges::all_of(part, is_digit);
    text += is_number ? "*" : part;
    if (dot == name.size()) return text;
    text += '.';
    name.remove_prefix(dot + 1);
  }
}

Result<MappingReport> report_mapping(const Mapping& mapping, const HfConfig& config,
                                     std::span<const TensorDesc> hf) {
  MappingReport report;
  report.hf_tensors = hf.size();
  const TensorIndex index = SW_TRY(TensorIndex::make(hf));
  const Result<ModelSizes> sizes = sizes_from_hf_config(mapping, config);
  if (!sizes) {
    add_problem(ProblemKind::kConfig, sizes.error(), report);
    return report;
  }
  const ModelSizes actual = SW_TRY(observe_sizes(mapping, *sizes, Side::kHf, index));
  const Status reported = Reporter(mapping, actual, index).run(report);
  if (!reported) {
    if (reported.error().code == Code::kLimit) return std::unexpected(reported.error());
    add_problem(ProblemKind::kConfig, reported.error(), report);
    return report;
  }
  const Result<ArgsFromConfig> arguments = args_from_hf_config(mapping, config, hf);
  if (!arguments) add_problem(ProblemKind::kConfig, arguments.error(), report);
  if (report.problems.empty()) check_both_ways(mapping, *sizes, hf, report);
  return report;
}

}  // namespace shardwright
