// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "format/legacy/legacy_chunks.h"
#include "format/model_file.h"
#include "format/torch_files/state_dict.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// Reads state dicts of torch files into a checkpoint's catalog: tensors of all files, each name
/// once. Borrows the checkpoint, whose notes tell what is left out.
class StateDictReader {
 public:
  StateDictReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint),
        defects_(defects),
        chunks_(checkpoint.catalog, *checkpoint.files) {}

  /// `opened`: the file of that path, or why it does not open. Errors: that; those of
  /// read_state_dict and of auditing its pickle. Told to the defects: kDuplicateName.
  [[nodiscard]] Status read(const std::string& path, Result<ModelFile> opened);

 private:
  [[nodiscard]] Status add(const StateDictTensor& tensor, std::uint32_t file);

  Checkpoint& checkpoint_;
  Defects& defects_;
  LegacyChunks chunks_;
  std::map<std::string, std::uint32_t, std::less<>> seen_;
};

}  // namespace shardwright
