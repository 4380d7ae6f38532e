// SPDX-License-Identifier: Apache-2.0
#include "layout/classify_legacy.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/chunk_order.h"
#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/legacy_reading.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

LayoutClass class_of(const LegacyReading& reading) {
  if (reading.coordinates.size() < reading.groups.models.front().numbers.size()) {
    return LayoutClass::kNone;
  }
  if (reading.place_of(Coordinate::kExpert)) return LayoutClass::kExpert;
  if (reading.place_of(Coordinate::kPipeline)) return LayoutClass::kPipeline;
  return LayoutClass::kTensor;
}

bool is_empty(const AxisSizes& sizes) { return sizes == AxisSizes(); }

// Of what lies there, not of what the caller believes; none while that is open.
Loader loader_for(const LegacyReading& reading) {
  if (reading.sizes.expert) {
    return *reading.sizes.expert > 1 ? Loader::kExpertAware : Loader::kNonExpert;
  }
  const bool is_dense = !reading.samples.empty() && !reading.has_experts;
  return is_dense ? Loader::kNonExpert : Loader::kNone;
}

// Tensors of experts, or their own coordinate, show them; without a readable file names do not.
std::optional<bool> holds_experts(const LegacyReading& reading) {
  if (reading.has_experts || reading.sizes.expert.value_or(1) > 1) return true;
  return reading.samples.empty() ? std::nullopt : std::optional(false);
}

// The names that a run of the caller's sizes looks for; what was not given is as it is on disk.
std::string asked_pattern(const AxisSizes& believed, const LegacyReading& reading) {
  if (!believed.tensor && !believed.pipeline && !believed.expert && !believed.expert_tensor) {
    return "";
  }
  ParallelConfig config;
  config.tensor = believed.tensor.value_or(reading.sizes.tensor.value_or(1));
  config.pipeline = believed.pipeline.value_or(reading.sizes.pipeline.value_or(1));
  config.expert = believed.expert.value_or(reading.sizes.expert.value_or(1));
  return rank_folder_pattern(config, RankNaming::kMegatron);
}

// Names alone are enough for this, so it holds for files that nobody can read.
void add_asked_pattern(const LegacyEvidence& evidence, const LegacyReading& reading,
                       Diagnosis& diagnosis) {
  const std::string asked = asked_pattern(evidence.believed, reading);
  if (asked.empty()) return;
  // While two numbers are open, only how many there are can be wrong.
  const bool is_open = diagnosis.layout == LayoutClass::kNone;
  const bool is_here = is_open
                           ? std::ranges::count(asked, '{') == diagnosis.disk_arity
                           : asked == diagnosis.expected_pattern || asked == diagnosis.disk_pattern;
  diagnosis.expected_pattern = asked;
  if (is_here) return;
  // Where the files say more than the names, another finding says it better.
  for (const Finding& finding : diagnosis.findings) {
    const bool is_said = finding.code == "L01" || finding.code == "L05" || finding.code == "L19" ||
                         finding.code == "L32";
    if (is_said && finding.severity == Severity::kError) return;
  }
  diagnosis.findings.push_back(make_finding("L42", {{"believed", sizes_text(evidence.believed)},
                                                    {"asked", asked},
                                                    {"disk", diagnosis.disk_pattern}}));
}

// Which model it is, as far as that is known.
void add_kind(const LegacyReading& reading, Diagnosis& diagnosis) {
  const auto experts = holds_experts(reading);
  if (!experts) return;
  if (!*experts) {
    diagnosis.evidence.push_back(phrase("kind.dense"));
  } else if (reading.experts) {
    diagnosis.evidence.push_back(phrase("kind.experts_counted", {{"experts", *reading.experts}}));
  } else {
    diagnosis.evidence.push_back(phrase("kind.experts"));
  }
}

// Where experts lie otherwise than Megatron's own.
void add_expert_order(const LegacyReading& reading, Diagnosis& diagnosis) {
  const std::int64_t tensor = reading.sizes.tensor.value_or(1);
  if (!reading.has_experts || !reading.run.has_own_expert_order || tensor < 2) return;
  diagnosis.evidence.push_back(phrase("experts.whole", {{"tp", tensor}}));
}

// Where the stages follow one another otherwise than Megatron's own.
void add_order(const LegacyReading& reading, Diagnosis& diagnosis) {
  const bool has_halves = reading.sizes.virtual_pipeline == 2;
  if (has_halves && reading.run.chunk_order == ChunkOrder::kTwoCopies) {
    return diagnosis.evidence.push_back(phrase("stages.two_copies"));
  }
  const auto place = reading.place_of(Coordinate::kPipeline);
  if (!place || !reading.sizes.pipeline) return;
  std::vector<StageChunks> ranks;
  for (const PlacedSample& placed : reading.samples) {
    if (*place >= placed.numbers.size()) continue;
    ranks.push_back({placed.numbers[*place], contents_of_chunks(*placed.sample)});
  }
  switch (chunk_order(reading.run, *reading.sizes.pipeline, ranks)) {
    case ChunkOrder::kInterleaved:
      return;
    case ChunkOrder::kFolded:
      return diagnosis.evidence.push_back(phrase("stages.folded"));
    case ChunkOrder::kTwoCopies:
      return diagnosis.evidence.push_back(phrase("stages.two_copies"));
  }
}

