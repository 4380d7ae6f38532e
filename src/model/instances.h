// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "model/mapping_file.h"

namespace shardwright {

/// The tensors of one side by name. Borrows the descriptions.
class TensorIndex {
 public:
  /// Error: kDuplicateName.
  [[nodiscard]] static Result<TensorIndex> make(std::span<const TensorDesc> tensors);
  [[nodiscard]] const TensorDesc* find(std::string_view name) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  [[nodiscard]] std::span<const TensorDesc> tensors() const { return tensors_; }

 private:
  std::span<const TensorDesc> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

enum class Side : std::uint8_t { kHf, kMegatron };

/// A rule with its loop variables bound.
struct Instance {
  const Rule* rule = nullptr;
  std::vector<Binding> bindings;
};

/// The rules that apply to a set of tensors.
struct Selection {
  std::vector<Instance> instances;
  std::vector<std::string> missing;  ///< names that these rules need and that do not exist
  std::vector<std::string> lacking;  ///< HF names that they could do without, and models have
  std::size_t present = 0;           ///< names that do
  std::size_t misfits = 0;           ///< HF tensors of another shape than their rule states
};

/// Applies a mapping's loops, conditions and choices to the tensors that exist on one side.
class Selector {
 public:
  /// `wanted` (may be null): HF names that decide between choices whose Megatron side is the same.
  Selector(const Mapping& mapping, const ModelSizes& sizes, Side side, const TensorIndex& present,
           const TensorIndex* wanted)
      : mapping_(mapping), sizes_(sizes), side_(side), present_(present), wanted_(wanted) {}

  /// Errors: kConfigMissing, kLimit and those of SizeExpr::evaluate.
  [[nodiscard]] Result<Selection> select();

 private:
  using Bindings = std::vector<Binding>;
  [[nodiscard]] Status visit(std::span<const Item> items, Bindings& bindings, Selection& selection);
  [[nodiscard]] Status visit_rule(const Rule& rule, const Bindings& bindings, Selection& selection);
  [[nodiscard]] Status visit_section(const Section& section, Bindings& bindings,
                                     Selection& selection);
  [[nodiscard]] Status visit_choice(const Choice& choice, Bindings& bindings, Selection& selection);
  [[nodiscard]] Result<std::size_t> wanted_names(const Selection& option) const;
  [[nodiscard]] Status spend(std::size_t names);

  const Mapping& mapping_;
  const ModelSizes& sizes_;
  Side side_;
  const TensorIndex& present_;
  const TensorIndex* wanted_;
  std::size_t spent_ = 0;
};

[[nodiscard]] bool holds(const std::optional<Condition>& condition, const ModelSizes& sizes,
                         std::span<const Binding> bindings = {});

/// How many values a loop variable takes. Errors: kConfigMissing, kLimit.
[[nodiscard]] Result<std::int64_t> loop_count(const Mapping& mapping, const ModelSizes& sizes,
                                              std::string_view index);

/// The HF names of an instance: for every value of the stacked loop variable, its roles in order.
[[nodiscard]] Result<std::vector<std::string>> hf_names(const Mapping& mapping,
                                                        const ModelSizes& sizes,
                                                        const Instance& instance);

/// The rule's tensor under its canonical name, else under one of its aliases, else nullptr.
[[nodiscard]] Result<const TensorDesc*> find_megatron(const Rule& rule, std::size_t part,
                                                      const Scope& scope,
                                                      const TensorIndex& canonical);

/// The sizes with every observed loop count, and every size that a tensor's extent is, replaced by
/// what the tensors show.
[[nodiscard]] Result<ModelSizes> observe_sizes(const Mapping& mapping, ModelSizes sizes, Side side,
                                               const TensorIndex& present);

/// A copy rule with its loop variable bound.
struct CopyInstance {
  const CopyRule* rule = nullptr;
  std::string hf;
  std::vector<std::string> originals;  ///< in the rule's order
  std::string beside = {};             ///< of the rule; empty: none
};
[[nodiscard]] Result<std::vector<CopyInstance>> copy_instances(const Mapping& mapping,
                                                               const ModelSizes& sizes);

/// Copies by their names. Borrows them.
class CopyIndex {
 public:
  explicit CopyIndex(std::span<const CopyInstance> copies);

  /// The tensor that a copy repeats: the first of its originals that `is_stored`, in place of one
  /// that is a copy itself (the head of an MTP layer of a tied model) what that repeats. Nothing
  /// where none of them is.
  [[nodiscard]] std::optional<std::string> stored_original(
      const CopyInstance& copy, const std::function<bool(const std::string&)>& is_stored) const;

 private:
  std::unordered_map<std::string_view, const CopyInstance*> by_name_;
};

/// The names of the mapping's ignore list.
[[nodiscard]] Result<std::set<std::string, std::less<>>> ignored_names(const Mapping& mapping,
                                                                       const ModelSizes& sizes);

}  // namespace shardwright
