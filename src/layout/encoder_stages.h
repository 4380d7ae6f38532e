// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "layout/rank_folder.h"
#include "layout/second_coordinate.h"

namespace shardwright {

/// The stages at the front of a pipeline that encoders have to themselves, with fewer tensor ranks
/// than the decoder's or as many. Megatron-Core 0.9 to 0.11 number them before the decoder's, and
/// pipeline_model_parallel_size counts the decoder's alone. Source: validate_args of
/// megatron/training/arguments.py and initialize_model_parallel of megatron/core/parallel_state.py
/// there.
struct EncoderStages {
  std::int64_t count = 0;
  std::int64_t tensor = 0;  ///< ranks of each

  /// Whether no run has that rank.
  [[nodiscard]] bool lack(const LegacyRank& rank) const {
    return rank.pipeline < count && rank.tensor >= tensor;
  }
  /// The decoder's stages and these.
  [[nodiscard]] std::optional<std::int64_t> with_decoder(
      const std::optional<std::int64_t>& decoder) const;
};

/// Those that a run's arguments tell, none where a file of such a stage has layers of the decoder:
/// then the arguments were taken over from another run. `place`: of the pipeline rank in the names
/// of folders; nullopt where they have none, and no such stages either.
[[nodiscard]] EncoderStages encoder_stages(const RecordedRun& run,
                                           std::span<const PlacedSample> samples,
                                           std::optional<std::size_t> place);

}  // namespace shardwright
