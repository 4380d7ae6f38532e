// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// That each item of the catalog's files is one piece of one tensor, or one object: writers put one
/// item behind the other, so that two which share bytes are one of them under two names, and the
/// other is lost. Equal boxes of a tensor may share an item, and tensors a safetensors file inside
/// a `.distcp` file. REQUIRES: items that were not located. One error for each that lies within
/// another, told to `defects`: kMetadataCorrupt.
[[nodiscard]] Status check_item_places(const Catalog& catalog, Defects& defects);

}  // namespace shardwright
