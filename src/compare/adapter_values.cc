// SPDX-License-Identifier: Apache-2.0
#include "compare/adapter_values.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "layout/adapter_shards.h"
#include "layout/state_name.h"
#include "model/adapter_tensors.h"
#include "tensor/values.h"

namespace shardwright {
namespace {

constexpr std::uint64_t kBlock = std::uint64_t{1} << 20;  // of whole elements

class AdapterNumbers {
 public:
  explicit AdapterNumbers(SourceFiles& files) : files_(files), bytes_(kBlock), numbers_(kBlock) {}

  // How many of a tensor are none. A place that parts of a tensor name again is read once.
  Result<std::uint64_t> count_broken(const StoredTensor& tensor) {
    std::uint64_t broken = 0;
    for (std::size_t c = 0; c < tensor.chunks.size(); ++c) {
      const ByteRange range = tensor.chunks.range(c);
      const std::uint32_t file = tensor.chunks.file(c);
      if (!seen_.emplace(file, range.offset).second) continue;
      broken += SW_TRY(count_in(tensor.desc.dtype, file, range));
    }
    return broken;
  }

 private:
  Result<std::uint64_t> count_in(DType dtype, std::uint32_t file, ByteRange range) {
    const auto size = static_cast<std::uint64_t>(bytes_of(dtype));
    std::uint64_t broken = 0;
    for (std::uint64_t done = 0; done < range.length;) {
      const std::uint64_t step = std::min(kBlock, range.length - done) / size * size;
      if (step == 0) break;
      const std::span<std::byte> bytes = std::span(bytes_).first(step);
      const std::span<double> numbers = std::span(numbers_).first(step / size);
      SW_TRY(files_.read_at(file, range.offset + done, bytes));
      decode_values(dtype, bytes, numbers);
      broken += static_cast<std::uint64_t>(
          std::ranges::count_if(numbers, [](double number) { return !std::isfinite(number); }));
      done += step;
    }
    return broken;
  }

  SourceFiles& files_;
  std::vector<std::byte> bytes_;
  std::vector<double> numbers_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> seen_;
};

bool is_factor_of_adapter(std::string_view name) {
  if (split_state_name(name) || name_of_saved(name)) return false;
  return is_adapter_name(name) || name.contains(".lora_embedding_");
}

bool may_be_broken(const StoredTensor& tensor) {
  if (tensor.encoding != Encoding::kRaw || !is_factor_of_adapter(tensor.desc.name)) return false;
  return !is_integer(tensor.desc.dtype) && parts_of(tensor.desc.dtype) == 1;
}

}  // namespace

Status check_adapter_values(const Catalog& catalog, SourceFiles& files, Defects& defects) {
  AdapterNumbers numbers(files);
  for (const StoredTensor& tensor : catalog.tensors) {
    if (!may_be_broken(tensor)) continue;
    const std::uint64_t broken = SW_TRY(numbers.count_broken(tensor));
    if (broken == 0) continue;
    SW_TRY(defects.report(
        fail(Code::kPayloadDamaged,
             "{}: tensor {}: {} of its numbers are NaN or infinite, and so would be all weights "
             "that the adapter is added to; take a checkpoint from before the run diverged",
             catalog.files[tensor.chunks.file(0)], printable(tensor.desc.name), broken)));
  }
  return {};
}

}  // namespace shardwright
