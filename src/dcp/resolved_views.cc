// SPDX-License-Identifier: Apache-2.0
#include "dcp/resolved_views.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "base/fail.h"
#include "codec/torch_tensor.h"

namespace shardwright {

Result<ByteRange> ResolvedViews::resolve(std::uint32_t file, const LocatedTensor& tensor) {
  constexpr std::uint64_t kBufferBytes = std::uint64_t{1} << 16;  // whole elements of any dtype
  if (!spool_) spool_ = SW_TRY(SpoolFile::create("resolved views"));
  const ByteRange resolved{spool_->size(), tensor.range.length};
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
  for (std::uint64_t done = 0; done < tensor.range.length;) {
    const std::uint64_t count = std::min(kBufferBytes, tensor.range.length - done);
    const std::span bytes(buffer.get(), static_cast<std::size_t>(count));
    SW_TRY(files_.read_at(file, tensor.range.offset + done, bytes));
    flip_signs(tensor.dtype, tensor.flips, bytes);
    SW_TRY(spool_->append(bytes));
    done += count;
  }
  return resolved;
}

Status ResolvedViews::finish() {
  if (!spool_) return {};
  const std::uint32_t number = file();
  catalog_.files.push_back(spool_->name());
  if (files_.add(std::move(spool_)) == number) return {};
  return fail(Code::kInternal, "resolved views: the catalog and its files differ in number");
}

}  // namespace shardwright
