// SPDX-License-Identifier: Apache-2.0
#include "verify/coverage_check.h"

#include <fmt/format.h>

#include "base/fail.h"
#include "tensor/coverage.h"
#include "verify/findings.h"

namespace shardwright {
namespace {

constexpr std::size_t kMostDefectsOfTensor = 20;

// Where a chunk lies: `__0_0.distcp@1234`.
std::string place_of(const Catalog& catalog, const ChunkList& chunks, std::size_t chunk) {
  return fmt::format("{}@{}", catalog.files[chunks.file(chunk)], chunks.range(chunk).offset);
}

std::string coverage_text(const Catalog& catalog, const StoredTensor& tensor,
                          const CoverageDefect& defect) {
  const std::string& name = tensor.desc.name;
  switch (defect.code) {
    case Code::kOutOfBounds:
      return translated("tensor {}: found chunk {} in {}, expected it inside {}", name,
                        to_string(defect.box), place_of(catalog, tensor.chunks, defect.chunk),
                        to_string(tensor.desc.shape));
    case Code::kOverlap:
      return translated(
          "tensor {}: found chunk {} in {} and chunk {} in {}, expected disjoint chunks", name,
          to_string(defect.box), place_of(catalog, tensor.chunks, defect.chunk),
          to_string(tensor.chunks.box(defect.other)),
          place_of(catalog, tensor.chunks, defect.other));
    default:
      return translated("tensor {}: no chunk holds {} ({} elements) of {}", name,
                        to_string(defect.box), defect.box.volume(), to_string(tensor.desc.shape));
  }
}

}  // namespace

bool check_coverage_of(const Catalog& catalog, const StoredTensor& tensor, VerifyReport& report) {
  const auto defects = coverage_defects(tensor, Replicas::kAllowed, kMostDefectsOfTensor);
  if (!defects) {
    add_finding(report, defects.error());
    return false;
  }
  for (const CoverageDefect& defect : *defects) {
    add_finding(report, defect.code, tensor.desc.name, coverage_text(catalog, tensor, defect));
  }
  return true;
}

}  // namespace shardwright
