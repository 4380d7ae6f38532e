// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config.h"
#include "model/mapping_file.h"

namespace shardwright {

/// One thing that keeps a mapping from fitting a model; alike ones (of all layers) are one problem.
struct MappingProblem {
  enum class Kind : std::uint8_t {
    kUncovered,      ///< an HF tensor that no rule takes
    kMissing,        ///< an HF tensor that a rule needs and the model lacks
    kCoveredTwice,   ///< an HF tensor that two rules take
    kProducedTwice,  ///< a Megatron tensor that two rules make
    kShape,          ///< tensors that a rule cannot put together
    kConfig,         ///< numbers or settings that config.json lacks or Megatron does not have
    kWayBack,        ///< the Megatron tensors do not make the HF tensors again
  };
  Kind kind = Kind::kUncovered;
  std::vector<std::string> tensors;  ///< names, in order; none for kConfig
  std::string rule;     ///< its place in the mapping file; empty where no rule is meant
  std::string reason;   ///< what is wrong, as a sentence part; empty where `kind` says it
  std::string nearest;  ///< a name that was probably meant; may be empty
};

/// `uncovered`, `missing`, `covered_twice` and so on.
[[nodiscard]] std::string_view problem_name(MappingProblem::Kind kind);

/// How well a mapping fits the tensors of one HF model.
struct MappingReport {
  std::size_t hf_tensors = 0;
  std::size_t taken = 0;  ///< of them: by rules, as copies, or ignored
  std::size_t megatron_tensors = 0;
  std::vector<std::string> ignored;
  std::vector<MappingProblem> problems;
};

/// Applies a mapping to the tensors of a model and lists everything that does not fit, where
/// map_from_hf stops at the first. Errors: kDuplicateName and kLimit only.
[[nodiscard]] Result<MappingReport> report_mapping(const Mapping& mapping, const HfConfig& config,
                                                   std::span<const TensorDesc> hf);

/// The name with `*` for each part between dots that is a number.
[[nodiscard]] std::string numberless(std::string_view name);

}  // namespace shardwright
