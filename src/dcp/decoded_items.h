// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "base/allowance.h"
#include "dcp/dcp_metadata.h"
#include "io/source_files.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// What torch calls its own stream extension; others exist only in the code of who saved.
inline constexpr std::string_view kZstdDescriptor = "stream.zstd/1";

/// Error: kItemTransformed for an item whose descriptors we can't undo, naming entry and
/// descriptor.
[[nodiscard]] Status check_transformed(const TransformedItem& item);

/// Refuses transformed items whose descriptors we can't undo and tensors that are transformed in
/// part, and marks the others Encoding::kZstdItem. Error: kItemTransformed, naming entry and
/// descriptor.
[[nodiscard]] Status mark_transformed(std::span<const TransformedItem> items, Catalog& catalog);

/// Decodes the items of all tensors of Encoding::kZstdItem into a temporary file, which becomes a
/// further one of the catalog and of `files`; the tensors get Encoding::kTorchItem. An item may
/// have been compressed several times. It may be no larger than the metadata says that its tensor
/// is, all items of a file no larger than Allowance gives that file, and all of them must fit on
/// the disk before the first is decoded (kDiskSpace). Other errors: as decode_zstd's.
[[nodiscard]] Status decode_items(Catalog& catalog, SourceFiles& files);

/// The same for the objects that `items` names. Error: kLimit beyond what Allowance gives a file.
[[nodiscard]] Status decode_objects(std::span<const TransformedItem> items, Catalog& catalog,
                                    SourceFiles& files);

/// The same for one object whose stored bytes were read: `where` is for messages, `allowance` that
/// of its file. Errors: kLimit, and decode_zstd's.
[[nodiscard]] Result<std::string> decode_object(std::string where, std::string stored,
                                                Allowance& allowance);

}  // namespace shardwright
