// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/legacy/legacy_optimizer.h"
#include "format/legacy/legacy_ranks.h"
#include "layout/optimizer_groups.h"
#include "layout/rank_folder.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// The files in which the ranks of a layer-wise optimizer (`dist_muon`) keep their states, each
/// data-parallel rank those of whole parameters: `layer_wise_optimizer_N.pt`, beside the rank's
/// model. With EP the data-parallel ranks of one tensor and pipeline rank are in several folders.
class LayerWiseFiles {
 public:
  /// The states of one of them.
  struct States {
    std::uint32_t file = 0;  ///< index into Catalog::files
    RankOptimizer optimizer;
  };

  /// Looks for them beside all rank files; names them in the checkpoint's catalog. Borrows both.
  [[nodiscard]] static Result<LayerWiseFiles> find(Checkpoint& checkpoint,
                                                   const LegacyRanks& ranks);

  [[nodiscard]] bool has_any() const { return !files_.empty(); }

  /// What the files beside rank file `index` have of its `parameters`; parallel to them. Errors:
  /// kOptimizerUnsupported where files are missing, where they are of other groups or other
  /// parameters than such a rank trains, and where context parallel ranks wrote over each other's;
  /// those of TorchOptimizer.
  [[nodiscard]] Result<std::vector<States>> read(std::size_t index,
                                                 std::span<const RankParameter> parameters);

 private:
  struct File {
    std::size_t data_rank = 0;
    std::size_t index = 0;  ///< of the rank file that it lies beside
    LegacyRank rank;        ///< of that
    std::uint32_t file = 0;
    /// Once they were read.
    std::optional<std::vector<OptimizerGroup>> groups;
  };

  LayerWiseFiles(Checkpoint& checkpoint, const LegacyRanks& ranks)
      : checkpoint_(&checkpoint), ranks_(&ranks) {}

  [[nodiscard]] Status add_folder(std::size_t index);
  [[nodiscard]] std::vector<File*> files_of(const LegacyRank& rank);
  [[nodiscard]] Status check_complete(std::span<File* const> files, std::size_t index) const;
  [[nodiscard]] Status read_groups(File& file);
  [[nodiscard]] Result<std::vector<OptimizerGroup>> joined_groups(std::span<File* const> files,
                                                                  std::size_t index);
  [[nodiscard]] std::string_view path_of(const File& file) const;

  Checkpoint* checkpoint_;
  const LegacyRanks* ranks_;
  std::vector<File> files_;
};

/// The number of a file that is called `layer_wise_optimizer_N.pt`.
[[nodiscard]] std::optional<std::size_t> layer_wise_number(std::string_view name);

}  // namespace shardwright
