// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>

#include "base/notes.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Gives the head of a tied model whose embedding is not stored (has_head_alone) the embedding's
/// name, as transformers 5 takes the one for the other; a note tells. Other catalogs stay. Errors:
/// those of the family's copy rules.
[[nodiscard]] Status name_lone_head(const FamilyChoice& choice, const Checkpoint& checkpoint,
                                    std::initializer_list<Catalog*> catalogs, Notes& notes);

}  // namespace shardwright
