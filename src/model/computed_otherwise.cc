// SPDX-License-Identifier: Apache-2.0
#include "model/computed_otherwise.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <variant>

#include "base/translated.h"
#include "model/arguments.h"
#include "model/config_rules.h"
#include "model/layer_differences.h"
#include "model/routing_differences.h"

namespace shardwright {
namespace {

using Sentences = std::vector<std::string>;

std::string_view text_of(const Arguments& values, std::string_view name) {
  const ArgValue* found = find_set(values, name);
  const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(found);
  return text == nullptr ? std::string_view() : *text;
}

// The settings of the language model under the names that they have where there is nothing else.
Arguments without_section(const Mapping& mapping, const Arguments& values) {
  if (mapping.config_section.empty()) return values;
  const std::string prefix = mapping.config_section + ".";
  Arguments own;
  for (const auto& [path, value] : values) {
    if (path.starts_with(prefix)) own.emplace(path.substr(prefix.size()), value);
  }
  return own;
}

// Whether any rule of the family takes this setting, for an argument that no rule before it took.
bool is_read(const Mapping& mapping, std::string_view end) {
  std::set<std::string_view> taken;
  return std::ranges::any_of(mapping.config, [&](const ConfigRule& rule) {
    if (rule.args.empty() || !taken.insert(rule.args[0]).second) return false;
    return std::ranges::any_of(rule.hf,
                               [&](const std::string& name) { return name.ends_with(end); });
  });
}

// Whether some rule has a word for this type, or notes that it has none.
bool is_told_apart(const ConfigRule& rule, const ArgValue& type) {
  const auto is_it = [](const std::string& name) { return name.ends_with("rope.type"); };
  if (rule.args.empty() || std::ranges::none_of(rule.hf, is_it)) return false;
  if (rule.when_set) return same_value(*rule.when_set, type);
  const auto is_type = [&](const auto& pair) { return same_value(pair.first, type); };
  return !rule.otherwise || std::ranges::any_of(rule.map, is_type);
}

bool turns_channels(const Arguments& args) {
  const std::string_view positions = text_of(args, "position_embedding_type");
  return positions != "none" && positions != "learned_absolute" && positions != "relative";
}

// The type that all layers have, or those with whole attention.
void add_rope_type(const Mapping& mapping, const Arguments& hf, const Arguments& args,
                   Sentences& told) {
  const std::string_view type = text_of(hf, "rope.type");
  if (type.empty() || type == "default" || !turns_channels(args)) return;
  const ArgValue value{std::string(type)};
  const bool is_known = std::ranges::any_of(
      mapping.config, [&](const ConfigRule& rule) { return is_told_apart(rule, value); });
  if (is_known) return;
  told.push_back(
      translated("rotary frequencies are scaled as rope.type = {} says, and the "
                 "arguments have position_embedding_type = {}",
                 type, text_of(args, "position_embedding_type")));
}

// A file without rotary settings has the scaling of the model's class, if that has one: what such a
// family's files say where nothing is scaled.
void add_rope_of_the_class(const Mapping& mapping, const Arguments& hf, Sentences& told) {
  const bool has_one = std::ranges::any_of(mapping.config, [](const ConfigRule& rule) {
    return rule.value && !rule.hf.empty() && rule.hf[0].ends_with("rope_scaling.rope_type");
  });
  const bool is_said = std::ranges::any_of(hf, [](const auto& setting) {
    return setting.first.starts_with("rope_scaling.") ||
           setting.first.starts_with("rope_parameters.");
  });
  if (!has_one || is_said) return;
  told.push_back(
      translated("rotary frequencies are scaled as the model's class has it, for config.json has "
                 "no rope_parameters"));
}

void add_rope_of_windows(const Mapping& mapping, const Arguments& hf, Sentences& told) {
  constexpr std::string_view kType = "rope.sliding_attention.rope_type";
  constexpr std::string_view kTheta = "rope.sliding_attention.rope_theta";
  const std::string_view type = text_of(hf, kType);
  if (!type.empty() && type != "default" && !is_read(mapping, "sliding_attention.rope_type")) {
    told.push_back(
        translated("rotary frequencies of layers with a sliding window are scaled as {} = {} says",
                   kType, type));
  }
  const ArgValue* theta = find_set(hf, kTheta);
  const ArgValue* whole = find_set(hf, "rope.theta");
  const bool is_own = theta != nullptr && whole != nullptr && !same_value(*theta, *whole);
  if (is_own && !is_read(mapping, "sliding_attention.rope_theta")) {
    told.push_back(
        translated("layers with a sliding window have {} = {}", kTheta, to_string(*theta)));
  }
}

// Where the family's files have another type than the one that its rules go by.
void add_rope_of_whole(const Mapping& mapping, const Arguments& hf, Sentences& told) {
  const std::string_view type = text_of(hf, "rope.type");
  if (is_read(mapping, "rope.type")) return;  // add_rope_type's
  for (const ConfigRule& rule : mapping.config) {
    const bool is_type = !rule.hf.empty() && rule.hf[0].ends_with("full_attention.rope_type");
    if (!is_type || !rule.fallback || type.empty()) continue;
    if (same_value(*rule.fallback, ArgValue{std::string(type)})) continue;
    told.push_back(
        translated("rotary frequencies of layers with whole attention are scaled as "
                   "rope.full_attention.rope_type = {} says",
                   type));
  }
}

// Of the arguments that say how positions are scaled none tells layers apart.
void add_windows_unscaled(const Mapping& mapping, const Arguments& hf, const Arguments& args,
                          Sentences& told) {
  const std::string_view type = text_of(hf, "rope.sliding_attention.rope_type");
  if (!is_read(mapping, "sliding_attention.rope_theta") || (!type.empty() && type != "default")) {
    return;
  }
  const bool is_scaled = is_true(args, "use_rope_scaling") ||
                         text_of(args, "position_embedding_type") == "yarn" ||
                         find_set(args, "rotary_seq_len_interpolation_factor") != nullptr;
  if (!is_scaled) return;
  told.push_back(
      translated("rotary frequencies of layers with a sliding window are not scaled as rope.type = "
                 "{} says of the others",
                 text_of(hf, "rope.type")));
}

void add_yarn_of_a_part(const Arguments& args, Sentences& told) {
  if (text_of(args, "position_embedding_type") != "yarn") return;
  if (is_true(args, "multi_latent_attention")) return;  // with widths of its own
  const ArgValue* share = find_set(args, "rotary_percent");
  const auto* number = share == nullptr ? nullptr : std::get_if<double>(share);
  if (number == nullptr || *number >= 1.0) return;
  told.push_back(
      translated("YaRN turns rotary_percent = {} of a head's channels, where "
                 "Megatron-Core's turns all of them",
                 to_string(*share)));
}

void add_yarn_of_pairs(const Arguments& args, Sentences& told) {
  if (text_of(args, "position_embedding_type") != "yarn" || !is_true(args, "rotary_interleaved")) {
    return;
  }
  told.push_back(
      translated("YaRN turns channels that lie in pairs (rotary_interleaved), where Megatron-Core "
                 "builds no model with both"));
}

void add_query_without_norm(const Arguments& args, Sentences& told) {
  const bool is_compressed = find_set(args, "q_lora_rank") != nullptr;
  const bool is_latent = is_true(args, "multi_latent_attention");
  if (!is_latent || is_compressed || !is_true(args, "qk_layernorm")) return;
  told.push_back(
      translated("queries that are not compressed (q_lora_rank = None) have no norm, where "
                 "Megatron-Core 0.19 gives them one with qk_layernorm and wants its weights, "
                 "self_attention.linear_q_proj.layer_norm_weight (0.16 does not)"));
}

void add_latent_epsilon(const Mapping& mapping, const Arguments& args, Sentences& told) {
  const ArgValue* const epsilon = first_said(args, "layernorm_epsilon|norm_epsilon").value;
  if (!mapping.latent_epsilon || epsilon == nullptr || !is_true(args, "multi_latent_attention")) {
    return;
  }
  if (same_value(*epsilon, ArgValue{*mapping.latent_epsilon})) return;
  told.push_back(
      translated("norms of compressed queries, keys and values have an epsilon of {}, where "
                 "Megatron-Core takes the model's, {}",
                 to_string(ArgValue{*mapping.latent_epsilon}), to_string(*epsilon)));
}

void add_routers_and_layers(const Mapping& mapping, const Arguments& values, const Arguments& args,
                            Sentences& told) {
  std::ranges::move(routing_differences(mapping, values, args), std::back_inserter(told));
  std::ranges::move(layer_differences(mapping, values, args), std::back_inserter(told));
}

}  // namespace

std::vector<std::string> computed_otherwise(const Mapping& mapping, const Arguments& values,
                                            const Arguments& args) {
  const Arguments hf = without_section(mapping, values);
  Sentences told;
  add_rope_type(mapping, hf, args, told);
  add_rope_of_the_class(mapping, hf, told);
  add_rope_of_windows(mapping, hf, told);
  add_rope_of_whole(mapping, hf, told);
  add_windows_unscaled(mapping, hf, args, told);
  add_yarn_of_a_part(args, told);
  add_yarn_of_pairs(args, told);
  add_query_without_norm(args, told);
  add_latent_epsilon(mapping, args, told);
  if (is_true(hf, "rope.mrope_interleaved")) {
    told.push_back(
        translated("time, height and width of pictures turn channels by turns "
                   "(mrope_interleaved), where Megatron-Core's turn a block each"));
  }
  add_routers_and_layers(mapping, values, args, told);
  return told;
}

std::vector<std::string> run_computed_otherwise(const Mapping& mapping, const Arguments& values,
                                                const Arguments& args) {
  Sentences told;
  add_latent_epsilon(mapping, args, told);
  add_routers_and_layers(mapping, values, args, told);
  return told;
}

}  // namespace shardwright
