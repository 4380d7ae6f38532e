// SPDX-License-Identifier: Apache-2.0
#include "format/added_document.h"

#include <utility>

#include "io/source_files.h"

namespace shardwright {

Status add_document(const std::shared_ptr<const Directory>& folder, const std::string& path,
                    std::string name, Checkpoint& checkpoint) {
  const FileVersion version = SW_TRY(folder->version(path));
  checkpoint.catalog.files.push_back(path);
  StoredObject object{path, checkpoint.files->add(folder, path), {0, version.size_bytes}};
  checkpoint.artifacts.emplace_back(std::move(name), std::move(object));
  return {};
}

}  // namespace shardwright
