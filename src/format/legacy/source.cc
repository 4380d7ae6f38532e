// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "dcp/rank_metadata.h"
#include "format/carried_files.h"
#include "format/legacy/legacy_form.h"
#include "format/legacy/legacy_reader.h"
#include "format/legacy/rank_sample.h"
#include "layout/folder_groups.h"
#include "layout/rank_folder.h"

namespace shardwright {
namespace {

bool may_be_of_rank(const DirectoryEntry& entry) {
  return (entry.is_directory || entry.problem) && entry.name.starts_with("mp_rank_");
}

// Optimizers' files and data loaders' states are kept in folders of such names beside other
// formats too.
Result<bool> holds_model(const Folder& folder, const DirectoryEntry& rank) {
  if (!parse_rank_folder(rank.name)) return false;
  if (rank.problem) return true;  // it can't be seen that it holds none
  return !model_file_of(rank_folder(rank.name, SW_TRY(folder.list(rank.name)))).empty();
}

class LegacySource final : public SourceFormat {
 public:
  std::string_view name() const override { return "legacy"; }

  // Files of chunks are what Megatron's later formats leave beside it.
  SourceTraits traits() const override {
    return {.is_of_ranks = true,
            .has_layers_apart = true,
            .has_rank_folders = true,
            .holds_extras = false,
            .leftover_ending = kChunkFiles};
  }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const DirectoryEntry* any = nullptr;
    for (const DirectoryEntry& entry : folder.entries()) {
      if (!may_be_of_rank(entry)) continue;
      if (any == nullptr) any = &entry;
      if (!SW_TRY(holds_model(folder, entry))) continue;
      return Recognition{Recognition::Strength::kSure,
                         {translated("{} holds what one rank saved", entry.name)}};
    }
    if (any == nullptr) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kRemains,
                       {translated("{} is a rank's folder, without a model", any->name)}};
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    SW_TRY(read_legacy(checkpoint, defects));
    return read_carried(checkpoint, defects);
  }

  const ModelForm& form() const override { return legacy_form(); }
};

}  // namespace

const SourceFormat& legacy_source() {
  static const LegacySource format;
  return format;
}

}  // namespace shardwright
