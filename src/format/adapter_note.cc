// SPDX-License-Identifier: Apache-2.0
#include "format/adapter_note.h"

#include <fmt/format.h>

#include "base/shell_path.h"
#include "base/text.h"
#include "base/translated.h"
#include "format/peft/source.h"
#include "format/wrapped_adapter.h"
#include "format/wrapped_base.h"
#include "layout/adapter_gaps.h"
#include "layout/lost_parts.h"
#include "layout/state_name.h"
#include "model/adapter_tensors.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// What PEFT wrapped is a model by its other tensors.
std::optional<std::string> note_on_wrapped(const Checkpoint& checkpoint, std::size_t tensors) {
  if (holds_adapter_alone(checkpoint.catalog)) {
    return translated(
        "these {} tensors are an adapter's that a run has saved without its base model: "
        "'shardwright convert {} ADAPTER --to hf' makes PEFT's files of them, which "
        "'merge-adapter' adds to the base model",
        tensors, shell_path(checkpoint.location.path));
  }
  const std::vector<std::string> adapters = adapters_of_wrapped(checkpoint.catalog);
  if (adapters.empty()) return std::nullopt;
  return translated(
      "{} of {} tensors are an adapter's, beside the base model that it was trained with: '{}' "
      "makes the trained model of both, 'convert' with {} makes the base alone, with {} --to hf "
      "PEFT's files of the adapter",
      adapters.size(), checkpoint.catalog.tensors.size(), merge_command_of_wrapped(checkpoint),
      flags_of_wrapped("--exclude", adapters), flags_of_wrapped("--include", adapters));
}

}  // namespace

std::string note_on_adapter_gaps(const Checkpoint& checkpoint) {
  const SourceTraits& traits = checkpoint.location.traits;
  if (traits.is_hf_model || traits.is_adapter) return {};
  const std::vector<std::string> gaps = adapter_gaps(descs_of(checkpoint.catalog));
  if (gaps.empty()) return {};
  return translated(
      "no adapter of {}, where most layers have one: a part of the run may be missing",
      name_list(gaps));
}

std::optional<std::string> adapter_note(const Checkpoint& checkpoint) {
  std::size_t adapters = 0;
  std::size_t others = 0;
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    if (split_state_name(tensor.desc.name)) continue;
    ++(is_adapter_name(tensor.desc.name) ? adapters : others);
  }
  if (is_peft(checkpoint)) {
    return translated(
        "these {} tensors are an adapter in PEFT's files, not a model: 'shardwright merge-adapter "
        "BASE ADAPTER OUT' adds it to its base model, 'convert --to torch_dist --hf-config BASE' "
        "makes it one that Megatron trains on",
        adapters + others);
  }
  if (checkpoint.location.traits.is_hf_model) return note_on_wrapped(checkpoint, adapters + others);
  if (adapters == 0) return std::nullopt;
  const std::vector<std::string> without = layers_without_adapters(
      descs_of(checkpoint.catalog), number_of(checkpoint.arguments, {"num_layers"}).value_or(0));
  const std::string some =
      without.empty() ? "" : translated(" (layers {} have none)", name_list(without));
  std::string note = translated(
      "{} of {} tensors are low-rank adapters of a Megatron run{}{}: 'shardwright convert --to hf "
      "--hf-config BASE' makes PEFT's files of them, which 'merge-adapter' adds to the base model",
      adapters, adapters + others, others == 0 ? ", without their base model" : "", some);
  if (const std::string gaps = note_on_adapter_gaps(checkpoint); !gaps.empty()) {
    note += translated("; {}", gaps);
  }
  return note;
}

}  // namespace shardwright
