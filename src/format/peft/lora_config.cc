// SPDX-License-Identifier: Apache-2.0
#include "format/peft/lora_config.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/fail.h"
#include "base/text.h"
#include "codec/json_text.h"

namespace shardwright {
namespace {

using LoraJson = nlohmann::ordered_json;

constexpr std::string_view kLoraConfig = "adapter_config.json";
constexpr std::int64_t kMostRank = std::int64_t{1} << 16;
constexpr std::int64_t kMostToken = std::int64_t{1} << 40;  // far above any vocabulary

// What says how an adapter was trained, or is said by its tensors too.
constexpr std::array kIgnoredLoraKeys = {
    std::string_view("auto_mapping"),    std::string_view("base_model_name_or_path"),
    std::string_view("exclude_modules"), std::string_view("inference_mode"),
    std::string_view("layers_pattern"),  std::string_view("layers_to_transform"),
    std::string_view("lora_dropout"),    std::string_view("megatron_core"),
    std::string_view("peft_version"),    std::string_view("qalora_group_size"),
    std::string_view("revision"),        std::string_view("runtime_config"),
    std::string_view("target_modules"),  std::string_view("task_type"),
    std::string_view("loftq_config"),    std::string_view("eva_config"),
    std::string_view("parent_library"),  std::string_view("ensure_weight_tying"),
    std::string_view("lora_bias"),       std::string_view("corda_config"),
    std::string_view("lora_ga_config"),
};

// What init_lora_weights may be where the base model stays as it is.
constexpr std::array kPlainStarts = {std::string_view("gaussian"), std::string_view("eva"),
                                     std::string_view("orthogonal"), std::string_view("mica")};

// Options that make an adapter something else than sums of products; they are off where they are
// null, false or empty.
constexpr std::array kUnsupportedLoraKeys = {
    std::string_view("alora_invocation_tokens"),
    std::string_view("arrow_config"),
    std::string_view("kasa_config"),
    std::string_view("layer_replication"),
    std::string_view("megatron_config"),
    std::string_view("monteclora_config"),
    std::string_view("use_bdlora"),
    std::string_view("use_qalora"),
    std::string_view("velora_config"),
};

bool is_listed(std::string_view key, const auto& keys) {
  return std::ranges::find(keys, key) != keys.end();
}

bool is_switched_off(const LoraJson& value) {
  return value.is_null() || value == false ||
         ((value.is_object() || value.is_array() || value.is_string()) &&
          (value.empty() || value == ""));
}

std::unexpected<Error> wrong_value(std::string_view key, const LoraJson& found,
                                   std::string_view expected) {
  return fail(Code::kJsonCorrupt, "{}: {}: found {}, expected {}", kLoraConfig, printable(key),
              printable(found.dump(-1, ' ', true).substr(0, 100)), expected);
}

Result<std::int64_t> rank_in(std::string_view key, const LoraJson& value) {
  if (value.is_number_integer() && value >= 1 && value <= kMostRank) {
    return value.get<std::int64_t>();
  }
  return wrong_value(key, value, translated("a whole number from 1 to {}", kMostRank));
}

Result<double> alpha_in(std::string_view key, const LoraJson& value) {
  if (value.is_number() && std::isfinite(value.get<double>()) &&
      std::isfinite(static_cast<float>(value.get<double>()))) {
    return value.get<double>();
  }
  return wrong_value(key, value, "a number");
}

Status read_lora_flag(std::string_view key, const LoraJson& value, bool& flag) {
  if (value.is_null()) return {};
  if (!value.is_boolean()) return wrong_value(key, value, "true or false");
  flag = value.get<bool>();
  return {};
}

// Patterns are regular expressions to PEFT; names of modules, which they mostly are, mean the same
// as such.
bool is_module_name(std::string_view key) {
  if (key.starts_with('^')) key.remove_prefix(1);
  return !key.empty() && std::ranges::all_of(key, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
  });
}

// `.*\.gate_up_proj`, which PEFT itself writes of the modules that transformers fuses, says what
// its end says.
std::string end_of_pattern(std::string_view key) {
  constexpr std::string_view kAnything = R"(.*\.)";
  if (!key.starts_with(kAnything)) return std::string(key);
  std::string end(key.substr(kAnything.size()));
  for (std::size_t at = end.find("\\."); at != std::string::npos; at = end.find("\\.", at)) {
    end.erase(at, 1);
  }
  return end;
}

template <class T>
Status read_pattern(std::string_view key, const LoraJson& value,
                    Result<T> (*read)(std::string_view, const LoraJson&),
                    std::vector<std::pair<std::string, T>>& pattern) {
  if (value.is_null()) return {};
  if (!value.is_object()) return wrong_value(key, value, "an object");
  for (const auto& [written, number] : value.items()) {
    const std::string name = end_of_pattern(written);
    if (!is_module_name(name)) {
      return fail(Code::kUnsupportedFormat,
                  "{}: {}: '{}' is a regular expression; only names of modules and their ends are "
                  "supported: write one line for each module",
                  kLoraConfig, key, printable(written));
    }
    pattern.emplace_back(name, SW_TRY(read(fmt::format("{}: {}", key, name), number)));
  }
  return {};
}

Status read_module_names(std::string_view key, const LoraJson& value,
                         std::vector<std::string>& names) {
  if (value.is_null()) return {};
  if (!value.is_array()) return wrong_value(key, value, "a list of names");
  for (const LoraJson& name : value) {
    if (!name.is_string() || name == "") return wrong_value(key, value, "a list of names");
    names.push_back(name.get<std::string>());
  }
  return {};
}

Result<std::vector<std::int64_t>> tokens_in(std::string_view key, const LoraJson& value) {
  std::vector<std::int64_t> tokens;
  const auto is_token = [](const LoraJson& token) {
    return token.is_number_integer() && token >= 0 && token <= kMostToken;
  };
  if (!value.is_array() || !std::ranges::all_of(value, is_token)) {
    return wrong_value(key, value, "a list of tokens");
  }
  for (const LoraJson& token : value) tokens.push_back(token.get<std::int64_t>());
  std::vector<std::int64_t> sorted = tokens;
  std::ranges::sort(sorted);
  if (std::ranges::adjacent_find(sorted) == sorted.end()) return tokens;
  return fail(Code::kJsonCorrupt, "{}: {}: found token {} twice", kLoraConfig, printable(key),
              *std::ranges::adjacent_find(sorted));
}

// A list, of the input embedding, or one for each module.
Status read_trained_tokens(const std::string& key, const LoraJson& value, LoraConfig& config) {
  if (is_switched_off(value)) return {};
  if (!value.is_object()) {
    config.trained_tokens.push_back({"", SW_TRY(tokens_in(key, value))});
    return {};
  }
  for (const auto& [module, tokens] : value.items()) {
    if (module.empty()) return wrong_value(key, value, "names of modules");
    config.trained_tokens.push_back(
        {module, SW_TRY(tokens_in(fmt::format("{}: {}", key, module), tokens))});
  }
  return {};
}

// Starts such as pissa take something out of the base model.
Status check_first_weights(const LoraJson& value) {
  if (value.is_boolean() || value.is_null()) return {};
  if (value.is_string() && is_listed(value.get<std::string>(), kPlainStarts)) return {};
  return fail(Code::kUnsupportedFormat,
              "{}: init_lora_weights {} changes the base model before training, so this adapter "
              "does not belong to the model as it is; let PEFT convert it "
              "(save_pretrained(path_initial_model_for_weight_conversion=...))",
              kLoraConfig, printable(value.dump(-1, ' ', true).substr(0, 100)));
}

Status check_peft_type(const LoraJson& document) {
  const auto type = document.find("peft_type");
  if (type == document.end()) {
    return fail(Code::kJsonCorrupt, "{}: peft_type is missing; it must be LORA", kLoraConfig);
  }
  if (*type == "LORA") return {};
  return fail(
      Code::kUnsupportedFormat,
      "{}: found peft_type {}, expected LORA (rsLoRA and DoRA are such too); let PEFT merge "
      "this one (merge_and_unload)",
      kLoraConfig, printable(type->dump(-1, ' ', true).substr(0, 100)));
}

// `0.18.2.dev0`; what is no version is taken for a new one's.
bool is_version_before_0_19(std::string_view version) {
  constexpr std::string_view kFirst = "0.";
  if (!version.starts_with(kFirst)) return false;
  version.remove_prefix(kFirst.size());
  int minor = 0;
  const auto read = std::from_chars(version.data(), version.data() + version.size(), minor);
  return read.ec == std::errc() && minor < 19;
}

// It only says what was trained, so what is no list of names is no error.
std::vector<std::string> listed_names(const LoraJson& value) {
  std::vector<std::string> names;
  if (!value.is_array()) return names;
  for (const LoraJson& name : value) {
    if (name.is_string() && name != "") names.push_back(name.get<std::string>());
  }
  return names;
}

std::vector<std::int64_t> listed_numbers(const LoraJson& value) {
  std::vector<std::int64_t> numbers;
  if (value.is_number_integer()) numbers.push_back(value.get<std::int64_t>());
  if (!value.is_array()) return numbers;
  for (const LoraJson& number : value) {
    if (number.is_number_integer()) numbers.push_back(number.get<std::int64_t>());
  }
  return numbers;
}

Status read_lora_key(const std::string& key, const LoraJson& value, LoraConfig& config) {
  if (key == "peft_type") return {};
  if (key == "r") {
    config.rank = SW_TRY(rank_in(key, value));
    return {};
  }
  if (key == "lora_alpha") {
    config.alpha = SW_TRY(alpha_in(key, value));
    return {};
  }
  if (key == "use_rslora") return read_lora_flag(key, value, config.uses_rslora);
  if (key == "use_dora") return read_lora_flag(key, value, config.uses_dora);
  if (key == "fan_in_fan_out") return read_lora_flag(key, value, config.is_fan_in_fan_out);
  if (key == "rank_pattern") return read_pattern(key, value, rank_in, config.rank_pattern);
  if (key == "alpha_pattern") return read_pattern(key, value, alpha_in, config.alpha_pattern);
  if (key == "modules_to_save") return read_module_names(key, value, config.modules_to_save);
  if (key == "target_parameters") return read_module_names(key, value, config.target_parameters);
  if (key == "trainable_token_indices") return read_trained_tokens(key, value, config);
  if (key == "init_lora_weights") return check_first_weights(value);
  if (key == "bias") {
    if (value != "none" && value != "all" && value != "lora_only") {
      return wrong_value(key, value, "none, all or lora_only");
    }
    config.saves_biases = value != "none";
    return {};
  }
  if (key == "layers_to_transform") {
    config.chooses_layers = !value.is_null();
    config.chosen_layers = listed_numbers(value);
  }
  if (key == "peft_version" && value.is_string()) {
    config.is_before_0_19 = is_version_before_0_19(value.get<std::string>());
  }
  if (key == "base_model_name_or_path" && value.is_string()) {
    config.base_model = value.get<std::string>();
  }
  if (key == "target_modules") config.target_modules = listed_names(value);
  if (key == "task_type" && value.is_string()) config.task_type = value.get<std::string>();
  if (is_listed(key, kIgnoredLoraKeys) || is_switched_off(value)) return {};
  return fail(Code::kUnsupportedFormat,
              "{}: the key {} is not known, and it may change what the adapter means", kLoraConfig,
              printable(key));
}

// As PEFT matches a name: the whole of it, or its end behind a dot.
bool fits_pattern(std::string_view pattern, std::string_view module) {
  if (pattern.starts_with('^')) return pattern.substr(1) == module;
  if (!module.ends_with(pattern)) return false;
  return module.size() == pattern.size() || module[module.size() - pattern.size() - 1] == '.';
}

}  // namespace

