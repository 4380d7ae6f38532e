// SPDX-License-Identifier: Apache-2.0
#include "convert/prediction_drafts.h"

#include <algorithm>
#include <iterator>

#include "base/fail.h"
#include "canonical/dequantise.h"
#include "canonical/prediction_layers.h"
#include "canonical/prediction_source.h"
#include "layout/layer_name.h"
#include "model/apply.h"

namespace shardwright {
namespace {

bool drops(const Drafting& drafting) {
  const MtpPolicy policy = drafting.request().mtp;
  return policy == MtpPolicy::kDrop ||
         (policy == MtpPolicy::kDefault && drafting.traits().has_components);
}

// What the family makes prediction layers of, as it is stored.
struct OwnLayers {
  ModelTensors model;
  std::vector<std::string> names;
};

Result<OwnLayers> own_layers(const ModelFacts& facts, const Catalog& catalog, SourceFiles& files) {
  OwnLayers own{SW_TRY(model_tensors(catalog, facts.config_text, &files)), {}};
  const Correspondence all = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, own.model.tensors));
  own.names = prediction_tensors(all);
  return own;
}

}  // namespace

Status drop_prediction_layers(Drafting& drafting) {
  if (!drops(drafting)) return {};
  if (drafting.is_from_hf()) {
    // Else once its family is known.
    if (drafting.traits().names == TargetNames::kMegatron) return {};
    return fail(Code::kUsage,
                "--mtp drop: found a Hugging Face model that keeps its names, expected a target "
                "that its family is needed for; --exclude leaves tensors out by name");
  }
  const std::vector<std::string> names = erase_prediction_layers(drafting.catalog);
  if (!names.empty()) drafting.tell(dropped_note(names));
  return {};
}

Status drop_prediction_layers_of_hf(const ModelFacts& facts, Drafting& drafting) {
  if (!drops(drafting)) return {};
  const OwnLayers own = SW_TRY(own_layers(facts, drafting.catalog, *drafting.source().files));
  if (own.names.empty()) return {};
  const std::vector<std::string> stored = stored_names(own.model, drafting.catalog, own.names);
  erase_tensors(stored, drafting.catalog);
  erase_tensors(stored, drafting.result.source.catalog);
  drafting.tell(dropped_note(own.names));
  return {};
}

Status take_prediction_layers_into_hf(const ModelFacts& facts, Drafting& drafting) {
  const OwnLayers own = SW_TRY(own_layers(facts, drafting.catalog, *drafting.source().files));
  if (!own.names.empty()) return refuse_own_layers(drafting.request(), own.names[0]);
  const PredictionSource from = SW_TRY(open_prediction_source(drafting.request(), facts));
  PreparedConversion& result = drafting.result;
  add_prediction_tensors(from.tensors, from, result.source, drafting.catalog);
  drafting.tell(taken_note(from));
  result.more_sources.push_back(result.request.mtp_from);
  const std::string& config = result.source.hf_config;
  std::string edited = SW_TRY(with_prediction_numbers(config, from.checkpoint.hf_config));
  if (edited != config) drafting.replace_config(std::move(edited));
  return {};
}

Status take_prediction_layers_to_hf(ModelFacts& facts, Drafting& drafting) {
  for (const StoredTensor& tensor : drafting.catalog.tensors) {
    const std::string& name = tensor.desc.name;
    if (is_prediction_layer(name)) return refuse_own_layers(drafting.request(), name);
  }
  const PredictionSource from = SW_TRY(open_prediction_source(drafting.request(), facts));
  PreparedConversion& result = drafting.result;
  add_prediction_tensors(from.tensors, from, result.source, drafting.catalog);
  std::vector<DraftTensor>& tensors = drafting.parts.tensors;
  std::ranges::move(draft_prediction_layers(from, drafting.catalog,
                                            {result.request.dtype, LayerKeys::kAutomatic}, tensors),
                    std::back_inserter(tensors));
  drafting.tell(taken_note(from));
  result.more_sources.push_back(result.request.mtp_from);
  facts.has_prediction_layers = true;
  const std::string edited =
      SW_TRY(with_prediction_numbers(facts.config_text, from.checkpoint.hf_config));
  facts.config_is_ours = facts.config_is_ours || edited != facts.config_text;
  facts.config_text = edited;
  return {};
}

}  // namespace shardwright
