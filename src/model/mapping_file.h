// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "model/arguments.h"
#include "model/component_route.h"
#include "model/mapping_heading.h"
#include "model/model_part.h"
#include "model/module_names.h"
#include "model/name_template.h"
#include "model/transform.h"
#include "shardwright/mapping.h"

namespace shardwright {

/// A size that must be non-zero, or zero, for a rule to apply (`unless: tied`).
struct Condition {
  std::string size;
  bool non_zero = true;
};

/// The smallest statement of a mapping: these HF tensors are these Megatron tensors.
struct Rule {
  std::vector<NameTemplate> megatron;
  /// Other names of megatron[0] that a Megatron checkpoint may use; read, never written.
  std::vector<NameTemplate> aliases;
  std::vector<NameTemplate> hf;
  Transform transform;
  Dims permute;
  /// What the extents of megatron[0] must be, or of hf[0] where there are several Megatron tensors;
  /// empty where the family does not say. Without the leading axis of `stack`.
  std::vector<SizeExpr> shape;
  /// The loop variable that only the HF names have: its values lie along a leading Megatron axis.
  std::string stack;
  std::optional<DType> dtype;  ///< pinned: the Megatron tensor has it whatever HF has
  double offset = 0.0;         ///< added to an HF element to get the Megatron element
  bool optional = false;
  bool expected = false;  ///< although it is optional: told where a model lacks it
  bool vocabulary = false;
  std::optional<Condition> condition;
  std::string path;  ///< where the mapping file states it, for messages
};

struct Item;

/// Rules that apply once, or once for every value of a loop variable.
struct Section {
  std::string index;  ///< empty: once
  std::optional<Condition> condition;
  std::vector<Item> items;
};

/// Exactly one of the options applies; which one is decided by the tensors that exist.
struct Choice {
  std::vector<std::vector<Item>> options;
  /// A size, or empty: where it is known and not 0 only the options with rules may apply; if it is
  /// 0, of a Megatron model only the one without.
  std::string told_by = {};
};

struct Item {
  std::variant<Rule, Section, Choice> value;
};

/// A loop variable of names and the size that bounds it.
struct IndexRule {
  std::string name;
  std::string size;
  /// Count what the tensors show, whatever the configuration says (MTP layers are often dropped).
  bool observed = false;
};

/// An HF name outside the rules, once or for every value of the loop variable that it uses.
struct NameRule {
  NameTemplate hf;
  std::string index;  ///< empty: once
};

/// An HF tensor that repeats another one, or that Megatron has no place for at all.
struct CopyRule {
  NameRule hf;
  std::vector<NameTemplate> originals;  ///< the first one stored is meant; empty: none
  bool emitted_by_default = false;
  std::optional<Condition> condition;
  std::string inner;  ///< a second loop variable of the names, inside that of `hf`; empty: none
  std::optional<NameTemplate> beside = std::nullopt;  ///< written only where this is
};

/// Sizes of models that config.json only names (`openai/clip-vit-large-patch14-336`): by the last
/// part of such a path.
struct NamedSizes {
  std::string key;  ///< from the root of the file
  std::vector<std::pair<std::string, std::int64_t>> sizes;
};

/// Tensors whose extent along an axis a size is, where nothing in config.json leads to it.
struct SizeShown {
  std::string hf;
  std::string megatron;
  int axis = 0;
};

/// Where a size comes from, in the words of config.json and of Megatron's arguments.
struct SizeRule {
  std::string name;
  std::vector<std::string> hf;      ///< the first is the one that is written
  std::vector<std::string> args;    ///< likewise; a leading `!` negates a flag
  std::string args_if;              ///< ignore `args` where this argument is false or absent
  std::string none_without;         ///< the first of `args` is None where that size is 0
  NamedSizes named;                 ///< where no key of `hf` is set
  std::vector<SizeExpr> fallbacks;  ///< the first whose names are known
  bool optional = false;
  bool flag = false;        ///< written as true or false
  bool first_wins = false;  ///< several names may legitimately differ
  /// Not one number but one of each layer: 1 where the attention has a sliding window, else 0, for
  /// conditions inside the loop over layers. `fallbacks`: every how many-th layer has none.
  bool each_window = false;
  /// Likewise: 1 for the layers from that size on.
  std::string each_from;
  /// Likewise: 1 for the layers whose numbers are listed.
  bool each_listed = false;
  /// Likewise: 1 for the layers whose entry in a list is over this number.
  std::optional<std::int64_t> each_over;
  /// Likewise, for shapes too: the layer's entry in a list; without one, what `fallbacks` say.
  bool each_entry = false;

