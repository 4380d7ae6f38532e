// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "exec/jobs.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"

namespace shardwright {

/// Looks for files in which each part of a tensor that several files share, or of which several
/// files have a layer each, is, byte by byte, the other part that another file has: somebody copied
/// one rank's file over another's, whose names, shapes and CRC-32s are all right. Of files that
/// differ, as they should, only a few hundred bytes of four tensors are read. At least two matrices
/// must be alike that are not one number all over. Nothing is looked for with kNone. `located`: the
/// checkpoint's catalog, with its payloads in their places.
///
/// Error: kRankMisplaced, one for each such file, told to `defects`. Experts, and layers of one
/// stack, may be copies of one another since the model was made: where only such parts are alike
/// the result says it, a sentence for each file.
[[nodiscard]] Result<std::vector<std::string>> check_files(const Checkpoint& checkpoint,
                                                           const Catalog& located,
                                                           ReplicaCheck check, Defects& defects,
                                                           const Workers& workers = {});

}  // namespace shardwright
