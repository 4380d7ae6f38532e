// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// What tensors of a part begin with: in the files of the whole HF model (`model.visual.`), and in
/// a checkpoint of the part alone (nothing).
struct PartPrefix {
  std::string whole;
  std::string alone;

  friend bool operator==(const PartPrefix&, const PartPrefix&) = default;
};

/// What a split calls the folder of the whole model's other files: no part has this name.
inline constexpr std::string_view kWholeModelFolder = "model";

/// A part of a multimodal HF model that has checkpoints of its own: its language model, its
/// encoder, the adapter between them.
struct ModelPart {
  std::string name;
  /// The first one of those with equal `alone` is what the family writes today.
  std::vector<PartPrefix> prefixes;
  std::string config;  ///< the key of config.json whose object is the part's own; may be empty
  std::string width;   ///< the size that must be the language model's `hidden`; may be empty

  friend bool operator==(const ModelPart&, const ModelPart&) = default;
};

/// A part's name is one of a folder: a word of letters, digits, `_` and `-`, and not
/// kWholeModelFolder. Prefixes end with a dot (`alone` may be empty) or are whole names, and no two
/// are the same. Error: kMappingInvalid with the part.
[[nodiscard]] Status check_parts(std::span<const ModelPart> parts);

/// Where a tensor of the whole model belongs. The longest prefix decides, so an adapter may lie
/// inside the encoder.
struct PartName {
  const ModelPart* part = nullptr;  ///< null: in none of them
  std::string alone;                ///< the tensor's name in a checkpoint of the part alone
};
[[nodiscard]] PartName part_name(std::span<const ModelPart> parts, std::string_view whole);

/// What modules call a tensor of the language model as far as its prefix goes, see module_name of
/// a family.
[[nodiscard]] std::string module_name(std::span<const ModelPart> parts, std::string_view whole);

/// A choice of prefixes that turns names of a part alone into names of the whole model.
class PartNaming {
 public:
  /// Names of one part are those of the whole model already.
  static PartNaming unchanged() { return {}; }
  /// By prefixes whose `alone` differ.
  explicit PartNaming(std::vector<PartPrefix> chosen) : chosen_(std::move(chosen)) {}

  /// A name that no prefix fits keeps what it is called.
  [[nodiscard]] std::string whole(std::string_view alone) const;

 private:
  PartNaming() = default;
  std::vector<PartPrefix> chosen_;
};

/// Every naming that the part's prefixes allow for tensors of these names, the family's own first.
/// Error: kLimit where there are too many to try.
[[nodiscard]] Result<std::vector<PartNaming>> namings_of(std::span<const ModelPart> parts,
                                                         const ModelPart& part,
                                                         std::span<const std::string> names);

}  // namespace shardwright