std::int64_t LoraConfig::rank_of(std::string_view module) const {
  const auto own = std::ranges::find_if(
      rank_pattern, [&](const auto& entry) { return fits_pattern(entry.first, module); });
  return own == rank_pattern.end() ? rank : own->second;
}

float LoraConfig::scale_of(std::string_view module) const {
  const auto own = std::ranges::find_if(
      alpha_pattern, [&](const auto& entry) { return fits_pattern(entry.first, module); });
  const double numerator = own == alpha_pattern.end() ? alpha : own->second;
  const auto size = static_cast<double>(rank_of(module));
  return static_cast<float>(numerator / (uses_rslora ? std::sqrt(size) : size));
}

const std::vector<std::int64_t>* LoraConfig::tokens_of(std::string_view module) const {
  const auto own = std::ranges::find_if(trained_tokens, [&](const TrainedTokens& entry) {
    return entry.module.empty() || fits_pattern(entry.module, module);
  });
  return own == trained_tokens.end() ? nullptr : &own->tokens;
}

// As PEFT does it: `norm` means each `input_layernorm` too.
bool LoraConfig::saves(std::string_view module) const {
  while (!module.empty()) {
    if (std::ranges::any_of(modules_to_save,
                            [&](const std::string& name) { return module.ends_with(name); })) {
      return true;
    }
    const std::size_t dot = module.rfind('.');
    module = dot == std::string_view::npos ? std::string_view() : module.substr(0, dot);
  }
  return false;
}

