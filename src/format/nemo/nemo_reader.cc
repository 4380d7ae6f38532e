// SPDX-License-Identifier: Apache-2.0
#include "format/nemo/nemo_reader.h"

#include <algorithm>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "dcp/rank_metadata.h"
#include "format/added_document.h"
#include "format/carried_files.h"
#include "format/dcp/dcp_reader.h"
#include "format/legacy/legacy_chunks.h"
#include "format/legacy/legacy_ranks.h"
#include "format/legacy/legacy_reader.h"
#include "format/model_files.h"
#include "format/nemo/nemo_config.h"
#include "format/prefixed_names.h"
#include "format/torch_dist/source.h"
#include "format/zarr/source.h"
#include "format/zarr/zarr_reader.h"
#include "io/folder_view.h"
#include "io/source_files.h"
#include "layout/early_names.h"
#include "layout/texts.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

constexpr std::string_view kNemoConfig = "model_config.yaml";
constexpr std::string_view kNemoWeightsFile = "model_weights.ckpt";
constexpr std::string_view kNemoWeightsFolder = "model_weights";
constexpr std::string_view kNemoOnePrefix = "model.";
constexpr std::size_t kMostMembersOpen = 64;

// `mp_rank_01`, `tp_rank_01_pp_rank_002`: NeMo's folders of ranks.
std::optional<LegacyRank> nemo_rank_of(std::string_view name) {
  LegacyRank rank;
  const auto take = [&](std::string_view word, std::int64_t& number) {
    if (!name.starts_with(word)) return false;
    name.remove_prefix(word.size());
    const auto found = take_number(name);
    if (found) number = *found;
    return found.has_value();
  };
  const bool is_whole = take("mp_rank_", rank.tensor) ||
                        (take("tp_rank_", rank.tensor) && take("_pp_rank_", rank.pipeline));
  return is_whole && name.empty() ? std::optional(rank) : std::nullopt;
}

bool is_of_fsdp(const DirectoryEntry& entry) {
  return entry.is_directory && matches_sign(entry.name, "*fsdp_shard_#");
}

