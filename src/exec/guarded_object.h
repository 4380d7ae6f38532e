// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Makes the CRC-32s of an opaque entry's records known, if it is a torch.save archive, so that
/// they are compared while it is copied. Reads its directory and its records' headers. Errors:
/// those of zip::Archive for an archive of a checkpoint that is broken; kPayloadDamaged for a
/// compressed record.
[[nodiscard]] Status expect_object(SourceFiles& files, const StoredObject& object);

}  // namespace shardwright
