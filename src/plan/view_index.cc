// SPDX-License-Identifier: Apache-2.0
#include "plan/view_index.h"

#include <algorithm>

namespace shardwright {
namespace {

constexpr std::size_t kManyViews = 16;

}  // namespace

ViewIndex::ViewIndex(const ViewList& views, int axes) : views_(&views) {
  if (views.size() < kManyViews) return;
  boxes_ = std::make_unique<ChunkList>(axes);
  boxes_->reserve(views.size());
  for (const TensorView& view : views) boxes_->push_back(Chunk{view.box, 0, {}, {}});
  index_ = std::make_unique<ChunkIndex>(*boxes_);
}

void ViewIndex::find(const Box& box, std::vector<std::uint32_t>& found) const {
  const std::size_t first = found.size();
  if (!index_) {
    for (std::uint32_t i = 0; i < views_->size(); ++i) found.push_back(i);
    return;
  }
  index_->find(box, found);
  std::sort(found.begin() + static_cast<std::ptrdiff_t>(first), found.end());
}

}  // namespace shardwright
