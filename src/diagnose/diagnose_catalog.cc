// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_catalog.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/notes.h"
#include "base/shell_path.h"
#include "canonical/contradictions.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "diagnose/diagnose_contents.h"
#include "diagnose/diagnose_conversion.h"
#include "diagnose/diagnose_pickles.h"
#include "diagnose/diagnose_replicas.h"
#include "format/adapter_note.h"
#include "format/formats.h"
#include "format/nothing_stored.h"
#include "format/quantizer_values.h"
#include "format/refused_format.h"
#include "format/targets.h"
#include "format/weight_files.h"
#include "format/wrapped_adapter.h"
#include "format/wrapped_base.h"
#include "layout/finding_rules.h"
#include "layout/legacy_findings.h"
#include "layout/shard_contents.h"
#include "layout/texts.h"
#include "remote/open_path.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// Integer percent of a tensor's elements that some chunk holds; replicas count once, overlaps may
// count twice, so that 100 does not prove anything. That is check_coverage's business.
std::int64_t covered_percent(const StoredTensor& tensor) {
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < tensor.chunks.size(); ++i) boxes.push_back(tensor.chunks.box(i));
  std::ranges::sort(boxes, [](const Box& a, const Box& b) {
    return a.origin == b.origin ? std::ranges::lexicographical_compare(a.shape, b.shape)
                                : std::ranges::lexicographical_compare(a.origin, b.origin);
  });
  const auto replicas = std::ranges::unique(boxes);
  boxes.erase(replicas.begin(), replicas.end());
  double held = 0;
  for (const Box& box : boxes) held += static_cast<double>(box.volume());
  const double all = static_cast<double>(Box::whole(tensor.desc.shape).volume());
  return all > 0 ? std::min<std::int64_t>(99, static_cast<std::int64_t>(100 * held / all)) : 0;
}

// Tensors of which something is stored by nobody, and those of which something is stored twice.
struct Coverage {
  std::vector<const StoredTensor*> holed;
  std::vector<std::string> doubled;  // what is wrong
};

Coverage coverage_of(const Catalog& catalog) {
  Coverage coverage;
  for (const StoredTensor& tensor : catalog.tensors) {
    Status status = check_coverage(tensor);
    if (status) continue;
    if (status.error().code == Code::kHole) coverage.holed.push_back(&tensor);
    if (status.error().code == Code::kOverlap) {
      coverage.doubled.push_back(std::move(status).error().message);
    }
  }
  return coverage;
}

