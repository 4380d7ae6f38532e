// SPDX-License-Identifier: Apache-2.0
#include "format/wrapped_adapter.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "base/fail.h"
#include "base/text.h"
#include "format/folder.h"
#include "format/lora_train_meta.h"
#include "format/peft/adapter.h"
#include "layout/module_wrappers.h"
#include "layout/state_name.h"
#include "remote/open_path.h"

namespace shardwright {
namespace {

using Words = std::vector<std::string_view>;
using AdapterJson = nlohmann::ordered_json;

constexpr std::string_view kWrappedPrefix = "base_model.model.";
constexpr std::string_view kAdapterName = "default";
constexpr std::string_view kSavedMark = "modules_to_save";
constexpr std::string_view kRowsMark = "trainable_tokens_delta";

// `lora_A.default.weight` as PEFT's files have it; empty for what is none.
Words stored_end(Words end) {
  const std::string_view kind = end.front();
  if (end.size() > 1 && end[1] == kAdapterName) end.erase(end.begin() + 1);
  const bool has_last = end.size() == 2 && (end[1] == "weight" || end[1] == "bias");
  if (kind == "lora_A" || kind == "lora_B") return has_last ? end : Words();
  if (kind == "lora_magnitude_vector" && has_last && end[1] == "weight") end.pop_back();
  const bool is_bare = kind == "lora_magnitude_vector" || kind == "lora_embedding_A" ||
                       kind == "lora_embedding_B" || kind == kRowsMark;
  return is_bare && end.size() == 1 ? end : Words();
}

// Without the last word of a tensor's name.
std::string_view module_of_tensor(std::string_view name) { return name.substr(0, name.rfind('.')); }

// The modules with LoRA, and those that were trained whole, by the base's names.
struct TrainedModules {
  std::set<std::string, std::less<>> adapted;
  std::set<std::string, std::less<>> saved;
  bool has_magnitudes = false;
};

TrainedModules trained_modules(std::span<const TensorDesc> tensors) {
  TrainedModules found;
  for (const TensorDesc& desc : tensors) {
    const std::string_view name = std::string_view(desc.name).substr(kWrappedPrefix.size());
    const std::size_t lora = name.find(".lora_");
    if (lora == std::string_view::npos) {
      found.saved.emplace(module_of_tensor(name));
      continue;
    }
    found.adapted.emplace(name.substr(0, lora));
    if (name.substr(lora).starts_with(".lora_magnitude_vector")) found.has_magnitudes = true;
  }
  return found;
}

// The last word of each adapted module, as PEFT takes a list of them; whole names where the run has
// modules without LoRA that are called so too.
std::set<std::string, std::less<>> target_words(const TrainedModules& trained, const Catalog& run) {
  std::set<std::string, std::less<>> words;
  for (const std::string_view module : trained.adapted) {
    words.emplace(module.substr(module.rfind('.') + 1));
  }
  const bool has_others = std::ranges::any_of(run.tensors, [&](const StoredTensor& tensor) {
    if (peft_name_of_wrapped(tensor.desc.name) || tensor.desc.shape.size() < 2) return false;
    const std::string plain = without_module_wrappers(tensor.desc.name);
    std::string_view module = module_of_tensor(plain);
    if (module.starts_with("module.")) module.remove_prefix(std::string_view("module.").size());
    if (module.starts_with(kWrappedPrefix)) module.remove_prefix(kWrappedPrefix.size());
    return words.contains(module.substr(module.rfind('.') + 1)) &&
           !trained.adapted.contains(module);
  });
  return has_others ? trained.adapted : words;
}

Status check_rank(const LoraTrainMeta& meta, std::span<const TensorDesc> tensors) {
  for (const TensorDesc& desc : tensors) {
    const bool is_in =
        desc.name.ends_with(".lora_A.weight") || desc.name.ends_with(".lora_embedding_A");
    if (!is_in || (!desc.shape.empty() && desc.shape[0] == meta.rank)) continue;
    return fail(Code::kShapeMismatch,
                "{}: r is {}, and tensor {} is {}, whose rows are the rank; "
                "is it the file of another run?",
                kLoraTrainMetaFile, meta.rank, printable(desc.name), to_string(desc.shape));
  }
  return {};
}

Result<std::string> config_from(const LoraTrainMeta& meta, std::span<const TensorDesc> tensors,
                                const Catalog& run) {
  SW_TRY(check_rank(meta, tensors));
  const TrainedModules trained = trained_modules(tensors);
  AdapterJson config = AdapterJson::object();
  config["peft_type"] = "LORA";
  if (!meta.task_type.empty()) config["task_type"] = meta.task_type;
  config["base_model_name_or_path"] = nullptr;
  config["r"] = meta.rank;
  if (const auto* whole = std::get_if<std::int64_t>(&meta.alpha)) {
    config["lora_alpha"] = *whole;
  } else {
    config["lora_alpha"] = std::get<double>(meta.alpha);
  }
  config["use_dora"] = trained.has_magnitudes;
  config["target_modules"] = target_words(trained, run);
  if (!trained.saved.empty()) config["modules_to_save"] = trained.saved;
  config["lora_dropout"] = 0.0;
  config["bias"] = "none";
  config["fan_in_fan_out"] = false;
  config["init_lora_weights"] = true;
  config["inference_mode"] = true;
  return config.dump(2) + "\n";
}

// The one in a folder, or in another that lies there; its settings are read to be sure of them.
Result<std::optional<WrappedAdapterConfig>> config_in(const Directory& folder,
                                                      const std::string& place) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{16} << 20;
  const std::string path = path_in(place, kPeftConfigFile);
  if (!folder.exists(path)) return std::optional<WrappedAdapterConfig>();
  std::string text = SW_TRY(read_whole(folder, path, kMostBytes));
  const auto config = read_lora_config(text);
  if (config) return WrappedAdapterConfig{std::move(text), path};
  if (place.empty()) return std::unexpected(config.error());
  return std::unexpected(Error(config.error()).within(place));
}

}  // namespace

