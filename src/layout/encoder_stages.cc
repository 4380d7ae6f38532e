// SPDX-License-Identifier: Apache-2.0
#include "layout/encoder_stages.h"

#include <algorithm>

#include "layout/legacy_grid.h"

namespace shardwright {

std::optional<std::int64_t> EncoderStages::with_decoder(
    const std::optional<std::int64_t>& decoder) const {
  const bool is_believable = decoder && *decoder <= kMostRanksOfAnAxis;
  return is_believable ? std::optional(*decoder + count) : decoder;
}

EncoderStages encoder_stages(const RecordedRun& run, std::span<const PlacedSample> samples,
                             std::optional<std::size_t> place) {
  if (run.encoder_stages == 0 || !place) return {};
  const bool is_decoder = std::ranges::any_of(samples, [&](const PlacedSample& placed) {
    return *place < placed.numbers.size() && placed.numbers[*place] < run.encoder_stages &&
           placed.contents.layers > 0;
  });
  if (is_decoder) return {};
  // 0 says: as the decoder's.
  const std::int64_t told = run.encoder_tensor.value_or(0);
  return {run.encoder_stages, told > 0 ? told : run.sizes.tensor.value_or(1)};
}

}  // namespace shardwright
