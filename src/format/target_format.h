// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "format/target_parts.h"
#include "model/mapping_file.h"
#include "shardwright/plan.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// What the tensors of a format are called.
enum class TargetNames : std::uint8_t {
  kStored,    ///< as the source calls them
  kHf,        ///< as transformers does
  kMegatron,  ///< as Megatron-Core does
};

/// What the steps of a conversion need to know of the format that it writes.
struct TargetTraits {
  std::string_view name;  ///< for --to, in reports and in JSON; no other target has it
  TargetNames names = TargetNames::kStored;
  bool holds_optimizer = true;         ///< it has a place for optimizer states
  bool keeps_optimizer = false;        ///< where the caller does not say
  bool has_grid = false;               ///< TP, PP, EP and ETP share the tensors out
  bool has_components = false;         ///< each component has a grid of its own
  bool has_shards = false;             ///< `--shards` ranks share the rows out
  bool has_shard_files = false;        ///< files have a greatest size
  bool is_of_fixed_ranks = false;      ///< it loads only at the sizes that it was written for
  bool is_for_a_job = false;           ///< a file for each rank, which may hold what that reads
  bool holds_state_dicts = false;      ///< those of ranks
  bool has_layers_apart = false;       ///< a tensor for each layer, whatever the source has
  bool has_masters_for_model = false;  ///< with states kept: its weights are the master weights
  bool holds_objects = true;           ///< it has a place for entries that are no tensors
  bool holds_extras = true;            ///< it has a place for values that only Hugging Face stores
  bool has_run_config = false;         ///< Megatron-Bridge reads its run_config.yaml
  std::string_view backend = {};       ///< `args.ckpt_format` of the run that loads it
  std::string_view hf_folder = {};     ///< of a new checkpoint: where config.json goes
};

/// A format that is written. One constant object of each; format/targets.cc lists them. Functions
/// are listed in the order in which a conversion calls them; those that have a body need no other
/// in most formats.
class Target {
 public:
  explicit Target(const TargetTraits& traits) : traits_(traits) {}
  virtual ~Target() = default;
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  [[nodiscard]] const TargetTraits& traits() const { return traits_; }

  /// Before the source is opened: which ranks the request's sizes make. Errors: kUsage,
  /// kNotDivisible.
  [[nodiscard]] virtual Status settle_sizes(ConvertRequest& request, TargetParts& parts) const;
  /// Of a target with the source's own names: its tensors, and what goes along of entries that are
  /// none. Those of an MLite source become what they would be without expert, tensor and pipeline
  /// parallelism, in `catalog` too.
  [[nodiscard]] virtual Status draft_stored(const ConvertRequest& request, const Checkpoint& source,
                                            Catalog& catalog, TargetParts& parts,
                                            std::vector<std::string>& notes) const;
  /// Of a target with Megatron's names: what it needs of the model's family, once that is known.
  /// Errors: kNoFamily and kUsage where the request speaks of what no model of it has.
  [[nodiscard]] virtual Status take_family(const Mapping& family, TargetParts& parts) const;
  /// What the run that loads it puts before the names of the model's modules, where it does. The
  /// prefix may be empty.
  virtual void add_prefix(std::string_view prefix, TargetParts& parts) const;
  /// Whether the drafts are what the request says that they are. Error: kUsage.
  [[nodiscard]] virtual Status check_tensors(const std::string& family,
                                             const TargetParts& parts) const;
  /// Turns the tensors and the common state of a model into the format's own entries, where those
  /// are others. Notes say what has no place there.
  [[nodiscard]] virtual Status make_entries(const ConvertRequest& request, TargetParts& parts,
                                            std::vector<std::string>& notes) const;
  /// The components with grids of their own, everything solved.
  [[nodiscard]] virtual std::vector<ComponentRanks> components(const TargetParts& parts) const;
  /// Lays the files out and completes the plan's target side, to which the tensors' recipes move.
  /// `plan.source` is set.
  [[nodiscard]] virtual Status lay_out(const ConvertRequest& request, TargetParts& parts,
                                       Plan& plan, std::vector<std::string>& notes) const = 0;

 private:
  TargetTraits traits_;
};

}  // namespace shardwright
