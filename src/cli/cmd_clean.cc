// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "io/partial_outputs.h"

namespace shardwright::cli {
namespace {

struct ListedOutput {
  PartialOutput output;
  bool is_removed = false;
};

std::string_view partial_state_name(PartialState state) {
  switch (state) {
    case PartialState::kAbandoned:
      return "abandoned";
    case PartialState::kHeld:
      return "held";
    case PartialState::kOnlyCopy:
      return "only_copy";
  }
  return "";
}

std::string partial_line(const ListedOutput& listed) {
  const PartialOutput& output = listed.output;
  const std::string name = printable(std::filesystem::path(output.path).filename().string());
  const std::string size = format_bytes(output.bytes);
  if (listed.is_removed) return fmt::format("removed {}, {}\n", name, size);
  const bool is_of_parts = output.process == 0;
  switch (output.state) {
    case PartialState::kAbandoned:
      if (is_of_parts) {
        return fmt::format("{}: {}, parts of {}, which is not published; no part is at work\n",
                           name, size, printable(output.target));
      }
      return fmt::format("{}: {}, left by process {}, which is gone\n", name, size, output.process);
    case PartialState::kHeld:
      if (is_of_parts) return fmt::format("{}: {}, stays: a part may be at work\n", name, size);
      return fmt::format("{}: {}, stays: process {} may be writing it\n", name, size,
                         output.process);
    case PartialState::kOnlyCopy:
      return fmt::format("{}: {}, stays: it was {} and nothing has taken its place; rename it\n",
                         name, size, printable(output.target));
  }
  return "";
}

std::string clean_report_text(const std::string& folder, const std::vector<ListedOutput>& outputs) {
  std::string text;
  std::uint64_t bytes = 0;
  std::uint64_t removable = 0;
  for (const ListedOutput& listed : outputs) {
    text += partial_line(listed);
    const bool can_go = !listed.is_removed && listed.output.state == PartialState::kAbandoned;
    removable += can_go ? 1 : 0;
    bytes += can_go ? listed.output.bytes : 0;
  }
  if (outputs.empty()) text += fmt::format("{}: no unfinished outputs\n", printable(folder));
  if (removable > 0) {
    fmt::format_to(std::back_inserter(text), "{} can go, {}: shardwright clean {} --remove\n",
                   format_count(removable, "unfinished output"), format_bytes(bytes),
                   shell_quoted(folder));
  }
  return text;
}

std::string clean_report_json(const std::string& folder, const std::vector<ListedOutput>& outputs) {
  JsonWriter json;
  begin_document(json, "clean");
  json.text("path", folder).key("outputs").open_list();
  for (const ListedOutput& listed : outputs) {
    const PartialOutput& output = listed.output;
    json.open_object().text("path", output.path).text("target", output.target);
    json.text("state", partial_state_name(output.state)).flag("removed", listed.is_removed);
    json.number("process", static_cast<std::uint64_t>(output.process));
    json.number("bytes", output.bytes).close();
  }
  json.close().close();
  return json.take();
}

}  // namespace

Result<int> run_clean(const CleanCommand& command, Console& console) {
  std::vector<ListedOutput> outputs;
  for (PartialOutput& output : SW_TRY(list_partial_outputs(command.path))) {
    outputs.push_back({std::move(output)});
  }
  // One that can't be removed keeps no other from going.
  Status status;
  for (ListedOutput& listed : outputs) {
    if (!command.remove || listed.output.state != PartialState::kAbandoned) continue;
    const Result<PartialState> found = remove_partial_output(listed.output);
    // It may be another's by now, or the only copy of what it was to replace.
    listed.output.state = found.value_or(PartialState::kAbandoned);
    listed.is_removed = found && *found == PartialState::kAbandoned;
    if (!found && status) status = std::unexpected(found.error());
  }
  // What did go is told before what did not.
  if (!status && !command.json) console.print(clean_report_text(command.path, outputs));
  SW_TRY(std::move(status));
  console.print(command.json ? clean_report_json(command.path, outputs)
                             : clean_report_text(command.path, outputs));
  return kExitFine;
}

}  // namespace shardwright::cli
