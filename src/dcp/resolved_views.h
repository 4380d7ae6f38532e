// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "codec/torch_archive.h"
#include "io/source_files.h"
#include "io/spool_file.h"
#include "shardwright/catalog.h"

namespace shardwright {

/// Copies of the elements of conjugate and negative views with their signs as the view means them,
/// in a temporary file that becomes a further one of the catalog and of `files`. Elements that
/// torch keeps as views are few: mostly a model has none, and then there is no such file.
class ResolvedViews {
 public:
  ResolvedViews(Catalog& catalog, SourceFiles& files) : catalog_(catalog), files_(files) {}

  /// Where the elements of `tensor`, which lies in the file of this number, are once they are
  /// resolved; strides stay. Errors: kIo, kDiskFull, and those of reading.
  [[nodiscard]] Result<ByteRange> resolve(std::uint32_t file, const LocatedTensor& tensor);
  /// The number of the temporary file.
  [[nodiscard]] std::uint32_t file() const {
    return static_cast<std::uint32_t>(catalog_.files.size());
  }
  /// Hands the temporary file over. Call once, at the end.
  [[nodiscard]] Status finish();

 private:
  Catalog& catalog_;
  SourceFiles& files_;
  std::unique_ptr<SpoolFile> spool_;
};

}  // namespace shardwright
