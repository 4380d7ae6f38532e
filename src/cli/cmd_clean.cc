// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/fail.h"
#include "base/shell_path.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "io/partial_outputs.h"
#include "remote/remote_output.h"

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
  if (listed.is_removed) return translated("removed {}, {}\n", name, size);
  const bool is_of_parts = output.process == 0;
  switch (output.state) {
    case PartialState::kAbandoned:
      if (is_of_parts) {
        return translated("{}: {}, parts of {}, which is not published; no part is at work\n", name,
                          size, printable(output.target));
      }
      return translated("{}: {}, left by process {}, which is gone\n", name, size, output.process);
    case PartialState::kHeld:
      if (is_of_parts) return translated("{}: {}, stays: a part may be at work\n", name, size);
      return translated("{}: {}, stays: process {} may be writing it\n", name, size,
                        output.process);
    case PartialState::kOnlyCopy:
      return translated("{}: {}, stays: it was {} and nothing has taken its place; rename it\n",
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
  if (outputs.empty()) text += translated("{}: no unfinished outputs\n", printable(folder));
  if (removable > 0) {
    text += translated("{} can go, {}: shardwright clean {} --remove\n",
                       format_count(removable, "unfinished output"), format_bytes(bytes),
                       shell_path(folder));
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

struct ListedUpload {
  UnfinishedUpload upload;
  bool is_removed = false;
};

std::string uploads_text(const std::string& path, const std::vector<ListedUpload>& uploads) {
  std::string text;
  std::uint64_t removable = 0;
  for (const ListedUpload& listed : uploads) {
    const std::string name = printable(listed.upload.path);
    removable += listed.is_removed ? 0 : 1;
    text += listed.is_removed
                ? translated("removed the unfinished upload of {}\n", name)
                : translated("{}: an unfinished upload, begun {}; a run may be at it\n", name,
                             printable(listed.upload.begun));
  }
  if (uploads.empty()) text += translated("{}: no unfinished uploads\n", printable(path));
  if (removable > 0) {
    text += translated("where no run writes there, {} can go: shardwright clean {} --remove\n",
                       format_count(removable, "unfinished upload"), shell_path(path));
  }
  return text;
}

std::string uploads_json(const std::string& path, const std::vector<ListedUpload>& uploads) {
  JsonWriter json;
  begin_document(json, "clean");
  json.text("path", path).key("outputs").open_list();
  for (const ListedUpload& listed : uploads) {
    const std::string& place = listed.upload.path;
    json.open_object().text("path", place).text("target", place.substr(place.rfind('/') + 1));
    json.text("state", "upload").flag("removed", listed.is_removed);
    json.number("process", std::uint64_t{0}).number("bytes", std::uint64_t{0}).close();
  }
  json.close().close();
  return json.take();
}

// Of a run that is still at it nobody here can know: it fails then, and nothing is shown of it.
Result<int> clean_uploads(const CleanCommand& command, Console& console) {
  std::vector<ListedUpload> uploads;
  for (UnfinishedUpload& upload : SW_TRY(list_unfinished_uploads(command.path))) {
    uploads.push_back({std::move(upload)});
  }
  Status status;
  for (ListedUpload& listed : uploads) {
    if (!command.remove) continue;
    Status removed = remove_unfinished_upload(command.path, listed.upload);
    listed.is_removed = removed.has_value();
    if (!removed && status) status = std::move(removed);
  }
  if (!status && !command.json) console.print(uploads_text(command.path, uploads));
  SW_TRY(std::move(status));
  console.print(command.json ? uploads_json(command.path, uploads)
                             : uploads_text(command.path, uploads));
  return kExitFine;
}

}  // namespace

Result<int> run(const CleanCommand& command, Console& console) {
  if (is_remote_output(command.path)) return clean_uploads(command, console);
  SW_TRY(check_output_path(command.path));
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
