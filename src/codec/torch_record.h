// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "codec/torch_archive.h"
#include "codec/zip_reader.h"

namespace shardwright {

/// What readers of torch.save archives share.

/// The records' folder, without its slash: what stands before the first slash of the first name, as
/// in torch's reader. Error: kTorchArchive.
[[nodiscard]] Result<std::string> torch_folder(const zip::Archive& zip);

/// A record by its name in the folder. Error: kTorchArchive when it is missing.
[[nodiscard]] Result<const zip::Entry*> torch_record(const zip::Archive& zip,
                                                     std::string_view folder,
                                                     std::string_view name);

/// Refuses an archive whose `byteorder` record is not `little`; old ones have none and are little.
[[nodiscard]] Status check_torch_byteorder(const zip::Archive& zip, std::string_view folder);

/// Where torch's writer puts the bytes of a stored record, in the file. Nothing where the directory
/// tells another end of it. Reads nothing: only the local header tells where they really begin.
[[nodiscard]] std::optional<ByteRange> usual_torch_place(const zip::Archive& zip,
                                                         const zip::Entry& entry);

/// Checks a storage's record against the recipe and gives the place of the view in the file.
/// `payload` is what zip.locate() tells. Errors: kTorchArchive, kZipUnsupported.
[[nodiscard]] Result<LocatedTensor> place_torch_tensor(const TorchTensor& recipe,
                                                       const zip::Archive& zip,
                                                       const zip::Entry& storage,
                                                       ByteRange payload);

/// All bytes of the storage of a located tensor, a small one; compared with their CRC-32 where the
/// archive has one. Errors: kPayloadDamaged, kLimit above `limit_bytes`.
[[nodiscard]] Result<std::string> read_torch_storage(const ReadableFile& file,
                                                     const LocatedTensor& tensor,
                                                     std::uint64_t limit_bytes);

/// The place of a tensor in a storage that lies at `payload`. REQUIRES: that storage has
/// recipe.storage_bytes.
[[nodiscard]] LocatedTensor place_in_storage(const TorchTensor& recipe, ByteRange payload);

}  // namespace shardwright
