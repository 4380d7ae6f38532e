// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "layout/fsdp_name.h"
#include "layout/legacy_names.h"
#include "plan/draft.h"
#include "shardwright/error.h"
#include "shardwright/versioned_names.h"

namespace shardwright {

/// A tensor on its way into an fsdp_dtensor checkpoint: what it is of which parameter.
struct FsdpPiece {
  FsdpName name;
  DraftTensor tensor;
  /// Where its parameter's settings were in the source, by the names of torch_dist.
  std::string settings = {};
  std::string canonical = {};  ///< the parameter's name in torch_dist
};

/// How the modules of a run have what torch_dist has apart.
struct ModuleForm {
  LegacyModules modules;
  VersionedNames names;
  std::int64_t tensor_parallel = 1;
};

/// The model's own tensors among pieces, by the names of their parameters.
[[nodiscard]] std::vector<TensorDesc> weights_of(const std::vector<FsdpPiece>& pieces);

/// Puts the parts of mixers and of fused latent attention together as the modules have them: the
/// parts of the first tensor-parallel rank, then those of the second. REQUIRES: one piece for each
/// layer, under the names of torch_dist. Errors: kUnmatchedSource where a part is missing,
/// kNotDivisible. Notes say whose rows lie in an order that a tensor-parallel size has.
[[nodiscard]] Result<std::vector<FsdpPiece>> put_into_modules(std::vector<FsdpPiece> pieces,
                                                              const ModuleForm& form,
                                                              std::vector<std::string>& notes);

/// Gives a piece the name that the modules have for its parameter.
void name_for_modules(const ModuleForm& form, FsdpPiece& piece);

}  // namespace shardwright
