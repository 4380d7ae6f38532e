// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/pickle_warnings.h"
#include "cli/value_tree.h"
#include "shardwright/catalog.h"

namespace shardwright::cli {

/// What one file of a checkpoint holds.
struct FileReport {
  std::string path;
  std::string kind;    ///< `safetensors`, `torch archive`, `pickle`, `distcp`
  std::string reason;  ///< what says so
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::string, std::string>> metadata;  ///< what the file says of itself
  std::vector<std::pair<std::string, std::uint64_t>> counts;  ///< of what is in it
  std::vector<std::pair<std::string, std::string>> facts;     ///< both, to be read by people
  Catalog catalog;                ///< tensors and objects with their places
  std::vector<ValueNode> values;  ///< of the pickles, one behind another
  PickleWarnings warnings;        ///< what they would do in a loader that obeys them
};

/// Looks at one file by its content, never by its name alone, and runs nothing that is in it. A
/// `.distcp` file is explained by the `.metadata` beside it. Errors: kNotFound, kUnknownFormat with
/// the name of what it is, and those of the codecs.
[[nodiscard]] Result<FileReport> inspect_file(const std::string& path, const TreeLimits& limits);

}  // namespace shardwright::cli