Phrase loader_note(const LegacyReading& reading, const AxisSizes& believed) {
  Phrase note;
  for (std::size_t i = 0; i < reading.coordinates.size(); ++i) {
    const std::string_view name = short_name(reading.coordinates[i]);
    note = i == 0 ? phrase("loader.number", {{"number", i + 1}, {"name", name}})
                  : phrase("loader.numbers", {{"before", note}, {"number", i + 1}, {"name", name}});
  }
  if (reading.sizes.expert.value_or(1) > 1) {
    note = phrase("loader.experts", {{"numbers", note}});
    if (!is_empty(believed) && believed.expert.value_or(1) <= 1) {
      note = phrase("loader.asked", {{"note", note}});
    }
  }
  return note;
}

std::string diagnose_command(const LegacyEvidence& evidence, const LegacyReading& reading) {
  std::string command = "shardwright diagnose " + evidence.path + evidence.flag;
  const AxisSizes& sizes = reading.sizes;
  if (sizes.tensor.value_or(1) > 1) command += fmt::format(" --tp {}", *sizes.tensor);
  if (sizes.pipeline.value_or(1) > 1) command += fmt::format(" --pp {}", *sizes.pipeline);
  if (sizes.expert.value_or(1) > 1) command += fmt::format(" --ep {}", *sizes.expert);
  return command;
}

bool has(const Diagnosis& diagnosis, std::string_view code) {
  return std::ranges::any_of(diagnosis.findings, [&](const Finding& f) { return f.code == code; });
}

// The conversion that makes the data usable: into what the caller's run asks for, or else into what
// any run loads.
NextConversion next_conversion(const LegacyEvidence& evidence, const LegacyReading& reading,
                               const Diagnosis& diagnosis) {
  if (!has(diagnosis, "L05")) return {"torch_dist", reading.sizes};
  AxisSizes wanted = reading.sizes;
  const AxisSizes& believed = evidence.believed;
  if (believed.tensor) wanted.tensor = believed.tensor;
  if (believed.pipeline) wanted.pipeline = believed.pipeline;
  if (believed.expert && reading.has_experts) wanted.expert = believed.expert;
  if (believed.expert_tensor && reading.has_experts) wanted.expert_tensor = believed.expert_tensor;
  return {"legacy", wanted};
}

// What to type next: first what has to be cleared up, then what makes the data usable.
void add_next(const LegacyEvidence& evidence, const LegacyReading& reading,
              LegacyVerdict& verdict) {
  Diagnosis& diagnosis = verdict.diagnosis;
  const NumberedFolder& first = reading.groups.models.front();
  const std::string shown = evidence.path + evidence.flag;
  if (diagnosis.confidence == Confidence::kAmbiguous) {
    std::int64_t most = 0;
    for (const NumberedFolder& folder : reading.groups.models) {
      most = std::max(most, folder.numbers.back());
    }
    diagnosis.next = fmt::format("shardwright diagnose {} --pp {}", shown, most + 1);
  } else if (diagnosis.complete == false || has(diagnosis, "L35") || has(diagnosis, "L40")) {
    // It lists all that is lost, and what else is wrong.
    diagnosis.next = "shardwright verify " + shown;
  } else if (has(diagnosis, "L27")) {
    diagnosis.next =
        fmt::format("shardwright inspect {}/{}/{}", evidence.path, first.name, first.file);
  } else if (diagnosis.has_errors() && !has(diagnosis, "L05")) {
    diagnosis.next = diagnose_command(evidence, reading);
  } else {
    verdict.conversion = next_conversion(evidence, reading, diagnosis);
    diagnosis.next = convert_command(shown, verdict.conversion->format, verdict.conversion->sizes);
  }
}

void add_open_question(const LegacyReading& reading, Diagnosis& diagnosis) {
  if (diagnosis.confidence != Confidence::kAmbiguous) return;
  Phrase known = phrase("none");
  if (!reading.evidence.empty()) known = reading.evidence.front();
  diagnosis.findings.push_back(make_finding("L04", {{"evidence", known}}));
}

void add_bytes_read(const LegacyEvidence& evidence, Diagnosis& diagnosis) {
  if (evidence.bytes_compared == 0) return;
  diagnosis.evidence.push_back(phrase("bytes_compared", {{"bytes", evidence.bytes_compared}}));
}

