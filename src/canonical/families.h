// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "model/config.h"
#include "model/mappings.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"
#include "shardwright/error.h"
#include "state/source_keys.h"

namespace shardwright {

/// The families of all mapping files that a request may use: the built-in ones or those of
/// models_dir, and its map_files, which win over built-in ones of the same family.
[[nodiscard]] Result<Mappings> load_all_mappings(const FamilyChoice& choice);

/// Of those, and of what a Megatron checkpoint records of the mapping that it was made with: the
/// ones that `source` can be of by the request's family, the recorded one or the model's
/// config.json, and whatever the request gives or the source records; all of them where nothing is
/// named, or nothing that is known. Recorded files stand for built-in ones of the same name, and
/// those that the request gives stand for both. Errors: kJsonCorrupt for a record that can't be
/// read.
[[nodiscard]] Result<Mappings> load_mappings(const FamilyChoice& choice, const Checkpoint& source);

/// As load_mappings, but none where nothing is named, or nothing that is known: to read all
/// families takes longer than to convert a small model.
[[nodiscard]] Result<Mappings> load_named_mappings(const FamilyChoice& choice,
                                                   const Checkpoint& source);

/// As load_mappings, for a model that nothing is known of but its config.json.
[[nodiscard]] Result<Mappings> load_mappings(const FamilyChoice& choice, const HfConfig& config);

/// The family that a request names, else the one that `source` records; may be empty. Error:
/// kJsonCorrupt.
[[nodiscard]] Result<std::string> told_family(const FamilyChoice& choice, const Checkpoint& source);

/// What to record of a mapping in a checkpoint made with it: nothing where no flag gave it.
[[nodiscard]] Result<RecordedMapping> mapping_to_record(const FamilyChoice& choice,
                                                        const Mapping& mapping);

/// Whether what a request says of the model is there, also where the conversion needs none of it: a
/// folder that is none, or a family that nobody knows, is a slip. Errors: kNotFound, kNoFamily,
/// those of reading mapping files.
[[nodiscard]] Status check_family_choice(const FamilyChoice& choice, const Checkpoint& source);

/// The family that a request names, else the one of the model's config.json. Errors: those of
/// find_family.
[[nodiscard]] Result<const Mapping*> chosen_family(const FamilyChoice& choice,
                                                   std::span<const Mapping> mappings,
                                                   const HfConfig& config);

/// Whether an error says that nothing tells of what family a model is, or that it is not as its
/// family is: what can be done without one may go on.
[[nodiscard]] bool is_about_family(Code code);

}  // namespace shardwright
