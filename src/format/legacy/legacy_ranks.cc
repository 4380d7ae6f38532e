// SPDX-License-Identifier: Apache-2.0
#include "format/legacy/legacy_ranks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/fail.h"
#include "base/prepare_ahead.h"
#include "format/carried_files.h"
#include "format/legacy/copied_head.h"
#include "format/legacy/rank_sample.h"
#include "format/legacy/tower_reader.h"
#include "io/source_files.h"
#include "layout/folder_groups.h"
#include "layout/idle_head.h"
#include "layout/layer_name.h"
#include "layout/misplaced_ranks.h"
#include "layout/pipeline_split.h"
#include "layout/texts.h"
#include "state/document_names.h"
#include "state/recorded_run.h"
#include "state/run_config.h"

namespace shardwright {
namespace {

// The numbers of a main stack's layers in a state dict: [first, end), both 0 without layers.
LayerRange layers_in(const LegacyModel& model, bool is_encoder) {
  LayerRange range;
  for (const LegacyTensor& tensor : model.tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (!layer || !layer->index || !is_main_stack(layer->stack)) continue;
    if (is_encoder_stack(layer->stack) != is_encoder) continue;
    range.first = range.end == 0 ? *layer->index : std::min(range.first, *layer->index);
    range.end = std::max(range.end, *layer->index + 1);
  }
  return range;
}

// A file without a version is of version 0.
QkvOrder qkv_order_of(const LegacyFile& file, const LegacyModel& model) {
  const double version = file.checkpoint_version.value_or(0.0);
  if (!model.is_early || version >= 2.0) return QkvOrder::kByGroup;
  return version >= 1.0 ? QkvOrder::kByHead : QkvOrder::kThreeFirst;
}

// Runs of Megatron-Bridge keep their sizes beside the ranks' files, not in them.
Result<std::optional<std::int64_t>> bridge_expert_tensor(const Directory& directory) {
  const std::string text = SW_TRY(read_if_there(directory, kRunConfigFile, kMostTextBytes));
  if (text.empty()) return std::optional<std::int64_t>();
  // A file that can't be read is told of where it is carried along.
  return recorded_run(read_run_config(text).value_or(Arguments())).sizes.expert_tensor;
}

Result<LegacyFile> read_rank(std::uint32_t number, SourceFiles& files) {
  const auto file = SW_TRY(files.get(number));
  return read_legacy_file(*file, LegacyDetail::kPlaces);
}

// The files of ranks' models, which have no contents yet.
Result<std::vector<LegacyRankFile>> find_files(Checkpoint& checkpoint, Defects& defects) {
  const Directory& directory = *checkpoint.directory;
  std::vector<DirectoryEntry> folders = SW_TRY(directory.list(""));
  std::erase_if(folders, [](const DirectoryEntry& folder) {
    return !(folder.is_directory || folder.problem) || !parse_rank_folder(folder.name);
  });
  using Entries = std::vector<DirectoryEntry>;
  const auto list = [&](std::size_t i) {
    const DirectoryEntry& folder = folders[i];
    return folder.problem ? std::unexpected(*folder.problem) : directory.list(folder.name);
  };
  std::vector<LegacyRankFile> found;
  const auto find = [&](std::size_t i, Result<Entries> listed) -> Status {
    const DirectoryEntry& folder = folders[i];
    if (folder.problem) return defects.report(std::unexpected(*folder.problem));
    const Entries entries = SW_TRY(std::move(listed));
    checkpoint.has_unread_optimizer |= std::ranges::any_of(
        entries, [](const DirectoryEntry& entry) { return is_optimizer_file(entry.name); });
    const std::string_view name = model_file_of(rank_folder(folder.name, entries));
    if (name.empty()) return {};
    const std::string path = fmt::format("{}/{}", folder.name, name);
    found.push_back({*parse_rank_folder(folder.name), file_number(checkpoint, path), {}});
    return {};
  };
  SW_TRY(read_ahead(folders.size(), list, find));
  return found;
}

// As they are numbered in a stage.
std::set<std::int64_t> numbers_of_layers(const LegacyModel& model) {
  std::set<std::int64_t> numbers;
  for (const LegacyTensor& tensor : model.tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (layer && layer->index && is_main_stack(layer->stack)) numbers.insert(*layer->index);
  }
  return numbers;
}

// Of layers that have the numbers `slots` in the model, but for those without weights. Whether all
// of these are there, and no others.
bool close_gaps_of(LegacyModel& model, const std::set<std::int64_t>& held, LayerRange slots,
                   const std::set<std::int64_t>& noop) {
  std::map<std::int64_t, std::int64_t> numbers;  // with the gaps, without
  for (std::int64_t layer = slots.first; layer < slots.end; ++layer) {
    if (!noop.contains(layer)) {
      numbers.emplace(layer - slots.first, static_cast<std::int64_t>(numbers.size()));
    }
  }
  const bool are_those =
      std::ranges::equal(held, numbers, {}, {}, [](const auto& entry) { return entry.first; });
  if (!are_those) return false;
  for (LegacyTensor& tensor : model.tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (!layer || !layer->index || !is_main_stack(layer->stack)) continue;
    tensor.name = join_layer_name(layer->stack, numbers.at(*layer->index), layer->rest);
  }
  return true;
}

std::unexpected<Error> refuse_two_copies() {
  return fail(
      Code::kUnsupportedFormat,
      "the run trained with DualPipe (use_dualpipe): each rank holds parts of two copies of "
      "the model, which is not read; load it without --use-dualpipe and save it anew");
}

}  // namespace

std::vector<TensorDesc> descs_of(const LegacyModel& model) {
  std::vector<TensorDesc> descs;
  for (const LegacyTensor& tensor : model.tensors) {
    descs.push_back({tensor.name, tensor.place.dtype, tensor.place.shape});
  }
  return descs;
}

std::uint32_t file_number(Checkpoint& checkpoint, const std::string& path) {
  std::vector<std::string>& files = checkpoint.catalog.files;
  const auto known = std::ranges::find(files, path);
  if (known != files.end()) return static_cast<std::uint32_t>(known - files.begin());
  files.push_back(path);
  return checkpoint.files->add(path);
}

Result<LegacyRanks> LegacyRanks::read(Checkpoint& checkpoint, Defects& defects) {
  LegacyRanks ranks;
  SW_TRY(ranks.read_files(checkpoint, defects));
  SW_TRY(ranks.check_virtual_stages(checkpoint.catalog));
  LegacyAxesEvidence evidence = ranks.evidence(checkpoint.catalog);
  // Whose stages look like expert ranks: each of them has both ends of the model.
  if (evidence.run.chunk_order == ChunkOrder::kTwoCopies && evidence.virtual_stages == 2) {
    return refuse_two_copies();
  }
  if (!evidence.run.is_present) {
    evidence.run.sizes.expert_tensor = SW_TRY(bridge_expert_tensor(*checkpoint.directory));
  }
  ranks.axes_ = SW_TRY(settle_legacy_axes(evidence));
  SW_TRY(ranks.settle_experts(checkpoint));
  SW_TRY(ranks.check_places(evidence, defects));
  SW_TRY(ranks.find_towers(checkpoint));
  ranks.settle_run();
  SW_TRY(std::exchange(ranks.fit_, {}));
  SW_TRY(ranks.settle_tying(checkpoint));
  return ranks;
}

LegacyRanks LegacyRanks::of(std::vector<LegacyRankFile> files, LegacyAxes axes,
                            std::vector<SettledTower> towers) {
  LegacyRanks ranks;
  ranks.files_ = std::move(files);
  ranks.axes_ = std::move(axes);
  ranks.towers_ = std::move(towers);
  ranks.settle_run();
  return ranks;
}

// A run may have thousands of ranks: what waits for a disk or a server is done side by side.
Status LegacyRanks::read_files(Checkpoint& checkpoint, Defects& defects) {
  std::vector<LegacyRankFile> ranks = SW_TRY(find_files(checkpoint, defects));
  const auto read = [&](std::size_t i) { return read_rank(ranks[i].file, *checkpoint.files); };
  const auto take = [&](std::size_t i, Result<LegacyFile> file) -> Status {
    if (!file) return defects.report(std::unexpected(std::move(file).error()));
    checkpoint.has_unread_optimizer |= file->has_optimizer;
    ranks[i].contents = *std::move(file);
    files_.push_back(std::move(ranks[i]));
    return {};
  };
  SW_TRY(read_ahead(ranks.size(), read, take));
  if (files_.empty()) {
    return fail(Code::kLegacyLayout,
                "found mp_rank folders without a model, expected model_optim_rng.pt in each; are "
                "these an optimizer's or a data loader's?");
  }
  return {};
}

// A file with fewer virtual stages than others lacks layers that nobody would miss.
Status LegacyRanks::check_virtual_stages(const Catalog& catalog) const {
  const std::size_t stages = files_.front().contents.models.size();
  for (const LegacyRankFile& file : files_) {
    if (file.contents.models.size() == stages) continue;
    return fail(Code::kLegacyLayout, "{}: found {} virtual stages, expected {} as in {}",
                catalog.files[file.file], file.contents.models.size(), stages,
                catalog.files[files_.front().file]);
  }
  return {};
}

Status LegacyRanks::check_places(const Catalog& catalog, Defects& defects) {
  return check_places(evidence(catalog), defects);
}

// Stages, tensor and expert ranks in each other's folders have the same names and shapes.
Status LegacyRanks::check_places(const LegacyAxesEvidence& evidence, Defects& defects) {
  std::vector<PlacedSample> placed;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const RankSample& sample = evidence.samples[i];
    placed.push_back({&sample, files_[i].numbers, contents_of(sample)});
  }
  know_their_ranks_ = files_.size() == 1 || record_ranks(axes_, placed);
  for (const MisplacedRank& rank : misplaced_ranks(axes_, naming(), placed)) {
    SW_TRY(defects.report(
        fail(Code::kRankMisplaced, "{}: {}; {}", rank.folder, said(rank.says),
             rank.is_of_another_save
                 ? "keep the files of one save only"
                 : "folders were renamed, swapped or copied: give each file back its rank's "
                   "folder")));
  }
  return {};
}

