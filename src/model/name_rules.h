// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/name_template.h"
#include "model/size_expr.h"

namespace shardwright {

/// A name with whole numbers left open, to be matched, each a part between dots or the end of one:
/// `layers.{layer}.fc1.weight{expert}`.
class NumberedName {
 public:
  /// Error: kMappingInvalid for braces anywhere else.
  [[nodiscard]] static Result<NumberedName> parse(std::string_view text);
  /// The numbers by their names; nullopt where the name is another.
  [[nodiscard]] std::optional<std::vector<Binding>> match(std::string_view name) const;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  struct Part {
    std::string text;    // before the number
    std::string number;  // what it is called; nothing where there is none
  };
  std::string text_;
  std::vector<Part> parts_;
};

/// One tensor, or all of a loop, under its trainer's names and Hugging Face's.
struct StoredNameRule {
  std::vector<NumberedName> stored;  ///< names that the trainer's versions have had
  NameTemplate hf;
  /// The loop variable that only Hugging Face's names have: its values lie along axis 0.
  std::string stack;
  /// Within each head the rows that rotary embeddings turn together lie side by side, where Hugging
  /// Face has the first rows of all such pairs before the second ones.
  bool has_rotary_pairs = false;
  /// The axes that Meta's model-parallel ranks may have cut; none: each rank has all of it.
  std::vector<int> cuts;

  /// The numbers of whichever stored name it is.
  [[nodiscard]] std::optional<std::vector<Binding>> match(std::string_view name) const;
};

/// The names that a trainer has for models of some families (models/names/*.json).
struct NameRules {
  std::string names;    ///< what they are called: `torchtune_llama`
  std::string writers;  ///< for messages
  std::vector<std::string> families;
  std::vector<StoredNameRule> rules;
  std::vector<NumberedName> ignore;  ///< buffers that are computed anew

  [[nodiscard]] bool ignores(std::string_view name) const;
};

/// Reads a file of such rules. Error: kMappingInvalid, with the place in the file.
[[nodiscard]] Result<NameRules> parse_name_rules(std::string_view json, std::string_view file_name);

/// The built-in ones, one list after another in the order of their files.
[[nodiscard]] Result<std::vector<NameRules>> built_in_name_rules();

}  // namespace shardwright
