// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cmath>

#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"

namespace shardwright {
namespace {

bool differs(const std::optional<std::int64_t>& believed, const std::optional<std::int64_t>& disk) {
  return believed && disk && *believed != *disk;
}

// A caller who gives an expert size, even 1, has a loader that looks for an expert coordinate.
void add_pipeline_only(const AxisSizes& believed, const LegacyReading& reading,
                       Diagnosis& diagnosis) {
  if (!reading.place_of(Coordinate::kPipeline) || reading.coordinates.size() != 2) return;
  if (believed.expert.value_or(0) > 1) return add_finding(diagnosis, "L01", {}, Severity::kError);
  if (believed.expert) return add_finding(diagnosis, "L01", {}, Severity::kWarning);
  if (believed.pipeline.value_or(1) > 1) add_finding(diagnosis, "L01", {});
}

void add_expert_findings(const AxisSizes& believed, const LegacyReading& reading,
                         Diagnosis& diagnosis) {
  const std::int64_t disk = reading.sizes.expert.value_or(1);
  const bool wants_experts = believed.expert.value_or(1) > 1;
  if (wants_experts && reading.coordinates.size() == 2 && reading.place_of(Coordinate::kExpert)) {
    add_finding(diagnosis, "L02", {{"ep", *believed.expert}});
  }
  if (believed.expert == 1) add_finding(diagnosis, "L03", {});
  const bool is_dense = !reading.samples.empty() && !reading.has_experts && disk == 1;
  if (wants_experts && reading.sizes.expert && is_dense) {
    add_finding(diagnosis, "L32", {{"ep", *believed.expert}});
  }
  // Expert ranks of a model without experts hold copies, of which any will do.
  const bool holds_copies = !reading.samples.empty() && !reading.has_experts;
  if (!wants_experts && disk > 1 && !holds_copies) {
    const auto percent =
        std::lround(100.0 * static_cast<double>(disk - 1) / static_cast<double>(disk));
    // Who gives no sizes at all believes nothing that could be wrong.
    const bool asks_otherwise = !(believed == AxisSizes());
    add_finding(diagnosis, "L19", {{"percent", percent}, {"ep", disk}},
                asks_otherwise ? Severity::kError : Severity::kInfo);
  }
}

void add_size_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                       Diagnosis& diagnosis) {
  const AxisSizes& believed = evidence.believed;
  const AxisSizes& disk = reading.sizes;
  // For a dense model L32 says it better.
  const bool is_dense = !reading.samples.empty() && !reading.has_experts && disk.expert == 1;
  const bool other = differs(believed.tensor, disk.tensor) ||
                     differs(believed.pipeline, disk.pipeline) ||
                     (!is_dense && differs(believed.expert, disk.expert)) ||
                     (!is_dense && differs(believed.expert_tensor, disk.expert_tensor));
  if (other) {
    AxisSizes wanted = disk;
    if (believed.tensor) wanted.tensor = believed.tensor;
    if (believed.pipeline) wanted.pipeline = believed.pipeline;
    if (believed.expert && !is_dense) wanted.expert = believed.expert;
    if (believed.expert_tensor && !is_dense) wanted.expert_tensor = believed.expert_tensor;
    add_finding(diagnosis, "L05",
                {{"believed", sizes_text(believed)},
                 {"disk", sizes_text(disk)},
                 {"command", convert_command(evidence.path + evidence.flag, "legacy", wanted)}});
  }
  if (differs(believed.virtual_pipeline, disk.virtual_pipeline)) {
    const std::int64_t count = *disk.virtual_pipeline;
    add_finding(diagnosis, "L11",
                {{"count", count},
                 {"keys", count == 1 ? "model" : fmt::format("model0..model{}", count - 1)},
                 {"vpp", *believed.virtual_pipeline}});
  }
}

}  // namespace

std::string sizes_text(const AxisSizes& sizes) {
  std::string text;
  for (const auto& size : {sizes.tensor, sizes.pipeline, sizes.expert, sizes.expert_tensor}) {
    text += fmt::format("{}{}", text.empty() ? "" : "/", size ? std::to_string(*size) : "-");
  }
  return text;
}

std::string convert_command(std::string_view path, std::string_view format,
                            const AxisSizes& sizes) {
  std::string command = fmt::format("shardwright convert {} OUT --to {}", path, format);
  const auto add = [&](std::string_view flag, const std::optional<std::int64_t>& size) {
    if (size && *size > 1) command += fmt::format(" --{} {}", flag, *size);
  };
  add("tp", sizes.tensor);
  add("pp", sizes.pipeline);
  add("vpp", sizes.virtual_pipeline);
  add("ep", sizes.expert);
  if (sizes.expert.value_or(1) > 1 && sizes.expert_tensor && sizes.expert_tensor != sizes.tensor) {
    command += fmt::format(" --etp {}", *sizes.expert_tensor);
  }
  return command;
}

void add_caller_findings(const LegacyEvidence& evidence, const LegacyReading& reading,
                         Diagnosis& diagnosis) {
  add_pipeline_only(evidence.believed, reading, diagnosis);
  add_expert_findings(evidence.believed, reading, diagnosis);
  add_size_findings(evidence, reading, diagnosis);
}

}  // namespace shardwright
