// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/notes.h"
#include "canonical/model_facts.h"
#include "model/name_rules.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What becomes of tensors that a model of the family does not have.
enum class OtherTensors : std::uint8_t { kLeftOut, kKept };

/// How the names of a stored Hugging Face model are Hugging Face's: what stands before them, and
/// the trainer's own names, where it has such. Found by trying what the model's family says, until
/// every tensor of the model has its place.
class HfNaming {
 public:
  /// Looks for the naming of a catalog's tensors; the one that fits best where none does. Error:
  /// kTwoCheckpoints where several models of the family are there (a model and its average).
  [[nodiscard]] static Result<HfNaming> find(const ModelFacts& facts, const Catalog& catalog);

  /// That of a model which was saved without its head's class: where the family's names begin with
  /// `model.` the file's may lack it, and transformers puts it before them. Nothing where this is
  /// not so, or no such names give a model.
  [[nodiscard]] static std::optional<HfNaming> find_bare(const ModelFacts& facts,
                                                         const Catalog& catalog);

  /// The names that are stored, where they are the family's already and give a model.
  [[nodiscard]] static std::optional<HfNaming> find_as_stored(const ModelFacts& facts,
                                                              const Catalog& catalog);

  /// What keeps the tensors from being a model of the family under these names; nothing where every
  /// tensor has its place and every place its tensor.
  [[nodiscard]] const Status& fit() const { return fit_; }

  /// Whether they are a trainer's own.
  [[nodiscard]] bool are_own() const { return rules_ != nullptr; }

  /// REQUIRES: !fit(). The error, with whose names these are.
  [[nodiscard]] Error error() const;

  /// The catalog under Hugging Face's names, with Hugging Face's rows and a tensor for each expert.
  /// Tensors beside the model's are left out, and a note names them, unless they are to be kept and
  /// stand under Hugging Face's names as the model's do. Payloads that are not
  /// located yet can't be moved: such tensors come without chunks, for their names and shapes.
  /// Errors: kDuplicateName; kShapeMismatch for rows that are no whole heads.
  [[nodiscard]] Result<Catalog> apply(const Catalog& catalog, OtherTensors others,
                                      Notes& notes) const;

 private:
  std::string prefix_;
  std::shared_ptr<const NameRules> rules_;    ///< null: Hugging Face's names
  bool takes_all_ = true;                     ///< nothing was found: every tensor stays what it is
  std::set<std::string, std::less<>> roots_;  ///< first parts of the names of the model's tensors
  std::set<std::string, std::less<>> roots_beside_;  ///< likewise, of what stands without `prefix_`
  std::string missing_;                              ///< goes before the names of `roots_`
  ModelSizes sizes_;
  Status fit_;

  friend class NamingSearch;
};

/// Whether names may be Hugging Face's but for what a trainer did to them: layers are numbered in
/// their first part, where a family may have `model.`, or wrappers have left theirs in them.
[[nodiscard]] bool may_have_other_names(const Catalog& catalog);

/// Gives a checkpoint that was opened as a Hugging Face model, whatever its files are, that model's
/// names, a head that stands for the embedding its name too: `catalogs` are the part of it that is
/// wanted, and others that are to have the same names. Of safetensors only such whose names begin
/// with their layers are looked at, which lack the model's part or are the trainer's own, and such
/// in which wrappers have left theirs. Names
/// that are no model of the family stay, but those that are nearest to a trainer's own, or where
/// SourceTraits::is_named_by_family, are an error: those of map_from_hf. True: a model without a
/// head got the embedding once more as that. Errors besides: there those of finding the family;
/// those of HfNaming.
[[nodiscard]] Result<bool> name_as_hf(const FamilyChoice& choice, const Checkpoint& checkpoint,
                                      std::initializer_list<Catalog*> catalogs, Notes& notes);

}  // namespace shardwright
