// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "shardwright/plan.h"
#include "tensor/chunk_index.h"

namespace shardwright {

/// Finds the views that meet a box: the tensors of a stack have one per layer and expert, which are
/// searched and not scanned. Borrows the views.
class ViewIndex {
 public:
  /// `axes`: of the tensor that the views make.
  ViewIndex(const ViewList& views, int axes);

  /// Appends the numbers of the views that meet `box`, ascending. A few more may be among them.
  void find(const Box& box, std::vector<std::uint32_t>& found) const;

 private:
  const ViewList* views_;
  std::unique_ptr<ChunkList> boxes_;  // stays where it is: the index borrows it
  std::unique_ptr<ChunkIndex> index_;
};

}  // namespace shardwright
