// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shardwright/tensor.h"

namespace shardwright {

/// A group of an optimizer's parameters by what it says of itself.
struct OptimizerGroup {
  bool is_expert = false;     ///< `is_expert_parallel`
  bool has_decay = true;      ///< `wd_mult` is not 0
  bool has_own_rate = false;  ///< another learning rate than most have
  std::size_t parameters = 0;
  /// `betas`, which the groups of Muon have not: beside others, those are for matrices.
  bool has_betas = true;
  /// `optimizer`, which groups of Adam beside Lion or Muon have; those of the first have none.
  bool is_beside = false;

  /// Whether both hold the same kind of parameter.
  [[nodiscard]] bool is_like(const OptimizerGroup& other) const {
    return is_expert == other.is_expert && has_decay == other.has_decay &&
           has_own_rate == other.has_own_rate && is_same_optimizer(other);
  }
  [[nodiscard]] bool is_same_optimizer(const OptimizerGroup& other) const {
    return has_betas == other.has_betas && is_beside == other.is_beside;
  }
};

/// What a run names as its optimizer.
enum class NamedOptimizer : std::uint8_t {
  kUntold,    ///< nothing, or one that says nothing of the states (SGD)
  kAdam,      ///< two moments for each parameter
  kOfLinears  ///< Muon, Lion and the like: of matrices; Adam trains the rest
};

/// Whether groups are Muon's, without betas, with Adam's beside them.
[[nodiscard]] bool has_muon(std::span<const OptimizerGroup> groups);

/// Whether groups are of two kinds of optimizers, Muon's or Lion's and Adam's beside them: Megatron
/// distributes neither then, and calls their master weights by another name.
[[nodiscard]] bool has_adam_beside(std::span<const OptimizerGroup> groups);

/// Whose learning rate is another than most have.
enum class OwnRate : std::uint8_t {
  kTables,    ///< embeddings and the output layer (`--decoupled-lr`)
  kMatrices,  ///< all but vectors, embeddings and the output layer (`--use-mup`)
  kVectors,   ///< vectors, embeddings and the output layer (the same with SGD)
  kUnknown    ///< nothing tells
};

/// What a run's arguments say of its groups.
struct GroupRule {
  /// Norms of queries and keys decay too (`--apply-wd-to-qk-layernorm`).
  bool decays_query_key_norms = false;
  /// Embeddings do not (`--embedding-init-method-std`, up to Megatron-Core 0.15).
  bool spares_embeddings = false;
  OwnRate own_rate = OwnRate::kTables;
  /// Where no group tells decay apart, what does not usually decay is in one that does: the run
  /// gave Megatron no settings of some parameters' own.
  bool decays_alike = false;
};

/// Whether a parameter is an embedding's table or the output layer's weight.
[[nodiscard]] bool is_table(std::string_view parameter);

/// The group that Megatron puts a parameter into: vectors and biases do not decay; matrices but
/// embeddings and output layer are Muon's.
[[nodiscard]] OptimizerGroup group_of(const TensorDesc& parameter, const GroupRule& rule = {});

/// Which parameters are in which group, in the group's order: `parameters` are those of a rank in
/// the order in which torch lists them. Groups are found by what they say of themselves, not by
/// their place: that hangs on the version. Kinds that no group tells apart are not told apart.
/// Where the numbers do not fit by `told`, other rules are tried. Error: kOptimizerUnsupported
/// where two groups are alike or the numbers fit by none. Sources: _get_param_groups and
/// get_mup_config_overrides in megatron/core/optimizer/__init__.py, and muon.py beside it.
[[nodiscard]] Result<std::vector<std::vector<std::size_t>>> parameters_of_groups(
    std::span<const TensorDesc> parameters, std::span<const OptimizerGroup> groups,
    const GroupRule& told = {});

/// The same where a new optimizer's groups are filled: however many parameters each gets. Error:
/// kOptimizerUnsupported where two groups are alike or nothing tells whose learning rate one has,
/// or with the first parameter that no group is for.
[[nodiscard]] Result<std::vector<std::vector<std::size_t>>> share_out(
    std::span<const TensorDesc> parameters, std::span<const OptimizerGroup> groups,
    const GroupRule& rule);

/// The first of a model's parameters that none of a run's groups is for, by any rule; null where
/// each has one, or where groups are alike, which says nothing of whose they are.
[[nodiscard]] const TensorDesc* first_without_group(std::span<const TensorDesc> parameters,
                                                    std::span<const OptimizerGroup> groups);

}  // namespace shardwright
