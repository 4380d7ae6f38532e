// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "canonical/model_facts.h"
#include "io/source_files.h"
#include "model/quantisation.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// How the tensors of an HF model, stored in `catalog`, are Megatron's. Copies (tied heads) are
/// compared bit by bit with what they repeat: those that differ become Megatron tensors of their
/// own. `notes` tell which, and which are ignored. Errors: those of map_from_hf and of reading.
[[nodiscard]] Result<Correspondence> correspond_from_hf(const ModelFacts& facts,
                                                        const ModelTensors& model,
                                                        const Catalog& catalog, SourceFiles& files,
                                                        std::vector<std::string>& notes);

/// The HF tensors that a Megatron checkpoint was made from, where it tells.
struct WantedKeys {
  std::vector<TensorDesc> tensors;
  std::set<std::string, std::less<>> left_out;  ///< of these, as HfWanted has it
};

/// Error: kJsonCorrupt.
[[nodiscard]] Result<WantedKeys> wanted_keys(const Checkpoint& source);

/// Which HF tensors Megatron's canonical tensors make. Errors: those of map_from_megatron.
[[nodiscard]] Result<Correspondence> correspond_from_megatron(const ModelFacts& facts,
                                                              std::span<const TensorDesc> canonical,
                                                              const WantedKeys& keys);

}  // namespace shardwright