Result<LoraConfig> read_lora_config(std::string_view json) {
  const LoraJson document = SW_TRY(parse_ordered_json(json, kLoraConfig));
  if (!document.is_object()) {
    return fail(Code::kJsonCorrupt, "{}: found {}, expected an object", kLoraConfig,
                document.type_name());
  }
  SW_TRY(check_peft_type(document));
  // First: other keys have a meaning of their own beside these.
  for (const auto& [key, value] : document.items()) {
    if (!is_listed(key, kUnsupportedLoraKeys) || is_switched_off(value)) continue;
    return fail(Code::kUnsupportedFormat,
                "{}: {} is not supported; let PEFT merge this adapter (merge_and_unload)",
                kLoraConfig, key);
  }
  LoraConfig config;
  for (const auto& [key, value] : document.items()) SW_TRY(read_lora_key(key, value, config));
  const auto excluded = document.find("exclude_modules");
  if (excluded != document.end() && !is_switched_off(*excluded)) config.target_modules.clear();
  const bool changes_nothing = config.alpha == 0 && config.alpha_pattern.empty() &&
                               config.modules_to_save.empty() && config.trained_tokens.empty();
  if (!changes_nothing) return config;
  return fail(Code::kUnsupportedFormat,
              "{}: lora_alpha is 0, so the adapter would change nothing; verl has written 0 "
              "whatever a run was trained with: put the run's own number there",
              kLoraConfig);
}

Status check_alpha(const LoraConfig& config, std::string_view module, std::size_t modules) {
  if (config.alpha != 0 || !config.alpha_pattern.empty()) return {};
  return fail(Code::kUnsupportedFormat,
              "{}: lora_alpha is 0, so nothing would become of {} and of {} modules in all; put "
              "the run's own number there",
              kLoraConfig, printable(module), modules);
}

}  // namespace shardwright
