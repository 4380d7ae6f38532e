// SPDX-License-Identifier: Apache-2.0
#include "convert/source_keys.h"

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::string_view kSchema = "shardwright/source_keys/1";

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

}  // namespace

std::string write_source_keys(std::span<const TensorDesc> hf) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorDesc& desc : hf) {
    nlohmann::ordered_json shape = nlohmann::ordered_json::array();
    for (const std::int64_t extent : desc.shape) shape.push_back(extent);
    tensors.push_back(
        {{"name", desc.name}, {"dtype", torch_name(desc.dtype)}, {"shape", std::move(shape)}});
  }
  nlohmann::ordered_json document{{"schema", kSchema}, {"tensors", std::move(tensors)}};
  return document.dump(1) + "\n";
}

Result<std::vector<TensorDesc>> read_source_keys(std::string_view json) {
  const nlohmann::json document = SW_TRY(parse_json(json, "hf/source_keys.json"));
  if (!document.is_object() || !document.contains("schema") || document["schema"] != kSchema ||
      !document.contains("tensors") || !document["tensors"].is_array()) {
    return fail(Code::kJsonCorrupt, "hf/source_keys.json: expected schema {}", kSchema);
  }
  std::vector<TensorDesc> tensors;
  for (const nlohmann::json& entry : document["tensors"]) {
    tensors.push_back(SW_TRY(read_desc(entry)));
  }
  return tensors;
}

}  // namespace shardwright
