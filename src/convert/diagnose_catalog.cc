// SPDX-License-Identifier: Apache-2.0
#include "convert/diagnose_catalog.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "convert/fsdp_source.h"
#include "format/recorded_run.h"
#include "format/run_config.h"
#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/mlite_layout.h"
#include "layout/shard_contents.h"

namespace shardwright {
namespace {

void add_finding(Diagnosis& diagnosis, std::string_view code,
                 std::initializer_list<Parameter> parameters) {
  diagnosis.findings.push_back(make_finding(code, parameters));
}

// Integer percent of a tensor's elements that some chunk holds; replicas count once, overlaps may
// count twice, so that 100 does not prove anything. That is check_coverage's business.
std::int64_t covered_percent(const StoredTensor& tensor) {
  double held = 0;
  std::vector<Box> seen;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) {
    const Box box = tensor.chunks.box(i);
    if (std::ranges::find(seen, box) != seen.end()) continue;
    held += static_cast<double>(box.volume());
    seen.push_back(box);
  }
  const double all = static_cast<double>(Box::whole(tensor.desc.shape).volume());
  return all > 0 ? std::min<std::int64_t>(99, static_cast<std::int64_t>(100 * held / all)) : 0;
}

void add_holes(const Catalog& catalog, Diagnosis& diagnosis) {
  std::vector<const StoredTensor*> holed;
  for (const StoredTensor& tensor : catalog.tensors) {
    const Status status = check_coverage(tensor);
    if (!status && status.error().code == Code::kHole) holed.push_back(&tensor);
  }
  diagnosis.complete = holed.empty();
  if (holed.empty()) return;
  add_finding(diagnosis, "L22",
              {{"percent", covered_percent(*holed.front())},
               {"name", holed.front()->desc.name},
               {"count", holed.size()}});
}

void add_names(const Catalog& catalog, const AxisSizes& believed, Diagnosis& diagnosis) {
  bool has_experts = false;
  std::string head;
  for (const StoredTensor& tensor : catalog.tensors) {
    const std::string& name = tensor.desc.name;
    has_experts |= is_expert_tensor(name);
    if (head.empty() && name.find("hc_head") != std::string::npos) head = name;
  }
  if (!head.empty()) add_finding(diagnosis, "L24", {{"name", head}});
  if (!has_experts) {
    // An axis that the model has no use for is not there, whatever the run was told.
    if (diagnosis.sizes.tensor) diagnosis.sizes.expert = diagnosis.sizes.expert_tensor = 1;
    if (believed.expert.value_or(1) > 1) add_finding(diagnosis, "L32", {{"ep", *believed.expert}});
  }
  if (believed.expert == 1) add_finding(diagnosis, "L03", {});
}

// From common.pt, else from what Megatron-Bridge writes beside it.
RecordedRun run_of(const Checkpoint& checkpoint) {
  if (!checkpoint.arguments.empty()) return recorded_run(checkpoint.arguments);
  if (checkpoint.run_config.empty()) return {};
  const auto config = read_run_config(checkpoint.run_config);
  return config ? recorded_run(*config) : RecordedRun{};
}

void add_sizes(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  const RecordedRun run = run_of(checkpoint);
  if (!run.is_present || !run.sizes.tensor) return;
  diagnosis.sizes = run.sizes;
  // Megatron records None for the sizes that nobody gave.
  if (!diagnosis.sizes.virtual_pipeline) diagnosis.sizes.virtual_pipeline = 1;
  if (!diagnosis.sizes.expert_tensor) diagnosis.sizes.expert_tensor = run.sizes.tensor;
}

void add_sizes_seen(Diagnosis& diagnosis) {
  if (!diagnosis.sizes.tensor) return;
  diagnosis.evidence.push_back(fill({"saved with TP/PP/EP/ETP = {sizes}; it loads at any other",
                                     "保存时 TP/PP/EP/ETP = {sizes}；可按其他大小加载"},
                                    {{"sizes", sizes_text(diagnosis.sizes)}}));
}

Phrase lost_by(MliteLoss loss) {
  const Phrase experts{"the experts of all EP ranks but one", "除一个之外其余 EP rank 的专家"};
  const Phrase rows{"the rows of all expert data ranks but one", "除一个之外其余 EDP rank 的行"};
  if (loss == MliteLoss::kExperts) return experts;
  if (loss == MliteLoss::kRows) return rows;
  return {experts.english + ", or " + rows.english + ",", experts.chinese + "或" + rows.chinese};
}

// Nothing records MLite's layout: shapes and chunks tell it.
void add_mlite(const Catalog& catalog, Diagnosis& diagnosis) {
  const auto layout = read_mlite_layout(catalog);
  if (!layout) {
    diagnosis.confidence = Confidence::kAmbiguous;
    diagnosis.evidence.push_back({layout.error().message, layout.error().message});
    return;
  }
  diagnosis.sizes.expert = layout->expert;
  if (layout->loss != MliteLoss::kNone) {
    diagnosis.complete = false;
    add_finding(diagnosis, "L37",
                {{"name", layout->lost},
                 {"what", lost_by(layout->loss)},
                 {"experts", layout->experts},
                 {"ep", layout->expert}});
    return;
  }
  diagnosis.sizes.expert_tensor = layout->expert_tensor;
  diagnosis.sizes.tensor = layout->tensor;
  diagnosis.sizes.data = layout->data;
}

void add_stages(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  const FsdpStages stages = count_fsdp_stages(checkpoint.catalog, checkpoint.arguments);
  if (!stages.lost_layers()) return;
  diagnosis.complete = false;
  add_finding(diagnosis, "L38",
              {{"layers", stages.found}, {"expected", stages.expected}, {"stages", stages.stages}});
}

Phrase reason_for(std::string_view container) {
  if (container == "hf")
    return {"safetensors files with Hugging Face names", "Hugging Face 命名的 safetensors 文件"};
  if (container == "torch_dist") {
    return {"metadata.json names torch_dist: layout is in the metadata, not in names",
            "metadata.json 标明 torch_dist：布局在元数据中，不在文件名中"};
  }
  if (container == "fsdp_dtensor") {
    return {"DCP files with Megatron-FSDP's names (fsdp_dtensor)",
            "带有 Megatron-FSDP 命名的 DCP 文件（fsdp_dtensor）"};
  }
  return {"a .metadata file without metadata.json: plain torch.distributed.checkpoint",
          "只有 .metadata 而无 metadata.json：普通 torch.distributed.checkpoint"};
}

}  // namespace

