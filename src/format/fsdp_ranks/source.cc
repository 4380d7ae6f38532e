// SPDX-License-Identifier: Apache-2.0
#include "format/fsdp_ranks/source.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/allowance.h"
#include "base/digest.h"
#include "base/fail.h"
#include "base/text.h"
#include "format/fsdp_ranks/rank_tensor.h"
#include "format/legacy/legacy_chunks.h"
#include "format/model_file.h"
#include "format/near_config.h"
#include "format/pickle_files.h"
#include "format/saved_name.h"
#include "format/sibling.h"
#include "format/tensors_beside.h"
#include "format/torch_files/state_dict.h"
#include "layout/texts.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

constexpr std::string_view kModelSign = "model_world_size_#_rank_#.pt";

struct SavedRank {
  std::int64_t world = 0;
  std::int64_t rank = 0;
};

// The numbers of `model_world_size_8_rank_3.pt`.
std::optional<SavedRank> parse_rank_file(std::string_view name) {
  if (!matches_sign(name, kModelSign)) return std::nullopt;
  SavedRank file;
  const auto number_at = [&](std::string_view key, std::int64_t& number) {
    const char* const begin = name.data() + name.find(key) + key.size();
    return std::from_chars(begin, name.data() + name.size(), number).ec == std::errc();
  };
  if (!number_at("world_size_", file.world) || !number_at("rank_", file.rank)) return std::nullopt;
  return file;
}

std::string rank_file_name(std::int64_t world, std::int64_t rank) {
  return fmt::format("model_world_size_{}_rank_{}.pt", world, rank);
}

// The files of the only run that lies there, by rank.
Result<std::int64_t> only_world(const std::vector<DirectoryEntry>& entries) {
  std::map<std::int64_t, std::set<std::int64_t>> worlds;
  for (const DirectoryEntry& entry : entries) {
    const auto file = parse_rank_file(entry.name);
    if (file && !entry.is_directory) worlds[file->world].insert(file->rank);
  }
  if (worlds.empty()) return fail(Code::kNotFound, "no {} is there", kModelSign);
  const auto& [world, ranks] = *worlds.begin();
  if (worlds.size() > 1) {
    const std::int64_t other = worlds.rbegin()->first;
    return fail(Code::kTwoCheckpoints,
                "files of runs with {} and with {} ranks lie together ({}, {}); move those of one "
                "away",
                world, other, rank_file_name(world, *ranks.begin()),
                rank_file_name(other, *worlds.rbegin()->second.begin()));
  }
  std::int64_t next = 0;
  for (const std::int64_t rank : ranks) {
    if (rank == next) ++next;
  }
  if (next == world && ranks.size() == static_cast<std::size_t>(world)) return world;
  if (next < world) {
    return fail(Code::kNotFound, "{} is missing: of {} ranks the files of {} are there",
                rank_file_name(world, next), world, ranks.size());
  }
  return fail(Code::kUnsupportedFormat, "{} names a rank that a run of {} does not have",
              rank_file_name(world, *ranks.rbegin()), world);
}