LegacyAxesEvidence LegacyRanks::evidence(const Catalog& catalog) const {
  LegacyAxesEvidence evidence;
  for (const LegacyRankFile& file : files_) {
    evidence.folders.push_back(file.numbers);
    const std::string& path = catalog.files[file.file];
    evidence.samples.push_back(rank_sample(path.substr(0, path.find('/')), file.contents));
  }
  evidence.run = evidence.samples.front().run;
  evidence.virtual_stages = static_cast<std::int64_t>(files_.front().contents.models.size());
  return evidence;
}

RankNaming LegacyRanks::naming() const {
  const bool has_three = files_.front().numbers.size() == 3;
  return has_three && axes_.config.pipeline == 1 ? RankNaming::kTpPpEp : RankNaming::kMegatron;
}

// Where folders fit several sizes (all of them without expert parallelism), equal bytes tell.
Status LegacyRanks::settle_experts(Checkpoint& checkpoint) {
  if (!axes_.is_expert_tensor_open) return {};
  const auto evidence = SW_TRY(read_expert_evidence(files_, axes_, *checkpoint.files));
  for (const SettledTower& experts :
       SW_TRY(settle_towers(evidence, std::nullopt, axes_.config.tensor))) {
    axes_.set_expert_tensor(experts.size);
  }
  return {};
}

