// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/model_states.h"
#include "format/deepspeed/optimizer_states.h"
#include "format/deepspeed/rank_models.h"
#include "format/deepspeed/zero_files.h"
#include "shardwright/checkpoint.h"

namespace shardwright {

/// What names begin with of parameters that pipeline stages share, by DeepSpeed's TiedLayerSpec.
inline constexpr std::string_view kTiedModules = "tied_modules.";

/// What the data-parallel ranks of one pipeline stage saved, or of a model without stages: model
/// states, and of each rank a share of the optimizer. Borrows both; not thread-safe.
class ZeroStage {
 public:
  ZeroStage(Checkpoint& checkpoint, ModelCatalog& model) : checkpoint_(checkpoint), model_(model) {}

  /// Reads the files' pickles, which must be of one save. `has_layers`: the modules are in files of
  /// their own. Error: kZeroLayout; those of reading.
  [[nodiscard]] Status open(const ZeroFiles& files, bool has_layers);
  /// Error: kZeroLayout with a file that is of another save than those of another stage.
  [[nodiscard]] Status check_same_save(const ZeroStage& first) const;
  /// Adds what is trained, what was frozen, and buffers. Errors: kZeroLayout, kDuplicateName.
  [[nodiscard]] Status add_parameters();
  /// Adds what the model has beside all of it, and the other names of tensors.
  [[nodiscard]] Status add_rest();

  [[nodiscard]] const ModelStates& model() const { return models_.front().states; }
  [[nodiscard]] const std::string& file() const { return path(models_.front().file); }
  /// Of one of its shares; nothing where the optimizer is not read.
  [[nodiscard]] const OptimizerStates* optimizer() const {
    return shares_.empty() ? nullptr : &shares_.front().states;
  }
  /// Names of parameters that the optimizer has, where it is not read.
  [[nodiscard]] const std::set<std::string>& unread_parameters() const { return unread_; }
  /// One of its files; empty where it is read.
  [[nodiscard]] const std::string& unread_optimizer() const { return unread_file_; }
  /// Tied parameters that an earlier stage has too, which were left out.
  [[nodiscard]] const std::vector<std::string>& copies() const { return copies_; }

 private:
  // One rank's share of the optimizer.
  struct RankShare {
    std::uint32_t file = 0;
    OptimizerStates states;
  };

  [[nodiscard]] const std::string& path(std::uint32_t file) const {
    return checkpoint_.catalog.files[file];
  }
  [[nodiscard]] bool is_third() const {
    return !shares_.empty() && shares_.front().states.stage == 3;
  }
  [[nodiscard]] std::size_t ranks() const { return shares_.size(); }
  std::uint32_t number_of(const std::string& name);

  [[nodiscard]] Status check_models() const;
  [[nodiscard]] Status check_shares() const;
  [[nodiscard]] Status check_buffers(const RankShare& share) const;
  [[nodiscard]] Status check_data_ranks(const RankShare& share) const;
  [[nodiscard]] Status check_kinds() const;
  [[nodiscard]] Status check_module() const;
  void leave_optimizer();
  void leave_out_cut_states();
  [[nodiscard]] Status add_buffers();
  [[nodiscard]] Status add_replica(const std::string& name, const RankModel& model);
  [[nodiscard]] Status add_trained();
  [[nodiscard]] Status take_paddings(std::vector<ZeroGroup>& groups) const;
  void expect_records();
  [[nodiscard]] Status check_fragments(std::span<const ZeroPiece> pieces,
                                       std::span<const ZeroParameter* const> parameters) const;
  [[nodiscard]] Status check_fragments_of(std::size_t rank, std::size_t group,
                                          std::span<const ZeroPiece> pieces,
                                          std::span<const ZeroParameter* const> parameters) const;
  [[nodiscard]] std::unexpected<Error> refuse_fragment(std::size_t rank, std::size_t group,
                                                       std::string_view name) const;
  [[nodiscard]] Status add_parameter(const ZeroParameter& parameter,
                                     std::span<const ZeroPiece> pieces);
  [[nodiscard]] Result<std::set<std::string>> kinds_of(const ZeroParameter& parameter,
                                                       std::span<const ZeroPiece> pieces) const;

  Checkpoint& checkpoint_;
  ModelCatalog& model_;
  std::vector<RankModel> models_;
  std::vector<RankShare> shares_;
  std::set<std::string> unread_;
  std::string unread_file_;
  std::vector<std::string> copies_;
};

}  // namespace shardwright
