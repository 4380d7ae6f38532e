// SPDX-License-Identifier: Apache-2.0
#include "cli/part_report.h"

#include <fmt/format.h>

#include "base/text.h"
#include "cli/quantity.h"
#include "cli/table.h"

namespace shardwright::cli {

std::string parts_text(std::span<const PartReport> parts) {
  Table table({{"part"},
               {"tensors", Table::Align::kRight},
               {"bytes", Table::Align::kRight},
               {"types"},
               {"folder"}});
  for (const PartReport& part : parts) {
    std::string types;
    for (const auto& [dtype, count] : part.dtypes) {
      types += fmt::format("{}{} {}", types.empty() ? "" : ", ", torch_name(dtype), count);
    }
    table.add_row({part.name, std::to_string(part.tensors), format_bytes(part.bytes), types,
                   printable(part.path)});
  }
  return table.text();
}

void write_parts(JsonWriter& json, std::span<const PartReport> parts) {
  json.key("parts").open_list();
  for (const PartReport& part : parts) {
    json.open_object().text("name", part.name).text("path", part.path);
    json.number("tensors", part.tensors).number("bytes", part.bytes);
    json.key("dtypes").open_object();
    for (const auto& [dtype, count] : part.dtypes) json.number(torch_name(dtype), count);
    json.close().close();
  }
  json.close();
}

}  // namespace shardwright::cli
