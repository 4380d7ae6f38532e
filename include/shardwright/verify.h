// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwright/convert.h"
#include "shardwright/diagnose.h"

namespace shardwright {

/// How checkpoints are read to be compared, hashed or proven.
struct ProofOptions {
  FamilyChoice choice = {};
  SourceOptions source = {};
  /// Vocabulary rows that mean something, where nothing in the checkpoint tells; the rest is
  /// padding and left out.
  std::optional<std::int64_t> vocab_size = std::nullopt;
  /// Rows of the vocabulary that the model has which it is held against: taken where the checkpoint
  /// calls fewer of its own anything but padding.
  std::optional<std::int64_t> other_rows = std::nullopt;
  bool own_names = false;  ///< tensors as they are stored and named, no model family
  /// Optimizer states under the names of their entries, as earlier manifests have them; else those
  /// in buckets and files of ranks are taken for what they are of the model's tensors.
  bool keeps_stored_states = false;
  int threads = 0;  ///< 0: one per processor
  RunOptions run = {};
  std::string as = {};        ///< the checkpoint's format, where its folder holds several
  std::string other_as = {};  ///< the same of what it is compared with
};

/// A tensor's digest: 32 hex digits, as docs/formats/digest.md defines them.
struct TensorHash {
  TensorDesc desc;
  std::string digest;
};

/// What a checkpoint holds, in digests.
struct HashReport {
  std::string path;
  bool is_canonical = false;  ///< Megatron's canonical tensors; else the stored names
  /// Of a Hugging Face model, all of whose values are listed: what is not in `beside`, it lacks.
  bool is_hf_model = false;
  std::string family;             ///< whose mapping was used; may be empty
  std::vector<TensorHash> model;  ///< sorted by name
  std::string model_digest;
  /// Optimizer states, and values that only Hugging Face stores (`hf_extra.*`): what another form
  /// of the same weights need not have. Sorted by name; empty if there are none.
  std::vector<TensorHash> beside;
  std::string beside_digest;
  /// Why optimizer states that the checkpoint has are not among them; empty where none are left
  /// out. No manifest has it.
  std::string states_left;
  std::vector<std::string> notes;
};

/// Digests of every tensor, read once in tiles. Equal for the same weights in any format and
/// layout. Errors: those of reading; kHole and its like where the checkpoint is not whole;
/// kNoFamily and its like are none: then the stored names are hashed and a note says so. Keeps
/// nothing between calls: several threads may call it at once, of the same checkpoint too. It
/// starts threads of its own, see ProofOptions::threads.
[[nodiscard]] Result<HashReport> hash_checkpoint(const std::string& path,
                                                 const ProofOptions& options);

/// The report as a manifest, which verify takes: JSON, one tensor per line.
[[nodiscard]] std::string write_manifest(const HashReport& report);
/// Error: kJsonCorrupt.
[[nodiscard]] Result<HashReport> read_manifest(std::string_view json);

/// One tensor that both sides have and that is not the same.
struct TensorDifference {
  TensorDesc left;
  TensorDesc right;  ///< another dtype or shape: then elements were not compared
  std::uint64_t differing = 0;
  Dims first;              ///< index of the first differing element
  double max_delta = 0.0;  ///< largest |left - right|; infinite where one is NaN
  [[nodiscard]] bool is_mismatch() const {
    return left.dtype != right.dtype || !(left.shape == right.shape);
  }
};

struct DiffReport {
  std::string left;
  std::string right;
  bool is_canonical = false;
  std::string family;
  std::uint64_t compared = 0;  ///< tensors whose elements were compared
  std::uint64_t elements = 0;
  std::uint64_t bytes = 0;  ///< of one side
  std::vector<std::string> missing_left;
  std::vector<std::string> missing_right;
  std::uint64_t not_compared = 0;             ///< optimizer states of either side; a note says why
  bool has_unread_states = false;             ///< of a side; a note says which and why
  bool has_unread_settings = false;           ///< of training, likewise, where both sides have any
  std::vector<TensorDifference> differences;  ///< sorted by name
  /// Settings of training that both sides say, and not alike: sentences.
  std::vector<std::string> settings;
  std::vector<std::string> same;  ///< tensors whose elements are equal
  std::uint64_t differing = 0;    ///< elements, of all tensors
  double max_delta = 0.0;
  std::vector<std::string> notes;

