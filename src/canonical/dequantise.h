// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/notes.h"
#include "io/source_files.h"
#include "model/quantisation.h"
#include "plan/draft.h"
#include "shardwright/plan.h"

namespace shardwright {

/// The model that the tensors of an HF catalog are, by the words of its config.json. Of `files`
/// only small tensors beside packed values are read (shapes, orders of columns); without them
/// (null) names and shapes are told, as join_scales does, and nothing may be multiplied. Errors:
/// those of join_scales and of reading.
[[nodiscard]] Result<ModelTensors> model_tensors(const Catalog& catalog,
                                                 std::string_view config_json, SourceFiles* files);

/// Makes the catalog one that a plan can multiply: stored values take the name and the shape that
/// the model has, `quantised` says where their scales are, and `notes` how many tensors become
/// `dtype` and what is ignored. REQUIRES: `model` is model_tensors of this catalog
/// and its files.
void declare_quantised(const ModelTensors& model, DType dtype, Catalog& catalog,
                       std::vector<QuantisedSource>& quantised, Notes& notes);

/// What of the catalog the named tensors of the model are stored as, scales included. REQUIRES: as
/// declare_quantised, before it.
[[nodiscard]] std::vector<std::string> stored_names(const ModelTensors& model,
                                                    const Catalog& catalog,
                                                    const std::vector<std::string>& names);

/// Leaves the model's tensors of `drafts`, which has one for each stored tensor; those that were
/// quantised become `dtype`.
void keep_model_tensors(const ModelTensors& model, DType dtype, std::vector<DraftTensor>& drafts);

}  // namespace shardwright