Status LegacyRanks::find_towers(Checkpoint& checkpoint) {
  const auto evidence = SW_TRY(read_tower_evidence(files_, axes_, *checkpoint.files));
  const RecordedRun run = recorded_run(files_.front().contents.arguments);
  towers_ = SW_TRY(settle_towers(evidence, run.encoder_tensor, axes_.config.tensor));
  return {};
}

// What arguments lack, files beside them or the bytes tell.
Status LegacyRanks::settle_tying(Checkpoint& checkpoint) {
  if (axes_.config.pipeline < 2 || told_tying(files_.front().contents.arguments)) return {};
  const CopiedHead head = SW_TRY(find_copied_head(checkpoint, files_, axes_));
  is_tied_ = head.is_tied;
  if (head.is_by_bytes) {
    checkpoint.notes.emplace_back(
        "nothing says whether output_layer.weight is tied to the word embeddings: it holds the "
        "same bytes, so it is read as a copy of them");
  }
  return {};
}

void LegacyRanks::settle_run() {
  const Arguments& arguments = files_.front().contents.arguments;
  has_own_expert_order_ = recorded_run(arguments).has_own_expert_order;
  is_tied_ = told_tying(arguments).value_or(false);
  find_order();
  fit_ = close_gaps();
  if (order_ == ChunkOrder::kTwoCopies) fit_ = refuse_two_copies();
  count_layers();
  find_heads();
  experts_ = count_experts();
}

