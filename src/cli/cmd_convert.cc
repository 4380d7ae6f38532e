// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fstream>
#include <optional>
#include <string>
#include <string_view>

#include "base/fail.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/rank_map.h"
#include "cli/summary.h"
#include "format/targets.h"

namespace shardwright::cli {
namespace {

// What getrusage() counts begins with what the program that started this one had. 0 where it can't
// be told.
std::uint64_t peak_resident_bytes() {
  constexpr std::uint64_t kUnit = 1024;
  constexpr std::string_view kKey = "VmHWM:";
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    std::uint64_t number = 0;
    if (word == kKey && status >> number) return number * kUnit;
  }
  return 0;
}

// Under the name of the command that asked for it.
void begin_report(JsonWriter& json, const ConvertRequest& request) {
  if (!request.averaged.empty()) {
    std::vector<std::string> inputs = {request.input};
    inputs.insert(inputs.end(), request.averaged.begin(), request.averaged.end());
    begin_document(json, "average");
    json.texts("inputs", inputs).key("weights").open_row();
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const double alike = 1.0 / static_cast<double>(inputs.size());
      json.real(request.weights.empty() ? alike : request.weights[i]);
    }
    json.close();
  } else if (!request.adapter.empty()) {
    begin_document(json, "merge-adapter");
    json.text("base", request.input).text("adapter", request.adapter);
  } else {
    begin_document(json, "convert");
  }
}

std::string convert_report_json(const PreparedConversion& conversion, const FinishedRun& run,
                                std::optional<Part> part) {
  JsonWriter json;
  const ConvertRequest& request = conversion.request;
  begin_report(json, request);
  json.text("output", run.report.output).text("format", traits_of(conversion.request.format).name);
  if (part) {
    json.key("part").open_line().number("number", std::uint64_t{part->number});
    json.number("count", std::uint64_t{part->count}).close();
  }
  write_layout(json, conversion.request.parallel);
  if (!conversion.components.empty()) write_rank_map(json, conversion.components);
  json.text("family", conversion.family);
  json.number("bytes_read", run.report.bytes_read);
  json.number("bytes_written", run.report.bytes_written);
  json.number("bytes_resumed", run.report.bytes_resumed);
  json.number("files_opened", run.report.files_opened);
  json.number("files_written", run.report.files_written);
  json.number("replicas_equal", conversion.replicas.chunks);
  json.number("replica_bytes", conversion.replicas.bytes);
  json.real("seconds", run.seconds).number("peak_memory_bytes", peak_resident_bytes());
  json.texts("leftovers", run.report.leftovers).texts("notes", notes_of(conversion, run)).close();
  return json.take();
}

std::string convert_report_text(const PreparedConversion& conversion, const FinishedRun& run) {
  const ConvertReport& report = run.report;
  std::string replicas;
  if (conversion.replicas.chunks > 0) {
    replicas = translated("{} are equal to what they repeat ({} compared)\n",
                          format_count(conversion.replicas.chunks, "replica"),
                          format_bytes(conversion.replicas.bytes));
  }
  return translated("{}wrote {} ({}): {} in {}{}, {}, peak memory {}\n", replicas,
                    printable(report.output), target_text(conversion.request),
                    format_bytes(report.bytes_written), format_count(report.files_written, "file"),
                    resumed_text(report.bytes_resumed), format_seconds(run.seconds),
                    format_memory(peak_resident_bytes()));
}

std::string part_report_text(Part part, const FinishedRun& run) {
  const ConvertReport& report = run.report;
  return translated("wrote part {} of {}: {} in {}{}, {}, peak memory {}\n", part_text(part),
                    printable(report.output), format_bytes(report.bytes_written),
                    format_count(report.files_written, "file"), resumed_text(report.bytes_resumed),
                    format_seconds(run.seconds), format_memory(peak_resident_bytes()));
}

Result<int> do_part(const ConvertCommand& command, Console& console) {
  const SavedPlan plan = SW_TRY(read_plan_for(command.plan, command.request));
  const PreparedConversion conversion = SW_TRY(prepare_with_progress(plan.request, console));
  const FinishedRun run = SW_TRY(run_part_with_progress(conversion, plan, command.part, console));
  console.print(command.json ? convert_report_json(conversion, run, command.part)
                             : part_report_text(command.part, run));
  return kExitFine;
}

}  // namespace

Result<int> run(const ConvertCommand& command, Console& console) {
  if (!command.plan.empty()) return do_part(command, console);
  const PreparedConversion conversion = SW_TRY(prepare_with_progress(command.request, console));
  tell_notes(conversion, console);
  const FinishedRun run = SW_TRY(run_with_progress(conversion, console));
  console.print(command.json ? convert_report_json(conversion, run, std::nullopt)
                             : convert_report_text(conversion, run));
  return kExitFine;
}

}  // namespace shardwright::cli
