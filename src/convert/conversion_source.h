// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "base/notes.h"
#include "compare/master_form.h"
#include "model/component_names.h"
#include "model/mappings.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// The source of a conversion, with an ordinary Megatron model's names and states where the target
/// needs them.
struct ConversionSource {
  Checkpoint checkpoint;  ///< all of it
  Catalog wanted;         ///< what of it is converted, located
  bool is_mimo = false;   ///< and its names have become an ordinary model's
  Wrappers wrappers;      ///< that its components had
  Mappings mappings;      ///< where they were needed already
  /// Which states are whose was derived; master weights prove it.
  bool checks_master_weights = false;
  std::uint64_t master_weight_bytes = 0;  ///< read for that
  MasterForm master_form = MasterForm::kRounded;
};

/// Whether a conversion keeps the names that its source has.
[[nodiscard]] bool keeps_names(const ConvertRequest& request);

/// Opens the source of a conversion, selects what of it is wanted and undoes what only its format
/// does: names of MIMO's components, files and buckets of optimizer states, pieces of
/// Megatron-FSDP. `request.optimizer` becomes kDrop where states that were not asked for can't go
/// along: those of MIMO, of Hugging Face's names and of MLite's own optimizers. Errors: those of
/// opening and of each step, and those of check_patterns where this is the only source.
[[nodiscard]] Result<ConversionSource> open_source(ConvertRequest& request, bool is_only,
                                                   Notes& notes);

}  // namespace shardwright