// Two ranks are enough, of the stages at both ends: others of theirs hold the same modules.
void LegacyRanks::find_order() {
  const std::int64_t last = axes_.config.pipeline - 1;
  std::map<std::int64_t, StageChunks> ends;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::int64_t stage = axes_.ranks[i].pipeline;
    if ((stage != 0 && stage != last) || ends.contains(stage)) continue;
    ends[stage] = {stage, contents_of_chunks(rank_sample("", files_[i].contents))};
  }
  std::vector<StageChunks> chunks;
  for (auto& [stage, held] : ends) chunks.push_back(std::move(held));
  order_ =
      chunk_order(recorded_run(files_.front().contents.arguments), axes_.config.pipeline, chunks);
}

// Among the stages of a virtual stage, in the order of their layers.
std::int64_t LegacyRanks::place_of(std::int64_t virtual_stage, std::int64_t pipeline) const {
  return are_folded() && virtual_stage > 0 ? axes_.config.pipeline - 1 - pipeline : pipeline;
}

// MindSpeed's layers without weights keep their numbers free: those behind them move up.
Status LegacyRanks::close_gaps() {
  const Arguments& arguments = files_.front().contents.arguments;
  const std::set<std::int64_t> noop = noop_layers_of(arguments);
  if (noop.empty()) return {};
  constexpr std::int64_t kMostLayers = 1 << 20;
  const auto stages = static_cast<std::int64_t>(files_.front().contents.models.size());
  const std::int64_t chunks = stages * axes_.config.pipeline;
  const std::int64_t layers =
      std::min(kMostLayers, number_of(arguments, {"num_layers"}).value_or(0)) +
      static_cast<std::int64_t>(noop.size());
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const std::int64_t pipeline = axes_.ranks[i].pipeline;
    for (std::int64_t v = 0; v < stages; ++v) {
      LegacyModel& model = files_[i].contents.models[static_cast<std::size_t>(v)];
      const std::set<std::int64_t> held = numbers_of_layers(model);
      const std::int64_t first =
          (v * axes_.config.pipeline + place_of(v, pipeline)) * (layers / chunks);
      const LayerRange slots{first, first + layers / chunks};
      if (layers % chunks == 0 && close_gaps_of(model, held, slots, noop)) continue;
      return fail(
          Code::kLegacyLayout,
          "pipeline stage {}, virtual stage {}: found layers {}, expected the stage's share "
          "of {} layers in {} stages, of which {} have no weights, as num_layers and "
          "noop_layers say; are these another run's arguments, or files that lost layers?",
          pipeline, v, fmt::join(held, ", "), layers, chunks, fmt::join(noop, ", "));
    }
  }
  return {};
}

// Layers count through the virtual stages of all ranks: first stage 0 of every pipeline rank.
// Where stages are folded, the last of them comes first among those of stage 1.
// Some tools (verl) have numbered them so already: then a stage does not begin with layer 0. T5's
// stacks are counted one by one: a stage may have layers of one of them only.
void LegacyRanks::count_layers() {
  count_layers(false, &FirstLayers::decoder);
  count_layers(true, &FirstLayers::encoder);
}

