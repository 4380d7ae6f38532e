// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/alike_part.h"
#include "model/arguments.h"
#include "model/component_route.h"
#include "model/config_rule.h"
#include "model/mapping_heading.h"
#include "model/model_part.h"
#include "model/module_names.h"
#include "model/size_rule.h"
#include "model/tensor_rule.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// An argument that must be set, to this value where one is given.
struct NeededArg {
  std::string name;
  std::optional<ArgValue> value;
};

/// A key of config.json and the values that the family knows; a file without it has one of them.
struct NeededConfig {
  std::string key;               ///< from the root of the file
  std::vector<ArgValue> values;  ///< none: any, but the key must be set
};

/// One family, ready to apply. Immutable after parsing, so it may be shared between threads.
struct Mapping {
  std::string file;  ///< name of the mapping file, for messages
  std::string family;
  std::vector<std::string> architectures;  ///< HF's class names, the written one first
  std::vector<std::string> model_types;    ///< likewise
  std::vector<std::string> models;         ///< as their makers call them
  std::string names_from;                  ///< who publishes the Megatron names; empty: nobody
  /// Its config.json has one class under `_class_name` and no model type.
  bool is_of_diffusers = false;
  std::string torch_dist_prefix;      ///< what all names begin with in torch_dist, and nowhere else
  std::vector<NeededArg> needs_args;  ///< what only this family's arguments have
  std::vector<NeededConfig> needs_config;  ///< the variants of its architecture that it describes
  /// Whether arguments and tensors alone may give this family; not where another one looks the
  /// same.
  bool inferred = true;
  std::vector<std::string> beyond_args;  ///< what its models compute and no argument says
  /// That of the norms of latent attention's compressed vectors, where it is not the model's.
  std::optional<double> latent_epsilon;
  std::optional<double> mixer_epsilon;  ///< likewise of the norms in Mamba mixers
  /// How the names of tensors end, on either side, that have an entry for each token which nobody
  /// can make up for a new one, or not where new rows go.
  std::vector<std::string> token_tables;
  /// How names of Hugging Face's tensors end that its code computes with in float32 in any case.
  std::vector<std::string> float32_names;
  /// The object of config.json that has the language model's keys; empty: the top level. Paths of
  /// `sizes` and `config` begin with it already.
  std::string config_section;
  std::vector<SizeRule> sizes;
  std::vector<IndexRule> indices;
  std::vector<Item> items;
  std::vector<AlikePart> alike;
  std::vector<CopyRule> copies;
  std::vector<NameRule> ignore;
  std::vector<std::string> computed;  ///< Megatron's buffers that it makes when it starts
  std::vector<ConfigRule> config;
  std::vector<ComponentRoute> components;  ///< empty: no MIMO model is known of this family
  std::vector<ModelPart> parts;            ///< empty: its models are not put together of parts
  std::vector<ModuleWords> modules;        ///< where modules are called otherwise than in files
};

/// Whether a mapping is needed, of which only file, family, architectures and model types are known
/// yet. To parse the rules of fifty families takes longer than to hash a gigabyte.
using WantedMapping = std::function<bool(const Mapping& names)>;

/// Parses mapping files that may extend each other by family name; abstract ones are only
/// extended and not returned. Strict: anything that models/schema.json does not allow, and names
/// or sizes that don't fit together, are kMappingInvalid with the place in the file. Of a file that
/// is not wanted, nor extended by one that is, nothing but the heading is looked at.
[[nodiscard]] Result<std::vector<Mapping>> parse_mappings(std::span<const MappingText> texts,
                                                          const WantedMapping& wanted = {});

/// One mapping file that extends nothing.
[[nodiscard]] Result<Mapping> parse_mapping(std::string_view json, std::string name);

}  // namespace shardwright
