// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "format/target_parts.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// The tensors of a target that keeps the source's own names. Experts of an MLite source get the
/// model's numbers and their rows its order, in `catalog` too.
[[nodiscard]] Status draft_stored_tensors(const ConvertRequest& request, Catalog& catalog,
                                          TargetParts& parts, std::vector<std::string>& notes);

/// Notes say what of the source lies in no such target although its optimizer states do: who goes
/// on with them needs more than tensors.
void tell_what_stays(const Checkpoint& source, const Catalog& catalog,
                     std::vector<std::string>& notes);

}  // namespace shardwright
