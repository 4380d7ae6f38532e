// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "shardwright/catalog.h"
#include "shardwright/error.h"

namespace shardwright {

/// An error that rules of a family make, which know of tensors alone, with the file in which the
/// first of the catalog's tensors lies that its message names. Unchanged where it names none, one
/// that lies in several files, or the file itself.
[[nodiscard]] Error with_file(Error error, const Catalog& catalog);

}  // namespace shardwright