Diagnosis diagnose_catalog(const Survey& survey, const std::string& path,
                           std::string_view container, const DiagnoseRequest& request) {
  Diagnosis diagnosis;
  diagnosis.container = container;
  diagnosis.confidence = Confidence::kCertain;
  const std::string quoted = shell_quoted(path);
  diagnosis.next = container == "hf" ? convert_command(quoted, "torch_dist", request.believed)
                                     : convert_command(quoted, "hf", {});
  const auto checkpoint = open_checkpoint(path);
  if (!checkpoint) {
    diagnosis.complete = false;
    diagnosis.next = "shardwright inspect " + quoted;
    add_finding(diagnosis, "L35", {{"file", path}, {"error", checkpoint.error().text()}});
  } else {
    add_sizes(*checkpoint, diagnosis);
    if (container != "hf") add_names(checkpoint->catalog, request.believed, diagnosis);
    add_sizes_seen(diagnosis);
    if (is_fsdp(*checkpoint)) {
      diagnosis.container = "fsdp_dtensor";
    }
    add_holes(checkpoint->catalog, diagnosis);
    if (diagnosis.container == "fsdp_dtensor") add_stages(*checkpoint, diagnosis);
    if (container == "dcp" && is_mlite(checkpoint->catalog)) {
      add_mlite(checkpoint->catalog, diagnosis);
    }
    if (diagnosis.has_errors()) diagnosis.next = "shardwright inspect " + quoted;
    if (diagnosis.container == "dcp" && !diagnosis.has_errors()) {
      diagnosis.next = convert_command(quoted, "safetensors", {});
    }
  }
  for (const std::string& name : survey.leftovers) add_finding(diagnosis, "L28", {{"name", name}});
  diagnosis.reason = reason_for(diagnosis.container);
  return diagnosis;
}

}  // namespace shardwright
