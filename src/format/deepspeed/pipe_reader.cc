// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/pipe_reader.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/allowance.h"
#include "base/fail.h"
#include "base/text.h"
#include "codec/torch_file.h"
#include "codec/torch_tensor.h"
#include "format/deepspeed/layer_tensor.h"
#include "format/deepspeed/megatron_arguments.h"
#include "format/deepspeed/neox_arguments.h"
#include "format/deepspeed/neox_tensors.h"
#include "format/deepspeed/zero_file_name.h"
#include "format/legacy/legacy_chunks.h"
#include "format/saved_name.h"
#include "format/tensors_beside.h"
#include "io/source_files.h"
#include "layout/early_names.h"
#include "layout/legacy_parts.h"
#include "model/arguments.h"
#include "state/plain_arguments.h"
#include "state/recorded_run.h"

namespace shardwright {
namespace {

// What a tensor-parallel rank has, under Megatron-Core's names.
struct RankTensors {
  LayerTensors all;
  LayerTensors copies;  // of tensors in `all`, by their names
};

// Of the files of a tensor-parallel rank, as far as they are there.
struct FileNumbers {
  std::optional<std::int64_t> embedding;
  std::optional<std::int64_t> first_layer;
  std::optional<std::int64_t> last_layer;
  std::optional<std::int64_t> final_norm;
};

constexpr std::string_view kEmbeddingStem = "language_model.embedding.";
constexpr std::string_view kHeadStem = "language_model.output_layer.";
constexpr std::string_view kFinalNormStem = "language_model.encoder.final_layernorm.";
// The module that GPT-NeoX puts its final norm into.
constexpr std::string_view kNeoxNorm = "norm.";

bool has_part(const LayerTensors& tensors, std::string_view part) {
  return std::ranges::any_of(tensors,
                             [&](const LayerTensor& tensor) { return tensor.name.contains(part); });
}

// What a layer's names begin with in a model from before Megatron-Core.
std::optional<std::string> stem_of(const LayerTensors& tensors, std::int64_t layer) {
  if (has_part(tensors, "query_key_value.") || has_part(tensors, "mlp.dense_h_to_4h.") ||
      has_part(tensors, "mlp.linear1.")) {
    return fmt::format("language_model.encoder.layers.{}.", layer);
  }
  if (has_part(tensors, "word_embeddings.weight") || has_part(tensors, "position_embeddings.")) {
    return std::string(kEmbeddingStem);
  }
  if (has_part(tensors, "lm_head.weight") || has_part(tensors, "final_linear.weight")) {
    return std::string(kHeadStem);
  }
  const bool is_norm = std::ranges::all_of(tensors, [](const LayerTensor& tensor) {
    return tensor.place.shape.size() == 1 &&
           (tensor.name.ends_with("weight") || tensor.name.ends_with("bias") ||
            tensor.name.ends_with("scale"));
  });
  if (is_norm) return std::string(kFinalNormStem);
  return std::nullopt;
}

// Norms and heads are modules of their own there, under whatever name.
std::string leaf_of(std::string_view stem, std::string_view name) {
  const bool is_module = stem == kFinalNormStem || stem == kHeadStem;
  return std::string(is_module ? name.substr(name.rfind('.') + 1) : name);
}

class PipeReader {
 public:
  PipeReader(Checkpoint& checkpoint, Defects& defects)
      : checkpoint_(checkpoint),
        defects_(defects),
        chunks_(checkpoint.catalog, *checkpoint.files) {}

  Status read() {
    SW_TRY(list_files());
    SW_TRY(read_state());
    SW_TRY(check_states());
    tell_optimizer();
    std::vector<RankTensors> ranks(static_cast<std::size_t>(tensor_ranks_));
    for (std::int64_t rank = 0; rank < tensor_ranks_; ++rank) {
      ranks[static_cast<std::size_t>(rank)] = SW_TRY(read_rank(rank));
    }
    for (const RankTensors& rank : ranks) {
      if (is_neox_) SW_TRY(check_neox_tensors(rank.all, checkpoint_, tensor_ranks_));
    }
    for (std::int64_t rank = 0; rank < tensor_ranks_; ++rank) {
      SW_TRY(defects_.report(place_rank(rank, ranks[static_cast<std::size_t>(rank)])));
    }
    for (const StoredTensor& tensor : checkpoint_.catalog.tensors) {
      SW_TRY(defects_.report(check_coverage(tensor)));
    }
    return {};
  }

