// SPDX-License-Identifier: Apache-2.0
#include "report/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "diagnose/finding_words.h"
#include "report/catalog_columns.h"
#include "report/tensor_place.h"
#include "tensor/values.h"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

Json both(const Phrase& phrase) { return {{"en", phrase.english}, {"zh", phrase.chinese}}; }

void add_size(Json& sizes, std::string_view name, const std::optional<std::int64_t>& size) {
  if (size) sizes.push_back({name, *size});
}

Json sizes_of(const AxisSizes& sizes) {
  Json json = Json::array();
  add_size(json, "TP", sizes.tensor);
  add_size(json, "PP", sizes.pipeline);
  add_size(json, "VPP", sizes.virtual_pipeline);
  add_size(json, "EP", sizes.expert);
  add_size(json, "ETP", sizes.expert_tensor);
  add_size(json, "DP", sizes.data);
  return json;
}

// Seven digits tell what a picture needs. Infinities have no JSON.
Json rounded(double value) {
  if (!std::isfinite(value)) return value > 0 ? "inf" : value < 0 ? "-inf" : "nan";
  return std::strtod(fmt::format("{:.7g}", value).c_str(), nullptr);
}

// A letter for each power of two from the first to the last that occurs, for how many there are
// beside the most frequent; `[first exponent, letters]`.
Json histogram(const Magnitudes& magnitudes) {
  constexpr std::string_view kLetters = "0123456789abcdefghijklmnopqrstuvwxyz";
  const auto& counts = magnitudes.counts;
  const std::uint64_t most = std::ranges::max(counts);
  if (most == 0) return nullptr;
  const auto is_used = [](std::uint64_t count) { return count > 0; };
  const auto first = std::ranges::find_if(counts, is_used);
  auto last = counts.end();
  while (*(last - 1) == 0) --last;
  std::string letters;
  for (auto at = first; at != last; ++at) {
    const double share = static_cast<double>(*at) / static_cast<double>(most);
    // What occurs at all is seen.
    const double step = std::ceil(share * static_cast<double>(kLetters.size() - 1));
    letters += kLetters[static_cast<std::size_t>(step)];
  }
  return {Magnitudes::kLeastExponent + static_cast<int>(first - counts.begin()), letters};
}

// Where the rows of a comparison belong.
class PlaceColumns {
 public:
  void add(const std::string& name) {
    const TensorPlace place = place_of_tensor(name);
    role_.push_back(static_cast<int>(place.role));
    component_.push_back(place.component);
    layer_.push_back(place.layer_number());
    kind_.push_back(place.kind);
  }
  void put_into(Json& json) {
    json["role"] = std::move(role_);
    json["component"] = std::move(component_);
    json["layer"] = std::move(layer_);
    json["kind"] = std::move(kind_);
  }

 private:
  Json role_ = Json::array();
  Json component_ = Json::array();
  Json layer_ = Json::array();
  Json kind_ = Json::array();
};

std::string desc_text(const TensorDesc& desc) {
  return fmt::format("{} {}", torch_name(desc.dtype), to_string(desc.shape));
}

}  // namespace

Json diagnosis_section(const Diagnosis& diagnosis) {
  Json json;
  json["format"] = diagnosis.format;
  json["coordinates"] = diagnosis.coordinates;
  json["sizes"] = sizes_of(diagnosis.sizes);
  json["components"] = Json::array();
  for (const RecordedComponent& component : diagnosis.components) {
    Json sizes = sizes_of(component.sizes);
    add_size(sizes, "CP", component.context);
    add_size(sizes, "rank_offset", component.rank_offset);
    json["components"].push_back({{"name", component.name}, {"sizes", std::move(sizes)}});
  }
  json["reason"] = both(diagnosis.reason);
  json["evidence"] = Json::array();
  for (const Phrase& evidence : diagnosis.evidence) json["evidence"].push_back(both(evidence));
  json["confidence"] = confidence_name(diagnosis.confidence);
  json["expected_pattern"] = diagnosis.expected_pattern;
  json["disk_pattern"] = diagnosis.disk_pattern;
  json["missing"] = diagnosis.missing;
  json["unexpected"] = diagnosis.unexpected;
  json["loader_note"] = both(diagnosis.loader_note);
  json["complete"] = diagnosis.complete ? Json(*diagnosis.complete) : Json(nullptr);
  json["findings"] = Json::array();
  for (const Finding& finding : diagnosis.findings) {
    json["findings"].push_back({{"code", finding.code},
                                {"severity", severity_name(finding.severity)},
                                {"message", both(finding.message)}});
  }
  json["next"] = diagnosis.next;
  return json;
}

