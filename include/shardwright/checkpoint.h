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

namespace shardwright {

class SourceFiles;

/// What a directory is.
enum class Container : std::uint8_t {
  kHf,         ///< safetensors files, with or without an index
  kTorchDist,  ///< Megatron-Core: `.metadata`, `.distcp` files and metadata.json
  kDcp,        ///< plain torch.distributed.checkpoint
  kLegacy,     ///< Megatron's `mp_rank_*` folders, a torch.save file for each rank
};

/// `hf`, `torch_dist`, `dcp`, `legacy`.
[[nodiscard]] std::string_view container_name(Container container);

/// Where a checkpoint's data lies, found from the path that the user gave.
struct Location {
  Container container = Container::kHf;
  std::string path;                       ///< of the directory with the data
  std::optional<std::int64_t> iteration;  ///< from the directory's name; absent for `release`
  std::vector<std::string> reasons;       ///< what on disk says so, one fact each
};

/// Follows run roots, trackers and `iter_*` folders down to the data. Errors: kNotFound,
/// kTrackerBroken, kUnknownFormat, and kUnsupportedFormat with the name of what it is.
[[nodiscard]] Result<Location> locate_checkpoint(std::string_view path);

/// A plain value of a training run's arguments or of a config: None, flag, number, text, list.
using ArgValue = std::variant<std::monostate, bool, std::int64_t, double, std::string,
                              std::vector<std::int64_t>, std::vector<std::string>>;
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
  std::string hf_config;    ///< text of config.json (own, or carried under hf/); may be empty
  std::string run_config;   ///< text of Megatron-Bridge's run_config.yaml; may be empty
  std::string source_keys;  ///< text of hf/source_keys.json; may be empty
  /// Files of the HF model that are not weights (its own, or carried under hf/): name within the HF
  /// folder, and where the bytes are (in Catalog::files).
  std::vector<std::pair<std::string, StoredObject>> artifacts;
  /// Other files that go along to another Megatron checkpoint (run_config.yaml, tokenizer/).
  std::vector<std::pair<std::string, StoredObject>> companions;
  std::vector<std::string> notes;  ///< what the user should know: entries left out, and why
};

/// Where readers tell what is wrong with a file. By default the first defect ends the reading; a
/// collection remembers all of them, and the reader goes on without what is broken. Not
/// thread-safe.
class Defects {
 public:
  enum class Policy : std::uint8_t { kStopAtFirst, kCollect };
  explicit Defects(Policy policy = Policy::kStopAtFirst) : policy_(policy) {}

  /// Gives a success back, and an error unless it is collected. What is not the checkpoint's fault
  /// (a file that may not be read, a format that is not supported) is never collected.
  [[nodiscard]] Status report(Status status);
  [[nodiscard]] bool collects() const { return policy_ == Policy::kCollect; }
  [[nodiscard]] const std::vector<Error>& found() const { return found_; }

  /// Notes that the bytes of a chunk are not to be had: it was reported.
  void lose(const std::string& tensor, std::size_t chunk) { lost_.emplace(tensor, chunk); }
  [[nodiscard]] bool is_lost(const std::string& tensor, std::size_t chunk) const {
    return lost_.contains({tensor, chunk});
  }

 private:
  Policy policy_;
  std::vector<Error> found_;
  std::set<std::pair<std::string, std::size_t>> lost_;
};

/// Reads metadata and headers only. Never runs anything that a pickle asks for.
[[nodiscard]] Result<Checkpoint> open_checkpoint(std::string_view path);

/// The same, with what is wrong told to `defects`. A collection may get a checkpoint that lacks
/// whatever could not be read.
[[nodiscard]] Result<Checkpoint> open_checkpoint(std::string_view path, Defects& defects);

}  // namespace shardwright
