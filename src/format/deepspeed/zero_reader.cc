// SPDX-License-Identifier: Apache-2.0
#include "format/deepspeed/zero_reader.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <span>

#include "base/fail.h"
#include "base/text.h"
#include "codec/torch_file.h"
#include "codec/torch_tensor.h"
#include "format/deepspeed/model_catalog.h"
#include "format/deepspeed/zero_file_name.h"
#include "format/deepspeed/zero_files.h"
#include "format/deepspeed/zero_stage.h"
#include "format/saved_name.h"
#include "format/tensors_beside.h"
#include "io/source_files.h"

namespace shardwright {
namespace {

// What a tied parameter is called in its layer's file; empty for others.
std::string_view name_in_layer(std::string_view parameter) {
  if (!parameter.starts_with(kTiedModules)) return {};
  const std::size_t dot = parameter.find('.', kTiedModules.size());
  return dot == parameter.npos ? std::string_view() : parameter.substr(dot + 1);
}

class ZeroReader {
 public:
  explicit ZeroReader(Checkpoint& checkpoint) : checkpoint_(checkpoint), model_(checkpoint) {}

  Status read() {
    const std::vector<DirectoryEntry> entries = SW_TRY(checkpoint_.directory->list(""));
    SW_TRY(list_layers(entries));
    const std::vector<ZeroFiles> ranks = SW_TRY(list_zero_files(entries));
    if (layers_.empty() && ranks.size() > 1) {
      return refuse_cut(ranks.back().model.begin()->second, std::ssize(ranks));
    }
    for (const ZeroFiles& files : ranks) {
      SW_TRY(stages_.emplace_back(checkpoint_, model_).open(files, !layers_.empty()));
    }
    if (!first().model().module.empty()) layers_.clear();
    SW_TRY(check_stages());
    for (ZeroStage& stage : stages_) SW_TRY(stage.add_parameters());
    SW_TRY(add_layers());
    SW_TRY(check_layers());
    for (ZeroStage& stage : stages_) SW_TRY(stage.add_rest());
    finish();
    return {};
  }

 private:
  [[nodiscard]] const ZeroStage& first() const { return stages_.front(); }

  Status list_layers(std::span<const DirectoryEntry> entries) {
    for (const DirectoryEntry& entry : entries) {
      const auto layer = parse_uncut_layer_file(entry.name);
      if (!layer || entry.is_directory) continue;
      if (entry.problem) return std::unexpected(*entry.problem);
      const auto [first, is_new] = layers_.emplace(*layer, entry.name);
      if (is_new) continue;
      return fail(Code::kZeroLayout,
                  "found both {} and {}, of one layer; keep the files of one save", first->second,
                  entry.name);
    }
    return {};
  }

  static std::unexpected<Error> refuse_cut(const std::string& file, std::int64_t ranks) {
    return fail(Code::kUnsupportedFormat,
                "{}: it is of {} model-parallel ranks, and no rule says how these tensors are cut; "
                "DeepSpeed's ds_to_universal.py puts them together where the run recorded it, and "
                "its universal checkpoint is read",
                file, ranks);
  }

  // Whole layers with files of their own are those of a pipeline, whose stages have layers each.
  Status check_stages() const {
    const std::int64_t found = std::ssize(stages_);
    const std::int64_t expected = std::max(first().model().model_ranks.value_or(1), found);
    if (layers_.empty() && expected > 1) return refuse_cut(first().file(), expected);
    for (const ZeroStage& stage : stages_) {
      SW_TRY(stage.check_same_save(first()));
      if (stage.model().model_ranks.value_or(found) == found) continue;
      return fail(Code::kZeroLayout,
                  "{}: it was saved by {} pipeline stages, but files of {} are here; copy those of "
                  "the others too, or keep the files of one save",
                  stage.file(), *stage.model().model_ranks, found);
    }
    return {};
  }

  // What was trained, ZeRO's buffers have; the rest of a pipeline lies in its layers' files only.
  Status add_layers() {
    std::vector<std::string> tied;
    SavedOrder order;
    for (const auto& [layer, path] : layers_) {
      checkpoint_.catalog.files.push_back(path);
      const std::uint32_t number = checkpoint_.files->add(path);
      const auto file = SW_TRY(checkpoint_.files->get(number));
      const TorchFile torch = SW_TRY(TorchFile::open(*file));
      SW_TRY(order.add(path, torch.saved_as()));
      const pickle::Value tensors = dict_pairs(torch.root());
      for (std::size_t i = 0; i < tensors.size(); ++i) {
        const std::optional<std::string_view> key = tensors.key(i).as_string();
        if (!key || !is_tensor(tensors.value(i))) continue;
        const std::string name = fmt::format("{}.{}", layer, *key);
        if (model_.has(name)) continue;
        const LocatedTensor place = SW_TRY(torch.locate(tensors.value(i)));
        if (is_tied(*key, place.shape)) {
          tied.push_back(name);
          continue;
        }
        SW_TRY(model_.add_whole(name, number, place));
        in_layers_.emplace(*key);
      }
    }
    if (!tied.empty()) {
      checkpoint_.notes.push_back(
          translated("{} repeat what tied_modules holds, and are left out", name_list(tied)));
    }
    return {};
  }

