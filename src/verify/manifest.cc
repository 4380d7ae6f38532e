// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/digest.h"
#include "base/fail.h"
#include "codec/json_text.h"
#include "shardwright/verify.h"
#include "verify/digest.h"

namespace shardwright {
namespace {

constexpr std::string_view kSchema = "shardwright/hash/1";
constexpr std::string_view kAlgorithm = "xxh3-128";

void append_tensors(std::string& text, std::string_view key, std::span<const TensorHash> tensors) {
  fmt::format_to(std::back_inserter(text), ",\n  \"{}\": [", key);
  const char* separator = "\n";
  for (const TensorHash& tensor : tensors) {
    nlohmann::ordered_json line;
    line["name"] = tensor.desc.name;
    line["dtype"] = torch_name(tensor.desc.dtype);
    line["shape"] = std::vector<std::int64_t>(tensor.desc.shape.begin(), tensor.desc.shape.end());
    line["digest"] = tensor.digest;
    text += separator;
    text += "    " + line.dump();
    separator = ",\n";
  }
  text += tensors.empty() ? "]" : "\n  ]";
}

std::unexpected<Error> refuse_manifest(std::string_view what) {
  return fail(Code::kJsonCorrupt, "manifest: {}; make it with 'hash --manifest'", what);
}

bool is_digest(const nlohmann::json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return text.size() == kDigestDigits &&
         text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

Result<TensorHash> read_tensor(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string() ||
      !entry.contains("dtype") || !entry["dtype"].is_string() || !entry.contains("shape") ||
      !entry["shape"].is_array() || !entry.contains("digest") || !is_digest(entry["digest"])) {
    return refuse_manifest("found a tensor without name, dtype, shape or digest of 32 hex digits");
  }
  TensorHash tensor{{entry["name"], DType::kU8, {}}, entry["digest"]};
  const auto dtype = dtype_from_torch(entry["dtype"].get_ref<const std::string&>());
  if (!dtype)
    return refuse_manifest(translated("found an unknown dtype of tensor ") + tensor.desc.name);
  tensor.desc.dtype = *dtype;
  if (entry["shape"].size() > static_cast<std::size_t>(kMaxAxes)) {
    return refuse_manifest(translated("found too many axes of tensor ") + tensor.desc.name);
  }
  for (const nlohmann::json& extent : entry["shape"]) {
    if (!extent.is_number_unsigned())
      return refuse_manifest("found a shape that is not a list of sizes");
    tensor.desc.shape.push_back(extent);
  }
  return tensor;
}

Result<std::vector<TensorHash>> read_tensors(const nlohmann::json& list) {
  if (!list.is_array()) return refuse_manifest("its 'tensors' is not a list");
  std::vector<TensorHash> tensors;
  for (const nlohmann::json& entry : list) tensors.push_back(SW_TRY(read_tensor(entry)));
  std::ranges::sort(
      tensors, {}, [](const TensorHash& tensor) -> const std::string& { return tensor.desc.name; });
  return tensors;
}

}  // namespace

std::string write_manifest(const HashReport& report) {
  std::string text =
      fmt::format("{{\n  \"schema\": \"{}\",\n  \"algorithm\": \"{}\",\n  \"names\": \"{}\"",
                  kSchema, kAlgorithm, report.is_canonical ? "canonical" : "stored");
  if (report.is_hf_model) text += ",\n  \"hf_model\": true";
  fmt::format_to(std::back_inserter(text), ",\n  \"family\": \"{}\"", report.family);
  fmt::format_to(std::back_inserter(text), ",\n  \"digest\": \"{}\"", report.model_digest);
  if (!report.beside.empty()) {
    fmt::format_to(std::back_inserter(text), ",\n  \"beside_digest\": \"{}\"",
                   report.beside_digest);
  }
  fmt::format_to(
      std::back_inserter(text), ",\n  \"notes\": {}",
      nlohmann::json(report.notes).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  append_tensors(text, "tensors", report.model);
  if (!report.beside.empty()) append_tensors(text, "beside", report.beside);
  return text + "\n}\n";
}

Result<HashReport> read_manifest(std::string_view json) {
  const nlohmann::json document = SW_TRY(parse_json(json, "manifest"));
  if (!document.is_object() || !document.contains("schema") || document["schema"] != kSchema) {
    return refuse_manifest(translated("its schema is not {}", kSchema));
  }
  if (!document.contains("names") || !document.contains("tensors") ||
      !document.contains("digest") || !is_digest(document["digest"])) {
    return refuse_manifest("it lacks names, tensors or digest");
  }
  if (document.value("algorithm", nlohmann::json()) != kAlgorithm) {
    return refuse_manifest(translated("its algorithm is not {}", kAlgorithm));
  }
  HashReport report;
  report.is_canonical = document["names"] == "canonical";
  if (!report.is_canonical && document["names"] != "stored") {
    return refuse_manifest("its names are neither canonical nor stored");
  }
  report.is_hf_model = document.value("hf_model", nlohmann::json()) == true;
  report.model = SW_TRY(read_tensors(document["tensors"]));
  report.model_digest = document["digest"];
  if (report.model_digest != digest_of(report.model)) {
    return refuse_manifest("its digest is not that of the tensors that it lists");
  }
  if (document.contains("beside")) {
    report.beside = SW_TRY(read_tensors(document["beside"]));
  }
  return report;
}

}  // namespace shardwright