 private:
  std::uint32_t number_of(const std::string& name) {
    checkpoint_.catalog.files.push_back(name);
    return checkpoint_.files->add(name);
  }

  Status list_files() {
    for (const DirectoryEntry& entry : SW_TRY(checkpoint_.directory->list(""))) {
      if (entry.is_directory) continue;
      const auto zero = parse_zero_file(entry.name);
      if (zero && zero->holds == ZeroFileName::Holds::kOptimizer && zero_file_.empty()) {
        zero_file_ = entry.name;
      }
      const auto name = parse_layer_file(entry.name);
      if (!name) continue;
      if (entry.problem) return std::unexpected(*entry.problem);
      layers_[name->layer].emplace(name->tensor_rank, entry.name);
      tensor_ranks_ = std::max(tensor_ranks_, name->tensor_rank + 1);
    }
    for (const auto& [layer, files] : layers_) {
      if (static_cast<std::int64_t>(files.size()) == tensor_ranks_) continue;
      return fail(Code::kZeroLayout,
                  "layer {}: found files of {} tensor-parallel ranks, expected {} as of others; "
                  "copy the missing ones too",
                  layer, files.size(), tensor_ranks_);
    }
    return {};
  }

  // The run's arguments lie with what one rank has beside its layers.
  Status read_state() {
    constexpr std::string_view kStates = "mp_rank_00_model_states.pt";
    if (!checkpoint_.directory->exists(kStates)) {
      checkpoint_.notes.push_back(
          translated("no {} tells the run's arguments: sizes follow from tensors alone", kStates));
      return take_neox_arguments(*checkpoint_.directory, checkpoint_.arguments, checkpoint_.notes);
    }
    const auto file = SW_TRY(checkpoint_.files->get(number_of(std::string(kStates))));
    const TorchFile torch = SW_TRY(TorchFile::open(*file));
    const pickle::Value args = torch.root().find("args");
    checkpoint_.arguments = SW_TRY(plain_arguments(args));
    is_neox_ = args.is(pickle::Kind::kDict) &&
               !checkpoint_.arguments.contains("tensor_model_parallel_size");
    if (is_neox_) {
      SW_TRY(take_neox_arguments(*checkpoint_.directory, checkpoint_.arguments, checkpoint_.notes));
    } else {
      take_megatron_deepspeed_arguments(checkpoint_.arguments);
    }
    const std::int64_t tensor = number_of_argument("tensor_model_parallel_size",
                                                   number_of_argument("model_parallel_size", 0));
    if (tensor > 0 && tensor != tensor_ranks_) {
      return fail(Code::kZeroLayout,
                  "{}: the run had {} tensor-parallel ranks, but layers have files of {}; copy the "
                  "missing ones too",
                  kStates, tensor, tensor_ranks_);
    }
    const pickle::Value version = torch.root().find("checkpoint_version");
    const double number = version ? version.as_double().value_or(3.0) : 3.0;
    if (number < 2.0) order_ = number >= 1.0 ? QkvOrder::kByHead : QkvOrder::kThreeFirst;
    return {};
  }

  void tell_optimizer() {
    if (zero_file_.empty()) return;
    checkpoint_.unread_optimizer_file = zero_file_;
    checkpoint_.notes.emplace_back(
        "the optimizer's state is left out: of such runs only the weights are read; DeepSpeed's "
        "ds_to_universal.py makes a universal checkpoint of it");
  }

  // What ranks have beside their layers is of one iteration.
  [[nodiscard]] Status check_states() {
    std::optional<std::pair<std::string, std::int64_t>> known;
    for (std::int64_t rank = 0; rank < tensor_ranks_; ++rank) {
      const std::string name = fmt::format("mp_rank_{:02}_model_states.pt", rank);
      if (!checkpoint_.directory->exists(name)) continue;
      const auto file = SW_TRY(checkpoint_.directory->open(name));
      const TorchFile torch = SW_TRY(open_rank_file(*file));
      if (rank == 0) SW_TRY(look_beside(torch.root(), file->size(), name));
      std::optional<std::int64_t> step = torch.root().find("iteration").as_int();
      if (!step) step = torch.root().find("global_steps").as_int();
      if (!step) continue;
      if (!known) known.emplace(name, *step);
      if (known->second == *step) continue;
      return fail(Code::kZeroLayout, "{}: found iteration {}, but {} is of iteration {}", name,
                  *step, known->first, known->second);
    }
    return {};
  }

