// SPDX-License-Identifier: Apache-2.0
#include "cli/rank_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cli/table.h"
#include "layout/component.h"

namespace shardwright::cli {
namespace {

Component component_of(const ComponentRanks& ranks) {
  const ComponentSpec& spec = ranks.spec;
  return {spec.name,      *spec.tensor, *spec.context,       *spec.data,
          *spec.pipeline, *spec.expert, *spec.expert_tensor, *spec.rank_offset};
}

std::vector<Component> by_rank(std::span<const ComponentRanks> components) {
  std::vector<Component> sorted;
  for (const ComponentRanks& ranks : components) sorted.push_back(component_of(ranks));
  std::ranges::sort(sorted, {}, &Component::rank_offset);
  return sorted;
}

Table numbers_table(std::string_view first, std::string_view second,
                    std::span<const std::string_view> axes) {
  std::vector<Table::Column> columns = {{std::string(first)}, {std::string(second)}};
  for (const std::string_view axis : axes) {
    columns.push_back({std::string(axis), Table::Align::kRight});
  }
  return Table(std::move(columns));
}

std::vector<std::string> row_of(std::string first, std::string second,
                                std::initializer_list<std::int64_t> numbers) {
  std::vector<std::string> row = {std::move(first), std::move(second)};
  for (const std::int64_t number : numbers) row.push_back(std::to_string(number));
  return row;
}

}  // namespace

std::string rank_map_text(std::span<const ComponentRanks> components, bool every_rank) {
  constexpr std::string_view kAxes[] = {"tp", "cp", "dp", "pp", "etp", "ep", "edp"};
  Table sizes = numbers_table("component", "ranks", kAxes);
  Table ranks = numbers_table("rank", "component", kAxes);
  for (const Component& c : by_rank(components)) {
    const std::int64_t expert_data = c.tensor * c.context * c.data / (c.expert_tensor * c.expert);
    sizes.add_row(
        row_of(c.name, ranks_text(c),
               {c.tensor, c.context, c.data, c.pipeline, c.expert_tensor, c.expert, expert_data}));
    for (std::int64_t rank = 0; every_rank && rank < c.ranks(); ++rank) {
      const RankPlace place = place_of_rank(c, rank);
      ranks.add_row(row_of(std::to_string(c.rank_offset + rank), c.name,
                           {place.tensor, place.context, place.data, place.pipeline,
                            place.expert_tensor, place.expert, place.expert_data}));
    }
  }
  return sizes.text() + (every_rank ? "\n" + ranks.text() : "");
}

void write_rank_map(JsonWriter& json, std::span<const ComponentRanks> components) {
  json.key("components").open_list();
  for (const ComponentRanks& each : components) {
    const Component c = component_of(each);
    json.open_object().text("name", c.name).text("path", each.path);
    json.number("tp", c.tensor).number("pp", c.pipeline).number("dp", c.data);
    json.number("cp", c.context).number("ep", c.expert).number("etp", c.expert_tensor);
    json.number("rank_offset", c.rank_offset).key("ranks").open_list();
    for (std::int64_t rank = 0; rank < c.ranks(); ++rank) {
      const RankPlace place = place_of_rank(c, rank);
      json.open_object().number("rank", c.rank_offset + rank);
      json.number("tp", place.tensor).number("cp", place.context).number("dp", place.data);
      json.number("pp", place.pipeline).number("etp", place.expert_tensor);
      json.number("ep", place.expert).number("edp", place.expert_data).close();
    }
    json.close().close();
  }
  json.close();
}

}  // namespace shardwright::cli
