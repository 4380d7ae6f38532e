// SPDX-License-Identifier: Apache-2.0
#include "canonical/lone_head.h"

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "base/fail.h"
#include "canonical/families.h"
#include "canonical/model_facts.h"
#include "canonical/tied_head.h"
#include "model/instances.h"

namespace shardwright {
namespace {

// Forms of a family begin their names with other modules: that of the tensors which are stored.
const std::string& embedding_among(std::span<const TensorDesc> stored,
                                   const std::vector<std::string>& originals) {
  const auto is_of_form = [&](const std::string& original) {
    const std::string root = original.substr(0, original.find('.') + 1);
    return std::ranges::any_of(stored,
                               [&](const TensorDesc& desc) { return desc.name.starts_with(root); });
  };
  const auto found = std::ranges::find_if(originals, is_of_form);
  return found == originals.end() ? originals.front() : *found;
}

}  // namespace

Status name_lone_head(const FamilyChoice& choice, const Checkpoint& checkpoint,
                      std::initializer_list<Catalog*> catalogs, Notes& notes) {
  const std::vector<TensorDesc> stored = descs_of(checkpoint.catalog);
  const std::string config = SW_TRY(config_text_of(choice, checkpoint));
  if (config.empty() || !has_head_alone(config, stored)) return {};
  const Mappings mappings = SW_TRY(load_mappings(choice, checkpoint));
  Notes told_later;
  const auto facts = find_model_facts(choice, checkpoint, mappings, {}, told_later);
  if (!facts) return {};  // told where the family is needed
  const std::vector<CopyInstance> copies = SW_TRY(copy_instances(*facts->mapping, facts->sizes));
  // Prediction layers have copies too, of the head.
  const auto head =
      std::ranges::find(copies, output_layer_names(stored).front(), &CopyInstance::hf);
  if (head == copies.end()) return {};
  // Embeddings of other names than most have are found by the family's rule.
  const TensorIndex index = SW_TRY(TensorIndex::make(stored));
  const auto is_stored = [&](const std::string& name) { return index.contains(name); };
  if (CopyIndex(copies).stored_original(*head, is_stored)) return {};
  const std::string& embedding = embedding_among(stored, head->originals);
  for (Catalog* catalog : catalogs) {
    for (StoredTensor& tensor : catalog->tensors) {
      if (tensor.desc.name == head->hf) tensor.desc.name = embedding;
    }
  }
  notes.push_back(
      translated("{} is taken for {}: the model is tied, and the files have the one in place of "
                 "the other",
                 head->hf, embedding));
  return {};
}

}  // namespace shardwright