Json proof_section(const VerifyReport& report) {
  Json json;
  json["proven"] = !report.has_errors();
  json["family"] = report.family;
  json["counts"] = {{"tensors", report.tensors},
                    {"elements", report.elements},
                    {"chunks", report.chunks},
                    {"files", report.files},
                    {"payloads_checked", report.payloads_checked},
                    {"payloads_unguarded", report.payloads_unguarded},
                    {"payload_bytes", report.payload_bytes}};
  json["checks"] = Json::array();
  for (const Phrase& each : report.proven) json["checks"].push_back(both(each));
  json["findings"] = Json::array();
  for (const VerifyFinding& finding : report.findings) {
    json["findings"].push_back({{"code", code_name(finding.code)},
                                {"title", both(code_title(code_name(finding.code)))},
                                {"severity", severity_name(finding.severity)},
                                {"object", finding.object},
                                {"message", finding.message}});
  }
  json["notes"] = report.notes;
  return json;
}

Json difference_section(const DiffReport& report) {
  Json json;
  json["equal"] = report.equal();
  json["differs"] = report.differs();
  json["not_compared"] = report.not_compared;
  json["left"] = report.left;
  json["right"] = report.right;
  json["names_of"] = report.is_canonical ? "canonical" : "stored";
  json["family"] = report.family;
  json["compared"] = report.compared;
  json["elements"] = report.elements;
  json["bytes"] = report.bytes;
  json["differing"] = report.differing;
  json["max_delta"] = rounded(report.max_delta);
  json["missing_left"] = report.missing_left;
  json["missing_right"] = report.missing_right;
  json["notes"] = report.notes;
  for (const std::string& setting : report.settings) json["notes"].push_back(setting);
  std::vector<std::string> names;
  PlaceColumns places;
  Json delta = Json::array();
  Json differing = Json::array();
  Json mismatch = Json::array();
  for (const TensorDifference& difference : report.differences) {
    names.push_back(difference.left.name);
    places.add(difference.left.name);
    delta.push_back(rounded(difference.max_delta));
    differing.push_back(difference.differing);
    if (difference.is_mismatch()) {
      mismatch.push_back({desc_text(difference.left), desc_text(difference.right)});
    } else {
      mismatch.push_back(nullptr);
    }
  }
  // The equal ones stand behind and have no other columns.
  for (const std::string& name : report.same) {
    names.push_back(name);
    places.add(name);
  }
  json["names"] = name_column(names);
  places.put_into(json);
  json["delta"] = std::move(delta);
  json["elements_differing"] = std::move(differing);
  json["mismatch"] = std::move(mismatch);
  return json;
}

Json statistics_section(const std::vector<std::string>& names,
                        std::span<const StoredTensor> tensors,
                        std::span<const TensorStatistics> statistics) {
  std::unordered_map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) numbers.emplace(tensors[i].desc.name, i);
  constexpr std::array kColumns = {"min", "max", "mean", "std", "zero", "nan", "inf", "histogram"};
  Json json;
  for (const char* column : kColumns) json[column] = Json::array();
  for (const std::string& name : names) {
    const auto found = numbers.find(name);
    if (found == numbers.end()) {
      for (const char* column : kColumns) json[column].push_back(nullptr);
      continue;
    }
    const Moments& moments = statistics[found->second].moments;
    // Of complex numbers there is no least one, and packed ones are not read.
    const bool has_order = moments.count > 0 && parts_of(tensors[found->second].desc.dtype) == 1;
    json["min"].push_back(has_order ? rounded(moments.least) : Json(nullptr));
    json["max"].push_back(has_order ? rounded(moments.greatest) : Json(nullptr));
    json["mean"].push_back(has_order ? rounded(moments.average()) : Json(nullptr));
    json["std"].push_back(has_order ? rounded(moments.deviation()) : Json(nullptr));
    json["zero"].push_back(moments.zero);
    json["nan"].push_back(moments.nan);
    json["inf"].push_back(moments.infinite);
    json["histogram"].push_back(histogram(statistics[found->second].magnitudes));
  }
  return json;
}

Json error_section(const Error& error) {
  const std::string code = code_name(error.code);
  return {
      {"error", {{"code", code}, {"title", both(code_title(code))}, {"message", error.message}}}};
}

}  // namespace shardwright
