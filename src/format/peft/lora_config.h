// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shardwright/error.h"

namespace shardwright {

/// Tokens that have trained rows of their own (`trainable_token_indices`).
struct TrainedTokens {
  std::string module;  ///< the end of its name, at dots; empty: the input embedding
  std::vector<std::int64_t> tokens;
};

/// What PEFT's adapter_config.json says of a LoRA adapter, as far as merging needs it.
struct LoraConfig {
  std::int64_t rank = 8;
  double alpha = 8;
  bool uses_rslora = false;
  bool uses_dora = false;
  bool is_fan_in_fan_out = false;  ///< weights are stored [inputs, outputs]
  bool saves_biases = false;
  /// Modules with a rank or an alpha of their own, by the end of their name; the first that fits
  /// counts. A name that begins with `^` is a whole one.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern;
  std::vector<std::pair<std::string, double>> alpha_pattern;
  std::vector<std::string> modules_to_save;    ///< ends of names, not only at dots
  std::vector<std::string> target_parameters;  ///< ends of parameters' names, at dots
  std::vector<TrainedTokens> trained_tokens;
  bool chooses_layers = false;  ///< layers_to_transform is set
  /// Those that it names; none where it is no number and no list of numbers.
  std::vector<std::int64_t> chosen_layers;
  /// Ends of modules' names, at dots; none where they are a pattern, or exclude_modules takes some
  /// away.
  std::vector<std::string> target_modules;
  std::string base_model;  ///< base_model_name_or_path; may be empty
  std::string task_type;   ///< likewise
  /// Written by a PEFT before 0.19, whose lora_A of a parameter of all experts has as many columns
  /// as the parameter's second axis has coordinates, whichever axis its inputs are.
  bool is_before_0_19 = false;

  /// Of a module, by its name in the base model.
  [[nodiscard]] std::int64_t rank_of(std::string_view module) const;
  /// What its product is multiplied with: alpha by the rank, or by its square root with rsLoRA.
  [[nodiscard]] float scale_of(std::string_view module) const;
  /// The tokens that have trained rows in a module; null where none have.
  [[nodiscard]] const std::vector<std::int64_t>* tokens_of(std::string_view module) const;
  /// Whether a module, or one around it, is in modules_to_save.
  [[nodiscard]] bool saves(std::string_view module) const;
};

/// Whether something becomes of an adapter's low-rank modules, of which `module` is one: an alpha
/// of 0 would go unnoticed beside what is trained whole, which does change the model. Error:
/// kUnsupportedFormat.
[[nodiscard]] Status check_alpha(const LoraConfig& config, std::string_view module,
                                 std::size_t modules);

/// Reads an adapter_config.json. Errors: kJsonCorrupt for other types than PEFT writes or numbers
/// that nothing can be; kUnsupportedFormat with the name of another peft_type than LORA, of an
/// option that changes what an adapter means and is not supported, and of a key that is not known.
[[nodiscard]] Result<LoraConfig> read_lora_config(std::string_view json);

}  // namespace shardwright