  // All ranks have the same beside their layers: without ZeRO the optimizer's states.
  Status look_beside(pickle::Value root, std::uint64_t file_bytes, const std::string& name) {
    TensorsBeside beside;
    Allowance allowance(file_bytes);
    const pickle::Value pairs = dict_pairs(root);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      SW_TRY(beside.add(pairs.key(i), pairs.value(i), allowance));
    }
    tell_beside(beside, name, checkpoint_);
    return {};
  }

  [[nodiscard]] std::int64_t number_of_argument(std::string_view name, std::int64_t other) const {
    return shardwright::number_of(checkpoint_.arguments, {name}).value_or(other);
  }

  Result<RankTensors> read_rank(std::int64_t rank) {
    RankTensors tensors;
    LayerTensors first;  // of the transformer layers
    std::vector<std::pair<std::string, LayerTensors>> others;
    std::int64_t next_layer = 0;
    FileNumbers numbers;
    SavedOrder order;  // of the transformer layers: others are known by what they hold
    std::optional<std::int64_t>& last = numbers.last_layer;  // so far
    for (const auto& [number, files] : layers_) {
      const std::string& path = files.at(rank);
      LayerTensors layer = SW_TRY(read_layer(path));
      if (layer.empty()) continue;
      SW_TRY(check_alike(first_rank_.try_emplace(number, layer).first->second, layer));
      const std::optional<std::string> stem = stem_of(layer, next_layer);
      if (!stem) {
        return fail(Code::kZeroLayout,
                    "{}: tensor {} is of no layer that such a model has; only GPT-like models of "
                    "Megatron-DeepSpeed are read this way",
                    path, printable(layer.front().name));
      }
      if (stem->contains(".layers.")) {
        if (last && number != *last + 1) {
          return fail(Code::kZeroLayout,
                      "{}: found no file of layer {} between it and layer {}; copy it too", path,
                      *last + 1, *last);
        }
        SW_TRY(order.add(path, saved_as_.at(path)));
        last = number;
        if (!numbers.first_layer) numbers.first_layer = number;
        ++next_layer;
        if (first.empty()) first = layer;
        SW_TRY(check_alike(first, layer));
      } else {
        others.emplace_back(*stem, layer);
        if (*stem == kEmbeddingStem && !numbers.embedding) numbers.embedding = number;
        if (*stem == kFinalNormStem) {
          numbers.final_norm = number;
          is_neox_ = is_neox_ || layer.front().name.starts_with(kNeoxNorm);
        }
      }
      for (LayerTensor& tensor : layer) {
        tensor.stored = tensor.name;
        const std::string early = *stem + leaf_of(*stem, tensor.name);
        if (!is_early_name(early)) return refuse_name(tensor);
        tensor.name = core_name_of_early(early);
        SW_TRY(add(std::move(tensor), *stem == kEmbeddingStem, tensors));
      }
    }
    if (next_layer == 0) return lacks_module("a transformer layer");
    SW_TRY(check_layers(next_layer));
    std::set<std::string_view> stems;
    for (const auto& [stem, layer] : others) {
      SW_TRY(check_width(first, stem, layer));
      stems.insert(stem);
    }
    SW_TRY(check_modules(stems));
    SW_TRY(check_ends(numbers));
    return tensors;
  }

  // A second file of the embedding is the output's copy, where the two are tied. Nothing else is
  // in a model twice.
  [[nodiscard]] Status add(LayerTensor tensor, bool is_embedding, RankTensors& rank) const {
    const auto known = std::ranges::find(rank.all, tensor.name, &LayerTensor::name);
    if (known == rank.all.end()) {
      rank.all.push_back(std::move(tensor));
      return {};
    }
    if (known->file == tensor.file) {
      return fail(Code::kZeroLayout,
                  "{}: two tensors of it would be {}; only GPT-like models of Megatron-DeepSpeed "
                  "are read this way",
                  file_of(tensor), printable(tensor.name));
    }
    if (!is_embedding) {
      return fail(Code::kZeroLayout, "{}: found {}, which {} has too; these files are of two saves",
                  file_of(tensor), printable(tensor.name), file_of(*known));
    }
    SW_TRY(check_same(*known, tensor));
    rank.copies.push_back(std::move(tensor));
    return {};
  }

