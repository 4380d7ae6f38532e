// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/arguments.h"
#include "model/mapping_file.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// The leaves of a config.json by dotted path (`rope_scaling.factor`); lists other than of whole
/// numbers or of texts are left out. Both spellings of the rotary settings (`rope_theta` with
/// `rope_scaling`, or `rope_parameters`) appear as `rope.theta`, `rope.type`, `rope.factor` and so
/// on, in nested configurations (`text_config.rope.theta`) too.
struct HfConfig {
  Arguments values;
  std::vector<std::string> architectures;
  std::string model_type;
  bool is_of_diffusers = false;  ///< the architecture is what it calls its class
};

/// Errors: kJsonCorrupt, kLimit, kConfigMissing when two spellings contradict each other.
[[nodiscard]] Result<HfConfig> read_hf_config(std::string_view json);

/// Whether a key, within its object, says how the file was written and not what the model is, or is
/// one that HfConfig repeats under one spelling.
[[nodiscard]] bool is_of_the_file(std::string_view key);

/// The numbers that shapes depend on. Error: kConfigMissing naming the key that is missing, is no
/// number, or contradicts another.
[[nodiscard]] Result<ModelSizes> sizes_from_hf_config(const Mapping& mapping,
                                                      const HfConfig& config);
/// `args`: Megatron's argparse Namespace, or the `model:` section of Bridge's run_config.yaml.
[[nodiscard]] Result<ModelSizes> sizes_from_args(const Mapping& mapping, const Arguments& args);

/// Megatron arguments for a model that came from HF.
struct ArgsFromConfig {
  ArgumentList values;             ///< plain values for an argparse.Namespace
  std::vector<std::string> notes;  ///< settings that no argument can express, as sentences
  std::vector<std::string> fixed;  ///< of the notes, those of which Megatron has another value
};

/// The model's part of the Namespace that `--use-checkpoint-args` reads; parallel sizes and
/// training settings are the caller's. Of layers that a model may lack (MTP) those count that `hf`,
/// the model's tensors, shows; without tensors the config's word is taken. Errors: as
/// sizes_from_hf_config, and kConfigMissing for settings that Megatron cannot tell apart.
[[nodiscard]] Result<ArgsFromConfig> args_from_hf_config(const Mapping& mapping,
                                                         const HfConfig& config,
                                                         std::span<const TensorDesc> hf = {});

/// A config.json for a model that has none.
struct ConfigFromArgs {
  std::string json;
  std::vector<std::string> guessed;  ///< keys that nothing in the arguments says
  std::vector<std::string> notes;    ///< arguments that contradict the family, as sentences
};

/// Errors: as sizes_from_args.
[[nodiscard]] Result<ConfigFromArgs> config_from_args(const Mapping& mapping,
                                                      const Arguments& args);

/// Whether the family describes the variant that a config.json is of (the kind of its vision tower,
/// of its language model). Error: kNoFamily, with the key, what it is and what the family knows.
[[nodiscard]] Status check_variant(const Mapping& mapping, const HfConfig& config);

/// Whether a config.json names one of the families: by architecture, or by model type where it
/// names no architecture. Of mappings only these names are looked at.
[[nodiscard]] bool names_one_of(const HfConfig& config, std::span<const Mapping> mappings);

/// The family that a config.json names by architecture, else by model type. The pointer is into
/// `mappings`. Errors: kNoFamily, kAmbiguousFamily, listing the candidates; those of check_variant.
[[nodiscard]] Result<const Mapping*> find_family(std::span<const Mapping> mappings,
                                                 const HfConfig& config);
/// The family of that name. Error: kNoFamily.
[[nodiscard]] Result<const Mapping*> find_family(std::span<const Mapping> mappings,
                                                 std::string_view name);
/// The only family that these arguments and tensors fit, element by element. Errors: as above.
[[nodiscard]] Result<const Mapping*> find_family(std::span<const Mapping> mappings,
                                                 const Arguments& args,
                                                 std::span<const TensorDesc> canonical);

}  // namespace shardwright