void add_holes(const std::vector<const StoredTensor*>& holed, Diagnosis& diagnosis) {
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

void add_sizes(const Checkpoint& checkpoint, Diagnosis& diagnosis) {
  const auto arguments = run_arguments(checkpoint);
  if (!arguments) return;  // told where they are held against the model
  const RecordedRun run = recorded_run(*arguments);
  if (!run.is_present || !run.sizes.tensor) return;
  diagnosis.sizes = run.sizes;
  // Megatron records None for the sizes that nobody gave.
  if (!diagnosis.sizes.virtual_pipeline) diagnosis.sizes.virtual_pipeline = 1;
  if (!diagnosis.sizes.expert_tensor) diagnosis.sizes.expert_tensor = run.sizes.tensor;
}

void add_sizes_seen(Diagnosis& diagnosis) {
  if (!diagnosis.sizes.tensor) return;
  diagnosis.evidence.push_back(phrase("sizes.saved", {{"sizes", sizes_text(diagnosis.sizes)}}));
}

// Whether a file that cannot be read as a whole begins at least as its name promises.
bool contents_agree(const Survey& survey, const std::string& path, const SourceTraits& traits) {
  constexpr std::size_t kLengthBytes = 8;
  const auto directory = open_directory(path);
  if (!directory) return false;
  for (const DirectoryEntry& entry : survey.entries) {
    const bool is_metadata =
        traits.has_chunk_list && (entry.name == ".metadata" || entry.name == "__0.metadata");
    const bool is_weights = traits.is_hf_model && entry.name.ends_with(".safetensors");
    const bool is_torch =
        traits.is_hf_model && (entry.name.ends_with(".bin") || entry.name.ends_with(".pth"));
    if (entry.is_directory || (!is_metadata && !is_weights && !is_torch)) continue;
    const auto file = (*directory)->open(entry.name);
    std::array<std::byte, kLengthBytes + 1> head{};
    if (!file || (*file)->size() < head.size() || !(*file)->read_at(0, head)) continue;
    // A pickle's PROTO, or the JSON behind a header's length.
    if (is_metadata && head.front() == std::byte{0x80}) return true;
    if (is_weights && head.back() == std::byte{'{'}) return true;
    if (is_torch && (head.front() == std::byte{'P'} || head.front() == std::byte{0x80}))
      return true;
  }
  return false;
}

// What is in a checkpoint that could be opened.
void add_opened(const Checkpoint& checkpoint, const SourceFormat& format,
                const DiagnoseRequest& request, Diagnosis& diagnosis) {
  const SourceTraits& traits = checkpoint.location.traits;
  if (!traits.has_components) add_sizes(checkpoint, diagnosis);
  if (!traits.is_hf_model) add_names(checkpoint.catalog, request.believed, diagnosis);
  add_sizes_seen(diagnosis);
  if (const auto note = adapter_note(checkpoint); note && !traits.is_adapter) {
    const bool is_wrapped = traits.is_hf_model;
    diagnosis.evidence.push_back(is_wrapped ? Phrase{*note, *note} : phrase("adapter.of_run"));
  }
  const Coverage coverage = coverage_of(checkpoint.catalog);
  add_holes(coverage.holed, diagnosis);
  if (!lone_part_note(checkpoint).empty()) diagnosis.complete = false;
  if (std::string alone = note_on_states_alone(checkpoint); !alone.empty()) {
    diagnosis.complete = false;
    diagnosis.evidence.push_back({alone, alone});
  }
  for (const std::string& note : checkpoint.notes) diagnosis.evidence.push_back({note, note});
  format.add_findings(checkpoint, diagnosis);
  add_checkpoint_pickles(checkpoint, diagnosis);
  add_replicas(checkpoint, request.check_replicas, diagnosis);
  add_contents(checkpoint, coverage.doubled, diagnosis);
}

// Whether what lies there tells whose model it is.
bool has_family(const Checkpoint& checkpoint) {
  const auto mappings = load_mappings({}, checkpoint);
  const auto model = canonical_of(checkpoint);
  Notes unused;
  return mappings && model && find_model_facts({}, checkpoint, *mappings, *model, unused);
}

// The flag that a conversion of this checkpoint can't be without.
std::string_view needed_flag(const Checkpoint& checkpoint, const SourceFormat& format) {
  const SourceTraits& traits = checkpoint.location.traits;
  if (adapter_note(checkpoint) && !traits.is_hf_model) return " --hf-config BASE";
  const bool needs_names = traits.is_named_by_family || traits.is_hf_model;
  if (needs_names) return checkpoint.hf_config.empty() ? kModelFlag : "";
  const bool needs_family = format.usual_target() == "hf";
  return needs_family && !has_family(checkpoint) ? kModelFlag : "";
}

// Whether all that a conversion needs was found out when the checkpoint was opened, but for what
// lies around its tensors: nothing is asked of a server twice, and nothing is decoded for a
// diagnosis.
bool is_soon_planned(const Checkpoint& checkpoint) {
  const auto is_packed = [](const StoredTensor& tensor) {
    return tensor.encoding == Encoding::kZstdItem;
  };
  return !is_remote_path(checkpoint.location.path) &&
         std::ranges::none_of(checkpoint.catalog.tensors, is_packed);
}

// What can be done with a checkpoint in which nothing is wrong.
void add_next(const Checkpoint& checkpoint, const SourceFormat& format, const DiagnosedPlace& place,
              const AxisSizes& believed, Diagnosis& diagnosis) {
  const SourceTraits& traits = checkpoint.location.traits;
  if (const auto model = model_beside_states(checkpoint)) {
    diagnosis.next = "shardwright diagnose " + shell_path(*model);
  } else if (holds_states_alone(checkpoint.catalog)) {
    diagnosis.next = "shardwright inspect " + place.shown;
  } else if (traits.is_hf_model && holds_adapter_alone(checkpoint.catalog)) {
    diagnosis.next = fmt::format("shardwright convert {} ADAPTER --to hf", shell_path(place.path));
  } else if (traits.is_hf_model && !adapters_of_wrapped(checkpoint.catalog).empty()) {
    diagnosis.next = merge_command_of_wrapped(checkpoint);
  } else if (traits.is_adapter) {
    // What is merged into a base is found by its folder alone.
    diagnosis.next = "shardwright merge-adapter BASE " + shell_path(place.path) + " OUT";
  } else {
    const std::string_view target = format.usual_target();
    const std::string_view flag = needed_flag(checkpoint, format);
    diagnosis.next =
        convert_command(place.shown, target, traits_of(target).has_grid ? believed : AxisSizes());
    diagnosis.next += flag;
    // Of ranks' files, which may be thousands, all would have to be read.
    if (!traits.is_of_ranks) add_impossible_sizes(place, believed, diagnosis);
    if (diagnosis.has_errors()) return;
    if (!flag.empty() || !is_soon_planned(checkpoint)) return;
    add_refused_conversion(place, target, believed, diagnosis);
  }
}

}  // namespace

Result<Diagnosis> diagnose_catalog(const Survey& survey, const std::string& path,
                                   const Candidate& candidate, const DiagnoseRequest& request) {
  Diagnosis diagnosis;
  const SourceFormat* format = candidate.format;
  diagnosis.format = format->name();
  diagnosis.confidence = Confidence::kCertain;
  auto checkpoint = open_checkpoint(path, FormatChoice{diagnosis.format});
  bool is_confirmed = true;
  if (!checkpoint) {
    if (Defects::is_outage(checkpoint.error())) return std::unexpected(checkpoint.error());
    diagnosis.complete = false;
    is_confirmed = contents_agree(survey, path, format->traits());
    if (!is_confirmed) diagnosis.confidence = Confidence::kAmbiguous;
    add_finding(diagnosis, "L35", {{"file", path}, {"error", checkpoint.error().text()}});
  } else {
    leave_quantizer_values_out(checkpoint->catalog, checkpoint->notes);
    format = find_source_format(checkpoint->location.format);
    diagnosis.format = format->name();
    add_opened(*checkpoint, *format, request, diagnosis);
  }
  const DiagnosedPlace place = {path, diagnosis.format, shell_path(path) + flag_of(candidate),
                                checkpoint && !checkpoint->hf_config.empty()};
  if (diagnosis.has_errors()) {
    diagnosis.next = "shardwright verify " + place.shown;
  } else {
    add_next(*checkpoint, *format, place, request.believed, diagnosis);
  }
  for (const std::string& name : survey.leftovers) add_finding(diagnosis, "L28", {{"name", name}});
  diagnosis.reason = is_confirmed ? format->summary() : phrase("format.names_only");
  return diagnosis;
}

}  // namespace shardwright
