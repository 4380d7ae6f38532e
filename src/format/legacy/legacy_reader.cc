// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_reader.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/text.h"
#include "format/files_beside.h"
#include "format/folder.h"
#include "format/legacy/legacy_chunks.h"
#include "format/legacy/legacy_ranks.h"
#include "format/legacy/legacy_state.h"
#include "io/source_files.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_names.h"
#include "model/arguments.h"
#include "state/module_state.h"

namespace shardwright {
namespace {

Status add_rank(const Catalog& catalog, const LegacyRanks& ranks, std::size_t index,
                LegacyChunks& chunks) {
  const LegacyRankFile& file = ranks.files()[index];
  const auto add_model = [&](std::size_t v) -> Status {
    const LegacyModel& model = file.contents.models[v];
    const LegacyStage stage = SW_TRY(ranks.stage_of(index, v));
    const auto parts = SW_TRY(legacy_parts(descs_of(model), stage));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (const LegacyPart& part : parts[i]) {
        SW_TRY(chunks.add("", {file.file, model.tensors[i].place, part, parts[i].size() == 1}));
      }
    }
    return {};
  };
  for (std::size_t v = 0; v < file.contents.models.size(); ++v) {
    Status status = add_model(v);
    if (!status) {
      return std::unexpected(std::move(status).error().within(catalog.files[file.file]));
    }
  }
  return {};
}

// Every tensor rank of a stage has the same modules. What one lacks would not be missed where each
// has the whole of it (a norm).
Status check_names(const Catalog& catalog, const LegacyRanks& ranks) {
  using Names = std::set<std::pair<std::size_t, std::string_view>>;
  const auto names_of = [](const LegacyFile& file) {
    Names names;
    for (std::size_t v = 0; v < file.models.size(); ++v) {
      for (const LegacyTensor& tensor : file.models[v].tensors) names.emplace(v, tensor.name);
    }
    return names;
  };
  std::map<std::pair<std::int64_t, std::int64_t>, std::pair<std::uint32_t, Names>> stages;
  for (std::size_t i = 0; i < ranks.files().size(); ++i) {
    const LegacyRankFile& file = ranks.files()[i];
    const LegacyRank& rank = ranks.axes().ranks[i];
    Names names = names_of(file.contents);
    const auto [found, is_first] =
        stages.try_emplace({rank.pipeline, rank.expert}, file.file, names);
    if (is_first) continue;
    const auto& [other, expected] = found->second;
    std::vector<Names::value_type> missing;
    std::ranges::set_symmetric_difference(expected, names, std::back_inserter(missing));
    if (missing.empty()) continue;
    const bool is_here = names.contains(missing.front());
    return fail(Code::kLegacyLayout,
                "{}: tensor {} is missing, which {}, the file of another tensor rank, has; keep "
                "the files of one save",
                catalog.files[is_here ? other : file.file], printable(missing.front().second),
                catalog.files[is_here ? file.file : other]);
  }
  return {};
}

// A folder that is not there may hold only replicas; where it does not, its name says more than
// the hole does.
Status check_folders(const LegacyRanks& ranks, const Catalog& catalog) {
  const LegacyAxes& axes = ranks.axes();
  const std::vector<LegacyRank> expected = SW_TRY(legacy_grid(axes.config, axes.encoders));
  std::set<std::int64_t> stages;
  for (const LegacyRank& rank : axes.ranks) stages.insert(rank.pipeline);
  std::string missing;
  for (const LegacyRank& rank : expected) {
    if (std::ranges::find(axes.ranks, rank) != axes.ranks.end()) continue;
    missing += (missing.empty() ? "" : ", ") + rank_folder_name(rank, axes.config, ranks.naming());
  }
  if (missing.empty()) return {};
  // Its layers would not be missed: those behind them take their numbers.
  if (static_cast<std::int64_t>(stages.size()) < axes.config.pipeline) {
    return fail(Code::kLegacyLayout, "missing {}: found files of {} pipeline stages, expected {}",
                missing, stages.size(), axes.config.pipeline);
  }
  for (const StoredTensor& tensor : catalog.tensors) {
    const Status coverage = check_coverage(tensor);
    if (!coverage) {
      return std::unexpected(Error(coverage.error()).within(fmt::format("missing {}", missing)));
    }
  }
  return {};
}

// Ranks of one run differ in their numbers alone.
bool is_of_one_rank(std::string_view argument) {
  const bool is_size = argument.ends_with("lora_rank");
  return argument == "rank" || (argument.ends_with("_rank") && !is_size);
}

std::vector<std::string> differing_names(const Arguments& one, const Arguments& other) {
  std::vector<std::string> names;
  for (const auto& [name, value] : one) {
    const auto found = other.find(name);
    if (is_of_one_rank(name) || (found != other.end() && found->second == value)) continue;
    names.push_back(name);
  }
  for (const auto& [name, value] : other) {
    if (!is_of_one_rank(name) && !one.contains(name)) names.push_back(name);
  }
  return names;
}

VersionedNames versioned_names_of(const LegacyRanks& ranks) {
  VersionedNames names;
  for (const LegacyRankFile& file : ranks.files()) {
    for (const LegacyModel& model : file.contents.models) {
      for (const LegacyTensor& tensor : model.tensors) note_version(tensor.name, names);
    }
  }
  return names;
}

// What all ranks of a save have alike beside the iteration, which is compared with their places.
Status check_one_save(const Catalog& catalog, const LegacyRanks& ranks) {
  const LegacyRankFile& first = ranks.files().front();
  const auto differ = [&](std::string_view what, const LegacyRankFile& file, std::string_view found,
                          std::string_view expected) {
    return fail(Code::kLegacyLayout,
                "{}: found {} {}, expected {} as in {}; keep the files of one save",
                catalog.files[file.file], what, found, expected, catalog.files[first.file]);
  };
  for (const LegacyRankFile& file : ranks.files()) {
    const LegacyFile& one = first.contents;
    const LegacyFile& other = file.contents;
    if (one.checkpoint_version && other.checkpoint_version &&
        one.checkpoint_version != other.checkpoint_version) {
      return differ("checkpoint_version", file, fmt::to_string(*other.checkpoint_version),
                    fmt::to_string(*one.checkpoint_version));
    }
    for (const std::string_view name : {"bf16", "fp16"}) {
      const auto a = one.arguments.find(name);
      const auto b = other.arguments.find(name);
      if (a == one.arguments.end() || b == other.arguments.end() || a->second == b->second)
        continue;
      return differ(name, file, to_string(b->second), to_string(a->second));
    }
  }
  return {};
}

// Tensors that nobody asks for, as a trainer may keep them beside its model.
void tell_unread(Checkpoint& checkpoint, const LegacyRanks& ranks) {
  const LegacyRankFile& first = ranks.files().front();
  if (std::ranges::find(first.contents.keys, kModelOptState) != first.contents.keys.end()) {
    checkpoint.notes.push_back(
        modelopt_note(path_in(checkpoint.catalog.files[first.file], kModelOptState)));
  }
  for (const LegacyRankFile& file : ranks.files()) {
    const std::vector<std::string>& keys = file.contents.unread.keys;
    if (keys.empty()) continue;
    checkpoint.notes.push_back(
        translated("{}: tensors under {} are left out: no rule says what they are",
                   checkpoint.catalog.files[file.file], name_list(keys)));
    return;
  }
}

// Each is of a module's shard, and no rule says what that of another shard would be.
void tell_module_states(Checkpoint& checkpoint, const LegacyRanks& ranks) {
  for (const LegacyRankFile& file : ranks.files()) {
    for (const LegacyModel& model : file.contents.models) {
      if (model.module_state.empty()) continue;
      checkpoint.notes.push_back(
          module_state_note(checkpoint.catalog.files[file.file] + ": " + model.module_state));
      return;
    }
  }
}

// Of files of other saves, as far as their sizes and iterations don't tell.
void tell_differing_arguments(Checkpoint& checkpoint, const LegacyRanks& ranks) {
  const LegacyRankFile& first = ranks.files().front();
  for (const LegacyRankFile& file : ranks.files()) {
    const std::vector<std::string> names =
        differing_names(first.contents.arguments, file.contents.arguments);
    if (names.empty()) continue;
    checkpoint.notes.push_back(translated(
        "{}: {} is another than in {}, whose arguments are taken; see that all files are of one "
        "save",
        checkpoint.catalog.files[file.file], fmt::join(names, ", "),
        checkpoint.catalog.files[first.file]));
    return;
  }
}

}  // namespace

