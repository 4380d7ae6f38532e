// SPDX-License-Identifier: Apache-2.0
#include "format/torch_files/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

#include "base/fail.h"
#include "base/text.h"
#include "format/carried_files.h"
#include "format/files_beside.h"
#include "format/hf_index.h"
#include "format/model_file.h"
#include "format/model_files.h"
#include "format/sibling.h"
#include "format/torch_files/state_dict_reader.h"
#include "format/weight_files.h"
#include "layout/rank_folder.h"
#include "layout/texts.h"

namespace shardwright {
namespace {

// Those of transformers and diffusers, and of accelerate's saves of a whole model trained by FSDP.
constexpr std::array<std::string_view, 3> kStems = {"pytorch_model", "diffusion_pytorch_model",
                                                    "pytorch_model_fsdp"};

/// The index that the folder has; empty where it has none.
template <typename Has>
std::string index_in(const Has& has) {
  for (const std::string_view stem : kStems) {
    if (std::string name = fmt::format("{}.bin.index.json", stem); has(name)) return name;
  }
  return {};
}

// Torch files of other software, or that hold no model.
constexpr std::array<std::string_view, 12> kNoModels = {
    "mp_rank_*",      "*_model_states.pt", "*_optim_states.pt", "training_args.bin",
    "optimizer*",     "scheduler*",        "rng_state*",        "scaler*",
    "*_world_size_*", "training_state_*",  "layer_#-model_*",   "module-pipe_*"};

bool is_weights_file(const DirectoryEntry& entry) {
  return !entry.is_directory && std::ranges::any_of(kStems, [&](std::string_view stem) {
    return entry.name == fmt::format("{}.bin", stem) ||
           matches_sign(entry.name, fmt::format("{}-#-of-#.bin", stem)) ||
           matches_sign(entry.name, fmt::format("{}_#.bin", stem));
  });
}

// Not those of a head or an adapter that somebody keeps beside the model.
constexpr std::array<std::string_view, 3> kSafetensorsOfModels = {
    "*model.safetensors", "*model-*.safetensors", "*model.*.safetensors"};

bool has_model_as_safetensors(const Folder& folder) {
  return folder.first([](const DirectoryEntry& entry) {
    if (entry.is_directory || entry.name.starts_with("adapter_model")) return false;
    return std::ranges::any_of(kSafetensorsOfModels, [&](std::string_view sign) {
      return matches_sign(entry.name, sign);
    });
  }) != nullptr;
}

// A file out of a rank's folder is a part of a model, whatever it is called.
Status refuse_rank(const std::string& path) {
  const std::filesystem::path file(path);
  if (matches_sign(file.filename().string(), "consolidated.#.pth")) {
    return fail(
        Code::kUnsupportedFormat,
        "this is one rank's part of a Llama as Meta publishes it; give the folder that holds "
        "{}",
        file.filename().string());
  }
  const std::filesystem::path folder = file.parent_path();
  if (!parse_rank_folder(folder.filename().string())) return {};
  return fail(Code::kUnsupportedFormat,
              "this is one rank's state of a Megatron run; give the folder that holds {}",
              folder.filename().string());
}

class TorchFilesSource final : public SourceFormat {
 public:
  std::string_view name() const override { return "torch_files"; }

  SourceTraits traits() const override { return {.is_hf_model = true, .records = Records::kFiles}; }

  Phrase summary() const override { return phrase("format.torch_files"); }

  std::string_view usual_target() const override { return "torch_dist"; }

  Result<std::optional<Recognition>> recognise(const Folder& folder) const override {
    const DirectoryEntry* weights = folder.first(is_weights_file);
    const std::string index =
        index_in([&](const std::string& name) { return folder.has_file(name); });
    if (weights == nullptr && index.empty()) return std::optional<Recognition>();
    Recognition found;
    // Models are published in both forms: transformers takes the safetensors then.
    if (weights == nullptr || has_model_as_safetensors(folder)) {
      found.strength = Recognition::Strength::kRemains;
    }
    found.facts.push_back(weights == nullptr
                              ? translated("{} names the weight files", index)
                              : translated("{} is a torch file of weights", weights->name));
    return found;
  }

