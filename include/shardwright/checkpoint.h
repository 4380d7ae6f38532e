// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shardwright/catalog.h"
#include "shardwright/storage.h"
#include "shardwright/versioned_names.h"

namespace shardwright {

class FormatFindings;
class SourceFiles;

/// Where records with a CRC-32 are.
enum class Records : std::uint8_t {
  kNone,   ///< bare bytes behind a header, which no checksum guards
  kFiles,  ///< each file of weights is one archive
  kItems,  ///< archives inside files, and files of ranks
};

/// What the files of a checkpoint are like, as far as reading on needs to know it. Its format says
/// so when it is opened; nobody else asks which format that is.
struct SourceTraits {
  bool is_hf_model = false;         ///< its tensors are called as Hugging Face calls a model's
  bool is_named_by_family = false;  ///< only its family tells which names are Hugging Face's
  bool has_chunk_list = false;      ///< `.metadata` lists the chunks, which lie in `.distcp` files
  bool is_of_ranks = false;         ///< each rank has saved files of its own, whole in themselves
  bool has_layers_apart = false;    ///< never stacked, whatever Megatron's own torch_dist does
  bool needs_common_state = false;  ///< Megatron loads nothing of it without its common.pt
  bool has_rank_folders = false;    ///< a folder for each rank, named for its numbers
  bool has_module_pieces = false;   ///< its tensors are the modules' own, or halves of these
  bool has_state_entries = false;   ///< its training state lies in entries, not in a common.pt
  bool weights_are_main = false;    ///< its weights are the optimizer's main weights too
  bool has_local_numbers = false;   ///< experts and layers are numbered as their ranks had them
  bool has_components = false;      ///< its components had ranks of their own
  bool is_adapter = false;          ///< it is an adapter alone, whose names are no model's
  bool shares_by_name = false;      ///< a Megatron job shares it out by names, files tell writers
  bool holds_extras = true;         ///< it has a place for values that only Hugging Face stores
  Records records = Records::kItems;
  /// Files that end so and that nothing names may be left over from another save; empty: none.
  std::string_view leftover_ending = {};
};

/// Which of the checkpoints that a path holds is meant.
struct FormatChoice {
  std::string format = {};    ///< a format's name, see format_names(); empty: the only one there
  std::string flag = "--as";  ///< what a message tells the user to name it with; empty: nothing
};

/// The names of all formats that are read: `hf`, `torch_dist`, `fsdp_dtensor`, ...
[[nodiscard]] std::vector<std::string_view> format_names();

/// Where a checkpoint's data lies, found from the path that the user gave.
struct Location {
  /// The format's name; that of a dialect (`fsdp_dtensor`, `mimo`, `mlite`, `safetensors`) once the
  /// checkpoint was opened.
  std::string format;
  SourceTraits traits;                    ///< of that format
  std::string path;                       ///< of the directory with the data
  std::optional<std::int64_t> iteration;  ///< from the directory's name; absent for `release`
  std::vector<std::string> reasons;       ///< what on disk says so, one fact each
  std::vector<std::string> notes = {};    ///< what on the way there is left, as sentences
};

/// Follows run roots, trackers and `iter_*` folders down to the data. Errors: kNotFound,
/// kTrackerBroken, kUnknownFormat, kUnsupportedFormat with the name of what it is, kTwoCheckpoints
/// where several are there and none was chosen, kUsage for a choice that is not there.
[[nodiscard]] Result<Location> locate_checkpoint(std::string_view path,
                                                 const FormatChoice& choice = {});

/// A plain value of a training run's arguments or of a config: None, flag, number, text, list.
using ArgValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>>;
using Arguments = std::map<std::string, ArgValue, std::less<>>;

/// A checkpoint opened for reading: what it holds, and the state beside its tensors in the parts
/// that we understand. Payloads of torch archives are located when they are needed.
struct Checkpoint {
  Location location;
  std::unique_ptr<Directory> directory;
  std::shared_ptr<SourceFiles> files;  ///< Catalog::files, by the same numbers; opened when read
  Catalog catalog;
  Arguments arguments;  ///< of the Megatron run; empty if the checkpoint has none
  /// Bytes of common.pt or of the common_state entry, or the like made of a legacy file; may be
  /// empty.
  std::string common_state;
  bool has_unread_optimizer = false;  ///< optimizer state in a form that is not read yet
  /// A file with optimizer states that no rule reads; empty where there is none.
  std::string unread_optimizer_file;
  /// Why no config.json was made of what says the same here, as a sentence; may be empty.
  std::string why_no_config;
  /// What belongs to the optimizer states and is no tensor, for who takes them along, as a
  /// sentence; may be empty.
  std::string beside_states;
  std::string hf_config;   ///< text of config.json (own, or carried under hf/); may be empty
  std::string run_config;  ///< text of Megatron-Bridge's run_config.yaml; may be empty
  /// What all names of a torch_dist checkpoint began with; the catalog has them without it.
  std::string torch_dist_prefix;
  std::string source_keys;  ///< text of hf/source_keys.json; may be empty
  /// Files of the HF model that are not weights (its own, or carried under hf/): name within the HF
  /// folder, and where the bytes are (in Catalog::files).
  std::vector<std::pair<std::string, StoredObject>> artifacts;
  /// Other files that go along to another Megatron checkpoint (run_config.yaml, tokenizer/).
  std::vector<std::pair<std::string, StoredObject>> companions;
  VersionedNames versioned_names;
  /// Files of single ranks that only a job of the same layout reads (MLite's optimizer_rank_3.pt).
  std::vector<std::pair<std::string, StoredObject>> rank_files;
  std::vector<std::string> notes;  ///< what the user should know: entries left out, and why
  /// What its format alone asks for, kept for the next time; may be null.
  std::shared_ptr<FormatFindings> of_format;
};

/// Where readers tell what is wrong with a file. By default the first defect ends the reading; a
/// collection remembers all of them, and the reader goes on without what is broken. Setting aside
/// is stopping at the first, but for tensors of types that have no name here. Not thread-safe.
class Defects {
 public:
  enum class Policy : std::uint8_t { kStopAtFirst, kCollect, kSetAside };
  explicit Defects(Policy policy = Policy::kStopAtFirst) : policy_(policy) {}

