// SPDX-License-Identifier: Apache-2.0
#include "format/chunk_list.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "dcp/rank_metadata.h"
#include "state/document_names.h"

namespace shardwright {

std::optional<std::string> chunk_list_of(const Folder& folder) {
  if (folder.has_file(kDcpMetadata)) {
    return translated("{} lists the stored chunks", kDcpMetadata);
  }
  const DirectoryEntry* rank = folder.first([](const DirectoryEntry& entry) {
    return !entry.is_directory && metadata_rank(entry.name).has_value();
  });
  if (rank == nullptr) return std::nullopt;
  return translated("{} lists what one rank stored", rank->name);
}

bool lacks_metadata_json(const Folder& folder) {
  return folder.has_file(kDcpMetadata) && folder.has_file(kCommonStateFile) &&
         !folder.has_file("metadata.json");
}

}  // namespace shardwright
