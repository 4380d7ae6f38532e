// SPDX-License-Identifier: Apache-2.0
#include "state/source_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::string_view kLeftOut = "left_out";
constexpr std::string_view kSourceKeysSchema = "shardwright/source_keys/1";

Result<TensorDesc> read_desc(const nlohmann::json& entry) {
  const auto invalid = [] {
    return fail(Code::kJsonCorrupt,
                "hf/source_keys.json: expected tensors with name, dtype and shape");
  };
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
      !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || entry["shape"].size() > kMaxAxes) {
    return invalid();
  }
  const auto dtype = dtype_from_torch(entry["dtype"].get_ref<const std::string&>());
  if (!dtype) return invalid();
  TensorDesc desc{entry["name"].get<std::string>(), *dtype, {}};
  for (const nlohmann::json& extent : entry["shape"]) {
    if (!extent.is_number_unsigned()) return invalid();
    desc.shape.push_back(extent.get<std::int64_t>());
  }
  SW_TRY(element_count(desc.shape));
  return desc;
}

// An entry as text: all of them as one document would take several times their text.
void append_desc(const TensorDesc& desc, std::string& out) {
  fmt::format_to(std::back_inserter(out),
                 "  {{\n   \"name\": {},\n   \"dtype\": \"{}\",\n   \"shape\": [",
                 nlohmann::json(desc.name).dump(), torch_name(desc.dtype));
  for (int axis = 0; axis < desc.shape.size(); ++axis) {
    fmt::format_to(std::back_inserter(out), "{}\n    {}", axis == 0 ? "" : ",", desc.shape[axis]);
  }
  out += desc.shape.empty() ? "]\n  }" : "\n   ]\n  }";
}

Result<std::optional<std::vector<std::string>>> left_out_of(const auto& document) {
  std::optional<std::vector<std::string>> names;
  const auto found = document.is_object() ? document.find(kLeftOut) : document.end();
  if (found == document.end()) return names;
  const auto is_text = [](const auto& name) { return name.is_string(); };
  if (!found->is_array() || !std::ranges::all_of(*found, is_text)) {
    return fail(Code::kJsonCorrupt, "hf/source_keys.json: {}: expected names of tensors", kLeftOut);
  }
  names.emplace();
  for (const auto& name : *found) names->push_back(name.template get<std::string>());
  return names;
}

}  // namespace

std::string write_source_keys(std::span<const TensorDesc> hf, const RecordedMapping& mapping,
                              const ReleasedQuantisation& quantisation) {
  std::string out = fmt::format("{{\n \"schema\": \"{}\",\n \"tensors\": [", kSourceKeysSchema);
  constexpr std::size_t kBytesPerTensor = 128;  // beside the name, generously
  std::size_t expected = out.size();
  for (const TensorDesc& desc : hf) expected += desc.name.size() + kBytesPerTensor;
  out.reserve(expected);
  std::string_view before = "\n";
  for (const TensorDesc& desc : hf) {
    out += before;
    append_desc(desc, out);
    before = ",\n";
  }
  out += hf.empty() ? "]" : "\n ]";
  if (mapping.family.empty() && quantisation.config.empty()) return std::move(out) + "\n}\n";
  nlohmann::ordered_json rest;
  if (!mapping.family.empty()) {
    nlohmann::ordered_json files = nlohmann::ordered_json::array();
    for (const auto& [name, text] : mapping.files) {
      files.push_back({{"name", name}, {"text", text}});
    }
    rest["mapping"] = {{"family", mapping.family}, {"files", std::move(files)}};
  }
  if (!quantisation.config.empty()) {
    rest["quantisation"] = {{"config", nlohmann::ordered_json::parse(quantisation.config)},
                            {"tensors", quantisation.tensors}};
  }
  out += "," + rest.dump(1).substr(1) + "\n";
  out.shrink_to_fit();
  return out;
}

