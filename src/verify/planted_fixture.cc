// SPDX-License-Identifier: Apache-2.0
#include "verify/planted_fixture.h"

#include <nlohmann/json.hpp>

namespace shardwright {

void Planted::edit_json(const std::string& file,
                        const std::function<void(nlohmann::json&)>& edit) const {
  nlohmann::json document = nlohmann::json::parse(get(file));
  edit(document);
  put(file, document.dump());
}

void Planted::edit_header(const std::string& file,
                          const std::function<void(nlohmann::json&)>& edit) const {
  const std::string bytes = get(file);
  const auto length = load_le<std::uint64_t>(as_bytes(bytes).data());
  nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  edit(header);
  put_header(file, header.dump(), bytes.substr(8 + length));
}

}  // namespace shardwright
