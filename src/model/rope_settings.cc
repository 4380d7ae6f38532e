// SPDX-License-Identifier: Apache-2.0
#include "model/rope_settings.h"

#include <optional>
#include <string_view>
#include <variant>

#include "base/fail.h"
#include "model/config_rules.h"

namespace shardwright {
namespace {

Status add_rope(Arguments& rope, const std::string& key, const ArgValue& value,
                std::string_view source) {
  const auto [place, is_new] = rope.emplace(key, value);
  if (is_new || same_value(place->second, value)) return {};
  return fail(Code::kConfigMissing,
              "config.json: found {} = {}, expected {} as its other spelling says; make them agree",
              source, to_string(value), to_string(place->second));
}

std::string plain_rope_key(const std::string& key) {
  const bool is_named = key == "rope_theta" || key == "rope_type";
  return is_named ? key.substr(5) : key;
}

constexpr std::string_view kWholeLayers = "rope_parameters.full_attention.";

// Where layers with a sliding window have rotary settings of their own, those of the others count,
// and what stands beside them does not.
bool is_by_layer(const Arguments& values, const std::string& section) {
  const std::string prefix = section + std::string(kWholeLayers);
  const auto found = values.lower_bound(prefix);
  return found != values.end() && found->first.starts_with(prefix);
}

Arguments rope_by_layer(const Arguments& values, const std::string& section) {
  const std::string prefix = section + "rope_parameters.";
  const std::string whole_layers = section + std::string(kWholeLayers);
  Arguments rope;
  for (const auto& [path, value] : values) {
    if (path.starts_with(whole_layers)) {
      rope[plain_rope_key(path.substr(whole_layers.size()))] = value;
    } else if (path.starts_with(prefix) && path.find('.', prefix.size()) != std::string::npos) {
      rope[path.substr(prefix.size())] = value;
    }
  }
  return rope;
}

// What transformers takes for YaRN's settings that are left out: the model's own positions are
// those of its first training, and the factor is by how much they have grown. (transformers
// modeling_rope_utils.py, `standardize_rope_params` and `_compute_yarn_parameters`.)
void complete_yarn(const Arguments& values, const std::string& section, Arguments& rope) {
  const ArgValue* type = find_set(rope, "type");
  if (type == nullptr || !same_value(*type, ArgValue{std::string("yarn")})) return;
  const ArgValue* positions = find_set(values, section + "max_position_embeddings");
  if (positions == nullptr) return;
  const ArgValue* own = find_set(values, section + "original_max_position_embeddings");
  const ArgValue& original =
      rope.emplace("original_max_position_embeddings", own != nullptr ? *own : *positions)
          .first->second;
  const std::int64_t first = whole_or(&original, 0);
  if (first < 1) return;
  const std::int64_t now = whole_or(positions, 0);
  rope.emplace("factor", plain_number(static_cast<double>(now) / static_cast<double>(first)));
}

// Whether a section (empty, or with a dot at its end) has only what the plain rotary embedding
// needs.
bool has_plain_rope(const Arguments& values, const std::string& section) {
  const ArgValue* type = find_set(values, section + "rope.type");
  if (type != nullptr && !same_value(*type, ArgValue{std::string("default")})) return false;
  return find_set(values, section + "rope.mrope_section") == nullptr;
}

}  // namespace

Status add_rope_values(const std::string& section, Arguments& values) {
  Arguments rope;
  std::optional<ArgValue> old_type;
  const bool by_layer = is_by_layer(values, section);
  if (by_layer) rope = rope_by_layer(values, section);
  for (const auto& [path, value] : values) {
    if (by_layer) break;
    for (const std::string& prefix : {section + "rope_parameters.", section + "rope_scaling."}) {
      if (!path.starts_with(prefix) || std::holds_alternative<std::monostate>(value)) continue;
      const std::string key = path.substr(prefix.size());
      if (key == "type") {
        old_type = value;  // where both are given `rope_type` is the one that is read
      } else {
        SW_TRY(add_rope(rope, plain_rope_key(key), value, path));
      }
    }
  }
  const ArgValue* theta = by_layer ? nullptr : find_set(values, section + "rope_theta");
  if (theta != nullptr) SW_TRY(add_rope(rope, "theta", *theta, section + "rope_theta"));
  if (section.empty() || !rope.empty() || old_type) {
    rope.emplace("type", old_type.value_or(ArgValue{std::string("default")}));
  }
  if (!by_layer) complete_yarn(values, section, rope);
  for (auto& [key, value] : rope) values[section + "rope." + key] = std::move(value);
  return {};
}

std::string written_path(const std::string& path, const Arguments& values) {
  constexpr std::string_view kRope = "rope.";
  if (const std::size_t whole = path.rfind(kWholeLayers); whole != std::string::npos) {
    const std::string section = path.substr(0, whole);
    const bool is_type = path.substr(section.size() + kWholeLayers.size()) == "rope_type";
    return is_type && !has_plain_rope(values, section) ? std::string() : path;
  }
  const std::size_t rope = path.rfind("." + std::string(kRope));
  const std::string section = rope == std::string::npos ? "" : path.substr(0, rope + 1);
  const std::string key = path.substr(section.size());
  if (!key.starts_with(kRope)) return path;
  const bool by_layer = is_by_layer(values, section);
  if (key == "rope.theta") return by_layer ? std::string() : section + "rope_theta";
  if (has_plain_rope(values, section)) return {};
  const std::string place =
      section + (by_layer ? std::string(kWholeLayers) : std::string("rope_scaling."));
  if (key == "rope.type") return place + "rope_type";
  return place + key.substr(kRope.size());
}

}  // namespace shardwright
