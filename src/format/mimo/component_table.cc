// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/component_table.h"

#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

constexpr std::string_view kComponentsSchema = "shardwright/components/1";
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

Result<std::int64_t> size_in(const nlohmann::json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found != entry.end() && found->is_number_unsigned()) return found->get<std::int64_t>();
  return fail(Code::kJsonCorrupt, "{}: a component lacks the whole number '{}'", kComponentTable,
              key);
}

Result<RecordedComponent> read_component(const nlohmann::json& entry) {
  if (!entry.is_object() || !entry.contains("name") || !entry["name"].is_string()) {
    return fail(Code::kJsonCorrupt, "{}: found a component without a name", kComponentTable);
  }
  RecordedComponent component;
  component.name = entry["name"].get<std::string>();
  component.sizes.tensor = SW_TRY(size_in(entry, "tp"));
  component.sizes.pipeline = SW_TRY(size_in(entry, "pp"));
  component.sizes.expert = SW_TRY(size_in(entry, "ep"));
  component.sizes.expert_tensor = SW_TRY(size_in(entry, "etp"));
  component.sizes.data = SW_TRY(size_in(entry, "dp"));
  component.context = SW_TRY(size_in(entry, "cp"));
  component.rank_offset = SW_TRY(size_in(entry, "rank_offset"));
  return component;
}

}  // namespace

std::string write_component_table(std::span<const ComponentRanks> components, std::int64_t world) {
  nlohmann::ordered_json table;
  table["schema"] = kComponentsSchema;
  table["world_size"] = world;
  for (const ComponentRanks& component : components) {
    const ComponentSpec& spec = component.spec;
    table["components"].push_back({{"name", spec.name},
                                   {"path", component.path},
                                   {"tp", *spec.tensor},
                                   {"pp", *spec.pipeline},
                                   {"dp", *spec.data},
                                   {"cp", *spec.context},
                                   {"ep", *spec.expert},
                                   {"etp", *spec.expert_tensor},
                                   {"rank_offset", *spec.rank_offset},
                                   {"ranks", component.ranks()}});
  }
  return table.dump(2) + "\n";
}

Result<std::vector<RecordedComponent>> read_component_table(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kComponentTable, kMostBytes));
  const nlohmann::json table = SW_TRY(parse_json(text, kComponentTable));
  if (!table.is_object() || table.value("schema", nlohmann::json()) != kComponentsSchema ||
      !table.contains("components") || !table["components"].is_array()) {
    return fail(Code::kJsonCorrupt, "{}: expected schema {}", kComponentTable, kComponentsSchema);
  }
  std::vector<RecordedComponent> components;
  for (const nlohmann::json& entry : table["components"]) {
    components.push_back(SW_TRY(read_component(entry)));
  }
  return components;
}

}  // namespace shardwright
