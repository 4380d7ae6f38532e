// SPDX-License-Identifier: Apache-2.0
#include "convert/adapter_head.h"

#include <algorithm>

#include "base/fail.h"
#include "base/text.h"
#include "canonical/classifier_config.h"
#include "canonical/tied_head.h"

namespace shardwright {
namespace {

constexpr std::int64_t kMostLabels = 1 << 16;  // each gets a name in config.json

// How many labels it gives. It takes what the base's output layer takes.
Result<std::int64_t> labels_of_head(const TakenAdapter& taken, std::span<const TensorDesc> model) {
  const PeftAdapter& adapter = taken.adapter;
  const TensorDesc* weight = nullptr;
  const TensorDesc* bias = nullptr;
  for (const SavedTensor& saved : taken.updates.head) {
    const TensorDesc& desc = adapter.catalog.tensors[saved.tensor].desc;
    (desc.shape.size() == 2 ? weight : bias) = &desc;
  }
  if (weight == nullptr) {
    return fail(Code::kUnmatchedSource,
                "{}: tensor {}: found the bias of a head, expected its weight too", adapter.path,
                printable(bias->name));
  }
  const std::optional<std::int64_t> inputs = output_layer_inputs(model);
  if (inputs && weight->shape[1] != *inputs) {
    return fail(Code::kShapeMismatch,
                "{}: tensor {}: found a head on {} numbers for each token, expected the base "
                "model's {}; is this the adapter of another model?",
                adapter.path, printable(weight->name), weight->shape[1], *inputs);
  }
  if (weight->shape[0] < 1 || weight->shape[0] > kMostLabels) {
    return fail(Code::kShapeMismatch, "{}: tensor {}: found a head of {} labels, expected 1 to {}",
                adapter.path, printable(weight->name), weight->shape[0], kMostLabels);
  }
  if (bias != nullptr && bias->shape[0] != weight->shape[0]) {
    return fail(Code::kShapeMismatch, "{}: tensor {} {} does not fit {} {}", adapter.path,
                printable(bias->name), to_string(bias->shape), printable(weight->name),
                to_string(weight->shape));
  }
  return weight->shape[0];
}

}  // namespace

Status give_head_of_adapter(const TakenAdapter& taken, std::span<const TensorDesc> model,
                            const std::string& config, Drafting& drafting) {
  Checkpoint& source = drafting.result.source;
  const std::int64_t labels = SW_TRY(labels_of_head(taken, model));
  const std::string& given = drafting.request().hf_config_dir;
  const std::string& task = taken.adapter.config.task_type;
  std::string edited = SW_TRY(classifier_config(config, task, labels));
  if (edited != config) {
    if (!given.empty()) {
      return fail(Code::kUsage,
                  "--hf-config {}: its config.json is of no model with a head of {} labels, which "
                  "the adapter has ({}); give one of such a model, or leave --hf-config out",
                  given, labels, task);
    }
    drafting.replace_config(std::move(edited));
  }
  const std::vector<std::string> gone = output_layer_names(model);
  for (Catalog* catalog : {&source.catalog, &drafting.catalog}) {
    std::erase_if(catalog->tensors, [&](const StoredTensor& tensor) {
      return std::ranges::find(gone, tensor.desc.name) != gone.end();
    });
  }
  for (const SavedTensor& saved : taken.updates.head) {
    StoredTensor stored = taken.stored(saved.tensor);
    stored.desc.name = saved.name;
    source.catalog.tensors.push_back(stored);
    drafting.catalog.tensors.push_back(std::move(stored));
  }
  drafting.tell(translated("the adapter's head ({}, labels: {}) comes in the output layer's place",
                           task, labels));
  return {};
}

}  // namespace shardwright
