// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_dtensor/module_source.h"

#include <algorithm>

#include "format/dcp/dcp_reader.h"
#include "format/safetensors/source.h"

namespace shardwright {

bool ModuleSource::may_lie_in(const SourceTraits& found) const {
  return found.has_chunk_list ? !found.needs_common_state : safetensors_source().may_lie_in(found);
}

Status ModuleSource::open(Checkpoint& checkpoint, Defects& defects) const {
  return read_dcp(checkpoint, defects);
}

bool ModuleSource::is_spoken_in(const Checkpoint& checkpoint) const {
  const bool is_list = checkpoint.location.traits.has_chunk_list;
  if (!is_list && !safetensors_source().is_spoken_in(checkpoint)) return false;
  return std::ranges::any_of(checkpoint.catalog.tensors, [&](const StoredTensor& tensor) {
    return is_model_name(tensor.desc.name);
  });
}

SourceTraits ModuleSource::traits_of(const Checkpoint& checkpoint) const {
  const SourceTraits own = traits();
  if (checkpoint.location.traits.has_chunk_list) return own;
  SourceTraits found = safetensors_source().traits_of(checkpoint);
  found.has_module_pieces = own.has_module_pieces;
  found.has_state_entries = own.has_state_entries;
  found.weights_are_main = own.weights_are_main;
  found.holds_extras = own.holds_extras;
  return found;
}

}  // namespace shardwright