  bool reads_file(std::string_view name) const override {
    constexpr std::array<std::string_view, 4> kEndings = {".bin", ".ckpt", ".pt", ".pth"};
    const bool may_be = std::ranges::any_of(
        kEndings, [&](std::string_view ending) { return name.ends_with(ending); });
    // verl calls a rank's file model.pt, as everybody calls a model's.
    const bool is_of_rank = name != "model.pt" && is_usual_in_rank(name);
    return may_be && !is_of_rank && !is_usual_in_iteration(name) &&
           std::ranges::none_of(kNoModels,
                                [&](std::string_view sign) { return matches_sign(name, sign); });
  }

  Status open(Checkpoint& checkpoint, Defects& defects) const override {
    const Directory& directory = *checkpoint.directory;
    SW_TRY(refuse_rank(checkpoint.location.path));
    std::optional<HfIndex> index;
    const std::string index_file =
        index_in([&](const std::string& name) { return directory.exists(name); });
    if (!index_file.empty()) {
      index = SW_TRY(read_hf_index(directory, index_file));
      if (SW_TRY(is_stale_index(directory, index_file, *index))) index.reset();
    }
    const std::vector<std::string> files = SW_TRY(weight_files(directory, index.has_value()));
    if (!index) SW_TRY(check_unindexed_files(files, checkpoint, defects));
    StateDictReader reader(checkpoint, defects);
    const std::vector<std::string> paths = index ? files_of(*index) : files;
    const auto read = [&](const std::string& path, Result<ModelFile> file) {
      return defects.report(reader.read(path, std::move(file)));
    };
    SW_TRY(read_model_files(directory, paths, *checkpoint.files, checkpoint.catalog, read));
    if (index) SW_TRY(defects.report(check_index(checkpoint.catalog, *index, index_file)));
    std::string note = index                ? unnamed_files_note(index_file, files, paths)
                       : index_file.empty() ? ""
                                            : stale_index_note(index_file);
    if (!note.empty()) checkpoint.notes.push_back(std::move(note));
    tell_files_beside(checkpoint);
    SW_TRY(read_hf_artifacts(checkpoint, defects));
    return tell_folders_beside(checkpoint);
  }

 private:
  // Of a file that was given by itself the directory holds that one only.
  Result<std::vector<std::string>> weight_files(const Directory& directory, bool has_index) const {
    std::vector<std::string> files;
    const auto entries = SW_TRY(directory.list(""));
    for (const DirectoryEntry& entry : entries) {
      if (is_weights_file(entry)) files.push_back(entry.name);
    }
    if (has_index || !files.empty()) return files;
    for (const DirectoryEntry& entry : entries) {
      if (!entry.is_directory && reads_file(entry.name)) files.push_back(entry.name);
    }
    return files;
  }

  static std::vector<std::string> files_of(const HfIndex& index) {
    std::set<std::string> files;
    for (const auto& [key, file] : index.files) files.insert(file);
    return {files.begin(), files.end()};
  }

  static Status check_index(const Catalog& catalog, const HfIndex& index, std::string_view file) {
    const HfIndexDifference difference = compare_with_index(catalog, index);
    const std::vector<std::string> ghosts = difference.not_where_listed();
    const std::vector<std::string> unlisted = difference.not_listed_there();
    if (ghosts.empty() && unlisted.empty()) return {};
    const bool is_missing = !ghosts.empty();
    const std::vector<std::string>& names = is_missing ? ghosts : unlisted;
    return fail(Code::kIndexMismatch, "{}: {} keys {}: {}", file, names.size(),
                is_missing ? "are not in the files it names" : "of its files are not listed",
                name_list(names));
  }
};

}  // namespace

const SourceFormat& torch_files_source() {
  static const TorchFilesSource format;
  return format;
}

}  // namespace shardwright
