// SPDX-License-Identifier: Apache-2.0
#include "convert/diagnose.h"

#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "base/text.h"
#include "convert/diagnose_catalog.h"
#include "convert/diagnose_legacy.h"
#include "format/rank_sample.h"
#include "format/survey.h"
#include "layout/finding_rules.h"
#include "layout/folder_groups.h"

namespace shardwright {
namespace {

constexpr std::string_view kLegacy = "legacy";

void add_finding(Diagnosis& diagnosis, std::string_view code,
                 std::initializer_list<Parameter> parameters) {
  diagnosis.findings.push_back(make_finding(code, parameters));
}

bool holds_models(const Survey& survey) {
  return std::ranges::any_of(survey.ranks, [](const FolderListing& folder) {
    return !model_file_of(rank_folder(folder.name, folder.entries)).empty();
  });
}

// What the folder can be read as, in the order in which Megatron looks: metadata.json, then ranks'
// folders, then .metadata.
std::vector<std::string_view> containers_of(const Survey& survey) {
  std::vector<std::string_view> containers;
  const bool has_metadata = survey.has(".metadata") || survey.has("__0.metadata");
  if (survey.backend == "zarr" || survey.holds_zarr) containers.emplace_back("zarr");
  if (survey.backend == "torch_dist") containers.emplace_back("torch_dist");
  if (survey.backend == "fsdp_dtensor") containers.emplace_back("fsdp_dtensor");
  if (holds_models(survey)) containers.push_back(kLegacy);
  if (has_metadata && survey.backend.empty()) containers.emplace_back("dcp");
  if (survey.has_safetensors()) containers.emplace_back("hf");
  if (containers.empty() && !survey.ranks.empty()) containers.push_back(kLegacy);
  return containers;
}

Phrase why_first(std::string_view container) {
  if (container == kLegacy) {
    return {"Megatron looks for mp_rank_* before .metadata",
            " Megatron 先查找 mp_rank_* 再查找 .metadata"};
  }
  return {"Megatron looks at metadata.json first", " Megatron 首先查看 metadata.json"};
}

Diagnosis of_sibling(const Sibling& sibling, const std::string& shown_by, const std::string& path) {
  Diagnosis diagnosis;
  diagnosis.container = sibling.container;
  diagnosis.confidence = Confidence::kCertain;
  const Phrase what{std::string(sibling.english), std::string(sibling.chinese)};
  diagnosis.reason = fill({"{entry} shows {what}", "{entry} 表明这是{what}"},
                          {{"entry", shown_by}, {"what", what}});
  const std::string quoted = shell_quoted(path);
  const std::string parent = shell_quoted(std::filesystem::path(path).parent_path().string());
  if (sibling.container == "ms_swift") {
    add_finding(diagnosis, "L26", {});
    diagnosis.next = "shardwright diagnose " + parent;
    return diagnosis;
  }
  if (sibling.container == "legacy_rank") diagnosis.next = "shardwright diagnose " + parent;
  if (diagnosis.next.empty()) diagnosis.next = "shardwright explain L34";
  const Phrase reader{std::string(sibling.reader_english), std::string(sibling.reader_chinese)};
  add_finding(diagnosis, "L34", {{"what", what}, {"reader", reader}});
  return diagnosis;
}

Diagnosis of_nothing(const Survey& survey) {
  Diagnosis diagnosis;
  diagnosis.container = "unknown";
  diagnosis.confidence = Confidence::kAmbiguous;
  diagnosis.complete = false;
  std::string names;
  for (std::size_t i = 0; i < std::min<std::size_t>(survey.entries.size(), 4); ++i) {
    names += (names.empty() ? "" : ", ") + survey.entries[i].name;
  }
  if (names.empty()) names = "-";
  diagnosis.reason = fill(
      {"nothing here is a checkpoint that we know: {names}", "这里没有已知的 checkpoint：{names}"},
      {{"names", names}});
  return diagnosis;
}

bool is_iteration_name(std::string_view name) {
  return name == "release" || (name.starts_with("iter_") && matches_sign(name, "iter_#"));
}

std::string last_name(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return std::string(path.substr(path.find_last_of('/') + 1));
}

void add_way(const Survey& survey, const DiagnoseRequest& request, Diagnosis& diagnosis) {
  if (survey.tracker && !survey.tracker->is_there) {
    const std::string folder = survey.tracker->folder.empty() ? "-" : survey.tracker->folder;
    add_finding(diagnosis, "L14",
                {{"target", "'" + survey.tracker->text + "'"}, {"folder", folder}});
  }
  const bool is_of_megatron = diagnosis.container == kLegacy ||
                              diagnosis.container == "torch_dist" || diagnosis.container == "mimo";
  if (survey.data.empty() && is_of_megatron && is_iteration_name(last_name(request.path))) {
    add_finding(diagnosis, "L15", {});
  }
  if (!survey.steps.empty()) {
    std::string steps;
    for (const std::string& step : survey.steps) steps += (steps.empty() ? "" : "/") + step;
    diagnosis.evidence.push_back(
        fill({"the data are in {steps}", "数据位于 {steps}"}, {{"steps", steps}}));
  }
  for (const SiblingMatch& writer : survey.writers) {
    if (!writer.sibling->container.empty() && diagnosis.container == "unknown") continue;
    diagnosis.evidence.push_back(
        fill({"{entry} shows {writer}", "{entry} 表明由 {writer} 写出"},
             {{"entry", writer.entry}, {"writer", writer.sibling->english}}));
  }
}

Result<Diagnosis> of_container(const Directory& directory, const Survey& survey,
                               const std::string& path, const DiagnoseRequest& request) {
  const std::vector<std::string_view> containers = containers_of(survey);
  if (containers.empty()) {
    if (survey.siblings.empty()) return of_nothing(survey);
    const SiblingMatch& match = survey.siblings.front();
    return of_sibling(*match.sibling, match.entry, path);
  }
  const std::string_view chosen = containers.front();
  Diagnosis diagnosis;
  if (chosen == "zarr") {
    diagnosis = of_sibling(zarr_sibling(), "metadata.json", path);
  } else if (chosen == kLegacy) {
    diagnosis = SW_TRY(diagnose_legacy(directory, survey, path, request));
  } else {
    diagnosis = diagnose_catalog(survey, path, chosen, request);
  }
  for (std::size_t i = 1; i < containers.size(); ++i) {
    const auto named = [](std::string_view c) { return c == kLegacy ? "mp_rank_*" : c; };
    add_finding(diagnosis, "L23",
                {{"chosen", named(chosen)},
                 {"other", named(containers[i])},
                 {"folder", path},
                 {"why", why_first(chosen)}});
  }
  return diagnosis;
}

}  // namespace

Result<Diagnosis> diagnose_directory(const Directory& directory, const DiagnoseRequest& request) {
  const Survey survey = SW_TRY(survey_directory(directory));
  std::string path = request.path;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  if (!survey.data.empty()) path += "/" + survey.data;
  Diagnosis diagnosis = SW_TRY(of_container(directory, survey, path, request));
  diagnosis.path = path;
  add_way(survey, request, diagnosis);
  std::ranges::stable_sort(diagnosis.findings, {}, &Finding::code);
  return diagnosis;
}

Result<Diagnosis> diagnose(const DiagnoseRequest& request) {
  std::error_code ignored;
  if (std::filesystem::is_regular_file(request.path, ignored)) {
    const std::string name = last_name(request.path);
    const Sibling* sibling = recognise_sibling_file(name);
    if (sibling == nullptr) {
      return fail(Code::kUnknownFormat,
                  "{}: found a file, expected a checkpoint's folder; see 'shardwright inspect'",
                  request.path);
    }
    Diagnosis diagnosis = of_sibling(*sibling, name, request.path);
    diagnosis.path = request.path;
    return diagnosis;
  }
  const auto directory = SW_TRY(open_local_directory(request.path));
  return diagnose_directory(*directory, request);
}

}  // namespace shardwright
