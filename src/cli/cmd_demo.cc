// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <optional>
#include <span>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/dequantise.h"
#include "canonical/hf_model.h"
#include "cli/byte_compare.h"
#include "cli/commands.h"
#include "cli/conversion_run.h"
#include "cli/demo_place.h"
#include "cli/json_output.h"
#include "cli/quantity.h"
#include "cli/summary.h"
#include "format/targets.h"

namespace shardwright::cli {
namespace {

// In the order in which they are tried: small models do not divide by everything.
constexpr std::array kFirstLayouts = {ParallelConfig{2, 2, 1, 1, 2}, ParallelConfig{2, 1, 1, 1, 2},
                                      ParallelConfig{1, 2, 1, 1, 1}, ParallelConfig{}};
constexpr std::array kOtherLayouts = {ParallelConfig{4, 1, 1, 1, 4}, ParallelConfig{1, 4, 1, 1, 1},
                                      ParallelConfig{1, 2, 1, 1, 1}, ParallelConfig{2, 1, 1, 1, 2},
                                      ParallelConfig{}};

struct Step {
  std::string command;
  ConvertRequest request;
  ConvertReport report;
};

bool is_about_division(Code code) {
  return code == Code::kNotDivisible || code == Code::kVocabularyNotDivisible;
}

// The first layout of the list that the model divides by.
Result<PreparedConversion> prepare_first(ConvertRequest request,
                                         std::span<const ParallelConfig> layouts) {
  for (const ParallelConfig& layout : layouts) {
    request.parallel = layout;
    Result<PreparedConversion> prepared = prepare_conversion(request);
    const bool is_last = &layout == &layouts.back();
    if (prepared || is_last || !is_about_division(prepared.error().code)) return prepared;
  }
  return prepare_conversion(request);
}

// On the way through Megatron's format values and scales are multiplied out.
Status check_comparable(const Checkpoint& source) {
  const ModelTensors model =
      SW_TRY(model_tensors(source.catalog, source.hf_config, source.files.get()));
  if (model.quantised.empty()) return {};
  return fail(Code::kUsage,
              "{}: found {} quantised tensors, which come back multiplied out, and bytes can't be "
              "compared; give a model that is not quantised",
              source.location.path, model.quantised.size());
}

class Demo {
 public:
  Demo(const DemoCommand& command, DemoPlace place, Console& console)
      : command_(command), place_(std::move(place)), console_(console) {}

  Result<int> run(const std::string& input) {
    const Checkpoint source = SW_TRY(open_hf_model(input, FormatChoice{.flag = ""}, input));
    SW_TRY(check_comparable(source));
    const CatalogSummary summary = summarize(source.catalog);
    say(fmt::format("{} ({}): {}, {}", input, source.location.format,
                    format_count(summary.tensors, "tensor"), format_bytes(summary.bytes)));
    SW_TRY(convert(input, "1-megatron", "torch_dist", kFirstLayouts));
    SW_TRY(convert(place_ / "1-megatron", "2-resharded", "torch_dist", kOtherLayouts));
    constexpr std::array<ParallelConfig, 1> kNone = {};
    SW_TRY(convert(place_ / "2-resharded", "3-hf", "hf", kNone));
    const Checkpoint back = SW_TRY(open_checkpoint(place_ / "3-hf"));
    return tell(SW_TRY(compare_bytes(source, back)));
  }

 private:
  void say(std::string_view line) {
    if (!command_.json) console_.print(printable(line) + "\n");
  }

  Status convert(const std::string& input, const std::string& name, std::string_view format,
                 std::span<const ParallelConfig> layouts) {
    ConvertRequest request;
    request.input = input;
    request.output = place_ / name;
    request.format = format;
    request.models_dir = command_.models;
    const PreparedConversion conversion = SW_TRY(prepare_first(request, layouts));
    const std::string line = command_line(conversion.request);
    say("");
    say("$ " + line);
    const FinishedRun run = SW_TRY(run_with_progress(conversion, console_));
    std::string layout;
    if (traits_of(format).has_grid) layout = layout_text(conversion.request.parallel) + ", ";
    say(fmt::format("  {}{}, {}, {}", layout, format_count(run.report.files_written, "file"),
                    format_bytes(run.report.bytes_written), format_seconds(run.seconds)));
    steps_.push_back({line, conversion.request, run.report});
    return {};
  }

  int tell(const ByteComparison& proof) {
    const bool equal = proof.differences.empty();
    if (command_.json) {
      console_.print(json(proof));
      return equal ? kExitFine : kExitFindings;
    }
    say("");
    say(translated("{}: {} and {} compared with the input, {}", equal ? "EQUAL" : "DIFFERENT",
                   format_count(proof.tensors, "tensor"), format_count(proof.bytes, "byte"),
                   equal ? "not one bit is different" : "not all are the same"));
    for (const std::string& difference : proof.differences) say("  " + difference);
    if (!command_.keep.empty()) say(translated("kept in {}", place_.path()));
    return equal ? kExitFine : kExitFindings;
  }

  [[nodiscard]] std::string json(const ByteComparison& proof) const {
    JsonWriter json;
    begin_document(json, "demo");
    json.key("steps").open_list();
    for (const Step& step : steps_) {
      json.open_object().text("command", step.command);
      json.text("format", traits_of(step.request.format).name);
      write_layout(json, step.request.parallel);
      json.number("files_written", step.report.files_written);
      json.number("bytes_written", step.report.bytes_written).close();
    }
    json.close().key("proof").open_object().flag("equal", proof.differences.empty());
    json.number("tensors", proof.tensors).number("bytes", proof.bytes);
    json.texts("differences", proof.differences).close().close();
    return json.take();
  }

  const DemoCommand& command_;
  DemoPlace place_;
  Console& console_;
  std::vector<Step> steps_;
};

}  // namespace

Result<int> run(const DemoCommand& command, Console& console) {
  const std::string input =
      command.checkpoint.empty() ? SW_TRY(find_demo_checkpoint()) : command.checkpoint;
  return Demo(command, SW_TRY(DemoPlace::make(command.keep)), console).run(input);
}

}  // namespace shardwright::cli