  [[nodiscard]] bool differs() const {
    return !missing_left.empty() || !missing_right.empty() || !differences.empty() ||
           !settings.empty();
  }
  /// That all was compared, and is equal.
  [[nodiscard]] bool equal() const {
    return !differs() && not_compared == 0 && !has_unread_states && !has_unread_settings;
  }
  /// `EQUAL`, `DIFFERENT` or `NOT ALL COMPARED`.
  [[nodiscard]] std::string_view verdict() const;
};

/// Compares two checkpoints of any formats and layouts, element by element, bit by bit.
/// `tolerance`: elements of floating point types that are this near count as equal; without it only
/// equal bits do. Errors: those of reading; kNoFamily and its like where only a mapping could tell.
/// Several threads may call it at once, as hash_checkpoint.
[[nodiscard]] Result<DiffReport> diff_checkpoints(const std::string& left, const std::string& right,
                                                  const ProofOptions& options,
                                                  std::optional<double> tolerance);

/// Something that verify found: `code` has a page (explain SW0307).
struct VerifyFinding {
  Code code = Code::kInternal;
  Severity severity = Severity::kError;
  std::string object;   ///< the file, tensor or entry it is about; may be empty
  std::string message;  ///< the whole sentence
};

struct VerifyOptions {
  ProofOptions proof;
  std::string against;  ///< a manifest or another checkpoint; empty: none
  /// The path of the public key (PEM) that must have signed the checkpoint (model.sig); empty:
  /// nobody need have.
  std::string public_key = {};
  /// The path of certificates (PEM), one of which must vouch for who has signed it; empty: none
  /// need.
  std::string certificate_chain = {};
};

struct VerifyReport {
  std::string path;
  std::string format;
  std::string family;
  std::uint64_t tensors = 0;
  std::uint64_t elements = 0;
  std::uint64_t chunks = 0;
  std::uint64_t files = 0;
  std::uint64_t payloads_checked = 0;    ///< records whose CRC-32 was right
  std::uint64_t payloads_unguarded = 0;  ///< records that have none; pieces that have no guard
  std::uint64_t payload_bytes = 0;       ///< read for that
  /// Files that some digest guards, whether it was right or not.
  std::set<std::string, std::less<>> guarded_files;
  std::vector<Phrase> proven;           ///< what was checked and found right
  std::vector<VerifyFinding> findings;  ///< in the order in which they were found
  /// Codes and messages of the findings: each is told once, and there may be very many.
  std::set<std::pair<Code, std::string>> told;
  std::vector<std::string> notes;

  [[nodiscard]] bool has_errors() const;
};

/// Proves what can be proven of a checkpoint and collects everything that is wrong. Errors: those
/// of reading that are not the checkpoint's fault, and formats that are refused by name. Several
/// threads may call it at once, as hash_checkpoint.
[[nodiscard]] Result<VerifyReport> verify_checkpoint(const std::string& path,
                                                     const VerifyOptions& options);

/// One tensor, read whole in tiles.
struct TensorReport {
  TensorDesc desc;
  std::vector<std::string> files;   ///< of the chunks below
  std::vector<Chunk> chunks;        ///< as stored, in the tensor that `stored` names
  std::string stored;               ///< the stored tensor, of which this one may be a layer
  std::vector<std::string> values;  ///< the first few, row-major
  std::uint64_t elements = 0;
  std::uint64_t nan = 0;
  std::uint64_t infinite = 0;
  std::uint64_t zero = 0;
  std::optional<double> least;  ///< of the finite ones; complex types have none of these
  std::optional<double> greatest;
  std::optional<double> mean;
  std::optional<double> deviation;  ///< standard deviation, of the whole
  std::vector<std::string> notes;   ///< of several checkpoints, which one it is of
};

/// Error: kUsage for an unknown name, with the nearest one; those of reading. Several threads may
/// call it at once, as hash_checkpoint.
[[nodiscard]] Result<TensorReport> show_tensor(const std::string& path, const std::string& name,
                                               const ProofOptions& options);

/// What rewriting an index changed.
struct IndexReport {
  std::string path;    ///< of the index
  std::string backup;  ///< the old index's new name; empty if there was none
  std::uint64_t tensors = 0;
  std::uint64_t files = 0;
  std::uint64_t total_bytes = 0;
  std::vector<std::string> ghosts;     ///< keys that no file holds
  std::vector<std::string> unlisted;   ///< keys that the old index did not have
  std::vector<std::string> misplaced;  ///< keys that lie in another file than it said
  std::vector<std::string> left_out;   ///< safetensors files that are not the model's by their name
  bool was_right = false;              ///< nothing was written
};

/// Rewrites model.safetensors.index.json from the headers of a folder's safetensors files. The old
/// one is kept; nothing else is touched. Not for one folder by two threads at once. Errors:
/// kDuplicateName for a key in two files, those of reading a header and of writing.
[[nodiscard]] Result<IndexReport> rebuild_index(const std::string& path);

}  // namespace shardwright
