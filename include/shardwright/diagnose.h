// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

enum class Language : std::uint8_t { kEnglish, kChinese };

/// One statement in both languages. Codes, keys, flags and paths in it are the same.
struct Phrase {
  std::string english;
  std::string chinese;

  [[nodiscard]] const std::string& in(Language language) const {
    return language == Language::kChinese ? chinese : english;
  }
};

enum class Severity : std::uint8_t {
  kInfo,     ///< good to know
  kWarning,  ///< the data are there; some reader will stumble
  kError,    ///< data are missing, or what the caller asked for would go wrong
};

/// Something that a diagnosis says about a checkpoint; `L07` has a page, see code_page().
struct Finding {
  std::string code;
  Severity severity = Severity::kInfo;
  Phrase message;
};

/// Sizes of parallel axes; an axis that is not there has size 1, an unknown one has none.
struct AxisSizes {
  std::optional<std::int64_t> tensor = std::nullopt;
  std::optional<std::int64_t> pipeline = std::nullopt;
  std::optional<std::int64_t> virtual_pipeline = std::nullopt;
  std::optional<std::int64_t> expert = std::nullopt;
  std::optional<std::int64_t> expert_tensor = std::nullopt;
  std::optional<std::int64_t> data = std::nullopt;

  friend bool operator==(const AxisSizes&, const AxisSizes&) = default;
};

/// A component of a model whose components have sizes of their own; what nobody recorded and
/// nothing shows is absent.
struct RecordedComponent {
  std::string name;
  AxisSizes sizes;  ///< without virtual stages, which MIMO has none of
  std::optional<std::int64_t> context = std::nullopt;
  std::optional<std::int64_t> rank_offset = std::nullopt;
  std::optional<std::uint64_t> tensors = std::nullopt;  ///< in the checkpoint, where counted
};

enum class Confidence : std::uint8_t {
  kCertain,    ///< recorded in the checkpoint, or no other reading is possible
  kLikely,     ///< what the contents look like
  kAmbiguous,  ///< there is another reading; `reason` says what would settle it
};

/// How many axes the ranks of a run have in meaning, whatever the names of their folders show.
enum class LayoutClass : std::uint8_t {
  kNone,      ///< names carry no ranks (torch_dist, HF), or nobody can tell
  kTensor,    ///< 1-D
  kPipeline,  ///< 2-D: tensor, pipeline
  kExpert,    ///< 3-D: tensor, pipeline, expert
};

enum class Loader : std::uint8_t { kNone, kNonExpert, kExpertAware };

/// What a path holds and how to read it.
struct Diagnosis {
  std::string path;    ///< of the folder with the data
  std::string format;  ///< as every command names it; `deepspeed_zero` and the like are not read
  LayoutClass layout = LayoutClass::kNone;
  std::optional<std::int64_t> disk_arity;  ///< numbers in the names of the model's folders
  std::vector<std::string> coordinates;    ///< what they are: `tp`, `pp`, `dp`, `ep`
  AxisSizes sizes;
  /// Of a MIMO model, which has no sizes of its own, and of a legacy checkpoint whose encoder has
  /// another tensor size than its language model, which `sizes` are of.
  std::vector<RecordedComponent> components;
  Phrase reason;
  std::vector<Phrase> evidence;
  Confidence confidence = Confidence::kCertain;
  /// `mp_rank_{tp:02d}_{ep:03d}`: what a run of the sizes that the caller gave looks for, else of
  /// those on disk; empty where names carry no ranks.
  std::string expected_pattern;
  std::string disk_pattern;  ///< the same, of what is there
  std::vector<std::string> missing;
  std::vector<std::string> unexpected;
  Loader loader = Loader::kNone;  ///< that the checkpoint needs, whatever the caller gave
  Phrase loader_note;             ///< which axis is which number, which are replicas
  std::optional<bool> complete;   ///< whether every piece of the model is there
  std::vector<Finding> findings;
  std::string next;  ///< the command to run next; empty if there is none

  [[nodiscard]] bool has_errors() const;
};

/// What to look at, and what the caller believes about it.
struct DiagnoseRequest {
  std::string path;
  AxisSizes believed = {};      ///< `--tp` and so on; `data` has no flag
  bool check_replicas = false;  ///< compare the bytes of what several ranks hold
  std::string as = {};          ///< the format, where the path holds several checkpoints
};

/// Looks at names, metadata and a few ranks' pickles, which are never run. Bytes of tensors are
/// read only where nothing else decides, or where replicas are to be compared (`evidence` says how
/// many), and where the conversion that is named next is planned, see prepare_conversion(). Errors:
/// kNotFound and other failures to read; what is merely wrong is a finding.
[[nodiscard]] Result<Diagnosis> diagnose(const DiagnoseRequest& request);

/// The codes of all findings, in order.
[[nodiscard]] std::vector<std::string> finding_codes();

/// The page about a finding's code (`L07`) or an error's (`SW0307`), from docs/diagnose.md and
/// docs/errors.md or their Chinese twins. Error: kUsage for an unknown code, with the nearest one.
[[nodiscard]] Result<std::string> code_page(std::string_view code, Language language);

/// What a code means, in a few words: the heading of its page. Empty where it has none.
[[nodiscard]] Phrase code_title(std::string_view code);

}  // namespace shardwright
