// SPDX-License-Identifier: Apache-2.0
#include "convert/component_table.h"

#include <nlohmann/json.hpp>

namespace shardwright {

std::string write_component_table(std::span<const ComponentRanks> components, std::int64_t world) {
  nlohmann::ordered_json table;
  table["schema"] = "shardwright/components/1";
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

}  // namespace shardwright
