// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <span>
#include <string>
#include <vector>

#include "model/mapping_file.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// The name under which Megatron keeps an HF tensor that should repeat another one and does not.
inline constexpr std::string_view kHfExtraPrefix = "hf_extra.";

struct FromHfOptions {
  /// Copies (Correspondence::copies of a first call) whose bytes turned out to differ from their
  /// original: they become Megatron tensors of their own, named `hf_extra.<HF name>`.
  std::set<std::string, std::less<>> differing_copies;
  /// Where given, tensors without a rule are no error, and their names are put here.
  std::vector<std::string>* unknown = nullptr;
};

/// Which Megatron tensors an HF checkpoint makes. Every HF tensor is matched by exactly one rule,
/// is a copy, or is on the mapping's ignore list; the blocks take every element exactly once.
/// Heads of rewards, values and classes are matched in every family (with_head_of_hf).
/// Megatron's vocabulary has the rows of HF. Errors: kUnmatchedSource and kUnmatchedTarget with all
/// names, kShapeMismatch, kDtypeUnsupported (parts of one tensor with different dtypes), and those
/// of SizeExpr::evaluate.
[[nodiscard]] Result<Correspondence> map_from_hf(const Mapping& family, const ModelSizes& sizes,
                                                 std::span<const TensorDesc> hf,
                                                 const FromHfOptions& options = {});

/// The HF tensors that existed when a checkpoint was imported (`source_keys.json`).
struct HfWanted {
  std::span<const TensorDesc> tensors;
  /// Names that were left out since, where there was no place for what only Hugging Face stores
  /// (`hf_extra.*`).
  std::set<std::string, std::less<>> left_out = {};
};

/// What stands in a family's way, for who tries one after the other.
struct MappingTrial {
  std::vector<std::string> missing;  ///< names that it needs
  std::vector<std::string> surplus;  ///< tensors that it has no rule for
  std::size_t mismatches = 0;        ///< rules whose tensors have another shape
  std::optional<Error> mismatch;     ///< the first of them
};

/// What else is known of the HF model that is made.
struct FromMegatronOptions {
  std::string head;  ///< the module that its class has for rewards or classes; empty: `score`
  /// Where given, what ends it is put here, and the error says nothing then.
  MappingTrial* trial = nullptr;
};

/// Which HF tensors a Megatron checkpoint makes. `canonical` has one tensor per layer under
/// `torch_dist` names; Correspondence::megatron repeats the names as given, aliases included, and
/// has no tensor that is not in `canonical`. Vocabulary tensors are cut to sizes["vocab"] rows.
/// `wanted` (may be null) decides between equivalent HF forms, which copies are written, and the HF
/// dtype of tensors that Megatron pins. Errors:
/// as map_from_hf; kUnmatchedTarget also when a wanted name can't be made.
[[nodiscard]] Result<Correspondence> map_from_megatron(const Mapping& family,
                                                       const ModelSizes& sizes,
                                                       std::span<const TensorDesc> canonical,
                                                       const HfWanted* wanted = nullptr,
                                                       const FromMegatronOptions& options = {});

}  // namespace shardwright
