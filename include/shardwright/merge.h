// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "shardwright/diagnose.h"
#include "shardwright/prepared_conversion.h"

namespace shardwright {

/// A part of a multimodal model, as its family's mapping file calls it, and the folder of the
/// Hugging Face checkpoint that holds it.
struct PartFolder {
  std::string name;
  std::string path;
};

/// What putting parts together is asked to do.
struct MergeRequest {
  std::string output;
  std::vector<PartFolder> parts;
  std::vector<std::string> without;  ///< parts that the merged model may lack
  /// The whole model's config.json, or the folder that has it and the model's other files.
  std::string config;
  std::string family;                  ///< overrides detection
  std::vector<std::string> map_files;  ///< further mapping files
  std::string models_dir;              ///< folder with mapping files; empty: the built-in ones
  std::uint64_t max_shard_bytes = 5'000'000'000;
  bool overwrite = false;
  int threads = 0;  ///< 0: one per processor
  std::string as;   ///< the parts' format, where a folder holds several checkpoints
};

/// One part, as its checkpoint shows it.
struct PartReport {
  std::string name;
  std::string path;
  std::uint64_t tensors = 0;
  std::uint64_t bytes = 0;
  std::map<DType, std::uint64_t> dtypes;  ///< tensors of each
};

/// Something that parts which belong together would not show.
struct MergeFinding {
  /// `doubled`, `unexpected`, `missing`, `shape`, `width`, `tied`, `config`, `dtype` or `family`.
  std::string kind;
  Severity severity = Severity::kError;
  std::string part;  ///< empty where it is nobody's alone
  std::string text;
  std::vector<std::string> tensors;  ///< names in the whole model
};

/// Whether parts belong together.
struct MergeReport {
  std::string family;
  std::vector<PartReport> parts;
  std::vector<MergeFinding> findings;

  [[nodiscard]] bool has_errors() const;
};

/// What was found, and the merge itself where nothing stands in its way.
struct PreparedMerge {
  MergeReport report;
  std::optional<PreparedConversion> conversion;
};

/// Puts Hugging Face checkpoints of a model's parts together into one: tensors get the names that
/// the whole model has, and keep their bytes. Reads headers, and bytes only of output heads that
/// should repeat the embedding. What does not fit is in the report; errors are those of reading,
/// kUsage for parts that the family does not have or that are missing, kNoFamily and kConfigMissing
/// for a config that says too little.
[[nodiscard]] Result<PreparedMerge> prepare_merge(const MergeRequest& request);

/// What taking a model apart is asked to do.
struct SplitRequest {
  std::string input;
  std::string output;                  ///< gets a folder for each part, and `model`
  std::string family;                  ///< overrides detection
  std::vector<std::string> map_files;  ///< further mapping files
  std::string models_dir;              ///< folder with mapping files; empty: the built-in ones
  std::uint64_t max_shard_bytes = 5'000'000'000;
  bool overwrite = false;
  int threads = 0;  ///< 0: one per processor
  std::string as;   ///< the input's format, where it holds several checkpoints
};

struct PreparedSplit {
  std::string family;
  std::vector<PartReport> parts;  ///< paths are those of the folders to come
  PreparedConversion conversion;
};

/// The reverse: a folder for each part of a multimodal Hugging Face model, named as the part alone
/// is, with its part of config.json. `model` gets the whole model's other files and the list of its
/// tensors; as --config of a merge it gives the same model again. Errors: those of reading;
/// kUnmatchedSource with the names of tensors that belong to no part; kDuplicateName; kNoFamily.
[[nodiscard]] Result<PreparedSplit> prepare_split(const SplitRequest& request);

}  // namespace shardwright
