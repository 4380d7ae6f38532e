// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"

namespace shardwright {

/// What an index of a model's files says.
struct HfIndex {
  std::map<std::string, std::string, std::less<>> files;  ///< by key
  std::optional<std::uint64_t> total_bytes;               ///< metadata.total_size
};

/// `name`: of its file. Error: kJsonCorrupt, and
/// those of read_whole.
[[nodiscard]] Result<HfIndex> read_hf_index(const Directory& directory, std::string_view name);

/// The bytes of an index. The total is that of the tensors' bytes.
[[nodiscard]] std::string write_hf_index(const Catalog& catalog);

/// Where an index and the headers of the files disagree, keys sorted.
struct HfIndexDifference {
  std::vector<std::string> ghosts;     ///< indexed, in no file
  std::vector<std::string> unlisted;   ///< in a file, not indexed
  std::vector<std::string> misplaced;  ///< in another file than the index says

  /// Keys that are not in the file that the index names for them.
  [[nodiscard]] std::vector<std::string> not_where_listed() const;
  /// Keys that the index does not name for the file they are in.
  [[nodiscard]] std::vector<std::string> not_listed_there() const;
};
[[nodiscard]] HfIndexDifference compare_with_index(const Catalog& catalog, const HfIndex& index);

}  // namespace shardwright
