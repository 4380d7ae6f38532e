// SPDX-License-Identifier: Apache-2.0
#include "format/added_document.h"

#include <utility>

#include "format/folder.h"
#include "format/model_files.h"
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

Status add_descriptions(const std::shared_ptr<const Directory>& directory, std::string_view folder,
                        std::string_view without, Checkpoint& checkpoint, Defects& defects) {
  for (const DirectoryEntry& entry : SW_TRY(directory->list(folder))) {
    if (entry.is_directory || !describes_model(entry.name) || entry.name == without) continue;
    if (entry.problem) {
      SW_TRY(defects.report(std::unexpected(*entry.problem)));
      continue;
    }
    SW_TRY(add_document(directory, path_in(folder, entry.name), entry.name, checkpoint));
  }
  return {};
}

}  // namespace shardwright
