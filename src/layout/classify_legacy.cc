// SPDX-License-Identifier: Apache-2.0
#include "layout/classify_legacy.h"

#include <fmt/format.h>

#include <algorithm>

#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/legacy_reading.h"

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

Phrase loader_note(const LegacyReading& reading, const AxisSizes& believed) {
  std::string english;
  std::string chinese;
  for (std::size_t i = 0; i < reading.coordinates.size(); ++i) {
    const std::string name(short_name(reading.coordinates[i]));
    english += fmt::format("{}number {} is {}", i > 0 ? ", " : "", i + 1, name);
    chinese += fmt::format("{}第 {} 个数字是 {}", i > 0 ? "，" : "", i + 1, name);
  }
  if (reading.sizes.expert.value_or(1) > 1) {
    english += "; experts differ along ep, everything else is a replica along ep";
    chinese += "；专家沿 ep 各不相同，其余沿 ep 为副本";
    if (believed.expert.value_or(1) <= 1) {
      english += "; without --ep this is the non-EP loader, which the disk does not suit";
      chinese += "；未传 --ep 时对应非 EP 读取方式，与磁盘不符";
    }
  }
  return {english, chinese};
}

std::string diagnose_command(const LegacyEvidence& evidence, const LegacyReading& reading) {
  std::string command = "shardwright diagnose " + evidence.path;
  const AxisSizes& sizes = reading.sizes;
  if (sizes.tensor.value_or(1) > 1) command += fmt::format(" --tp {}", *sizes.tensor);
  if (sizes.pipeline.value_or(1) > 1) command += fmt::format(" --pp {}", *sizes.pipeline);
  if (sizes.expert.value_or(1) > 1) command += fmt::format(" --ep {}", *sizes.expert);
  return command;
}

bool has(const Diagnosis& diagnosis, std::string_view code) {
  return std::ranges::any_of(diagnosis.findings, [&](const Finding& f) { return f.code == code; });
}

// What to type next: first what has to be cleared up, then what makes the data usable.
std::string next_command(const LegacyEvidence& evidence, const LegacyReading& reading,
                         const Diagnosis& diagnosis) {
  const NumberedFolder& first = reading.groups.models.front();
  if (diagnosis.confidence == Confidence::kAmbiguous) {
    std::int64_t most = 0;
    for (const NumberedFolder& folder : reading.groups.models) {
      most = std::max(most, folder.numbers.back());
    }
    return fmt::format("shardwright diagnose {} --pp {}", evidence.path, most + 1);
  }
  if (diagnosis.complete == false || has(diagnosis, "L27")) {
    return fmt::format("shardwright inspect {}/{}/{}", evidence.path, first.name, first.file);
  }
  if (has(diagnosis, "L05")) {
    AxisSizes wanted = reading.sizes;
    const AxisSizes& believed = evidence.believed;
    if (believed.tensor) wanted.tensor = believed.tensor;
    if (believed.pipeline) wanted.pipeline = believed.pipeline;
    if (believed.expert && reading.has_experts) wanted.expert = believed.expert;
    if (believed.expert_tensor && reading.has_experts)
      wanted.expert_tensor = believed.expert_tensor;
    return convert_command(evidence.path, "legacy", wanted);
  }
  if (diagnosis.has_errors()) return diagnose_command(evidence, reading);
  return convert_command(evidence.path, "torch_dist", reading.sizes);
}

void add_open_question(const LegacyReading& reading, Diagnosis& diagnosis) {
  if (diagnosis.confidence != Confidence::kAmbiguous) return;
  Phrase known{"none", "无"};
  if (!reading.evidence.empty()) known = reading.evidence.front();
  diagnosis.findings.push_back(make_finding("L04", {{"evidence", known}}));
}

void add_bytes_read(const LegacyEvidence& evidence, Diagnosis& diagnosis) {
  if (evidence.bytes_compared == 0) return;
  diagnosis.evidence.push_back(fill({"{bytes} bytes of tensors were read to compare replicas",
                                     "为比较副本读取了 {bytes} 字节的张量数据"},
                                    {{"bytes", evidence.bytes_compared}}));
}

// Folders of ranks, none of which holds a model.
Diagnosis without_models(const LegacyEvidence& evidence, const FolderGroups& groups) {
  Diagnosis diagnosis;
  std::string files;
  if (!groups.optimizers.empty()) {
    diagnosis.container = "optimizer";
    diagnosis.reason = {"rank folders with an optimizer's files and no model",
                        "rank 目录中只有优化器文件，没有模型"};
    files = groups.optimizers.front().file;
  } else if (!groups.dataloaders.empty()) {
    diagnosis.container = "dataloader";
    diagnosis.reason = {"rank folders with states of data loaders and no model",
                        "rank 目录中只有 dataloader 状态，没有模型"};
    files = "train_dataloader_dprank*.pt";
  } else {
    diagnosis.container = "legacy";
    diagnosis.reason = {"rank folders without a model's file", "rank 目录中没有模型文件"};
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
  diagnosis.container = "legacy";
  diagnosis.confidence = Confidence::kAmbiguous;
  diagnosis.reason = {
      "folders with differently many numbers all hold models: which save is meant "
      "shows in none of them; move one of them away",
      "数字个数不同的目录都含模型：无法判断应取哪一次保存，请移走其中之一"};
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
  if (groups.models.empty()) return {without_models(evidence, groups), std::nullopt};
  const std::vector<std::size_t> arities = arities_of(groups.models);
  if (arities.size() > 1) return {mixed_arities(evidence, groups, arities), std::nullopt};

  LegacyReading reading = read_legacy_layout(evidence, std::move(groups));
  Diagnosis diagnosis;
  diagnosis.container = "legacy";
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
  const bool wants_experts = evidence.believed.expert.value_or(1) > 1;
  diagnosis.loader = wants_experts ? Loader::kExpertAware : Loader::kNonExpert;
  diagnosis.loader_note = loader_note(reading, evidence.believed);
  add_open_question(reading, diagnosis);
  add_folder_findings(evidence, reading, diagnosis);
  add_content_findings(evidence, reading, diagnosis);
  add_caller_findings(evidence, reading, diagnosis);
  add_bytes_read(evidence, diagnosis);
  std::ranges::stable_sort(diagnosis.findings, {}, &Finding::code);
  diagnosis.next = next_command(evidence, reading, diagnosis);
  return {std::move(diagnosis), std::move(reading.question)};
}

}  // namespace shardwright