void LegacyRanks::count_layers(bool is_encoder, std::int64_t FirstLayers::* own) {
  // By virtual stage, and the place among those.
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> layers;
  bool are_global = false;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    for (std::size_t v = 0; v < files_[i].contents.models.size(); ++v) {
      const auto stage = static_cast<std::int64_t>(v);
      std::int64_t& count = layers[{stage, place_of(stage, axes_.ranks[i].pipeline)}];
      const LayerRange range = layers_in(files_[i].contents.models[v], is_encoder);
      count = std::max(count, range.end);
      are_global = are_global || range.first > 0;
    }
  }
  std::int64_t first = 0;
  for (const auto& [place, count] : layers) {
    const auto& [v, among] = place;
    first_layers_[{v, place_of(v, among)}].*own = are_global ? 0 : first;
    first += count;
  }
}

// The embedding lies in the first stage's files, an output layer in the last one's.
void LegacyRanks::find_heads() {
  std::vector<TensorDesc> tensors;
  for (const LegacyRankFile& file : files_) {
    for (const LegacyModel& model : file.contents.models) {
      for (TensorDesc& tensor : descs_of(model)) {
        if (tensor.name.ends_with("word_embeddings.weight")) tensors.push_back(std::move(tensor));
      }
    }
  }
  heads_ = OutputHeads(tensors);
}

bool LegacyRanks::have_idle_head() const {
  if (axes_.config.pipeline < 2 || !is_tied_) return false;
  const auto is_idle = [&](const TensorDesc& tensor) {
    return tensor.name.ends_with("output_layer.weight") && !heads_.has(tensor);
  };
  return std::ranges::any_of(files_, [&](const LegacyRankFile& file) {
    return std::ranges::any_of(file.contents.models, [&](const LegacyModel& model) {
      const std::vector<TensorDesc> tensors = descs_of(model);
      return has_idle_head(tensors) && std::ranges::any_of(tensors, is_idle);
    });
  });
}

// As a router's rows tell, else as the run said.
std::int64_t LegacyRanks::count_experts() const {
  for (const LegacyRankFile& file : files_) {
    for (const LegacyModel& model : file.contents.models) {
      for (const LegacyTensor& tensor : model.tensors) {
        const bool is_router = tensor.name.ends_with(".mlp.router.weight") ||
                               tensor.name.ends_with(".text_moe_layer.router.weight");
        if (is_router && !tensor.place.shape.empty()) return tensor.place.shape[0];
      }
    }
  }
  return recorded_run(files_.front().contents.arguments).experts.value_or(0);
}

Result<LegacyStage> LegacyRanks::stage_of(std::size_t index, std::size_t v) const {
  if (!fit_) return std::unexpected(fit_.error());
  const LegacyFile& file = files_[index].contents;
  LegacyStage stage;
  stage.config = axes_.config;
  stage.rank = axes_.ranks[index];
  // Whole experts on each of a stage's ranks, tensor ranks first (moe_tp_extend_ep).
  if (has_own_expert_order_) {
    stage.config.expert = axes_.config.expert * axes_.config.tensor;
    stage.config.expert_tensor = 1;
    stage.rank.expert = stage.rank.expert * axes_.config.tensor + stage.rank.tensor;
    stage.rank.expert_tensor = 0;
  }
  if (experts_ % stage.config.expert != 0) {
    return fail(Code::kLegacyLayout, "found {} experts, expected a multiple of {} expert ranks",
                experts_, stage.config.expert);
  }
  for (const SettledTower& tower : towers_) stage.towers.emplace(tower.tower, tower.size);
  stage.heads = heads_;
  stage.experts_per_rank = experts_ / stage.config.expert;
  stage.output_is_embedding = axes_.config.pipeline > 1 && is_tied_;
  stage.heads_per_rank =
      number_of(file.arguments, {"num_attention_heads"}).value_or(0) / stage.config.tensor;
  stage.qkv_order = qkv_order_of(file, file.models[v]);
  const auto first = first_layers_.find({static_cast<std::int64_t>(v), stage.rank.pipeline});
  if (first != first_layers_.end()) stage.first_layers = first->second;
  return stage;
}

}  // namespace shardwright