  /// Whether it is a number of each layer.
  [[nodiscard]] bool is_of_layers() const {
    return each_window || !each_from.empty() || each_listed || each_over.has_value() || each_entry;
  }
  std::vector<SizeShown> shown_by;  ///< the first that is there counts
};

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

/// One correspondence between config.json and Megatron's arguments that shapes do not need.
struct ConfigRule {
  enum class Kind : std::uint8_t {
    kPair,             ///< `hf` and `args` hold the same value, `map`ped
    kWindow,           ///< HF counts the tokens of a sliding window, Megatron those before the last
    kDenseFirst,       ///< HF counts leading dense layers, Megatron lists every layer
    kExpertRange,      ///< HF gives first, last and interval of the layers with experts
    kExpertNumbers,    ///< HF lists the numbers of the layers with experts, Megatron lists every
                       ///< layer
    kExpertTypes,      ///< HF names every layer's MLP, Megatron says which have experts
    kIndexerLayers,    ///< HF names every layer's indexer, Megatron has a frequency and an offset
    kInverted,         ///< a list of 0 and 1, exchanged; of layer types 1 for whole attention
    kListed,           ///< HF has numbers under keys of their own, Megatron lists them
    kSparseStep,       ///< HF gives a step and exceptions, Megatron lists every layer
    kAlike,            ///< the values of `hf` must be the same: Megatron cannot tell them apart
    kLinearAttention,  ///< HF lists every layer's attention or an interval, Megatron likewise
    kBlockPattern,     ///< HF lists every layer's block, Megatron has a letter for each
    kWindowLayers,     ///< HF names every layer's attention, Megatron says which have the window
    kWindowPattern,    ///< the same, and Megatron says how the two kinds alternate
    kInverseSqrt,      ///< Megatron has one over the square root of HF's number
    kFraction,         ///< Megatron has HF's number as a fraction of `size`
    kEncoded,          ///< Megatron has JSON text of an object with HF's list of objects
  };
  std::string name;
  Kind kind = Kind::kPair;
  std::vector<std::string> hf;
  std::vector<std::string> args;
  std::optional<ArgValue> value;                   ///< a constant of the family
  std::optional<SizeExpr> size;                    ///< computed from sizes
  std::optional<ArgValue> fallback;                ///< the HF value where nothing says it
  std::vector<std::pair<ArgValue, ArgValue>> map;  ///< HF value, argument
  std::optional<ArgValue> otherwise;               ///< the argument for HF values that `map` lacks
  std::optional<ArgValue> when_set;  ///< the HF value that a non-null argument implies
  std::optional<ArgValue> unset;     ///< the HF value that an argument which is None implies
  std::vector<std::pair<std::string, ArgValue>> conditions;  ///< HF key, value it must have
  bool integer = false;                                      ///< Megatron wants a whole number
  bool flag = false;  ///< `size` is written as whether it is not zero
  /// Of rules that list layers: by kind HF names of which exactly the layers of that kind have one.
  /// They count layers as `layer`.
  std::vector<std::pair<std::string, std::vector<NameTemplate>>> shown_by;
  bool inert = false;  ///< Megatron-Core computes nothing with the argument
};

/// A tensor that a part has whatever the model, if it has anything, by the names that it may have
/// behind the part's prefix, or behind a module more (`vision_model.`).
struct HeldTensor {
  std::vector<std::string> names;
};

/// A part of a model (a vision tower) whose tensors Megatron takes from HF as they are, whatever
/// they are called behind these prefixes.
struct AlikePart {
  std::string megatron;         ///< ends with a dot
  std::vector<std::string> hf;  ///< all spellings; the first is the one that is written
  bool optional = false;
  std::vector<HeldTensor> holds = {};
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
