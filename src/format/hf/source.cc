// SPDX-License-Identifier: Apache-2.0
#include "format/hf/source.h"

#include <fmt/format.h>

#include "base/translated.h"
#include "format/carried_files.h"
#include "format/files_beside.h"
#include "format/hf/shard_grid.h"
#include "format/hf_index.h"
#include "format/near_config.h"
#include "format/safetensors_reader.h"
#include "format/sibling.h"
#include "format/weight_files.h"
#include "format/weight_names.h"
#include "layout/texts.h"
#include "state/document_names.h"

namespace shardwright {
namespace {

constexpr std::string_view kEnding = ".safetensors";

bool holds_weights(const DirectoryEntry& entry) {
  return !entry.is_directory && entry.name.ends_with(kEnding) &&
         !entry.name.starts_with("adapter_model");
}

const DirectoryEntry* first_weights(const Folder& folder) {
  const bool has_config = folder.has_file(kHfConfigFile);
  return folder.first([&](const DirectoryEntry& entry) {
    return holds_weights(entry) && !(has_config && is_weights_of_serving(entry.name));
  });
}

class HfSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "hf"; }

  SourceTraits traits() const override {
    return {.is_hf_model = true, .records = Records::kNone, .leftover_ending = kEnding};
  }

  Phrase summary() const override { return phrase("format.hf"); }

  std::string_view usual_target() const override { return "torch_dist"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const auto index = std::ranges::find_if(
        kHfIndexFiles, [&](std::string_view name) { return folder.has_file(name); });
    const bool has_index = index != kHfIndexFiles.end();
    const DirectoryEntry* weights = first_weights(folder);
    if (!has_index && weights == nullptr) return std::optional<Recognition>();
    Recognition found;
    // An index without any of its files is what a deleted or unfinished model leaves.
    if (weights == nullptr) found.strength = Recognition::Strength::kRemains;
    const std::string whole = has_index ? whole_model_of(*index) : "";
    if (has_index && !folder.has_file(whole)) {
      found.facts.push_back(translated("{} names the weight files", *index));
    } else {
      found.facts.push_back(translated("{} holds weights", has_index ? whole : weights->name));
    }
    return found;
  }

  bool reads_file(std::string_view name) const override { return name.ends_with(kEnding); }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    WeightChoice choice = SW_TRY(choose_weights(checkpoint, defects));
    if (!choice.index) {
      for (std::string& note : shard_grid_notes(choice.files)) {
        checkpoint.notes.push_back(std::move(note));
      }
    }
    checkpoint.catalog = SW_TRY(
        read_hf_catalog(*checkpoint.directory, std::move(choice), *checkpoint.files, defects));
    tell_files_beside(checkpoint);
    SW_TRY(read_hf_artifacts(checkpoint, defects));
    SW_TRY(read_config_within(checkpoint, defects));
    return tell_folders_beside(checkpoint);
  }
};

}  // namespace

const SourceFormat& hf_source() {
  static const HfSource format;
  return format;
}

}  // namespace shardwright
