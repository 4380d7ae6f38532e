// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "layout/placement.h"

namespace shardwright {

/// Some ranks of a job, ascending: `runs` runs of `length` neighbours, one every `stride` ranks.
struct RankRuns {
  std::int64_t first = 0;
  std::int64_t length = 1;
  std::int64_t stride = 1;
  std::int64_t runs = 1;

  [[nodiscard]] std::int64_t size() const { return length * runs; }
  /// REQUIRES: index < size().
  [[nodiscard]] std::int64_t operator[](std::int64_t index) const {
    return first + index / length * stride + index % length;
  }
  [[nodiscard]] bool contains(std::int64_t rank) const;
  [[nodiscard]] friend bool operator==(const RankRuns& a, const RankRuns& b) = default;
};

/// The pieces of one tensor that a job's ranks hold: each in Placement's order and with its owner
/// there, where a job has one data-parallel replica.
struct JobShards {
  OwnedChunks pieces;
  bool is_expert = false;  ///< shared out over the expert grid
  /// All (expert) tensor ranks of a stage hold each piece alike.
  bool is_replicated = false;
  /// The last stage has a copy, which is never the one that is saved: a tied word embedding.
  bool is_tied = false;
  /// Of an expert that has a tensor of its own: the expert rank. Else in the pieces' owners.
  std::int64_t expert_rank = 0;
};

/// Which ranks of a training job hold which piece of each torch_dist tensor: Megatron-Core's
/// numbering (tensor ranks are neighbours, then data, then pipeline; of the experts expert-tensor,
/// expert, expert-data, pipeline). Ranks that have a tensor's optimizer states to load ask for
/// the same pieces of them: a distributed optimizer takes its part of each afterwards. Pure.
class JobLayout {
 public:
  /// `tensors` are all tensors of the checkpoint, under the names that the job knows them by;
  /// `data` counts the data-parallel replicas. Errors: kNotDivisible, where sizes do not fit one
  /// another or the tensors; kLimit for more ranks than any job has. `splits` as for Placement.
  [[nodiscard]] static Result<JobLayout> make(
      std::span<const TensorDesc> tensors, const ParallelConfig& config, std::int64_t data,
      const std::optional<StackSplits>& splits = std::nullopt);

  /// Error: as Placement::place.
  [[nodiscard]] Result<JobShards> place(const TensorDesc& tensor) const;
  /// The ranks that hold a piece, without its copy on the last stage; the first is the one that a
  /// save without any sharing out would make write it.
  [[nodiscard]] RankRuns holders(const JobShards& shards, std::size_t piece) const;
  /// The ranks that hold the copy. REQUIRES: shards.is_tied.
  [[nodiscard]] RankRuns tied_holders(const JobShards& shards, std::size_t piece) const;

  [[nodiscard]] std::int64_t world_size() const { return groups() * group_size(); }
  /// Groups that load (and save) together, fully parallel: the data-parallel replicas of one
  /// tensor and pipeline rank. Experts are shared out in these groups too.
  [[nodiscard]] std::int64_t groups() const { return config_.tensor * config_.pipeline; }
  [[nodiscard]] std::int64_t group_size() const { return data_; }
  [[nodiscard]] std::int64_t group_of(std::int64_t rank) const;
  [[nodiscard]] std::int64_t member_of(std::int64_t rank) const;
  [[nodiscard]] std::int64_t rank_of(std::int64_t group, std::int64_t member) const;
  /// The tensor rank that all ranks of a group have.
  [[nodiscard]] std::int64_t tensor_rank_of(std::int64_t group) const {
    return group % config_.tensor;
  }
  /// The rank that an object is read on, which is the first that has it: extra states of modules
  /// and experts, states of ranks. No group shares objects out. nullopt for states of the ranks of
  /// a job with other sizes, which none reads.
  [[nodiscard]] std::optional<std::int64_t> rank_of_object(std::string_view name) const;

 private:
  JobLayout(Placement placement, const ParallelConfig& config, std::int64_t data);

  [[nodiscard]] std::int64_t stage_ranks() const { return config_.tensor * data_; }
  [[nodiscard]] std::optional<std::int64_t> rank_of_state(
      std::span<const std::int64_t> place, std::span<const std::int64_t> sizes) const;
  [[nodiscard]] Result<std::int64_t> expert_rank_of(std::string_view name) const;

  Placement placement_;
  ParallelConfig config_;
  std::int64_t data_ = 1;
  std::int64_t placement_width_ = 1;                       // ranks of one stage of the placement
  std::unordered_set<std::string> tied_;                   // embeddings that the last stage has too
  std::unordered_map<std::string, std::int64_t> experts_;  // how many a module numbers, by its name
};

}  // namespace shardwright
