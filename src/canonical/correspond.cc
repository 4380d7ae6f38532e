// SPDX-License-Identifier: Apache-2.0
#include "canonical/correspond.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/fail.h"
#include "canonical/stored_gates.h"
#include "canonical/tied_head.h"
#include "compare/copies.h"
#include "layout/model_head.h"
#include "model/adapter_tensors.h"
#include "model/apply.h"
#include "model/head_rules.h"
#include "state/source_keys.h"

namespace shardwright {
namespace {

// Megatron's model computes something else then than Hugging Face's.
void tell_heads_of_tied(const Correspondence& correspondence, const ModelTensors& model,
                        const std::set<std::string, std::less<>>& differing,
                        std::vector<std::string>& notes) {
  const std::vector<std::string> heads = output_layer_names(model.tensors);
  for (const HfCopy& copy : correspondence.copies) {
    const std::string& head = copy.desc.name;
    const bool is_head = std::ranges::find(heads, head) != heads.end();
    if (!is_head || !differing.contains(head) || model.is_quantised(head)) continue;
    notes.push_back(
        translated("config.json says that {} is {}, and it is not: Megatron's model computes with "
                   "the embedding, transformers 5 with the head that is stored; with "
                   "tie_word_embeddings false in config.json the head is converted too",
                   head, copy.original));
  }
}

}  // namespace

Result<Correspondence> correspond_from_hf(const ModelFacts& facts, const ModelTensors& model,
                                          const Catalog& catalog, SourceFiles& files,
                                          std::vector<std::string>& notes) {
  if (facts.config) SW_TRY(check_labels(*facts.config, model.tensors));
  Correspondence correspondence = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, model.tensors));
  FromHfOptions options;
  options.differing_copies = SW_TRY(find_differing_copies(correspondence.copies, catalog, files));
  for (const HfCopy& copy : correspondence.copies) {
    // Equal values may have other scales.
    if (model.is_quantised(copy.desc.name)) options.differing_copies.insert(copy.desc.name);
    const bool differs = options.differing_copies.contains(copy.desc.name);
    notes.push_back(differs ? translated("{} differs from {} and is kept as hf_extra",
                                         copy.desc.name, copy.original)
                            : translated("{} repeats {} bit by bit and is not stored twice",
                                         copy.desc.name, copy.original));
  }
  if (!facts.config_text.empty()) {
    tell_heads_of_tied(correspondence, model, options.differing_copies, notes);
  }
  if (!options.differing_copies.empty()) {
    correspondence = SW_TRY(map_from_hf(*facts.mapping, facts.sizes, model.tensors, options));
  }
  for (const std::string& name : correspondence.ignored) {
    notes.push_back(translated("{} is ignored: Megatron computes it", name));
  }
  return correspondence;
}

Result<WantedKeys> wanted_keys(const Checkpoint& source) {
  WantedKeys keys;
  if (source.source_keys.empty()) return keys;
  SourceKeys told = SW_TRY(read_source_keys(source.source_keys));
  // Without a place for extras and a list of them nobody knows which are missing.
  if (!told.left_out && !source.location.traits.holds_extras) return keys;
  keys.tensors = std::move(told.tensors);
  if (told.left_out) keys.left_out.insert(told.left_out->begin(), told.left_out->end());
  return keys;
}

Result<Correspondence> correspond_from_megatron(const ModelFacts& facts,
                                                std::span<const TensorDesc> canonical,
                                                const WantedKeys& keys) {
  const HfWanted wanted{keys.tensors, keys.left_out};
  FromMegatronOptions options;
  if (facts.config) options.head = head_module(*facts.config);
  Correspondence made = SW_TRY(map_from_megatron(
      *facts.mapping, facts.sizes, canonical, keys.tensors.empty() ? nullptr : &wanted, options));
  const bool is_adapter = std::ranges::any_of(canonical, is_adapter_name, &TensorDesc::name);
  if (is_adapter && facts.gates.states.are_any()) return refuse_adapters_of_blocks();
  SW_TRY(interleave_gates(facts.gates.weights, made));
  if (options.head.empty() || is_adapter) return made;
  const auto is_of_head = [](const MappedTensor& tensor) {
    return has_head_name(tensor.desc.name);
  };
  if (std::ranges::any_of(made.hf, is_of_head)) return made;
  return fail(Code::kUnmatchedTarget,
              "config.json: found architecture {}, expected that of a language model: the "
              "checkpoint has no head for rewards, values or classes; --hf-config gives the "
              "language model's",
              facts.config->architectures[0]);
}

}  // namespace shardwright