Result<SourceKeys> read_source_keys(std::string_view json) {
  const nlohmann::json document = SW_TRY(parse_json(json, kCarriedKeysFile));
  if (!document.is_object() || !document.contains("schema") ||
      document["schema"] != kSourceKeysSchema || !document.contains("tensors") ||
      !document["tensors"].is_array()) {
    return fail(Code::kJsonCorrupt, "hf/source_keys.json: expected schema {}", kSourceKeysSchema);
  }
  SourceKeys keys;
  for (const nlohmann::json& entry : document["tensors"]) {
    keys.tensors.push_back(SW_TRY(read_desc(entry)));
  }
  keys.left_out = SW_TRY(left_out_of(document));
  return keys;
}

Result<std::string> with_left_out(std::string json, const std::vector<std::string>& names) {
  if (json.contains(fmt::format("\"{}\"", kLeftOut))) {
    nlohmann::ordered_json document = SW_TRY(parse_ordered_json(json, kCarriedKeysFile));
    const auto known = SW_TRY(left_out_of(document));
    if (known && names.empty()) return json;
    for (const std::string& name : names) document[kLeftOut].push_back(name);
    if (known) return document.dump(1) + "\n";
  }
  // As text: a document would take several times as much.
  const std::size_t end = json.rfind('}');
  if (end == std::string::npos) return json;
  json.resize(json.find_last_not_of(" \n", end - 1) + 1);
  json += fmt::format(",\n \"{}\": {}\n}}\n", kLeftOut, nlohmann::json(names).dump());
  return json;
}

Result<ReleasedQuantisation> read_recorded_quantisation(std::string_view json) {
  ReleasedQuantisation recorded;
  if (json.empty()) return recorded;
  const nlohmann::ordered_json document = SW_TRY(parse_ordered_json(json, kCarriedKeysFile));
  const auto found = document.is_object() ? document.find("quantisation") : document.end();
  if (found == document.end()) return recorded;
  const bool is_whole = found->is_object() && found->contains("config") &&
                        (*found)["config"].is_object() && found->contains("tensors") &&
                        (*found)["tensors"].is_array();
  const auto invalid = [] {
    return fail(Code::kJsonCorrupt,
                "hf/source_keys.json: expected a quantisation with a config and names of tensors");
  };
  if (!is_whole) return invalid();
  recorded.config = (*found)["config"].dump();
  for (const nlohmann::ordered_json& name : (*found)["tensors"]) {
    if (!name.is_string()) return invalid();
    recorded.tensors.push_back(name.get<std::string>());
  }
  return recorded;
}

Result<RecordedMapping> read_recorded_mapping(std::string_view json) {
  RecordedMapping recorded;
  if (json.empty()) return recorded;
  const nlohmann::json document = SW_TRY(parse_json(json, kCarriedKeysFile));
  if (!document.is_object() || !document.contains("mapping")) return recorded;
  const auto text_of = [](const nlohmann::json& object, const char* key) {
    const bool is_there = object.is_object() && object.contains(key) && object[key].is_string();
    return is_there ? object[key].get<std::string>() : std::string();
  };
  const nlohmann::json& mapping = document["mapping"];
  recorded.family = text_of(mapping, "family");
  const bool has_files = mapping.is_object() && mapping.contains("files");
  if (recorded.family.empty() || !has_files || !mapping["files"].is_array()) {
    return fail(Code::kJsonCorrupt,
                "hf/source_keys.json: expected a mapping with a family and files");
  }
  for (const nlohmann::json& file : mapping["files"]) {
    recorded.files.emplace_back(text_of(file, "name"), text_of(file, "text"));
    if (!recorded.files.back().first.empty() && !recorded.files.back().second.empty()) continue;
    return fail(Code::kJsonCorrupt,
                "hf/source_keys.json: expected mapping files with a name and a text");
  }
  return recorded;
}

}  // namespace shardwright
