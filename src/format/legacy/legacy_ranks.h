// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "format/legacy/legacy_file.h"
#include "layout/chunk_order.h"
#include "layout/legacy_axes.h"
#include "layout/legacy_parts.h"
#include "layout/tower_evidence.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// A rank's file of a legacy checkpoint.
struct LegacyRankFile {
  std::vector<std::int64_t> numbers;  ///< of its folder's name
  std::uint32_t file = 0;             ///< index into Catalog::files
  LegacyFile contents;
};

/// Name, dtype and shape of a state dict's tensors.
[[nodiscard]] std::vector<TensorDesc> descs_of(const LegacyModel& model);

/// The ranks' files of a legacy checkpoint, and which part of the run each of them is.
class LegacyRanks {
 public:
  /// Reads every rank's pickle; files that can't be read, or that are not of the rank that their
  /// folder is named for (kRankMisplaced), are told to `defects`. Names the files in the
  /// checkpoint's catalog, once. Errors: kLegacyLayout, those of settle_legacy_axes.
  [[nodiscard]] static Result<LegacyRanks> read(Checkpoint& checkpoint, Defects& defects);

  /// Files that were read, of ranks that are settled; at least one. Some of each pipeline stage are
  /// enough to tell which layers each of them has.
  [[nodiscard]] static LegacyRanks of(std::vector<LegacyRankFile> files, LegacyAxes axes,
                                      std::vector<SettledTower> towers);

  /// Tells `defects` of files that are not of the rank that their folder is named for
  /// (kRankMisplaced), as read() does. `catalog`: where they are named.
  [[nodiscard]] Status check_places(const Catalog& catalog, Defects& defects);

  [[nodiscard]] const std::vector<LegacyRankFile>& files() const { return files_; }
  [[nodiscard]] const LegacyAxes& axes() const { return axes_; }
  [[nodiscard]] RankNaming naming() const;
  /// The towers that other numbers of tensor ranks share out than the language model.
  [[nodiscard]] const std::vector<SettledTower>& towers() const { return towers_; }
  /// Whether layers pass through the stages there and back, as DualPipeV has it.
  [[nodiscard]] bool are_folded() const { return order_ == ChunkOrder::kFolded; }
  /// Whether the last stage of the tied model has an output layer that nothing uses.
  [[nodiscard]] bool have_idle_head() const;
  /// Whether the files say which ranks they are of; one file alone can be no other's.
  [[nodiscard]] bool know_their_ranks() const { return know_their_ranks_; }
  /// Whose the state dict `v` of file `index` is. Error: kLegacyLayout.
  [[nodiscard]] Result<LegacyStage> stage_of(std::size_t index, std::size_t v) const;

 private:
  [[nodiscard]] Status read_files(Checkpoint& checkpoint, Defects& defects);
  [[nodiscard]] Status check_virtual_stages(const Catalog& catalog) const;
  [[nodiscard]] Status check_places(const LegacyAxesEvidence& evidence, Defects& defects);
  [[nodiscard]] LegacyAxesEvidence evidence(const Catalog& catalog) const;
  [[nodiscard]] Status settle_experts(Checkpoint& checkpoint);
  [[nodiscard]] Status find_towers(Checkpoint& checkpoint);
  [[nodiscard]] Status settle_tying(Checkpoint& checkpoint);
  void settle_run();
  void find_order();
  [[nodiscard]] Status close_gaps();
  [[nodiscard]] std::int64_t place_of(std::int64_t virtual_stage, std::int64_t pipeline) const;
  void count_layers();
  void count_layers(bool is_encoder, std::int64_t FirstLayers::* own);
  void find_heads();
  [[nodiscard]] std::int64_t count_experts() const;

  std::vector<LegacyRankFile> files_;
  LegacyAxes axes_;
  ChunkOrder order_ = ChunkOrder::kInterleaved;
  bool has_own_expert_order_ = false;
  bool is_tied_ = false;
  Status fit_ = {};  // why the run's way of sharing out is not read, or not that of these files
  std::vector<SettledTower> towers_;
  OutputHeads heads_;
  std::int64_t experts_ = 0;  // of the whole model
  bool know_their_ranks_ = true;
  std::map<std::pair<std::int64_t, std::int64_t>, FirstLayers> first_layers_;
};

/// The number of a file in a checkpoint's catalog, to which it is added where it is new.
[[nodiscard]] std::uint32_t file_number(Checkpoint& checkpoint, const std::string& path);

}  // namespace shardwright
