// SPDX-License-Identifier: Apache-2.0
#include "format/legacy_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "format/legacy_file.h"
#include "format/legacy_state.h"
#include "format/rank_sample.h"
#include "format/recorded_run.h"
#include "io/source_files.h"
#include "layout/folder_groups.h"
#include "layout/layer_name.h"
#include "layout/legacy_axes.h"
#include "layout/legacy_grid.h"
#include "layout/legacy_parts.h"
#include "tensor/strided_copy.h"

namespace shardwright {
namespace {

struct RankFile {
  std::vector<std::int64_t> numbers;
  std::uint32_t file = 0;
  LegacyFile contents;
};

std::vector<TensorDesc> descs_of(const LegacyModel& model) {
  std::vector<TensorDesc> descs;
  for (const LegacyTensor& tensor : model.tensors) {
    descs.push_back({tensor.name, tensor.place.dtype, tensor.place.shape});
  }
  return descs;
}

// The numbers of the decoder's layers in a state dict: [first, end), both 0 without layers.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t end = 0;
};

LayerRange layers_in(const LegacyModel& model) {
  LayerRange range;
  for (const LegacyTensor& tensor : model.tensors) {
    const std::optional<LayerName> layer = split_layer_name(tensor.name);
    if (!layer || !layer->index || !is_main_stack(layer->stack)) continue;
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

class Reader {
 public:
  Reader(Checkpoint& checkpoint, Defects& defects) : checkpoint_(checkpoint), defects_(defects) {}

  Status read() {
    SW_TRY(read_files());
    SW_TRY(check_virtual_stages());
    axes_ = SW_TRY(settle_legacy_axes(evidence()));
    count_layers();
    for (std::size_t i = 0; i < files_.size(); ++i) SW_TRY(defects_.report(add_rank(i)));
    SW_TRY(defects_.report(check_folders()));
    const LegacyFile& first = files_.front().contents;
    checkpoint_.arguments = first.arguments;
    if (std::ranges::find(first.keys, "args") == first.keys.end()) return {};
    return defects_.report(read_state());
  }

 private:
  Status read_state() {
    const auto file = SW_TRY(checkpoint_.files->get(files_.front().file));
    checkpoint_.common_state = SW_TRY(read_legacy_state(*file));
    return {};
  }

  Status read_files() {
    const Directory& directory = *checkpoint_.directory;
    for (const DirectoryEntry& folder : SW_TRY(directory.list(""))) {
      auto numbers = folder.is_directory ? parse_rank_folder(folder.name) : std::nullopt;
      if (!numbers) continue;
      const std::vector<DirectoryEntry> entries = SW_TRY(directory.list(folder.name));
      checkpoint_.has_unread_optimizer |= std::ranges::any_of(
          entries, [](const DirectoryEntry& entry) { return is_optimizer_file(entry.name); });
      const std::string_view name = model_file_of(rank_folder(folder.name, entries));
      if (name.empty()) continue;
      Status status = read_file(*std::move(numbers), fmt::format("{}/{}", folder.name, name));
      SW_TRY(defects_.report(std::move(status)));
    }
    if (files_.empty()) {
      return fail(Code::kLegacyLayout,
                  "found mp_rank folders without a model, expected model_optim_rng.pt in each; are "
                  "these an optimizer's or a data loader's?");
    }
    return {};
  }

  Status read_file(std::vector<std::int64_t> numbers, std::string path) {
    checkpoint_.catalog.files.push_back(path);
    RankFile rank{std::move(numbers), checkpoint_.files->add(std::move(path)), {}};
    const auto file = SW_TRY(checkpoint_.files->get(rank.file));
    rank.contents = SW_TRY(read_legacy_file(*file, LegacyDetail::kPlaces));
    checkpoint_.has_unread_optimizer |=
        std::ranges::find(rank.contents.keys, "optimizer") != rank.contents.keys.end();
    files_.push_back(std::move(rank));
    return {};
  }

  // A file with fewer virtual stages than others lacks layers that nobody would miss.
  [[nodiscard]] Status check_virtual_stages() const {
    const std::size_t stages = files_.front().contents.models.size();
    for (const RankFile& file : files_) {
      if (file.contents.models.size() == stages) continue;
      return fail(Code::kLegacyLayout, "{}: found {} virtual stages, expected {} as in {}",
                  checkpoint_.catalog.files[file.file], file.contents.models.size(), stages,
                  checkpoint_.catalog.files[files_.front().file]);
    }
    return {};
  }

  [[nodiscard]] LegacyAxesEvidence evidence() const {
    LegacyAxesEvidence evidence;
    for (const RankFile& file : files_) {
      evidence.folders.push_back(file.numbers);
      const std::string& path = checkpoint_.catalog.files[file.file];
      evidence.samples.push_back(rank_sample(path.substr(0, path.find('/')), file.contents));
    }
    evidence.run = evidence.samples.front().run;
    evidence.virtual_stages = static_cast<std::int64_t>(files_.front().contents.models.size());
    return evidence;
  }

  // A folder that is not there may hold only replicas; where it does not, its name says more than
  // the hole does.
  Status check_folders() const {
    const std::vector<LegacyRank> expected = SW_TRY(legacy_grid(axes_.config));
    std::set<std::int64_t> stages;
    for (const LegacyRank& rank : axes_.ranks) stages.insert(rank.pipeline);
    std::string missing;
    for (const LegacyRank& rank : expected) {
      if (std::ranges::find(axes_.ranks, rank) != axes_.ranks.end()) continue;
      missing += (missing.empty() ? "" : ", ") + rank_folder_name(rank, axes_.config, naming());
    }
    if (missing.empty()) return {};
    // Its layers would not be missed: those behind them take their numbers.
    if (static_cast<std::int64_t>(stages.size()) < axes_.config.pipeline) {
      return fail(Code::kLegacyLayout, "missing {}: found files of {} pipeline stages, expected {}",
                  missing, stages.size(), axes_.config.pipeline);
    }
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      const Status coverage = check_coverage(tensor);
      if (!coverage) {
        return std::unexpected(Error(coverage.error()).within(fmt::format("missing {}", missing)));
      }
    }
    return {};
  }

  [[nodiscard]] RankNaming naming() const {
    const bool has_three = files_.front().numbers.size() == 3;
    return has_three && axes_.config.pipeline == 1 ? RankNaming::kTpPpEp : RankNaming::kMegatron;
  }

  // Layers count through the virtual stages of all ranks: first stage 0 of every pipeline rank.
  // Some tools (verl) have numbered them so already: then a stage does not begin with layer 0.
  void count_layers() {
    std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> layers;  // by (virtual, pipeline)
    bool are_global = false;
    for (std::size_t i = 0; i < files_.size(); ++i) {
      for (std::size_t v = 0; v < files_[i].contents.models.size(); ++v) {
        std::int64_t& count = layers[{static_cast<std::int64_t>(v), axes_.ranks[i].pipeline}];
        const LayerRange range = layers_in(files_[i].contents.models[v]);
        count = std::max(count, range.end);
        are_global = are_global || range.first > 0;
      }
    }
    std::int64_t first = 0;
    for (const auto& [stage, count] : layers) {
      first_layers_[stage] = are_global ? 0 : first;
      first += count;
    }
  }

  // Experts of the whole model, as a router's rows tell, else as the run said.
  [[nodiscard]] std::int64_t experts() const {
    for (const RankFile& file : files_) {
      for (const LegacyModel& model : file.contents.models) {
        for (const LegacyTensor& tensor : model.tensors) {
          const bool is_router = tensor.name.ends_with(".mlp.router.weight");
          if (is_router && !tensor.place.shape.empty()) return tensor.place.shape[0];
        }
      }
    }
    return recorded_run(files_.front().contents.arguments).experts.value_or(0);
  }

  Status add_rank(std::size_t index) {
    const RankFile& file = files_[index];
    LegacyStage stage;
    stage.config = axes_.config;
    stage.rank = axes_.ranks[index];
    const std::int64_t all_experts = experts();
    if (all_experts % axes_.config.expert != 0) {
      return fail(Code::kLegacyLayout, "found {} experts, expected a multiple of {} expert ranks",
                  all_experts, axes_.config.expert);
    }
    stage.experts_per_rank = all_experts / axes_.config.expert;
    const auto untied = file.contents.arguments.find("untie_embeddings_and_output_weights");
    stage.output_is_embedding = axes_.config.pipeline > 1 &&
                                untied != file.contents.arguments.end() &&
                                untied->second == ArgValue{false};
    stage.heads_per_rank = number_of(file.contents.arguments, {"num_attention_heads"}).value_or(0) /
                           stage.config.tensor;
    for (std::size_t v = 0; v < file.contents.models.size(); ++v) {
      stage.qkv_order = qkv_order_of(file.contents, file.contents.models[v]);
      stage.first_layer = first_layers_[{static_cast<std::int64_t>(v), stage.rank.pipeline}];
      Status status = add_model(file, file.contents.models[v], stage);
      if (!status) {
        return std::unexpected(
            std::move(status).error().within(checkpoint_.catalog.files[file.file]));
      }
    }
    return {};
  }

  Status add_model(const RankFile& file, const LegacyModel& model, const LegacyStage& stage) {
    const std::vector<TensorDesc> descs = descs_of(model);
    const auto parts = SW_TRY(legacy_parts(descs, stage));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      for (const LegacyPart& part : parts[i]) {
        SW_TRY(add_part(file.file, model.tensors[i], part, parts[i].size()));
      }
    }
    return {};
  }

  Status add_part(std::uint32_t file, const LegacyTensor& tensor, const LegacyPart& part,
                  std::size_t parts) {
    const LocatedTensor& place = tensor.place;
    Chunk chunk{part.box, file, {}, part.strides};
    if (!place.strides.empty()) {
      if (parts > 1) {
        return fail(Code::kUnsupportedFormat,
                    "tensor {}: found it stored with strides {}, expected row-major", tensor.name,
                    to_string(place.strides));
      }
      const int lead = part.box.axes() - place.shape.size();
      for (int axis = 0; axis < place.shape.size(); ++axis) {
        chunk.strides[axis + lead] = place.strides[axis];
      }
    }
    const int element = bytes_of(place.dtype);
    Dims byte_strides = chunk.strides;
    for (int axis = 0; axis < byte_strides.size(); ++axis) byte_strides[axis] *= element;
    chunk.range.offset = place.range.offset + static_cast<std::uint64_t>(part.offset * element);
    if (!part.box.is_empty()) {
      chunk.range.length =
          static_cast<std::uint64_t>(span_bytes(part.box.shape, byte_strides, element));
    }
    if (is_row_major(chunk)) chunk.strides = {};
    return add_chunk(part.canonical, chunk);
  }

  // Whether strides say what having none says too: axes of extent 1 may have any.
  static bool is_row_major(const Chunk& chunk) {
    const Dims usual = row_major_strides(chunk.box.shape);
    for (int axis = 0; axis < usual.size(); ++axis) {
      if (chunk.box.shape[axis] != 1 && chunk.strides[axis] != usual[axis]) return false;
    }
    return true;
  }

  Status add_chunk(const TensorDesc& desc, const Chunk& chunk) {
    std::vector<StoredTensor>& tensors = checkpoint_.catalog.tensors;
    const auto [found, is_new] = by_name_.emplace(desc.name, tensors.size());
    if (is_new) tensors.push_back({desc, ChunkList(desc.shape.size()), Encoding::kRaw});
    StoredTensor& stored = tensors[found->second];
    if (!(stored.desc.shape == desc.shape) || stored.desc.dtype != desc.dtype) {
      return fail(Code::kShapeMismatch,
                  "tensor {}: found what makes it {} {}, expected {} {} as in other ranks' files",
                  desc.name, torch_name(desc.dtype), to_string(desc.shape),
                  torch_name(stored.desc.dtype), to_string(stored.desc.shape));
    }
    stored.chunks.push_back(chunk);
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
  std::vector<RankFile> files_;
  LegacyAxes axes_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> first_layers_;
  std::unordered_map<std::string, std::size_t> by_name_;
};

}  // namespace

Status read_legacy(Checkpoint& checkpoint, Defects& defects) {
  return Reader(checkpoint, defects).read();
}

}  // namespace shardwright
