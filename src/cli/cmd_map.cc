// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/check_map.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/name_pattern.h"
#include "cli/quantity.h"
#include "cli/table.h"

namespace shardwright::cli {
namespace {

std::string names_text(const MappingProblem& problem) {
  return fmt::format("{}", fmt::join(name_patterns(problem.tensors), ", "));
}

std::string more_like_it(const MappingProblem& problem) {
  const std::size_t more = problem.tensors.size() - 1;
  return more == 0 ? "" : translated(" (and {} more like it)", more);
}

std::string sentence(const MappingProblem& problem) {
  switch (problem.kind) {
    case MappingProblem::Kind::kUncovered:
      return translated("no rule takes {}", names_text(problem));
    case MappingProblem::Kind::kMissing:
      return translated("{} needs {}, which the model lacks", problem.rule, names_text(problem));
    case MappingProblem::Kind::kCoveredTwice:
      return translated("{} takes {}, and {}", problem.rule, names_text(problem), problem.reason);
    case MappingProblem::Kind::kProducedTwice:
      return translated("{} makes {}, and {}", problem.rule, names_text(problem), problem.reason);
    case MappingProblem::Kind::kShape:
      if (problem.rule.empty()) break;
      return fmt::format("{}: {}{}", problem.rule, problem.reason, more_like_it(problem));
    case MappingProblem::Kind::kConfig:
    case MappingProblem::Kind::kWayBack:
      break;
  }
  return in_language(problem.reason);
}

std::string problem_text(const MappingProblem& problem) {
  std::string text = fmt::format("{}: {}", problem_name(problem.kind), sentence(problem));
  if (!problem.nearest.empty()) text += translated("; did you mean {}?", problem.nearest);
  return printable(text) + "\n";
}

std::string check_text(const MapCheckRequest& request, const MapCheck& check) {
  const MappingReport& report = check.report;
  Table table({{}, {}});
  table.add_row({"family", fmt::format("{} ({})", check.family, request.file)});
  table.add_row({"model", request.hf_dir});
  table.add_row(
      {"taken", translated("{} of {}", report.taken, format_count(report.hf_tensors, "tensor"))});
  table.add_row({"makes", format_count(report.megatron_tensors, "Megatron tensor")});
  if (!report.ignored.empty()) {
    table.add_row({"ignored", fmt::format("{}", fmt::join(name_patterns(report.ignored), ", "))});
  }
  std::string text = table.text() + "\n";
  for (const MappingProblem& problem : report.problems) text += problem_text(problem);
  if (report.problems.empty()) return text + translated("the mapping fits the model, both ways\n");
  return text + fmt::format("{}\n", format_count(report.problems.size(), "problem"));
}

std::string check_json(const MapCheckRequest& request, const MapCheck& check) {
  const MappingReport& report = check.report;
  JsonWriter json;
  begin_document(json, "map");
  json.text("file", request.file).text("family", check.family).text("hf", request.hf_dir);
  json.flag("fits", report.problems.empty());
  json.number("hf_tensors", std::uint64_t{report.hf_tensors});
  json.number("taken", std::uint64_t{report.taken});
  json.number("megatron_tensors", std::uint64_t{report.megatron_tensors});
  json.texts("ignored", report.ignored);
  json.key("problems").open_list();
  for (const MappingProblem& problem : report.problems) {
    json.open_object().text("kind", problem_name(problem.kind)).text("rule", problem.rule);
    json.text("text", sentence(problem)).text("nearest", problem.nearest);
    json.texts("tensors", problem.tensors).close();
  }
  json.close().close();
  return json.take();
}

std::string families_text(const std::vector<FamilyEntry>& families) {
  Table table({{"family"}, {"architectures"}, {"model types"}});
  for (const FamilyEntry& entry : families) {
    table.add_row({entry.family, fmt::format("{}", fmt::join(entry.architectures, ", ")),
                   fmt::format("{}", fmt::join(entry.model_types, ", "))});
  }
  return table.text();
}

std::string families_json(const std::vector<FamilyEntry>& families) {
  JsonWriter json;
  begin_document(json, "map");
  json.key("families").open_list();
  for (const FamilyEntry& entry : families) {
    json.open_object().text("family", entry.family);
    json.texts("architectures", entry.architectures).texts("model_types", entry.model_types);
    json.close();
  }
  json.close().close();
  return json.take();
}

}  // namespace

Result<int> run(const MapCommand& command, Console& console) {
  if (command.check.file.empty()) {
    const std::vector<FamilyEntry> families = SW_TRY(list_families(command.check.models_dir));
    console.print(command.json ? families_json(families) : families_text(families));
    return kExitFine;
  }
  const MapCheck check = SW_TRY(check_map(command.check));
  console.print(command.json ? check_json(command.check, check) : check_text(command.check, check));
  return check.report.problems.empty() ? kExitFine : kExitFindings;
}

}  // namespace shardwright::cli