std::optional<std::string> peft_name_of_wrapped(std::string_view stored) {
  Words words = split_at(stored, '.');
  std::erase_if(words, is_module_wrapper);
  if (!words.empty() && words.front() == "module") words.erase(words.begin());
  const bool has_prefix = words.size() > 3 && words[0] == "base_model" && words[1] == "model";
  if (!has_prefix || std::ranges::any_of(words, &std::string_view::empty)) return std::nullopt;
  const auto part = std::ranges::find_if(words, [](std::string_view word) {
    return word.starts_with("lora_") || word == kSavedMark || word == kRowsMark;
  });
  if (part == words.end() || part - words.begin() < 3) return std::nullopt;
  if (*part == kSavedMark) {
    if (words.end() - part < 3 || part[1] != kAdapterName) return std::nullopt;
    words.erase(part, part + 2);
    return fmt::format("{}", fmt::join(words, "."));
  }
  const Words end = stored_end({part, words.end()});
  if (end.empty()) return std::nullopt;
  words.erase(part, words.end());
  words.insert(words.end(), end.begin(), end.end());
  return fmt::format("{}", fmt::join(words, "."));
}

bool holds_adapter_alone(const Catalog& catalog) {
  bool has_any = false;
  for (const StoredTensor& tensor : catalog.tensors) {
    if (split_state_name(tensor.desc.name)) continue;
    if (!peft_name_of_wrapped(tensor.desc.name)) return false;
    has_any = true;
  }
  return has_any;
}

Result<WrappedAdapterConfig> config_of_wrapped_adapter(const Checkpoint& run,
                                                       std::span<const TensorDesc> tensors) {
  for (const char* const place : {"", "lora_adapter"}) {
    auto found = SW_TRY(config_in(*run.directory, place));
    if (found) return *std::move(found);
  }
  if (const auto meta = SW_TRY(read_lora_train_meta(*run.directory))) {
    return WrappedAdapterConfig{SW_TRY(config_from(*meta, tensors, run.catalog)),
                                std::string(kLoraTrainMetaFile)};
  }
  if (const auto above = folder_above(whole_path(run.location.path))) {
    const std::unique_ptr<Directory> folder = SW_TRY(open_directory(*above));
    auto found = SW_TRY(config_in(*folder, ""));
    if (found) return *std::move(found);
  }
  return fail(Code::kConfigMissing,
              "found an adapter and nothing that tells its lora_alpha; put the {} beside it that "
              "PEFT writes, or a {} with r and lora_alpha, as verl does",
              kPeftConfigFile, kLoraTrainMetaFile);
}

}  // namespace shardwright