  // A tied layer's parameter is called after the tie, and its file has it by its name in the layer.
  [[nodiscard]] bool is_tied(std::string_view key, const Dims& shape) const {
    const auto is_it = [&](const ZeroParameter& parameter) {
      return name_in_layer(parameter.name) == key && parameter.shape == shape;
    };
    return std::ranges::any_of(stages_, [&](const ZeroStage& stage) {
      return std::ranges::any_of(stage.model().groups, [&](const ZeroGroup& group) {
        return std::ranges::any_of(group, is_it);
      });
    });
  }

  // The files' own lists say which layers there were. Where the optimizer is not read, it still
  // says what was trained.
  Status check_layers() {
    if (layers_.empty()) return {};
    for (const ZeroStage& stage : stages_) {
      for (const std::string& name : stage.model().buffers) SW_TRY(check_layer_of(name));
      for (const ZeroGroup& group : stage.model().groups) {
        for (const ZeroParameter& parameter : group) SW_TRY(check_layer_of(parameter.name));
      }
    }
    tell_gaps();
    return check_unread();
  }

  // A pipeline's list may have functions in it, which have no files.
  void tell_gaps() {
    std::vector<std::string> gaps;
    std::int64_t next = layers_.begin()->first;
    for (const auto& [layer, path] : layers_) {
      const std::int64_t last = layer - 1;
      if (next == last) gaps.push_back(std::to_string(next));
      if (next < last) gaps.push_back(fmt::format("{}-{}", next, last));
      next = layer < std::numeric_limits<std::int64_t>::max() ? layer + 1 : layer;
    }
    if (gaps.empty()) return;
    checkpoint_.notes.push_back(
        translated("no layer_NN-model_states.pt has NN = {}: these layers are taken for functions, "
                   "which have no parameters",
                   name_list(gaps)));
  }

  // `3.weight` is of layer 3.
  Status check_layer_of(std::string_view name) const {
    std::string_view rest = name;
    const std::optional<std::int64_t> layer = take_number(rest);
    if (!layer || !rest.starts_with('.') || layers_.contains(*layer)) return {};
    return fail(Code::kZeroLayout,
                "found no layer_{:02}-model_states.pt, whose {} the run lists; copy it too", *layer,
                printable(name));
  }

  Status check_unread() {
    for (const ZeroStage& stage : stages_) {
      for (const std::string& name : stage.unread_parameters()) {
        if (model_.has(name) || in_layers_.contains(name_in_layer(name))) continue;
        return fail(Code::kZeroLayout,
                    "parameter {}: the optimizer has it, and no layer_NN-model_states.pt does; "
                    "copy that file too",
                    printable(name));
      }
    }
    // Model states that have a copy of it are told of with what else lies there.
    const std::string& file = first().unread_optimizer();
    if (file.empty() || first().model().unread.has_optimizer) return {};
    checkpoint_.unread_optimizer_file = file;
    checkpoint_.notes.push_back(
        translated("{}: it names parameters without their shapes, and the "
                   "optimizer's state is left out",
                   file));
    return {};
  }

  void finish() {
    std::vector<std::string> order;
    std::vector<std::string> copies;
    for (const ZeroStage& stage : stages_) {
      for (const StateTensor& tensor : stage.model().module) order.push_back(tensor.name);
      copies.insert(copies.end(), stage.copies().begin(), stage.copies().end());
      tell_left_out(stage);
    }
    if (!copies.empty()) {
      checkpoint_.notes.push_back(
          translated("{}: pipeline stages that share it have a copy each, and the first one's is "
                     "taken",
                     name_list(copies)));
    }
    model_.finish(order);
    tell_beside(first().model().unread, first().file(), checkpoint_);
    const OptimizerStates* const optimizer = first().optimizer();
    if (optimizer != nullptr) checkpoint_.beside_states = state_beside(optimizer->step);
  }

  void tell_left_out(const ZeroStage& stage) {
    const std::vector<std::string>& entries = stage.model().left_out;
    if (!entries.empty()) {
      checkpoint_.notes.push_back(translated("{} entries are not tensors and are left out: {}",
                                             entries.size(), name_list(entries)));
    }
    if (stage.optimizer() == nullptr) return;
    std::set<std::string> kinds;
    for (const ZeroBuffers& group : stage.optimizer()->groups) {
      kinds.insert(group.left_out.begin(), group.left_out.end());
    }
    if (kinds.empty()) return;
    const std::vector<std::string> names(kinds.begin(), kinds.end());
    checkpoint_.notes.push_back(
        translated("states of the optimizer that are not like its weights are left out: {}",
                   name_list(names)));
  }

  Checkpoint& checkpoint_;
  ModelCatalog model_;
  std::deque<ZeroStage> stages_;
  std::map<std::int64_t, std::string> layers_;    // files of a pipeline that no ranks cut
  std::set<std::string, std::less<>> in_layers_;  // what their files call what was taken of them
};

}  // namespace

Status read_zero(Checkpoint& checkpoint, Defects& defects) {
  return defects.report(ZeroReader(checkpoint).read());
}

}  // namespace shardwright
