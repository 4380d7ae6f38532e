// SPDX-License-Identifier: Apache-2.0
#include "verify/adapter_check.h"

#include "compare/adapter_values.h"
#include "verify/findings.h"

namespace shardwright {
namespace {

bool is_at_hand(const StoredTensor& tensor, const Defects& lost) {
  for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
    if (lost.is_lost(tensor.desc.name, c)) return false;
  }
  return true;
}

}  // namespace

Status check_adapter(const Checkpoint& checkpoint, const Defects& lost, VerifyReport& report) {
  Catalog catalog{checkpoint.catalog.files, {}, {}, {}};
  for (const StoredTensor& tensor : checkpoint.catalog.tensors) {
    if (is_at_hand(tensor, lost)) catalog.tensors.push_back(tensor);
  }
  Defects found(Defects::Policy::kCollect);
  SW_TRY(check_adapter_values(catalog, *checkpoint.files, found));
  for (const Error& error : found.found()) add_finding(report, error);
  return {};
}

}  // namespace shardwright
