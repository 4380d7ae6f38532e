// SPDX-License-Identifier: Apache-2.0
#include "cli/pickle_warnings.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/translated.h"
#include "cli/code_label.h"

namespace shardwright::cli {

void PickleWarnings::add(const std::vector<PickleReport>& reports) {
  for (const PickleReport& report : reports) {
    for (Error& error : report.errors()) errors.push_back(std::move(error));
    if (std::string warning = report.warning(); !warning.empty()) {
      notes.push_back(std::move(warning));
    }
  }
}

std::string warnings_text(const PickleWarnings& warnings, Language language) {
  std::string text;
  for (const Error& error : warnings.errors) {
    text += fmt::format("{}: {}\n", code_label("error", error.code, language),
                        printable(in_language(error.message)));
  }
  for (const std::string& note : warnings.notes) text += "note: " + printable(note) + "\n";
  return text.empty() ? text : "\n" + text;
}

void write_warnings(JsonWriter& json, const PickleWarnings& warnings) {
  const auto write = [&](std::string_view key, const std::vector<Error>& errors) {
    json.key(key).open_list();
    for (const Error& error : errors) {
      json.open_object().text("code", code_name(error.code)).text("message", error.message).close();
    }
    json.close();
  };
  write("pickles", warnings.errors);
  write("warnings", warnings.others);
  json.texts("notes", warnings.notes);
}

}  // namespace shardwright::cli
