// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "layout/job_layout.h"

namespace shardwright {

/// The groups of ranks that load together: the data-parallel replicas of one tensor and pipeline
/// rank of a job that a JobLayout describes, or one group of a job that runs.
class LoadGroups {
 public:
  /// Where a rank is.
  struct Place {
    std::uint32_t group = 0;
    std::uint32_t member = 0;
  };

  LoadGroups() = default;
  /// All groups of a job.
  explicit LoadGroups(const JobLayout& job);
  /// One group: the job's numbers of its members, who all have the tensor rank `tensor_rank`.
  LoadGroups(std::vector<std::int64_t> ranks, std::int64_t tensor_rank);

  [[nodiscard]] std::size_t size() const { return groups_.size(); }
  [[nodiscard]] std::size_t members(std::uint32_t group) const {
    return groups_[group].ranks.size();
  }
  [[nodiscard]] std::int64_t rank_of(std::uint32_t group, std::uint32_t member) const {
    return groups_[group].ranks[member];
  }
  /// nullopt for a rank that is in none of the groups.
  [[nodiscard]] std::optional<Place> place_of(std::int64_t rank) const;
  [[nodiscard]] std::int64_t tensor_rank_of(std::uint32_t group) const {
    return groups_[group].tensor_rank;
  }

 private:
  struct Group {
    std::vector<std::int64_t> ranks;
    std::int64_t tensor_rank = 0;
  };

  void add(std::vector<std::int64_t> ranks, std::int64_t tensor_rank);

  std::vector<Group> groups_;
  std::unordered_map<std::int64_t, Place> places_;
};

}  // namespace shardwright
