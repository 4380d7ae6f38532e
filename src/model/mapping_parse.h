// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "model/json_node.h"
#include "model/mapping_file.h"

namespace shardwright {

/// The names that one mapping file's expressions and templates may use.
struct KnownNames {
  std::set<std::string, std::less<>> sizes;
  std::set<std::string, std::less<>> indices;
  std::string config_section;  ///< what paths of config.json are relative to
};

/// The place's complaint about a text that SizeExpr or NameTemplate refused.
[[nodiscard]] std::unexpected<Error> refused(const JsonNode& node, Error error);

[[nodiscard]] Result<ArgValue> parse_value(const JsonNode& node);
[[nodiscard]] Result<SizeExpr> parse_expr(const JsonNode& node, const KnownNames& known,
                                          const std::vector<std::string>& loops = {});
/// `if` or `unless` of an object, if it has one.
[[nodiscard]] Result<std::optional<Condition>> parse_condition(const JsonNode& node,
                                                               const KnownNames& known);
[[nodiscard]] Result<bool> flag_or(const JsonNode& node, std::string_view key, bool otherwise);
[[nodiscard]] Result<std::vector<std::string>> texts_or_none(const JsonNode& node,
                                                             std::string_view key);

[[nodiscard]] Result<SizeRule> parse_size_rule(const std::string& name, const JsonNode& node,
                                               const KnownNames& known);
/// The file's `latent_epsilon` or `mixer_epsilon`. Null where a family that it extends has one and
/// it has none.
[[nodiscard]] Result<std::optional<double>> parse_epsilon(const JsonNode& root,
                                                          std::string_view key);

[[nodiscard]] Result<ConfigRule> parse_config_rule(const std::string& name, const JsonNode& node,
                                                   const KnownNames& known);

/// `components`: the parts of a multimodal model, in a MIMO run and among HF files.
struct Components {
  std::vector<ComponentRoute> routes;
  std::vector<ModelPart> parts;
};
[[nodiscard]] Result<Components> parse_components(const JsonNode& node, const KnownNames& known);

/// One rule, its names prefixed. `loops` are the loop variables that are bound around it.
struct RulePrefix {
  std::string megatron;
  std::string hf;
  std::vector<std::string> loops;
};
[[nodiscard]] Result<Rule> parse_rule(const JsonNode& node, const RulePrefix& prefix,
                                      const KnownNames& known);
/// The transform that a rule object names, and the HF roles in the order in which it counts them.
struct ParsedTransform {
  Transform transform;
  std::vector<std::string> hf_roles;        ///< empty: names without role
  std::vector<std::string> megatron_roles;  ///< likewise
};
[[nodiscard]] Result<ParsedTransform> parse_transform(const JsonNode& node, const KnownNames& known,
                                                      const std::vector<std::string>& loops);

/// The members needs_args, needs_config and alike (with what `holds` says of its parts) of a
/// mapping file; empty where it has none.
[[nodiscard]] Result<std::vector<NeededArg>> parse_needed_args(const JsonNode& root);
[[nodiscard]] Result<std::vector<NeededConfig>> parse_needed_config(const JsonNode& root);
[[nodiscard]] Result<std::vector<AlikePart>> parse_alike(const JsonNode& root);
/// Whether what a file says itself in `holds`, before those that it extends, is of `parts`.
[[nodiscard]] Status check_held(const JsonNode& root, const std::vector<AlikePart>& parts);

}  // namespace shardwright
