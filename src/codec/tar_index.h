// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shardwright/storage.h"

namespace shardwright {

/// A file in a tar archive, and where its bytes lie.
struct TarEntry {
  std::string name;  ///< relative, without a leading `./`
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// The regular files of an uncompressed tar archive (ustar, GNU and pax headers); folders are what
/// stands before a slash. Nothing is unpacked. Errors: kTarCorrupt for headers whose checksum is
/// wrong, for entries beyond the file's end and for sparse files; kPathEscapes for names that leave
/// the folder that they are unpacked into; kDuplicateName; kLimit; kUnsupportedFormat for a
/// compressed archive; kNotAFile for links, which nothing that is stored this way needs.
[[nodiscard]] Result<std::vector<TarEntry>> read_tar(const ReadableFile& file);

}  // namespace shardwright
