// SPDX-License-Identifier: Apache-2.0
#include "plan/source_place.h"

#include <limits>

namespace shardwright {

SourcePlace first_place(const Plan& plan, std::size_t tensor) {
  constexpr SourcePlace kNowhere{std::numeric_limits<std::uint32_t>::max(), 0};
  const ViewList& views = plan.tensors[tensor].views;
  if (views.empty()) return kNowhere;
  const ChunkList& chunks = plan.source.tensors[views[0].source].chunks;
  return chunks.size() == 0 ? kNowhere : SourcePlace{chunks.file(0), chunks.range(0).offset};
}

}  // namespace shardwright
