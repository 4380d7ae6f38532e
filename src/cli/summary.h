// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/run_facts.h"
#include "shardwright/catalog.h"
#include "shardwright/checkpoint.h"
#include "shardwright/convert_request.h"
#include "shardwright/parallel.h"

namespace shardwright::cli {

struct DTypeShare {
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
};

/// What a catalog holds, in numbers.
struct CatalogSummary {
  std::uint64_t tensors = 0;
  std::uint64_t optimizer_tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of the whole tensors' elements
  std::uint64_t chunks = 0;
  std::uint64_t chunk_bytes = 0;  ///< of the chunks' elements: less in a part of a checkpoint
  std::uint64_t objects = 0;
  std::uint64_t files = 0;  ///< that hold tensors or objects
  std::map<DType, DTypeShare> dtypes;
};

[[nodiscard]] CatalogSummary summarize(const Catalog& catalog);

/// `a 1, b 2`.
[[nodiscard]] std::string facts_text(const Facts& facts);
/// A parallel size that is not what it is where nothing is said.
struct UnusualSize {
  std::string_view flag;  ///< `--tp`
  std::string_view name;  ///< `TP`
  std::int64_t size;
};
[[nodiscard]] std::vector<UnusualSize> unusual_sizes(const ParallelConfig& parallel);
/// `TP 2, PP 4`: sizes that are not 1, or `one rank`; where ranks just share out what there is
/// (`shards`), `3 ranks`.
[[nodiscard]] std::string layout_text(const ParallelConfig& parallel, std::int64_t shards = 1);

/// `torch_dist, TP 2`: a conversion's target, and its layout where it has one.
[[nodiscard]] std::string target_text(const ConvertRequest& request);
/// `, besides 2 GiB of an earlier run`; nothing where none of it was used.
[[nodiscard]] std::string resumed_text(std::uint64_t bytes);

/// How often a tensor is stored: how many of its chunks have the box that most have.
[[nodiscard]] std::uint64_t replicas_of(const StoredTensor& tensor);

/// Indices of the tensors whose names match one of the globs (all, where there are none), as people
/// count.
[[nodiscard]] std::vector<std::size_t> matching_tensors(const Catalog& catalog,
                                                        const std::vector<std::string>& globs);

}  // namespace shardwright::cli
