// SPDX-License-Identifier: Apache-2.0
#include "model/mapping_heading.h"

#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "codec/json_text.h"
#include "model/mapping_parse.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kMostMappingBytes = std::uint64_t{256} << 10;
constexpr std::size_t kMaxMappingNesting = 24;

}  // namespace

Result<Json> parse_mapping_text(const MappingText& text) {
  Result<Json> json =
      parse_ordered_json(text.json, text.name, JsonLimits{kMostMappingBytes, kMaxMappingNesting});
  if (json) return json;
  Error error = std::move(json).error();
  error.code = Code::kMappingInvalid;
  return std::unexpected(std::move(error));
}

Result<MappingHeading> heading_of(const Json& json, std::string_view name) {
  const JsonNode root(json, std::string(name) + "#");
  const JsonNode family = SW_TRY(root.at("family"));
  MappingHeading heading;
  heading.family = SW_TRY(family.text());
  heading.architectures = SW_TRY(texts_or_none(root, "architectures"));
  heading.model_types = SW_TRY(texts_or_none(root, "model_types"));
  heading.extends = SW_TRY(texts_or_none(root, "extends"));
  return heading;
}

Result<MappingHeading> read_heading(const MappingText& text) {
  if (!text.heading.family.empty()) return text.heading;
  const Json json = SW_TRY(parse_mapping_text(text));
  return heading_of(json, text.name);
}

}  // namespace shardwright