  static std::unexpected<Error> lacks_module(std::string_view what) {
    return fail(Code::kZeroLayout, "found no layer_NN-model_TT file with {}; copy it too", what);
  }

  // What every model has beside its layers.
  Status check_modules(const std::set<std::string_view>& stems) {
    constexpr std::string_view kUntied = "untie_embeddings_and_output_weights";
    const bool is_untied = is_true(checkpoint_.arguments, kUntied);
    if (!stems.contains(kEmbeddingStem)) return lacks_module("the embedding");
    if (!stems.contains(kFinalNormStem)) return lacks_module("the final norm");
    if (is_untied && !stems.contains(kHeadStem)) return lacks_module("the output layer");
    const bool is_unknown =
        checkpoint_.arguments.empty() || (is_neox_ && !checkpoint_.arguments.contains(kUntied));
    if (is_unknown && !stems.contains(kHeadStem) && !is_head_told_) {
      checkpoint_.notes.emplace_back(
          "no file has an output layer, and no arguments say whether the run had one: the "
          "embedding is taken for it");
      is_head_told_ = true;
    }
    return {};
  }

  [[nodiscard]] std::unexpected<Error> refuse_name(const LayerTensor& tensor) const {
    return fail(Code::kZeroLayout,
                "{}: tensor {}: no rule says what Megatron-Core calls it; only GPT-like models of "
                "Megatron-DeepSpeed and GPT-NeoX are read this way",
                file_of(tensor), printable(tensor.name));
  }

  [[nodiscard]] const std::string& file_of(const LayerTensor& tensor) const {
    return checkpoint_.catalog.files[tensor.file];
  }

  // Ranks have equal parts of a layer, and layers are alike. Names of different ones show files
  // that a save left behind in a folder which was written again.
  [[nodiscard]] Status check_alike(const LayerTensors& known, const LayerTensors& found) const {
    const auto in = [](const LayerTensors& tensors, const LayerTensor& wanted) {
      return std::ranges::find(tensors, wanted.name, &LayerTensor::name);
    };
    for (const LayerTensor& tensor : found) {
      const auto other = in(known, tensor);
      if (other == known.end()) return lacks(known, tensor);
      SW_TRY(check_same(*other, tensor));
    }
    for (const LayerTensor& tensor : known) {
      if (in(found, tensor) == found.end()) return lacks(found, tensor);
    }
    return {};
  }

  [[nodiscard]] Status check_same(const LayerTensor& known, const LayerTensor& found) const {
    const LocatedTensor& a = known.place;
    const LocatedTensor& b = found.place;
    if (a.dtype == b.dtype && a.shape == b.shape) return {};
    return fail(Code::kZeroLayout,
                "{}: tensor {}: found {} {}, but {} has {} {}; these files are of two saves",
                file_of(found), printable(found.name), torch_name(b.dtype), to_string(b.shape),
                file_of(known), torch_name(a.dtype), to_string(a.shape));
  }

  [[nodiscard]] Status lacks(const LayerTensors& layer, const LayerTensor& tensor) const {
    return fail(Code::kZeroLayout,
                "{}: found no tensor {}, which {} has; these files are of two saves",
                file_of(layer.front()), printable(tensor.name), file_of(tensor));
  }

  // Embeddings, the final norm and the head are as wide as the layers' first norm.
  [[nodiscard]] Status check_width(const LayerTensors& layers, std::string_view stem,
                                   const LayerTensors& found) const {
    const auto norm = std::ranges::find(layers, "input_layernorm.weight", &LayerTensor::name);
    if (norm == layers.end() || norm->place.shape.size() != 1) return {};
    const std::int64_t width = norm->place.shape[0];
    const int axes = stem == kFinalNormStem ? 1 : 2;
    for (const LayerTensor& tensor : found) {
      const Dims& shape = tensor.place.shape;
      if (shape.size() != axes || shape[axes - 1] == width) continue;
      return fail(Code::kZeroLayout,
                  "{}: tensor {} {}: its width is not that of {}, which is {}; these files are of "
                  "two saves",
                  file_of(tensor), printable(tensor.name), to_string(shape), file_of(*norm), width);
    }
    return {};
  }

