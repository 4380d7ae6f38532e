// SPDX-License-Identifier: Apache-2.0
#include "format/files_beside.h"

#include <algorithm>
#include <string_view>

#include "base/translated.h"

namespace shardwright {

void tell_files_beside(Checkpoint& checkpoint) {
  const auto is_unread = [&](std::string_view file) {
    const std::vector<std::string>& read = checkpoint.catalog.files;
    return std::ranges::find(read, file) == read.end() && checkpoint.directory->exists(file);
  };
  for (const char* adapter : {"adapter_model.safetensors", "adapter_model.bin"}) {
    if (!is_unread(adapter)) continue;
    checkpoint.notes.push_back(
        translated("{} is an adapter, and is left out; 'shardwright merge-adapter' merges one into "
                   "its base",
                   adapter));
  }
  for (const char* optimizer : {"optimizer.pt", "optimizer.bin"}) {
    if (!is_unread(optimizer)) continue;
    checkpoint.notes.push_back(
        translated("{}: the optimizer's states number parameters as only the run knows, and are "
                   "left out",
                   optimizer));
    if (checkpoint.unread_optimizer_file.empty()) checkpoint.unread_optimizer_file = optimizer;
  }
}

}  // namespace shardwright
