// SPDX-License-Identifier: Apache-2.0
#include "verify/scale_check.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <vector>

#include "exec/dequantise_region.h"
#include "io/source_files.h"
#include "tensor/dequantise.h"
#include "verify/findings.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20;  // of whole scales

// The number of the first scale that is none.
template <typename IsScale>
Result<std::optional<std::int64_t>> first_unusable(SourceFiles& files, const StoredTensor& scales,
                                                   DType dtype, const IsScale& is_usable,
                                                   std::vector<std::byte>& block) {
  const auto size = static_cast<std::uint64_t>(bytes_of(dtype));
  const ByteRange range = scales.chunks.range(0);
  for (std::uint64_t done = 0; done < range.length;) {
    const std::uint64_t step = std::min(block.size(), range.length - done) / size * size;
    if (step == 0) break;
    const std::span<std::byte> bytes = std::span(block).first(step);
    SW_TRY(files.read_at(scales.chunks.file(0), range.offset + done, bytes));
    for (std::uint64_t at = 0; at < step; at += size) {
      if (is_usable(load_scale(dtype, &bytes[at]))) continue;
      return std::optional(static_cast<std::int64_t>((done + at) / size));
    }
    done += step;
  }
  return std::optional<std::int64_t>();
}

}  // namespace

void check_scales(const Checkpoint& checkpoint, const Catalog& catalog, const ModelTensors& model,
                  VerifyReport& report) {
  std::vector<std::byte> block(kBlockBytes);
  std::set<std::uint32_t> seen;
  const auto check = [&](std::uint32_t index, DType dtype, const auto& is_usable) {
    const StoredTensor& scales = catalog.tensors[index];
    if (!seen.insert(index).second || scales.chunks.empty() || !is_scale(dtype)) return;
    const auto found = first_unusable(*checkpoint.files, scales, dtype, is_usable, block);
    if (!found) {
      add_finding(report, found.error());
    } else if (*found) {
      add_finding(report, unusable_scale(catalog, index, **found));
    }
  };
  for (const QuantisedTensor& tensor : model.quantised) {
    check(tensor.scales, tensor.scale_dtype, [](float scale) { return std::isfinite(scale); });
    if (!tensor.second) continue;
    check(tensor.second->tensor, catalog.tensors[tensor.second->tensor].desc.dtype, is_factor);
  }
}

}  // namespace shardwright
