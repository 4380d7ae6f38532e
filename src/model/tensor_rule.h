// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "model/name_template.h"
#include "model/size_expr.h"
#include "model/transform.h"
#include "shardwright/tensor.h"

namespace shardwright {

/// A size that must be non-zero, or zero, for a rule to apply (`unless: tied`).
struct Condition {
  std::string size;
  bool non_zero = true;
};

/// The smallest statement of a mapping: these HF tensors are these Megatron tensors.
struct Rule {
  std::vector<NameTemplate> megatron;
  /// Other names of megatron[0] that a Megatron checkpoint may use; read, never written.
  std::vector<NameTemplate> aliases;
  std::vector<NameTemplate> hf;
  Transform transform;
  Dims permute;
  /// What the extents of megatron[0] must be, or of hf[0] where there are several Megatron tensors;
  /// empty where the family does not say. Without the leading axis of `stack`.
  std::vector<SizeExpr> shape;
  /// The loop variable that only the HF names have: its values lie along a leading Megatron axis.
  std::string stack;
  std::optional<DType> dtype;  ///< pinned: the Megatron tensor has it whatever HF has
  double offset = 0.0;         ///< added to an HF element to get the Megatron element
  bool optional = false;
  bool expected = false;  ///< although it is optional: told where a model lacks it
  bool vocabulary = false;
  std::optional<Condition> condition;
  std::string path;  ///< where the mapping file states it, for messages
};

struct Item;

/// Rules that apply once, or once for every value of a loop variable.
struct Section {
  std::string index;  ///< empty: once
  std::optional<Condition> condition;
  std::vector<Item> items;
};

/// Exactly one of the options applies; which one is decided by the tensors that exist.
struct Choice {
  std::vector<std::vector<Item>> options;
  /// A size, or empty: where it is known and not 0 only the options with rules may apply; if it is
  /// 0, of a Megatron model only the one without.
  std::string told_by = {};
};

struct Item {
  std::variant<Rule, Section, Choice> value;
};

/// A loop variable of names and the size that bounds it.
struct IndexRule {
  std::string name;
  std::string size;
  /// Count what the tensors show, whatever the configuration says (MTP layers are often dropped).
  bool observed = false;
};

/// An HF name outside the rules, once or for every value of the loop variable that it uses.
struct NameRule {
  NameTemplate hf;
  std::string index;  ///< empty: once
};

/// An HF tensor that repeats another one, or that Megatron has no place for at all.
struct CopyRule {
  NameRule hf;
  std::vector<NameTemplate> originals;  ///< the first one stored is meant; empty: none
  bool emitted_by_default = false;
  std::optional<Condition> condition;
  std::string inner;  ///< a second loop variable of the names, inside that of `hf`; empty: none
  std::optional<NameTemplate> beside = std::nullopt;  ///< written only where this is
};

}  // namespace shardwright
