// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "shardwright/catalog.h"

namespace shardwright {

/// A catalog as a page gets it: columns with a value for each tensor, and what many tensors share
/// (shapes, lists of boxes, lists of holders) once. Documented in docs/report.md.
struct CatalogColumns {
  /// So many numbers about chunks are kept, which bounds what a checkpoint of many ranks takes; the
  /// tensors behind have none, and the page says how many they are.
  std::size_t most_chunk_numbers = 600'000;
};

/// The tensors in the order in which people count, which the columns have.
[[nodiscard]] std::vector<std::size_t> shown_order(const Catalog& catalog);

[[nodiscard]] nlohmann::ordered_json catalog_columns(const Catalog& catalog,
                                                     const std::vector<std::size_t>& order,
                                                     const CatalogColumns& limits = {});

/// Names as how many bytes of the one before they begin with, and the rest: `{"shared": [0, 5],
/// "rest": ["layer.0", "r.1"]}`. Cut between characters.
[[nodiscard]] nlohmann::ordered_json name_column(const std::vector<std::string>& names);

/// Who holds each file: `rank 3` for torch's names, the folder of a legacy rank, else the file. The
/// numbers are those of `labels`.
struct Holders {
  std::vector<std::string> labels;
  std::vector<std::size_t> of_file;
};
[[nodiscard]] Holders holders_of(const std::vector<std::string>& files);

}  // namespace shardwright
