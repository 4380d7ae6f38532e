// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compare/master_form.h"
#include "convert/taken_adapter.h"
#include "format/target_format.h"
#include "model/interleaved_gates.h"
#include "model/mappings.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// A conversion on its way to a plan: what each step hands on to the next.
struct Drafting {
  const Target* target = nullptr;
  PreparedConversion result;  ///< request, source, family, notes and `plan.quantised`
  Catalog catalog;            ///< what of the source is wanted
  Mappings mappings;
  MasterForm master_form = MasterForm::kRounded;
  std::vector<std::string> stored_names;  ///< of its tensors, where the model has others
  std::optional<TakenAdapter> adapter;
  TargetParts parts;
  InterleavedGates gates;  ///< of a Megatron target's weights

  [[nodiscard]] const ConvertRequest& request() const { return result.request; }
  [[nodiscard]] const Checkpoint& source() const { return result.source; }
  [[nodiscard]] const TargetTraits& traits() const { return target->traits(); }
  [[nodiscard]] bool is_from_hf() const { return source().location.traits.is_hf_model; }
  void tell(std::string note) { result.notes.push_back(std::move(note)); }
  /// What is mapped by, and what goes along, is this text from now on.
  void replace_config(std::string text);
};

/// Loads the mapping files that may speak of the source, once.
[[nodiscard]] Status load_mappings(Drafting& drafting);

}  // namespace shardwright
