// SPDX-License-Identifier: Apache-2.0
#include "report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/fail.h"
#include "report/catalog_columns.h"
#include "report/page.h"
#include "report/plan_document.h"
#include "report/run_facts.h"
#include "report/sections.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

Json begin_page(std::string_view kind, Language language) {
  Json json;
  json["schema"] = "shardwright/page/1";
  json["kind"] = kind;
  json["language"] = language == Language::kChinese ? "zh" : "en";
  return json;
}

// What is not about the checkpoint ends the work; the rest becomes a part of the page.
bool ends_the_work(const Error& error) {
  return error.code == Code::kCancelled || error.code == Code::kUsage;
}

// Takes chunks out of the catalog whose bytes are not to be had, so that the page shows holes where
// they should be. Gives what to say of missing files, if there are some.
std::optional<Error> drop_lost_chunks(Checkpoint& checkpoint, const Defects& defects) {
  Catalog& catalog = checkpoint.catalog;
  std::vector<bool> is_there(catalog.files.size());
  for (std::size_t file = 0; file < catalog.files.size(); ++file) {
    is_there[file] = checkpoint.directory->exists(catalog.files[file]);
  }
  std::set<std::uint32_t> used;
  std::set<std::uint32_t> missing;
  std::size_t tensors = 0;
  for (StoredTensor& tensor : catalog.tensors) {
    ChunkList kept(tensor.desc.shape.size());
    bool lacks_file = false;
    for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
      const std::uint32_t file = tensor.chunks.file(i);
      used.insert(file);
      lacks_file = lacks_file || !is_there[file];
      if (!is_there[file]) missing.insert(file);
      if (is_there[file] && !defects.is_lost(tensor.desc.name, i)) kept.push_back(tensor.chunks[i]);
    }
    tensors += lacks_file ? 1U : 0U;
    if (kept.size() < tensor.chunks.size()) tensor.chunks = std::move(kept);
  }
  if (missing.empty()) return std::nullopt;
  return fail(Code::kNotFound,
              "{}: found {} of the {} files with parts of tensors; {} is missing{}, and with it "
              "parts of {} of {} tensors",
              checkpoint.location.path, used.size() - missing.size(), used.size(),
              catalog.files[*missing.begin()],
              missing.size() == 1 ? "" : translated(" among {}", missing.size()), tensors,
              catalog.tensors.size())
      .error();
}

// Gathers the parts one by one.
class Gatherer {
 public:
  explicit Gatherer(const ReportRequest& request) : request_(request) {}

  Result<Report> run() {
    const bool has_two = !request_.other.empty();
    Json page = begin_page(has_two ? "difference" : "checkpoint", request_.language);
    page["checkpoints"] = Json::array();
    page["checkpoints"].push_back(SW_TRY(side(request_.path, request_.proof.as, "--as")));
    if (has_two) {
      page["checkpoints"].push_back(
          SW_TRY(side(request_.other, request_.proof.other_as, "--other-as")));
      page["difference"] = SW_TRY(difference());
    }
    report_.html = html_page(page, page["language"].get<std::string>());
    return std::move(report_);
  }

 private:
  // One checkpoint's part of the page.
  Result<Json> side(const std::string& path, const std::string& as, const std::string& flag) {
    Json json;
    json["path"] = path;
    const Diagnosis diagnosis = SW_TRY(diagnose({.path = path, .as = as}));
    json["diagnosis"] = diagnosis_section(diagnosis);
    report_.findings += static_cast<std::uint64_t>(
        std::ranges::count(diagnosis.findings, Severity::kError, &Finding::severity));
    Defects defects(Defects::Policy::kCollect);
    auto checkpoint = open_checkpoint(path, defects, FormatChoice{as, flag});
    if (!checkpoint) {
      if (ends_the_work(checkpoint.error())) return std::unexpected(checkpoint.error());
      json.update(error_section(checkpoint.error()));
      report_.failures.push_back(checkpoint.error());
      return json;
    }
    std::vector<Error> losses = defects.found();
    if (auto missing = drop_lost_chunks(*checkpoint, defects))
      losses.push_back(*std::move(missing));
    json["losses"] = Json::array();
    for (const Error& loss : losses) json["losses"].push_back(error_section(loss)["error"]);
    std::ranges::move(losses, std::back_inserter(report_.failures));
    add_contents(*checkpoint, json);
    ProofOptions options = request_.proof;
    options.as = as;
    if (request_.verify) SW_TRY(add_proof(path, options, json));
    if (request_.statistics) SW_TRY(add_statistics(path, options, json));
    return json;
  }

  void add_contents(const Checkpoint& checkpoint, Json& json) {
    const Location& location = checkpoint.location;
    json["folder"] = location.path;
    json["format"] = location.format;
    json["reasons"] = location.reasons;
    json["iteration"] = location.iteration ? Json(*location.iteration) : Json(nullptr);
    json["saved_with"] = layout_facts(checkpoint);
    json["model"] = model_facts(checkpoint);
    json["notes"] = checkpoint.notes;
    json["catalog"] = catalog_columns(checkpoint.catalog, shown_order(checkpoint.catalog));
    if (report_.tensors == 0) report_.tensors = checkpoint.catalog.tensors.size();
  }

  Status add_proof(const std::string& path, const ProofOptions& options, Json& json) {
    const auto proof = verify_checkpoint(path, {.proof = options, .against = {}});
    if (!proof) return add_failure(proof.error(), "proof", json);
    json["proof"] = proof_section(*proof);
    report_.findings += static_cast<std::uint64_t>(
        std::ranges::count(proof->findings, Severity::kError, &VerifyFinding::severity));
    return {};
  }

  Status add_statistics(const std::string& path, const ProofOptions& options, Json& json) {
    auto checkpoint = open_checkpoint(path, FormatChoice{options.as});
    if (!checkpoint) return add_failure(checkpoint.error(), "statistics", json);
    std::vector<std::string> names;
    for (const std::size_t index : shown_order(checkpoint->catalog)) {
      names.push_back(checkpoint->catalog.tensors[index].desc.name);
    }
    const auto view = make_view(*std::move(checkpoint), Naming::kStored, options);
    if (!view) return add_failure(view.error(), "statistics", json);
    const auto statistics = statistics_of(*view, options);
    if (!statistics) return add_failure(statistics.error(), "statistics", json);
    json["statistics"] = statistics_section(names, view->plan.target.tensors, *statistics);
    return {};
  }

  Result<Json> difference() {
    const auto found =
        diff_checkpoints(request_.path, request_.other, request_.proof, request_.tolerance);
    if (!found) {
      Json json;
      SW_TRY(add_failure(found.error(), "difference", json));
      report_.is_equal = false;
      report_.verdict = "DIFFERENT";
      return json["difference"];
    }
    report_.is_equal = found->equal();
    report_.verdict = found->verdict();
    return difference_section(*found);
  }

  Status add_failure(const Error& error, const char* part, Json& json) {
    if (ends_the_work(error)) return std::unexpected(error);
    json[part] = error_section(error);
    report_.failures.push_back(error);
    return {};
  }

  const ReportRequest& request_;
  Report report_;
};

}  // namespace

Result<Report> make_report(const ReportRequest& request) { return Gatherer(request).run(); }

std::string plan_page(const PreparedConversion& conversion, Language language) {
  Json page = begin_page("plan", language);
  page["plan"] = plan_section(conversion);
  return html_page(page, page["language"].get<std::string>());
}

}  // namespace shardwright
