// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/parallel.h"

namespace shardwright {

/// Which coordinates the names of legacy folders carry.
enum class RankNaming : std::uint8_t {
  kMegatron,  ///< tp, then pp if PP > 1, then ep if EP > 1 (get_checkpoint_name)
  kTpPpEp,    ///< tp, pp, ep wherever there are experts' coordinates (LLaVA-OneVision-2's tools)
};

/// The process that wrote a folder of the legacy format, as far as its contents depend on it.
struct LegacyRank {
  std::int64_t tensor = 0;
  std::int64_t pipeline = 0;
  std::int64_t expert = 0;
  std::int64_t expert_tensor = 0;  ///< not in the name: tensor modulo the experts' tensor size

  friend bool operator==(const LegacyRank&, const LegacyRank&) = default;
};

/// `mp_rank_01_002` for a rank of a run of these sizes.
[[nodiscard]] std::string rank_folder_name(const LegacyRank& rank, const ParallelConfig& config,
                                           RankNaming naming);

/// `mp_rank_{tp:02d}_{ep:03d}`: how the folders of a run of these sizes are named.
[[nodiscard]] std::string rank_folder_pattern(const ParallelConfig& config, RankNaming naming);

/// The numbers in `mp_rank_01_002`, tensor rank first; at most four. nullopt for other names,
/// longer ones (`mp_rank_00_model_states.pt`) among them. Widths are not checked: what is beyond 99
/// or 999 is simply wider.
[[nodiscard]] std::optional<std::vector<std::int64_t>> parse_rank_folder(std::string_view name);

}  // namespace shardwright
