// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "codec/torch_archive.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Opens the torch.save archive that an opaque entry is: its pickle in memory, tensors in the file,
/// whose offsets they have. Errors: kLimit, those of TorchArchive::open.
[[nodiscard]] Result<TorchArchive> open_object(const StoredObject& object, SourceFiles& files);

}  // namespace shardwright