// The tensors of all ranks, put together.
class RankReader {
 public:
  RankReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint),
        defects_(defects),
        chunks_(checkpoint.catalog, *checkpoint.files) {}

  Status read(const std::string& path, Result<ModelFile> opened) {
    const auto [number, file] = SW_TRY(std::move(opened));
    SW_TRY(judge_pickles(*file, path, checkpoint_, defects_));
    const TorchFile archive = SW_TRY(open_rank_file(*file));
    const pickle::Value pairs = SW_TRY(find_state_dict(archive.root(), path));
    Allowance allowance(file->size());
    const TensorsBeside beside = SW_TRY(tensors_beside(archive.root(), pairs, allowance));
    tell_beside(beside, path, checkpoint_);
    RankParts parts;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::optional<std::string_view> key = pairs.key(i).as_string();
      if (!key) {
        return fail(Code::kUnsupportedFormat, "{}: a key of its state dict is not text", path);
      }
      if (!is_tensor(pairs.value(i))) {
        left_out_.insert(std::string(*key));
        continue;
      }
      const Status added = add(archive, std::string(*key), pairs.value(i), number, parts);
      if (added) continue;
      Error error = Error(added.error()).within(fmt::format("tensor {}", *key));
      SW_TRY(defects_.report(std::unexpected(std::move(error).within(path))));
    }
    const auto [first, is_new] = by_parts_.emplace(parts.boxes.text(), path);
    if (!is_new && twin_.first.empty()) twin_ = {path, first->second};
    names_.emplace_back(path, std::move(parts.names));
    return {};
  }

  // Of a tensor of which a part is in no file: which file ought to have it. Replicas leave no hole.
  Status check_whole() const {
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      const Status covered = check_coverage(tensor);
      if (covered || covered.error().code != Code::kHole) continue;
      const std::string& name = tensor.desc.name;
      for (const auto& [path, names] : names_) {
        if (names.contains(name)) continue;
        return fail(Code::kHole,
                    "{}: found no tensor {}, of which the other ranks' files have parts; the file "
                    "is of another save, or was cut down",
                    path, name);
      }
      if (twin_.first.empty()) return {};  // told with its elements
      return fail(Code::kRankMisplaced,
                  "{}: its parts of all tensors are those of the rank of {}, and no file has the "
                  "others of tensor {}: one file was copied over the other; copy it again from "
                  "where it was saved",
                  twin_.first, twin_.second, name);
    }
    return {};
  }

  void tell() const {
    if (left_out_.empty()) return;
    const std::vector<std::string> names(left_out_.begin(), left_out_.end());
    checkpoint_.notes.push_back(translated("{} entries are not tensors and are left out: {}",
                                           left_out_.size(), name_list(names)));
  }

 private:
  // What one file holds.
  struct RankParts {
    Digest boxes;
    std::set<std::string, std::less<>> names;
  };

  Status add(const TorchFile& archive, const std::string& name, pickle::Value value,
             std::uint32_t file, RankParts& parts) {
    // A local state dict has its pieces of what FSDP1 flattened, a module at a time.
    if (name.ends_with("flat_param")) {
      return fail(Code::kUnsupportedFormat,
                  "this is FSDP1's local state dict, in which nothing says which tensors a flat "
                  "parameter is made of; save with StateDictType.SHARDED_STATE_DICT");
    }
    const RankTensor tensor = SW_TRY(read_rank_tensor(value));
    parts.names.insert(name);
    parts.boxes.add(name);
    for (const RankPiece& piece : tensor.pieces) parts.boxes.add(to_string(piece.box));
    const bool holds_nothing = SW_TRY(element_count(tensor.shape)) == 0;
    for (const RankPiece& piece : tensor.pieces) {
      if (piece.box.is_empty() && !holds_nothing) continue;  // torch may have stored no bytes
      const LocatedTensor place = SW_TRY(archive.locate(piece.local));
      if (!(place.shape == piece.box.shape)) {
        return fail(Code::kChunkMismatch, "found a piece of {}, but its place is {} of {}",
                    to_string(place.shape), to_string(piece.box), to_string(tensor.shape));
      }
      if (place.flips.any()) {
        return fail(Code::kUnsupportedFormat, "it is a conjugate or negative view");
      }
      const LegacyPart part{
          {name, place.dtype, tensor.shape}, piece.box, 0, row_major_strides(piece.box.shape)};
      SW_TRY(chunks_.add("", {file, place, part, true}));
    }
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
  LegacyChunks chunks_;
  std::set<std::string> left_out_;
  std::map<std::string, std::string> by_parts_;  // a file, by the digest of its boxes
  std::pair<std::string, std::string> twin_;     // the first with another file's boxes, and that
  std::vector<std::pair<std::string, std::set<std::string, std::less<>>>> names_;  // by file
};

class FsdpRanksSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "fsdp_ranks"; }

  SourceTraits traits() const override {
    return {.is_hf_model = true, .is_named_by_family = true, .records = Records::kFiles};
  }

  Phrase summary() const override { return phrase("format.fsdp_ranks"); }

  std::string_view usual_target() const override { return "hf"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const DirectoryEntry* file = folder.first([](const DirectoryEntry& entry) {
      return !entry.is_directory && parse_rank_file(entry.name).has_value();
    });
    if (file == nullptr) return std::optional<Recognition>();
    return Recognition{Recognition::Strength::kSure,
                       {translated("{} is what one rank of FSDP saved", file->name)}};
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    const auto entries = SW_TRY(checkpoint.directory->list(""));
    const std::int64_t world = SW_TRY(only_world(entries));
    RankReader reader(checkpoint, defects);
    std::vector<std::string> paths;
    for (std::int64_t rank = 0; rank < world; ++rank) paths.push_back(rank_file_name(world, rank));
    const auto read = [&](const std::string& path, Result<ModelFile> file) {
      return defects.report(reader.read(path, std::move(file)));
    };
    SW_TRY(read_model_files(*checkpoint.directory, paths, *checkpoint.files, checkpoint.catalog,
                            read));
    SW_TRY(defects.report(reader.check_whole()));
    reader.tell();
    tell_left(entries, checkpoint);
    return read_near_config(checkpoint, defects);
  }

 private:
  // The optimizer's states are numbered by parameter and cut by rank; who goes on with the run
  // needs them as they are.
  static void tell_left(const std::vector<DirectoryEntry>& entries, Checkpoint& checkpoint) {
    std::vector<std::string> left;
    for (const DirectoryEntry& entry : entries) {
      if (matches_sign(entry.name, "optim_world_size_#_rank_#.pt") ||
          matches_sign(entry.name, "extra_state_world_size_#_rank_#.pt")) {
        left.push_back(entry.name);
      }
    }
    if (left.empty()) return;
    std::ranges::sort(left);
    const auto optimizer = std::ranges::find_if(
        left, [](const std::string& name) { return name.starts_with("optim"); });
    if (optimizer != left.end()) checkpoint.unread_optimizer_file = *optimizer;
    checkpoint.notes.push_back(translated("{} files of optimizer and random states stay behind: {}",
                                          left.size(), name_list(left)));
  }
};

}  // namespace

const SourceFormat& fsdp_ranks_source() {
  static const FsdpRanksSource format;
  return format;
}

}  // namespace shardwright