  /// Success is returned; an error is returned (kStopAtFirst) or recorded (kCollect). What is not
  /// the checkpoint's fault (a file that may not be read, an unsupported format) is never recorded.
  [[nodiscard]] Status report(Status status);
  /// Whether an error is the checkpoint's fault.
  [[nodiscard]] static bool is_one(const Error& error);
  /// Whether an error says nothing of any file: a server, this machine or another rank gave up.
  [[nodiscard]] static bool is_outage(const Error& error);
  [[nodiscard]] bool collects() const { return policy_ == Policy::kCollect; }
  [[nodiscard]] const std::vector<Error>& found() const { return found_; }

  [[nodiscard]] bool sets_aside() const { return policy_ == Policy::kSetAside; }
  /// Notes a tensor that the checkpoint goes without, and why.
  void set_aside(std::string_view tensor, Error why) { aside_.emplace(tensor, std::move(why)); }
  [[nodiscard]] const std::map<std::string, Error, std::less<>>& aside() const { return aside_; }

  /// Notes that the bytes of a chunk are not to be had: it was reported.
  void lose(const std::string& tensor, std::size_t chunk) { lost_[tensor].insert(chunk); }
  [[nodiscard]] bool is_lost(std::string_view tensor, std::size_t chunk) const {
    const auto found = lost_.find(tensor);
    return found != lost_.end() && found->second.contains(chunk);
  }

 private:
  Policy policy_;
  std::vector<Error> found_;
  std::set<std::pair<Code, std::string>> known_;  // of found_: there may be very many
  std::map<std::string, std::set<std::size_t>, std::less<>> lost_;  // chunks, by tensor
  std::map<std::string, Error, std::less<>> aside_;
};

/// Reads metadata and headers only. Never runs anything that a pickle asks for.
[[nodiscard]] Result<Checkpoint> open_checkpoint(std::string_view path,
                                                 const FormatChoice& choice = {});

/// The same, with what is wrong told to `defects`. A collection may get a checkpoint that lacks
/// whatever could not be read.
[[nodiscard]] Result<Checkpoint> open_checkpoint(std::string_view path, Defects& defects,
                                                 const FormatChoice& choice = {});

}  // namespace shardwright
