// SPDX-License-Identifier: Apache-2.0
#include "verify/replicas_on_read.h"

#include "compare/replicas.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

ReplicasOnRead::ReplicasOnRead(const Plan& plan, SourceFiles& files) : plan_(plan), files_(files) {
  if (cost_of_replicas(plan.source, ReplicaCheck::kAll).compared == 0) return;
  is_compared_.resize(plan.source.tensors.size());
}

Status ReplicasOnRead::compare(std::size_t target) {
  if (is_compared_.empty()) return {};
  const std::scoped_lock lock(mutex_);
  for (const TensorView& view : plan_.tensors[target].views) {
    if (is_compared_[view.source]) continue;
    Catalog one;
    one.files = plan_.source.files;
    one.tensors.push_back(plan_.source.tensors[view.source]);
    Defects first;
    SW_TRY(check_replicas(one, ReplicaCheck::kAll, files_, first));
    is_compared_[view.source] = true;
  }
  return {};
}

}  // namespace shardwright
