// SPDX-License-Identifier: Apache-2.0
#include "compare/zero_weights.h"

#include <string>
#include <vector>

#include "base/fail.h"
#include "compare/master_weights.h"
#include "format/formats.h"

namespace shardwright {

Status check_zero_weights(const Checkpoint& checkpoint, const Catalog& catalog, ReplicaCheck check,
                          Defects& defects, const Workers& workers) {
  if (check == ReplicaCheck::kNone) return {};
  const WeightPairs twice = SW_TRY(form_of(checkpoint).weights_stored_twice(checkpoint, catalog));
  if (twice.pairs.tensors.empty()) return {};
  Defects differing(Defects::Policy::kCollect);
  SW_TRY(check_master_weights(twice.pairs, *checkpoint.files, differing, workers));
  const std::vector<Error>& found = differing.found();
  if (found.empty()) return {};
  const std::string& first = found.front().message;
  return defects.report(fail(
      Code::kZeroLayout,
      "{}: {} of its {} weights are not the optimizer's, rounded (the first: {}); keep the "
      "files of one save, or take the optimizer's with convert's --check-replicas none",
      twice.file, found.size(), twice.pairs.tensors.size() / 2, first.substr(0, first.find(": "))));
}

}  // namespace shardwright
