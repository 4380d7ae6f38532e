// SPDX-License-Identifier: Apache-2.0
#include "format/mimo/component_table.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"
#include "layout/component_layout.h"
#include "model/component_names.h"

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

// A table of RecordedComponents, with what only tells whether they fit.
struct Table {
  std::vector<RecordedComponent> components;
  std::vector<std::int64_t> ranks;  // of each
  std::optional<std::int64_t> world;
};

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

Result<Table> read_table(const Directory& directory) {
  const std::string text = SW_TRY(read_whole(directory, kComponentTable, kMostBytes));
  const nlohmann::json json = SW_TRY(parse_json(text, kComponentTable));
  if (!json.is_object() || json.value("schema", nlohmann::json()) != kComponentsSchema ||
      !json.contains("components") || !json["components"].is_array()) {
    return fail(Code::kJsonCorrupt, "{}: expected schema {}", kComponentTable, kComponentsSchema);
  }
  Table table;
  for (const nlohmann::json& entry : json["components"]) {
    table.components.push_back(SW_TRY(read_component(entry)));
    table.ranks.push_back(size_in(entry, "ranks").value_or(0));
  }
  if (const auto world = size_in(json, "world_size")) table.world = *world;
  return table;
}

ComponentSpec spec_of(const RecordedComponent& component) {
  const AxisSizes& sizes = component.sizes;
  ComponentSpec spec;
  spec.name = component.name;
  spec.tensor = sizes.tensor;
  spec.pipeline = sizes.pipeline;
  spec.data = sizes.data;
  spec.context = component.context;
  spec.expert = sizes.expert;
  spec.expert_tensor = sizes.expert_tensor;
  spec.rank_offset = component.rank_offset;
  return spec;
}

Error defect(std::string message) { return {Code::kComponentLayout, std::move(message), 0}; }

void compare_names(const Table& table, const Catalog& catalog, std::vector<Error>& defects) {
  std::set<std::string, std::less<>> stored;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string_view name = component_of_tensor(tensor.desc.name);
    if (!name.empty()) stored.emplace(name);
  }
  for (const RecordedComponent& component : table.components) {
    if (stored.contains(component.name)) continue;
    defects.push_back(defect(translated("{}: component {} has no tensors here", kComponentTable,
                                        printable(component.name))));
  }
  for (const std::string& name : stored) {
    const auto told = std::ranges::find(table.components, name, &RecordedComponent::name);
    if (told != table.components.end()) continue;
    defects.push_back(defect(translated("{}: component {} is missing, which tensors belong to",
                                        kComponentTable, printable(name))));
  }
}

// As the sizes say; nullopt for sizes that no run has.
std::optional<std::int64_t> ranks_of(const RecordedComponent& component) {
  constexpr std::int64_t kMost = std::int64_t{1} << 20;
  const AxisSizes& sizes = component.sizes;
  std::int64_t ranks = 1;
  for (const auto& size : {sizes.tensor, sizes.pipeline, sizes.data, component.context}) {
    if (!size || *size < 1 || *size > kMost) return std::nullopt;
    ranks *= *size;
    if (ranks > kMost) return std::nullopt;
  }
  return ranks;
}

void compare_ranks(const Table& table, std::vector<Error>& defects) {
  bool fit = true;
  std::vector<ComponentSpec> specs;
  for (std::size_t i = 0; i < table.components.size(); ++i) {
    const RecordedComponent& component = table.components[i];
    specs.push_back(spec_of(component));
    const std::optional<std::int64_t> ranks = ranks_of(component);
    if (!ranks || *ranks == table.ranks[i]) continue;
    fit = false;
    defects.push_back(
        defect(translated("{}: component {}: found {} ranks, expected {} as its sizes say",
                          kComponentTable, printable(component.name), table.ranks[i], *ranks)));
  }
  if (!fit) return;
  const auto layout = solve_component_layout(specs, table.world);
  if (layout) return;
  defects.push_back(defect(fmt::format("{}: {}", kComponentTable, layout.error().message)));
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

ComponentTable read_component_table(const Checkpoint& checkpoint) {
  ComponentTable found;
  if (!checkpoint.directory->exists(kComponentTable)) return found;
  auto table = read_table(*checkpoint.directory);
  if (!table) {
    found.defects.push_back(table.error());
    return found;
  }
  compare_names(*table, checkpoint.catalog, found.defects);
  compare_ranks(*table, found.defects);
  found.components = std::move(table->components);
  return found;
}

}  // namespace shardwright