class NemoReader {
 public:
  NemoReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint), defects_(defects) {}

  Status read() {
    const Folder folder = SW_TRY(Folder::open(*checkpoint_.directory, ""));
    if (const DirectoryEntry* shard = folder.first(is_of_fsdp)) {
      return fail(Code::kUnsupportedFormat,
                  "{} is a shard of FSDP, which NeMo 1 alone puts together; save it there anew "
                  "without FSDP",
                  shard->name);
    }
    Arguments arguments;
    if (folder.has_file(kNemoConfig)) {
      const std::string yaml = SW_TRY(folder.read(kNemoConfig));
      arguments = SW_TRY(arguments_of_nemo(yaml));
    }
    if (folder.folder(kNemoWeightsFolder) != nullptr) {
      SW_TRY(read_sharded());
    } else {
      SW_TRY(read_ranks(folder, arguments));
    }
    take_vocabulary(checkpoint_.catalog, arguments);
    checkpoint_.arguments = std::move(arguments);
    return {};
  }

 private:
  // From here on the folder of weights is the checkpoint's; the tokenizer's files are beside it.
  Status read_sharded() {
    std::shared_ptr<Directory> whole = std::move(checkpoint_.directory);
    const std::vector<DirectoryEntry> beside = SW_TRY(whole->list(""));
    checkpoint_.directory = std::make_unique<FolderView>(whole, std::string(kNemoWeightsFolder));
    checkpoint_.files = std::make_shared<SourceFiles>(*checkpoint_.directory,
                                                      std::vector<std::string>(), kMostMembersOpen);
    const bool is_zarr = !checkpoint_.directory->exists(kDcpMetadata);
    checkpoint_.location.traits = is_zarr ? zarr_source().traits() : torch_dist_source().traits();
    SW_TRY(is_zarr ? read_zarr(checkpoint_, defects_) : read_dcp(checkpoint_, defects_));
    for (const std::string_view prefix : {kNemoOnePrefix, kNemoPrefix}) {
      if (!has_prefixed_names(checkpoint_.catalog, prefix)) continue;
      take_prefix_off(prefix, checkpoint_.catalog);
      break;
    }
    return add_tokenizer(whole, beside);
  }

  Status read_ranks(const Folder& folder, const Arguments& arguments) {
    std::vector<LegacyRankFile> files;
    LegacyAxes axes;
    const auto add = [&](LegacyRank rank, const std::string& path) -> Status {
      LegacyRankFile file{{rank.tensor, rank.pipeline}, file_number(checkpoint_, path), {}};
      const auto opened = SW_TRY(checkpoint_.files->get(file.file));
      file.contents = SW_TRY(read_legacy_file(*opened, LegacyDetail::kPlaces));
      SW_TRY(name_tensors(file.contents, path));
      file.contents.arguments = arguments;
      axes.config.tensor = std::max(axes.config.tensor, rank.tensor + 1);
      axes.config.pipeline = std::max(axes.config.pipeline, rank.pipeline + 1);
      axes.ranks.push_back(rank);
      files.push_back(std::move(file));
      return {};
    };
    if (folder.has_file(kNemoWeightsFile)) SW_TRY(add({}, std::string(kNemoWeightsFile)));
    for (const DirectoryEntry& entry : folder.entries()) {
      const auto rank = entry.is_directory ? nemo_rank_of(entry.name) : std::nullopt;
      if (!rank) continue;
      SW_TRY(add(*rank, fmt::format("{}/{}", entry.name, kNemoWeightsFile)));
    }
    SW_TRY(check_sizes(axes.config, folder.has_file(kNemoWeightsFile), arguments));
    const auto found = static_cast<std::int64_t>(files.size());
    if (found != axes.config.tensor * axes.config.pipeline) {
      return fail(
          Code::kLegacyLayout,
          "found files of {} ranks, expected {} tensor ranks of each of {} pipeline stages; "
          "copy the missing ones too",
          found, axes.config.tensor, axes.config.pipeline);
    }
    LegacyRanks ranks = LegacyRanks::of(std::move(files), std::move(axes), {});
    SW_TRY(ranks.check_places(checkpoint_.catalog, defects_));
    SW_TRY(add_ranks(checkpoint_, ranks, defects_));
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      SW_TRY(defects_.report(check_coverage(tensor)));
    }
    return add_own_tokenizer(folder.entries());
  }

  // NeMo makes folders of ranks only where there are several, and its configuration counts them;
  // one that other software made may not.
  static Status check_sizes(const ParallelConfig& found, bool is_whole,
                            const Arguments& arguments) {
    if (is_whole) return {};
    const auto tensor = number_of(arguments, {"tensor_model_parallel_size"});
    const auto pipeline = number_of(arguments, {"pipeline_model_parallel_size"});
    const bool is_other =
        tensor.value_or(1) != found.tensor || pipeline.value_or(1) != found.pipeline;
    if ((tensor || pipeline) && is_other) {
      return fail(Code::kLegacyLayout,
                  "found files of {} tensor ranks and {} pipeline stages, expected {} and {} as {} "
                  "says; copy the missing ones too, or keep those of one save",
                  found.tensor, found.pipeline, tensor.value_or(1), pipeline.value_or(1),
                  kNemoConfig);
    }
    if (found.tensor > 1 || found.pipeline > 1) return {};
    return fail(Code::kLegacyLayout,
                "found one rank's folder alone, which NeMo makes where there are several; copy the "
                "others too");
  }

  // Those of Megatron-Core as they are, those from before it by today's; anything else is another
  // kind of model, of speech for instance.
  static Status name_tensors(LegacyFile& file, const std::string& path) {
    for (LegacyModel& model : file.models) {
      for (LegacyTensor& tensor : model.tensors) {
        std::string_view name = tensor.name;
        if (name.starts_with(kNemoOnePrefix)) name.remove_prefix(kNemoOnePrefix.size());
        const bool is_early = name.starts_with("language_model.");
        std::string renamed = is_early ? core_name_of_early(name) : std::string(name);
        const bool is_known = renamed.starts_with("decoder.") ||
                              renamed.starts_with("embedding.") ||
                              renamed.starts_with("output_layer.");
        if (!is_known) {
          return fail(Code::kUnsupportedFormat,
                      "{}: tensor {} is of no language model of NeMo; what is not one is read by "
                      "NeMo itself",
                      path, printable(tensor.name));
        }
        tensor.name = std::move(renamed);
      }
    }
    return {};
  }

  // NeMo puts a hash before the name of a tokenizer's file.
  static std::string name_of_document(std::string_view name) {
    const std::size_t at = name.find('_');
    const bool has_hash = at == 32 && name.find_first_not_of("0123456789abcdef") == at;
    return std::string(has_hash ? name.substr(at + 1) : name);
  }

  // A tokenizer's files among `entries`, each with the name that it has in a model's folder.
  Result<std::vector<std::pair<std::string, DirectoryEntry>>> documents_in(
      const std::vector<DirectoryEntry>& entries) {
    std::vector<std::pair<std::string, DirectoryEntry>> found;
    for (const DirectoryEntry& entry : entries) {
      const std::string name = name_of_document(entry.name);
      if (entry.is_directory || !describes_model(name)) continue;
      if (entry.problem) {
        SW_TRY(defects_.report(std::unexpected(*entry.problem)));
        continue;
      }
      found.emplace_back(name, entry);
    }
    return found;
  }

  Status add_tokenizer(const std::shared_ptr<const Directory>& folder,
                       const std::vector<DirectoryEntry>& entries) {
    for (const auto& [name, entry] : SW_TRY(documents_in(entries))) {
      SW_TRY(add_document(folder, entry.name, name, checkpoint_));
    }
    return {};
  }

  Status add_own_tokenizer(const std::vector<DirectoryEntry>& entries) {
    for (const auto& [name, entry] : SW_TRY(documents_in(entries))) {
      checkpoint_.artifacts.emplace_back(name, add_file(checkpoint_, entry.name, entry.size_bytes));
    }
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
};

}  // namespace

std::string nemo_weights_in(const Folder& folder) {
  if (folder.has_file(kNemoWeightsFile)) return std::string(kNemoWeightsFile);
  const DirectoryEntry* const found = folder.first([&](const DirectoryEntry& entry) {
    if (!entry.is_directory || entry.problem) return false;
    if (entry.name == kNemoWeightsFolder || is_of_fsdp(entry)) return true;
    return nemo_rank_of(entry.name) &&
           folder.exists(fmt::format("{}/{}", entry.name, kNemoWeightsFile));
  });
  return found == nullptr ? "" : found->name;
}

Status read_nemo_one(Checkpoint& checkpoint, Defects& defects) {
  return NemoReader(checkpoint, defects).read();
}

}  // namespace shardwright
