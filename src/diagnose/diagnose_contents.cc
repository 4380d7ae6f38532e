// SPDX-License-Identifier: Apache-2.0
#include "diagnose/diagnose_contents.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "canonical/contradictions.h"
#include "canonical/dequantise.h"
#include "compare/source_losses.h"
#include "dcp/torch_obstacles.h"
#include "format/nothing_stored.h"
#include "layout/texts.h"
#include "model/config_check.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostTold = 8;

// Messages of errors are English.
void add(Code code, Severity severity, TextKey text, const std::string& error,
         Diagnosis& diagnosis) {
  diagnosis.findings.push_back({code_name(code), severity, phrase(text, {{"error", error}})});
}

Result<ArgumentCheck> hold(const Checkpoint& checkpoint) {
  if (checkpoint.location.traits.is_hf_model) {
    if (checkpoint.hf_config.empty()) return ArgumentCheck();
    const HfConfig config = SW_TRY(read_hf_config(checkpoint.hf_config));
    const ModelTensors model =
        SW_TRY(model_tensors(checkpoint.catalog, checkpoint.hf_config, checkpoint.files.get()));
    return ArgumentCheck{{}, contradicted_config(config, model.tensors)};
  }
  if (!checkpoint.hf_config.empty()) SW_TRY(read_hf_config(checkpoint.hf_config));  // carried
  return contradictions_of(checkpoint, SW_TRY(canonical_of(checkpoint)));
}

void add_all(std::span<const std::string> found, Code code, TextKey text, Diagnosis& diagnosis) {
  for (const std::string& each : found.first(std::min(found.size(), kMostTold))) {
    add(code, Severity::kError, text, each, diagnosis);
  }
  if (!found.empty()) diagnosis.complete = false;
}

}  // namespace

void add_contradictions(const Result<ArgumentCheck>& check, Diagnosis& diagnosis) {
  if (!check && check.error().code == Code::kJsonCorrupt) {
    diagnosis.complete = false;
    add(check.error().code, Severity::kError, "contents.unread", check.error().message, diagnosis);
    return;
  }
  if (!check) {
    diagnosis.evidence.push_back(phrase("model.unchecked", {{"why", check.error().message}}));
    return;
  }
  const std::vector<Contradiction>& found = check->contradictions;
  for (std::size_t i = 0; i < std::min(found.size(), kMostTold); ++i) {
    add(Code::kArgumentsContradict, Severity::kError, "contents.contradicted", found[i].message,
        diagnosis);
  }
}

void add_contents(const Checkpoint& checkpoint, std::span<const std::string> doubled,
                  Diagnosis& diagnosis) {
  const Status stored = check_something_stored(checkpoint.catalog, checkpoint.location.path);
  if (!stored) {
    diagnosis.complete = false;
    add(stored.error().code, Severity::kError, "contents.nothing_stored", stored.error().message,
        diagnosis);
    return;
  }
  // Of a checkpoint of which nothing was found to be missing so far.
  if (diagnosis.complete.value_or(true)) {
    add_all(doubled, Code::kOverlap, "contents.doubled", diagnosis);
    if (const auto lost = losses_of(checkpoint)) {
      add_all(*lost, Code::kModelIncomplete, "contents.lost", diagnosis);
    }
  }
  if (const Status state = check_common_state(checkpoint); !state) {
    diagnosis.complete = false;
    add(state.error().code, Severity::kError, "contents.unread", state.error().message, diagnosis);
  }
  add_contradictions(hold(checkpoint), diagnosis);
  const std::vector<std::string> obstacles = torch_obstacles(checkpoint);
  for (std::size_t i = 0; i < std::min(obstacles.size(), kMostTold); ++i) {
    add(Code::kUnloadable, Severity::kWarning, "contents.unloadable", unloadable_text(obstacles[i]),
        diagnosis);
  }
}

}  // namespace shardwright