Status add_ranks(Checkpoint& checkpoint, const LegacyRanks& ranks, Defects& defects) {
  LegacyChunks chunks(checkpoint.catalog, *checkpoint.files);
  for (std::size_t i = 0; i < ranks.files().size(); ++i) {
    SW_TRY(defects.report(add_rank(checkpoint.catalog, ranks, i, chunks)));
  }
  if (!ranks.know_their_ranks()) {
    checkpoint.notes.emplace_back(
        "the files do not say which ranks they are of: folders of tensor ranks, expert ranks or "
        "inner pipeline stages in each other's place would not be noticed, but by digests ('hash "
        "--manifest', 'verify --against')");
  }
  return defects.report(check_names(checkpoint.catalog, ranks));
}

Status read_legacy(Checkpoint& checkpoint, Defects& defects) {
  const LegacyRanks ranks = SW_TRY(LegacyRanks::read(checkpoint, defects));
  SW_TRY(defects.report(check_one_save(checkpoint.catalog, ranks)));
  tell_unread(checkpoint, ranks);
  tell_module_states(checkpoint, ranks);
  SW_TRY(add_ranks(checkpoint, ranks, defects));
  SW_TRY(defects.report(check_folders(ranks, checkpoint.catalog)));
  for (const SettledTower& tower : ranks.towers()) {
    checkpoint.notes.push_back(
        translated("{} is shared out over {} tensor ranks, the language model over {}: its shards "
                   "repeat with period {}, as {}",
                   tower.tower, tower.size, ranks.axes().config.tensor, tower.size, tower.reason));
  }
  if (ranks.are_folded()) {
    checkpoint.notes.emplace_back(
        "the pipeline stages are folded, as DualPipeV has it: layers count through the first "
        "virtual stages upwards and through the second ones downwards");
  }
  if (ranks.have_idle_head()) {
    checkpoint.notes.emplace_back(
        "output_layer.weight of the last stage and its states are left out: beside layers for "
        "multi-token prediction a tied model multiplies with the word embedding there, and does "
        "not use a head of its own");
  }
  const LegacyRankFile& first = ranks.files().front();
  checkpoint.arguments = first.contents.arguments;
  checkpoint.versioned_names = versioned_names_of(ranks);
  tell_differing_arguments(checkpoint, ranks);
  if (std::ranges::find(first.contents.keys, "args") == first.contents.keys.end()) return {};
  const auto read_state = [&]() -> Status {
    const auto file = SW_TRY(checkpoint.files->get(first.file));
    checkpoint.common_state = SW_TRY(read_legacy_state(*file, {})).state;
    return {};
  };
  return defects.report(read_state());
}

}  // namespace shardwright