// Folders of ranks, none of which holds a model.
Diagnosis without_models(const LegacyEvidence& evidence, const FolderGroups& groups) {
  Diagnosis diagnosis;
  std::string files;
  if (!groups.optimizers.empty()) {
    diagnosis.format = "optimizer";
    diagnosis.reason = phrase("ranks.optimizer_only");
    files = groups.optimizers.front().file;
  } else if (!groups.dataloaders.empty()) {
    diagnosis.format = "dataloader";
    diagnosis.reason = phrase("ranks.dataloader_only");
    files = "train_dataloader_dprank*.pt";
  } else {
    diagnosis.format = "legacy";
    diagnosis.reason = phrase("ranks.no_model");
    diagnosis.complete = false;
    for (const RankFolder& folder : evidence.folders) diagnosis.missing.push_back(folder.name);
    for (const ListedFile& file : evidence.folders.front().files) {
      files += (files.empty() ? "" : ", ") + file.name;
    }
    if (files.empty()) files = "-";
  }
  diagnosis.confidence = Confidence::kCertain;
  diagnosis.findings.push_back(make_finding("L29", {{"files", files}}));
  diagnosis.next = "shardwright inspect " + evidence.path;
  return diagnosis;
}

Diagnosis mixed_arities(const LegacyEvidence& evidence, const FolderGroups& groups,
                        const std::vector<std::size_t>& arities) {
  Diagnosis diagnosis;
  diagnosis.format = "legacy";
  diagnosis.confidence = Confidence::kAmbiguous;
  diagnosis.reason = phrase("ranks.two_saves");
  diagnosis.complete = false;
  const auto example = [&](std::size_t arity) {
    const auto found = std::ranges::find_if(
        groups.models, [&](const NumberedFolder& f) { return f.numbers.size() == arity; });
    return found->name;
  };
  diagnosis.findings.push_back(make_finding(
      "L27", {{"first", example(arities.front())}, {"second", example(arities.back())}}));
  const std::string file = groups.models.front().name + "/" + groups.models.front().file;
  diagnosis.next = fmt::format("shardwright inspect {}/{}", evidence.path, file);
  return diagnosis;
}

std::string expected_pattern(const LegacyReading& reading) {
  const auto config = reading.config();
  if (config) return rank_folder_pattern(*config, RankNaming::kMegatron);
  return pattern_of(reading.coordinates);
}

}  // namespace

LegacyVerdict classify_legacy(const LegacyEvidence& evidence) {
  FolderGroups groups = group_folders(evidence.folders);
  if (groups.models.empty()) return {without_models(evidence, groups), std::nullopt, std::nullopt};
  const std::vector<std::size_t> arities = arities_of(groups.models);
  if (arities.size() > 1) {
    return {mixed_arities(evidence, groups, arities), std::nullopt, std::nullopt};
  }

  LegacyReading reading = read_legacy_layout(evidence, std::move(groups));
  Diagnosis diagnosis;
  diagnosis.format = "legacy";
  diagnosis.layout = class_of(reading);
  diagnosis.disk_arity = static_cast<std::int64_t>(arities.front());
  for (const Coordinate coordinate : reading.coordinates) {
    diagnosis.coordinates.emplace_back(short_name(coordinate));
  }
  diagnosis.sizes = reading.sizes;
  diagnosis.reason = reading.reason;
  diagnosis.evidence = reading.evidence;
  diagnosis.confidence = reading.confidence;
  diagnosis.disk_pattern = pattern_of(reading.coordinates);
  if (diagnosis.layout == LayoutClass::kNone) {
    diagnosis.coordinates.emplace_back("pp|ep");
    diagnosis.disk_pattern += "_{pp|ep:03d}";
  }
  diagnosis.expected_pattern =
      diagnosis.layout == LayoutClass::kNone ? diagnosis.disk_pattern : expected_pattern(reading);
  if (reading.has_optimizer_ranks) diagnosis.coordinates.emplace_back("dp");
  // Names without a readable file behind them are no certainty.
  const bool is_unread = reading.samples.empty() && !evidence.unreadable.empty();
  if (is_unread && diagnosis.confidence == Confidence::kCertain) {
    diagnosis.confidence = Confidence::kLikely;
  }
  diagnosis.loader = loader_for(reading);
  add_kind(reading, diagnosis);
  add_order(reading, diagnosis);
  add_expert_order(reading, diagnosis);
  diagnosis.loader_note = loader_note(reading, evidence.believed);
  add_open_question(reading, diagnosis);
  add_folder_findings(evidence, reading, diagnosis);
  add_content_findings(evidence, reading, diagnosis);
  add_caller_findings(evidence, reading, diagnosis);
  add_asked_pattern(evidence, reading, diagnosis);
  add_bytes_read(evidence, diagnosis);
  std::ranges::stable_sort(diagnosis.findings, {}, &Finding::code);
  LegacyVerdict verdict = {std::move(diagnosis), reading.question, std::nullopt};
  add_next(evidence, reading, verdict);
  return verdict;
}

}  // namespace shardwright