  [[nodiscard]] Status check_layers(std::int64_t found) const {
    const std::int64_t expected = number_of_argument("num_layers", found);
    if (found == expected) return {};
    return fail(Code::kZeroLayout,
                "found files of {} transformer layers, expected {} as the run had; copy the "
                "missing ones too",
                found, expected);
  }

  // Nothing else tells of a first or last layer that is not there where no arguments are. What the
  // pipeline has before its layers it undoes behind them, so as many numbers are free on both
  // sides. REQUIRES: all of them are there.
  [[nodiscard]] Status check_ends(const FileNumbers& numbers) const {
    if (number_of_argument("num_layers", 0) > 0) return {};
    const std::int64_t before = *numbers.first_layer - *numbers.embedding;
    const std::int64_t behind = *numbers.final_norm - *numbers.last_layer;
    if (before == behind) return {};
    return fail(Code::kZeroLayout,
                "found the layers' files {} behind the embedding's and the final norm's {} behind "
                "theirs, as if the first or the last layer's were missing; copy it too, or "
                "mp_rank_00_model_states.pt, whose arguments say how many there are",
                before, behind);
  }

  Result<LayerTensors> read_layer(const std::string& path) {
    constexpr std::size_t kLayerNumbers = 1;  // layers may have been numbered anew
    const std::uint32_t file = number_of(path);
    const auto opened = SW_TRY(checkpoint_.files->get(file));
    const TorchFile torch = SW_TRY(open_rank_file(*opened, kLayerNumbers));
    saved_as_[path] = torch.saved_as();
    const pickle::Value pairs = dict_pairs(torch.root());
    LayerTensors tensors;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const std::optional<std::string_view> key = pairs.key(i).as_string();
      if (!key) return fail(Code::kZeroLayout, "{}: found a key that is not text", path);
      if (!is_tensor(pairs.value(i)) || key->ends_with("inv_freq")) continue;
      Result<LocatedTensor> place = torch.locate(pairs.value(i));
      if (!place) return std::unexpected(std::move(place).error().within(path));
      tensors.push_back({std::string(*key), *std::move(place), file});
    }
    return tensors;
  }

  Status place_rank(std::int64_t rank, const RankTensors& tensors) {
    LegacyStage stage;
    stage.config.tensor = tensor_ranks_;
    stage.rank.tensor = rank;
    stage.qkv_order = order_;
    stage.gate_is_second = is_neox_;
    stage.heads_per_rank = number_of_argument("num_attention_heads", 0) / tensor_ranks_;
    std::vector<TensorDesc> descs;
    for (const LayerTensor& tensor : tensors.all) {
      descs.push_back({tensor.name, tensor.place.dtype, tensor.place.shape});
    }
    const auto parts = SW_TRY(legacy_parts(descs, stage));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      SW_TRY(place(tensors.all[i], parts[i]));
      for (const LayerTensor& copy : tensors.copies) {
        if (copy.name == tensors.all[i].name) SW_TRY(place(copy, parts[i]));
      }
    }
    return {};
  }

  Status place(const LayerTensor& tensor, const std::vector<LegacyPart>& parts) {
    for (const LegacyPart& part : parts) {
      SW_TRY(chunks_.add("", {tensor.file, tensor.place, part, parts.size() == 1}));
    }
    return {};
  }

  Checkpoint& checkpoint_;
  Defects& defects_;
  LegacyChunks chunks_;
  std::map<std::int64_t, std::map<std::int64_t, std::string>> layers_;  // then by tensor rank
  std::map<std::int64_t, LayerTensors> first_rank_;                     // each of its files
  std::map<std::string, std::string> saved_as_;                         // of each of their files
  std::int64_t tensor_ranks_ = 0;
  QkvOrder order_ = QkvOrder::kByGroup;
  std::string zero_file_;  // one of the optimizer's
  bool is_head_told_ = false;
  bool is_neox_ = false;
};

}  // namespace

Status read_pipe(Checkpoint& checkpoint, Defects& defects) {
  return defects.report(PipeReader(checkpoint, defects).read());
}

}  // namespace shardwright
